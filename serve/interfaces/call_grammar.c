/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/interfaces/call_grammar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_tree/write.h"
#include "serve/interfaces/call_schema.h"

/* A tag, and the texts that it points to. */
typedef struct tag_texts {
    text begin, end;
    char *schema;
    tern_grammar_argument *arguments; /* [n] of [most] */
    char **words;                     /* [n_words] texts of the arguments, from malloc */
    size_t n, most, n_words, most_words;
    bool failed;
} tag_texts;

/* ---- schemas --------------------------------------------------------------------------------- */

/* Returns a value as text; NULL: no memory. */
static char *json_words(json_t *value) {
    const bool before = json_remember(false);
    char *words = json_dump(value, (json_style){0});
    if (json_remember(before)) {
        free(words);
        words = NULL;
    }
    return words;
}

/* Returns the schema of a tool's arguments as text, with "type": "object" even if it is left out.
 * NULL: no memory. */
static char *arguments_text(const json_t *schema) {
    static const char none[] =
        "{\"type\":\"object\",\"properties\":{},\"additionalProperties\":false}";
    if (schema == NULL)
        return strdup(none);
    json_t *whole = json_deep_copy(schema);
    if (json_object_get(schema, "type") == NULL)
        (void)json_object_set_new(whole, "type", json_string("object"));
    char *words = json_words(whole);
    json_decref(whole);
    return words;
}

static bool check_type(const tool *t, refusal *r) {
    const json_t *type = json_object_get(t->schema, "type");
    const char *word = json_string_value(type);
    return type == NULL || (word != NULL && strcmp(word, "object") == 0) ||
           refuse(r, 400, "tools", "%s.type must be \"object\"", t->place);
}

/* Returns the schema of one argument as text, with what it may refer to. NULL: no memory. */
static char *argument_schema(const json_t *root, const json_t *schema) {
    static const char *const names[] = {"$defs", "definitions"};
    if (!json_is_object(schema))
        return json_words(json_is_boolean(schema) ? json_deep_copy(schema) : json_object());
    json_t *whole = json_deep_copy(schema);
    for (size_t i = 0; i < 2; i++) {
        const json_t *shared = json_object_get(root, names[i]);
        if (shared != NULL && json_object_get(whole, names[i]) == NULL)
            (void)json_object_set_new(whole, names[i], json_deep_copy(shared));
    }
    char *words = json_words(whole);
    json_decref(whole);
    return words;
}

/* ---- arguments, one by one ------------------------------------------------------------------- */

/* Keeps a text for an argument; NULL: no memory. */
static const char *keep(tag_texts *own, char *words) {
    if (words != NULL && own->n_words == own->most_words) {
        const size_t most = 2 * own->most_words + 16;
        char **grown = realloc(own->words, most * sizeof *grown);
        if (grown == NULL) {
            free(words);
            words = NULL;
        } else {
            own->words = grown;
            own->most_words = most;
        }
    }
    own->failed = own->failed || words == NULL;
    if (words != NULL)
        own->words[own->n_words++] = words;
    return words;
}

static const char *keep_joined(tag_texts *own, const char *a, const char *b, const char *c) {
    const size_t n = strlen(a) + strlen(b) + strlen(c) + 1;
    char *words = malloc(n);
    if (words != NULL)
        (void)snprintf(words, n, "%s%s%s", a, b, c);
    return keep(own, words);
}

static void add_argument(tag_texts *own, tern_grammar_argument a) {
    if (own->n == own->most) {
        const size_t most = 2 * own->most + 8;
        tern_grammar_argument *grown = realloc(own->arguments, most * sizeof *grown);
        own->failed = own->failed || grown == NULL;
        if (grown == NULL)
            return;
        own->arguments = grown;
        own->most = most;
    }
    own->arguments[own->n++] = a;
}

