/* SPDX-License-Identifier: Apache-2.0 */
/* The form of answers: JSON of a schema, text of a grammar or pattern, or calls of tools. */

#include <stdlib.h>
#include <string.h>

#include "base/json_tree/write.h"
#include "serve/interfaces/ask.h"

/* Passes on what the library says about a schema or grammar. Its message names the place. */
static bool refuse_grammar(refusal *r, const char *param, const tern_error *err) {
    return err->status == TERN_ERR_GRAMMAR ? refuse(r, 400, param, "%s", err->message)
                                           : refuse_error(r, param, err);
}

/* Returns a schema as text, or a copy of `none` if there is no schema. The caller frees it. NULL:
 * no memory. */
static char *schema_text(const json_t *schema, const char *none) {
    return schema != NULL ? json_dump(schema, (json_style){0}) : strdup(none);
}

/* ---- what a receipt says of it --------------------------------------------------------------- */

/* Stores the record for a receipt, and takes it over. `failed`: memory was short, and it may be
 * NULL. */
static bool keep_record(ask *a, json_t *record, bool failed, const char *field, refusal *r) {
    if (failed) {
        json_decref(record);
        return refuse(r, 503, field, "no memory for the receipt");
    }
    a->form_record = record;
    return true;
}

/* Records a schema or a grammar as it was compiled. */
static bool record_text(ask *a, const char *kind, const char *words, refusal *r) {
    if (!a->receipt)
        return true;
    const bool before = json_remember(false);
    json_t *record = json_pack("{s:s, s:s}", "kind", kind, "text", words);
    return keep_record(a, record, json_remember(before), a->form.field, r);
}

static json_t *tag_json(const tern_grammar_tag *t) {
    return json_pack("{s:s, s:s, s:o}", "begin", t->begin, "end", t->end, "schema",
                     json_text(t->schema, t->schema_size));
}

static bool record_calls(ask *a, const tern_grammar_tags *all, refusal *r) {
    if (!a->receipt)
        return true;
    const bool before = json_remember(false);
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
    json_t *record = json_pack("{s:s, s:o}", "kind", "calls", "calls", calls);
    return keep_record(a, record, json_remember(before), "tools", r);
}

/* ---- answers in a form ----------------------------------------------------------------------- */

static bool compile_form(ask *a, const ask_rules *rules, refusal *r) {
    const ask_form *f = &a->form;
    tern_error err = {0};
    tern_status status;
    const char *words = f->pattern != NULL ? f->pattern : f->grammar;
    if (words != NULL) {
        status = (f->pattern != NULL ? grammars_pattern : grammars_gbnf)(
            rules->grammars, words, strlen(words), f->place, &a->grammar, &err);
        return status == TERN_OK
                   ? record_text(a, f->pattern != NULL ? "pattern" : "grammar", words, r)
                   : refuse_grammar(r, f->field, &err);
    }
    char *schema = schema_text(f->schema, "{\"type\":\"object\"}");
    if (schema == NULL)
        return refuse(r, 503, f->field, "no memory for the schema");
    status = grammars_schema(rules->grammars, schema, strlen(schema), f->place, &a->grammar, &err);
    const bool sound =
        status == TERN_OK ? record_text(a, "schema", schema, r) : refuse_grammar(r, f->field, &err);
    free(schema);
    return sound;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* The texts that a tag points to. */
typedef struct tag_texts {
    text begin;
    char *schema;
} tag_texts;

/* Returns the schema of a tool's arguments as text, with "type": "object" even if it is left out.
 * NULL: no memory. */
static char *arguments_text(const json_t *schema) {
    static const char none[] =
        "{\"type\":\"object\",\"properties\":{},\"additionalProperties\":false}";
    if (schema == NULL || json_object_get(schema, "type") != NULL)
        return schema_text(schema, none);
    const bool before = json_remember(false);
    json_t *whole = json_deep_copy(schema);
    (void)json_object_set_new(whole, "type", json_string("object"));
    char *words = json_dump(whole, (json_style){0});
    json_decref(whole);
    if (json_remember(before)) {
        free(words);
        words = NULL;
    }
    return words;
}

static bool check_type(const tool *t, refusal *r) {
    const json_t *type = json_object_get(t->schema, "type");
    const char *word = json_string_value(type);
    return type == NULL || (word != NULL && strcmp(word, "object") == 0) ||
           refuse(r, 400, "tools", "%s.type must be \"object\"", t->place);
}

static bool fill_tag(const tool *t, const call_words *words, tag_texts *own, tern_grammar_tag *tag,
                     refusal *r) {
    if (!check_type(t, r))
        return false;
    own->schema = arguments_text(t->schema);
    text_print(&own->begin, "%s%s%s", words->begin, t->name, words->middle);
    if (own->schema == NULL || own->begin.failed)
        return refuse(r, 503, "tools", "no memory for the tools");
    *tag = (tern_grammar_tag){.begin = own->begin.bytes,
                              .end = words->end,
                              .schema = own->schema,
                              .schema_size = strlen(own->schema),
                              .name = t->place};
    return true;
}

static bool compile_tags(ask *a, const ask_rules *rules, const tern_grammar_tag *tags, refusal *r) {
    const toolset *set = &a->tools;
    const call_words *words = call_words_of(set->style);
    const tern_grammar_tags all = {.tags = tags,
                                   .n_tags = set->n,
                                   .trigger = words->trigger,
                                   .separator = words->separator,
                                   .open = words->open,
                                   .close = words->shut,
                                   .free_text = !set->required,
                                   .required = set->required,
                                   .single = set->single};
    tern_error err = {0};
    if (grammars_tags(rules->grammars, &all, &a->grammar, &err) != TERN_OK)
        return refuse_grammar(r, "tools", &err);
    return record_calls(a, &all, r);
}

static bool compile_calls(ask *a, const ask_rules *rules, refusal *r) {
    const toolset *set = &a->tools;
    tag_texts *own = calloc(set->n, sizeof *own);
    tern_grammar_tag *tags = calloc(set->n, sizeof *tags);
    bool sound =
        (own != NULL && tags != NULL) || refuse(r, 503, "tools", "no memory for the tools");
    for (size_t i = 0; i < set->n && sound; i++)
        sound = fill_tag(&set->list[i], call_words_of(set->style), &own[i], &tags[i], r);
    sound = sound && compile_tags(a, rules, tags, r);
    for (size_t i = 0; i < set->n && own != NULL; i++) {
        text_free(&own[i].begin);
        free(own[i].schema);
    }
    free(own);
    free(tags);
    return sound;
}

/* ---- which it is ----------------------------------------------------------------------------- */

/* Refuses what cannot be combined with a grammar; `field` is the one that asks for a grammar. */
static bool check_together(const ask *a, const ask_rules *rules, const char *field, refusal *r) {
    if (rules->grammars == NULL)
        return refuse(r, 400, field, "%s: the model has no token that ends a text", field);
    if (a->form.field != NULL && a->tools.n > 0)
        return refuse(r, 400, field, "%s: not together with tools that may be called", field);
    if (a->ignore_end)
        return refuse(r, 400, "ignore_eos", "ignore_eos: not together with %s", field);
    return true;
}

bool ask_compile(ask *a, const ask_rules *rules, refusal *r) {
    const char *field = a->form.field != NULL ? a->form.field : "tools";
    if (a->form.field == NULL && a->tools.n == 0)
        return true;
    if (!check_together(a, rules, field, r))
        return false;
    return a->form.field != NULL ? compile_form(a, rules, r) : compile_calls(a, rules, r);
}
