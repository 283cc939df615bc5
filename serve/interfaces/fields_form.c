/* SPDX-License-Identifier: Apache-2.0 */
/* Fields that say which form an answer must have. */

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

/* A schema is an object, or true or false. */
static bool set_schema(const field_reading *in, const json_t *schema, const char *place) {
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
    if (json_is_object(value) && (is_absent(format) || is_word(type, "text")))
        return true;
    if (is_word(type, "json_object"))
        return set_form(in, (ask_form){.place = "text.format"});
    if (!is_word(type, "json_schema"))
        return refuse_type(in);
    return read_named(in, format, "text.format", "text.format.schema");
}

bool field_read_output_format(const field_reading *in, const json_t *value) {
    if (!is_word(json_object_get(value, "type"), "json_schema"))
        return refuse(in->r, 400, in->at->name,
                      "%s must be {\"type\": \"json_schema\", \"schema\": ...}", in->at->name);
    return set_schema(in, json_object_get(value, "schema"), "output_format.schema");
}

bool field_read_schema(const field_reading *in, const json_t *value) {
    return set_schema(in, value, in->at->name);
}

/* Reads a grammar. An empty text asks for nothing. */
bool field_read_grammar(const field_reading *in, const json_t *value) {
    if (!json_is_string(value))
        return refuse(in->r, 400, in->at->name, "%s must be a text", in->at->name);
    return json_string_length(value) == 0 ||
           set_form(in, (ask_form){.place = in->at->name, .grammar = json_string_value(value)});
}