/* The words around an argument. */
typedef struct around {
    char before[2 * CALL_WORD_BYTES], text_open[2 * CALL_WORD_BYTES],
        json_open[2 * CALL_WORD_BYTES];
    const char *text_close, *json_close;
    bool texts; /* texts are written as they are */
} around;

static around around_of(const call_form *f) {
    const bool each = f->writing == CALL_EACH;
    around a = {.text_close = each ? f->text_close : f->quote,
                .json_close = each ? f->json_close : "",
                .texts = each || f->quote[0] != '\0'};
    (void)snprintf(a.before, sizeof a.before, "%s", each ? f->key_open : "");
    (void)snprintf(a.text_open, sizeof a.text_open, "%s%s", each ? f->text_open : f->assign,
                   each ? "" : f->quote);
    (void)snprintf(a.json_open, sizeof a.json_open, "%s", each ? f->json_open : f->assign);
    return a;
}

/* True if any text of the form's is a value, so that another way to write it is in vain. */
static bool covers_all(const around *a) {
    return strcmp(a->text_open, a->json_open) == 0;
}

/* Sets the texts of an enumeration, if the schema has one. */
static void set_words(tag_texts *own, const json_t *schema, tern_grammar_argument *a) {
    const json_t *listed = json_object_get(schema, "enum");
    const json_t *only = json_object_get(schema, "const");
    const size_t n = only != NULL ? 1 : json_array_size(listed);
    const char **words = n > 0 ? calloc(n, sizeof *words) : NULL;
    if (n > 0 && keep(own, (char *)words) == NULL)
        return;
    for (size_t i = 0; i < n && words != NULL; i++) {
        const char *word = json_string_value(only != NULL ? only : json_array_get(listed, i));
        if (word != NULL && strstr(word, a->end) == NULL)
            words[a->n_words++] = word;
    }
    a->words = words;
}

static void add_text(tag_texts *own, const around *w, const char *name, const json_t *schema,
                     bool required) {
    tern_grammar_argument a = {.begin = keep_joined(own, w->before, name, w->text_open),
                               .end = w->text_close,
                               .required = required};
    set_words(own, schema, &a);
    add_argument(own, a);
}

static void add_json(tag_texts *own, const around *w, const char *name, const char *schema,
                     bool required, bool instead) {
    add_argument(own,
                 (tern_grammar_argument){.begin = keep_joined(own, w->before, name, w->json_open),
                                         .end = w->json_close,
                                         .schema = schema,
                                         .schema_size = schema != NULL ? strlen(schema) : 0,
                                         .required = required,
                                         .instead = instead});
}

/* True if programs write the value as True or False. */
static bool is_truth(const call_form *f, const json_t *schema) {
    const char *type = json_string_value(json_object_get(schema, "type"));
    return f->python && type != NULL && strcmp(type, "boolean") == 0 &&
           json_object_get(schema, "enum") == NULL && json_object_get(schema, "const") == NULL;
}

static void add_truth(tag_texts *own, const around *w, const char *name, bool required) {
    static const char *const words[] = {"True", "False"};
    add_argument(own,
                 (tern_grammar_argument){.begin = keep_joined(own, w->before, name, w->json_open),
                                         .end = w->json_close,
                                         .words = words,
                                         .n_words = 2,
                                         .required = required});
}

static void add_property(tag_texts *own, const call_form *f, const json_t *root, const char *name,
                         bool required) {
    const json_t *schema = call_schema_property(root, name);
    const around w = around_of(f);
    const call_value kind = call_schema_value(root, schema);
    const bool raw = w.texts && kind != CALL_VALUE_JSON;
    if (is_truth(f, schema)) {
        add_truth(own, &w, name, required);
        return;
    }
    if (raw)
        add_text(own, &w, name, kind == CALL_VALUE_TEXT ? schema : NULL, required);
    if (!raw || (kind == CALL_VALUE_ANY && !covers_all(&w)))
        add_json(own, &w, name, keep(own, argument_schema(root, schema)), required, raw);
}

