/* SPDX-License-Identifier: Apache-2.0 */
/* Fields that say which form an answer must have. */

#include <stdlib.h>
#include <string.h>

#include "serve/interfaces/fields.h"

static bool is_word(const json_t *value, const char *word) {
    const char *given = json_string_value(value);
    return given != NULL && strcmp(given, word) == 0;
}

static bool is_absent(const json_t *value) {
    return value == NULL || json_is_null(value);
}

/* Sets the form of answers; a request may ask for only one. */
static bool set_form(const field_reading *in, ask_form form) {
    ask_form *f = &in->a->form;
    form.field = in->at->name;
    if (f->field != NULL)
        return refuse(in->r, 400, form.field, "%s: not together with %s", form.field, f->field);
    *f = form;
    return true;
}

/* Sets a schema: an object, or true or false; or the text of one, as clients of vLLM send it. */
static bool set_schema(const field_reading *in, const json_t *schema, const char *place) {
    if (json_is_string(schema)) {
        ask *a = in->a;
        json_decref(a->form_schema);
        a->form_schema =
            ask_parse(json_string_value(schema), json_string_length(schema), place, in->r);
        if (a->form_schema == NULL)
            return false;
        schema = a->form_schema;
    }
    if (!json_is_object(schema) && !json_is_boolean(schema))
        return refuse(in->r, 400, in->at->name, "%s must be a JSON Schema, an object", place);
    return set_form(in, (ask_form){.place = place, .schema = schema});
}

/* Reads {"name", "schema", "strict"}. `prefix` names it in messages, `place` its schema. */
static bool read_named(const field_reading *in, const json_t *named, const char *prefix,
                       const char *place) {
    const json_t *name = json_object_get(named, "name");
    const json_t *strict = json_object_get(named, "strict");
    if (!is_absent(name) && !json_is_string(name))
        return refuse(in->r, 400, in->at->name, "%s.name must be a text", prefix);
    if (!is_absent(strict) && !json_is_boolean(strict))
        return refuse(in->r, 400, in->at->name, "%s.strict must be true or false", prefix);
    return set_schema(in, json_object_get(named, "schema"), place);
}

static bool refuse_type(const field_reading *in) {
    return refuse(in->r, 400, in->at->name,
                  "%s: \"type\" must be \"text\", \"json_object\" or \"json_schema\"",
                  in->at->name);
}

/* Reads json_object. llama.cpp's clients may send a schema in it. */
static bool read_object(const field_reading *in, const json_t *value) {
    const json_t *schema = json_object_get(value, "schema");
    return is_absent(schema) ? set_form(in, (ask_form){.place = in->at->name})
                             : set_schema(in, schema, "response_format.schema");
}

bool field_read_format(const field_reading *in, const json_t *value) {
    const json_t *type = json_object_get(value, "type");
    if (is_word(type, "text"))
        return true;
    if (is_word(type, "json_object"))
        return read_object(in, value);
    if (!is_word(type, "json_schema"))
        return refuse_type(in);
    return read_named(in, json_object_get(value, "json_schema"), "response_format.json_schema",
                      "response_format.json_schema.schema");
}

bool field_read_text(const field_reading *in, const json_t *value) {
    const json_t *format = json_object_get(value, "format");
    const json_t *type = json_object_get(format, "type");
    if (!is_absent(json_object_get(value, "verbosity")))
        ask_note_ignored(in->a, "text.verbosity");
    if (json_is_object(value) && (is_absent(format) || is_word(type, "text")))
        return true;
    if (is_word(type, "json_object"))
        return set_form(in, (ask_form){.place = "text.format"});
    if (!is_word(type, "json_schema"))
        return refuse_type(in);
    return read_named(in, format, "text.format", "text.format.schema");
}

/* Reads output_format, or the member `format` of output_config. */
bool field_read_output_format(const field_reading *in, const json_t *value) {
    const bool member = strcmp(in->at->name, "output_config") == 0;
    const char *name = member ? "output_config.format" : in->at->name;
    if (!is_word(json_object_get(value, "type"), "json_schema"))
        return refuse(in->r, 400, in->at->name,
                      "%s must be {\"type\": \"json_schema\", \"schema\": ...}", name);
    return set_schema(in, json_object_get(value, "schema"),
                      member ? "output_config.format.schema" : "output_format.schema");
}

bool field_read_schema(const field_reading *in, const json_t *value) {
    return set_schema(in, value, in->at->name);
}

/* True if clients send the field with an empty text when they ask for nothing, as llama.cpp's page
 * does. vLLM takes an empty text of its own fields for a mistake. */