/* Arguments that the schema does not name. */
static void add_further(tag_texts *own, const call_form *f) {
    const around w = around_of(f);
    const bool raw = f->writing == CALL_EACH;
    add_argument(own, (tern_grammar_argument){
                          .begin = keep(own, strdup(w.before)),
                          .after_key = keep(own, strdup(raw ? w.text_open : w.json_open)),
                          .end = raw ? w.text_close : w.json_close,
                          .schema = raw ? NULL : "{}",
                          .schema_size = raw ? 0 : 2});
}

static bool is_required(const json_t *root, const char *name) {
    const json_t *list = json_object_get(root, "required");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *word = json_string_value(json_array_get(list, i));
        if (word != NULL && strcmp(word, name) == 0)
            return true;
    }
    return false;
}

static void add_arguments(tag_texts *own, const call_form *f, const json_t *root) {
    const char *name;
    json_t *schema;
    json_object_foreach(json_object_get(root, "properties"), name, schema)
        add_property(own, f, root, name, is_required(root, name));
    if (call_schema_is_open(root))
        add_further(own, f);
}

/* ---- tags ------------------------------------------------------------------------------------ */

static bool writes_json(const call_form *f) {
    return f->writing == CALL_JSON || (f->writing == CALL_LITERALS && f->quoted);
}

/* The words before a name in an answer that has text, too, where the leading ones are part of it.
 */
static const char *open_words(const toolset *set) {
    return set->form->open + (set->required ? 0 : set->form->lead);
}

static bool fill_tag(const tool *t, const toolset *set, tag_texts *own, tern_grammar_tag *tag,
                     refusal *r) {
    const call_form *f = set->form;
    const bool json = writes_json(f), literals = f->writing == CALL_LITERALS && !json;
    if (!check_type(t, r))
        return false;
    text_print(&own->begin, "%s%s%s%s", f->section_open, open_words(set), t->name, f->middle);
    if (literals)
        text_add(&own->begin, &f->bracket, 1);
    text_print(&own->end, "%s%s", !literals ? "" : f->bracket == '(' ? ")" : "}", f->close);
    if (json)
        own->schema = arguments_text(t->schema);
    else
        add_arguments(own, f, t->schema);
    if (own->begin.failed || own->end.failed || own->failed || (json && own->schema == NULL))
        return refuse(r, 503, "tools", "no memory for the tools");
    *tag = (tern_grammar_tag){.begin = own->begin.bytes,
                              .end = own->end.bytes,
                              .schema = own->schema,
                              .schema_size = json ? strlen(own->schema) : 0,
                              .name = t->place,
                              .arguments = own->arguments,
                              .n_arguments = own->n,
                              .comma = f->comma,
                              .has_arguments = !json};
    return true;
}

static void free_texts(tag_texts *own) {
    text_free(&own->begin);
    text_free(&own->end);
    free(own->schema);
    free(own->arguments);
    for (size_t i = 0; i < own->n_words; i++)
        free(own->words[i]);
    free(own->words);
}

/* ---- what a receipt says of it --------------------------------------------------------------- */

static json_t *argument_json(const tern_grammar_argument *a) {
    json_t *made = json_pack("{s:s, s:s, s:b, s:b}", "begin", a->begin, "end", a->end, "required",
                             a->required, "instead", a->instead);
    if (a->schema != NULL)
        (void)json_object_set_new(made, "schema", json_text(a->schema, a->schema_size));
    if (a->after_key != NULL)
        (void)json_object_set_new(made, "after_key", json_string(a->after_key));
    if (a->n_words > 0) {
        json_t *words = json_array();
        for (size_t i = 0; i < a->n_words; i++)
            (void)json_array_append_new(words, json_string(a->words[i]));
        (void)json_object_set_new(made, "words", words);
    }
    return made;
}

static json_t *tag_json(const tern_grammar_tag *t) {
    json_t *made = json_pack("{s:s, s:s}", "begin", t->begin, "end", t->end);
    if (!t->has_arguments) {
        (void)json_object_set_new(made, "schema", json_text(t->schema, t->schema_size));
        return made;
    }
    json_t *list = json_array();
    for (size_t i = 0; i < t->n_arguments; i++)
        (void)json_array_append_new(list, argument_json(&t->arguments[i]));
    (void)json_object_set_new(made, "comma", json_string(t->comma));
    (void)json_object_set_new(made, "arguments", list);
    return made;
}

static json_t *record_of(const tern_grammar_tags *all) {
    json_t *tags = json_array();
    for (size_t i = 0; i < all->n_tags; i++)
        (void)json_array_append_new(tags, tag_json(&all->tags[i]));
    json_t *calls =
        json_pack("{s:s, s:s, s:b, s:b, s:b, s:o}", "trigger", all->trigger, "separator",
                  all->separator != NULL ? all->separator : "", "free_text", all->free_text,
                  "required", all->required, "single", all->single, "tags", tags);
    if (all->open != NULL) {
        (void)json_object_set_new(calls, "open", json_string(all->open));
        (void)json_object_set_new(calls, "close", json_string(all->close));
    }
    if (all->at_start)
        (void)json_object_set_new(calls, "at_start", json_boolean(true));
    if (all->form != NULL)
        (void)json_object_set_new(calls, "schema",
                                  json_text(all->form->schema, all->form->schema_size));
    json_t *record = json_pack("{s:s, s:o}", "kind", "calls", "calls", calls);
    if (all->schema.closed)
        (void)json_object_set_new(record, "closed", json_boolean(true));
    return record;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static bool compile(const toolset *set, const call_beside *beside, grammars *g,
                    const tern_grammar_tag *tags, tern_grammar **out, json_t **record, bool *failed,
                    refusal *r) {
    const call_form *f = set->form;
    const bool section = f->section_open[0] != '\0';
    char trigger[CALL_TRIGGER_BYTES + 1];
    const size_t n = call_form_trigger(f, trigger);
    const tern_grammar_tags all = {.tags = tags,
                                   .n_tags = set->n,
                                   .trigger = f->lead > 0 && set->required ? f->open : trigger,
                                   .separator = f->separator[0] != '\0' ? f->separator : NULL,
                                   .open = section ? f->section_open + n : NULL,
                                   .close = section ? f->section_close : NULL,
                                   .free_text = !set->required,
                                   .required = set->required,
                                   .single = set->single,
                                   .at_start = f->at_start && !set->required,
                                   .schema = beside->schema,
                                   .form = beside->form};
    tern_error err = {0};
    if (grammars_tags(g, &all, out, &err) != TERN_OK)
        return err.status == TERN_ERR_GRAMMAR ? refuse(r, 400, "tools", "%s", err.message)
                                              : refuse_error(r, "tools", &err);
    if (record != NULL) {
        const bool before = json_remember(false);
        *record = record_of(&all);
        *failed = json_remember(before);
    }
    return true;
}

bool call_grammar(const toolset *set, const call_beside *beside, grammars *g, tern_grammar **out,
                  json_t **record, bool *failed, refusal *r) {
    tag_texts *own = calloc(set->n, sizeof *own);
    tern_grammar_tag *tags = calloc(set->n, sizeof *tags);
    bool sound =
        (own != NULL && tags != NULL) || refuse(r, 503, "tools", "no memory for the tools");
    for (size_t i = 0; i < set->n && sound; i++)
        sound = fill_tag(&set->list[i], set, &own[i], &tags[i], r);
    sound = sound && compile(set, beside, g, tags, out, record, failed, r);
    for (size_t i = 0; i < set->n && own != NULL; i++)
        free_texts(&own[i]);
    free(own);
    free(tags);
    return sound;
}