static bool may_be_empty(const char *place) {
    return strncmp(place, "guided_", 7) != 0 && strchr(place, '.') == NULL;
}

/* Sets a grammar, or else a pattern. */
static bool set_text(const field_reading *in, const json_t *value, const char *place,
                     bool grammar) {
    const char *words = json_string_value(value);
    if (words == NULL)
        return refuse(in->r, 400, in->at->name, "%s must be a text", place);
    if (json_string_length(value) == 0)
        return may_be_empty(place) || refuse(in->r, 400, in->at->name, "%s is empty", place);
    return set_form(in, (ask_form){.place = place,
                                   .grammar = grammar ? words : NULL,
                                   .pattern = grammar ? NULL : words});
}

bool field_read_grammar(const field_reading *in, const json_t *value) {
    return set_text(in, value, in->at->name, true);
}

bool field_read_pattern(const field_reading *in, const json_t *value) {
    return set_text(in, value, in->at->name, false);
}

/* ---- one of several texts -------------------------------------------------------------------- */

enum { MOST_WORDS = 1024 };

/* Writes a text as GBNF has it between quotes. */
static void quote_word(text *out, const char *bytes, size_t size) {
    for (size_t i = 0; i < size; i++) {
        const unsigned char c = (unsigned char)bytes[i];
        if (c < 0x20 || c == 0x7f || c == '"' || c == '\\')
            text_print(out, "\\x%02X", c);
        else
            text_add(out, bytes + i, 1);
    }
}

static bool are_words(const json_t *words) {
    const size_t n = json_array_size(words);
    size_t i = 0;
    while (i < n && json_string_length(json_array_get(words, i)) > 0)
        i++;
    return i == n && n > 0 && n <= MOST_WORDS;
}

/* Sets the grammar of an array of texts, of which the answer must be one. */
static bool set_words(const field_reading *in, const json_t *words, const char *place) {
    if (!are_words(words))
        return refuse(in->r, 400, in->at->name,
                      "%s must be an array of 1 to %d texts that are not empty", place, MOST_WORDS);
    text out = {0};
    size_t size;
    for (size_t i = 0; i < json_array_size(words); i++) {
        const json_t *word = json_array_get(words, i);
        text_print(&out, "%s\"", i > 0 ? " | " : "root ::= ");
        quote_word(&out, json_string_value(word), json_string_length(word));
        text_add(&out, "\"", 1);
    }
    free(in->a->form_text);
    in->a->form_text = text_take(&out, &size);
    if (in->a->form_text == NULL)
        return refuse(in->r, 503, in->at->name, "no memory for %s", place);
    return set_form(in, (ask_form){.place = place, .grammar = in->a->form_text});
}

bool field_read_words(const field_reading *in, const json_t *value) {
    return set_words(in, value, in->at->name);
}

/* ---- vLLM's object of forms ------------------------------------------------------------------ */

static bool read_any_object(const field_reading *in, const json_t *value, const char *place) {
    return json_is_true(value) ? set_form(in, (ask_form){.place = place}) : true;
}

static bool read_inner_grammar(const field_reading *in, const json_t *value, const char *place) {
    return set_text(in, value, place, true);
}

static bool read_inner_pattern(const field_reading *in, const json_t *value, const char *place) {
    return set_text(in, value, place, false);
}

bool field_read_structured(const field_reading *in, const json_t *value) {
    static const struct {
        const char *name, *place;
        bool (*set)(const field_reading *in, const json_t *value, const char *place);
    } members[] = {
        {"json", "structured_outputs.json", set_schema},
        {"json_object", "structured_outputs.json_object", read_any_object},
        {"regex", "structured_outputs.regex", read_inner_pattern},
        {"choice", "structured_outputs.choice", set_words},
        {"grammar", "structured_outputs.grammar", read_inner_grammar},
    };
    const char *name;
    json_t *one;
    if (!json_is_object(value))
        return refuse(in->r, 400, in->at->name, "%s must be an object", in->at->name);
    json_object_foreach(value, name, one) {
        size_t i = 0;
        while (i < sizeof members / sizeof *members && strcmp(members[i].name, name) != 0)
            i++;
        const bool nothing = is_absent(one) || (json_is_boolean(one) && !json_is_true(one));
        if (nothing)
            continue;
        if (i == sizeof members / sizeof *members)
            return refuse(in->r, 400, in->at->name, "%s.%.64s: not supported by this server",
                          in->at->name, name);
        if (!members[i].set(in, one, members[i].place))
            return false;
    }
    return true;
}
