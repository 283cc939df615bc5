/* SPDX-License-Identifier: Apache-2.0 */
/* The form of answers: JSON of a schema, text of a grammar or pattern, or calls of tools. */

#include <stdlib.h>
#include <string.h>

#include "base/json_tree/write.h"
#include "serve/interfaces/ask.h"
#include "serve/interfaces/call_grammar.h"

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

/* ---- what receipts and recordings say of it
 * --------------------------------------------------------------- */

/* True if the source of a form must be stored. */
static bool is_kept(const ask *a, const ask_rules *rules) {
    return a->receipt || rules->records;
}

/* Stores the record for a receipt or a recording, and takes it over. `failed`: memory was short,
 * and it may be NULL. */
static bool keep_record(ask *a, json_t *record, bool failed, const char *field, refusal *r) {
    if (failed) {
        json_decref(record);
        return refuse(r, 503, field, "no memory for the record of the form");
    }
    a->form_record = record;
    return true;
}

/* Says that objects are closed; records without it are older, or of --open-objects. */
static void record_params(json_t *record, const ask_rules *rules) {
    if (!rules->open_objects)
        (void)json_object_set_new(record, "closed", json_boolean(true));
}

/* Records a schema or a grammar as it was compiled. */
static bool record_text(ask *a, const ask_rules *rules, const char *kind, const char *words,
                        refusal *r) {
    if (!is_kept(a, rules))
        return true;
    const bool before = json_remember(false);
    json_t *record = json_pack("{s:s, s:s}", "kind", kind, "text", words);
    if (strcmp(kind, "schema") == 0)
        record_params(record, rules);
    return keep_record(a, record, json_remember(before), a->form.field, r);
}

/* ---- what is not enforced -------------------------------------------------------------------- */

/* Notes what answers are not held to. */
static bool note_schemas(ask *a, refusal *r) {
    const char *note;
    for (size_t i = 0; (note = tern_grammar_note(a->grammar, i)) != NULL; i++) {
        text_add(&a->schema_notes, ",", i > 0);
        text_quote(&a->schema_notes, note, strlen(note));
    }
    return !a->schema_notes.failed ||
           refuse(r, 503, NULL, "no memory for what is told of the schema");
}

/* ---- answers in a form ----------------------------------------------------------------------- */

static tern_schema_params params_of(const ask_rules *rules) {
    return (tern_schema_params){.closed = !rules->open_objects};
}

/* Writes the schema of the form as text, which the request keeps. */
static bool write_schema(ask *a, refusal *r) {
    a->schema_words = schema_text(a->form.schema, "{\"type\":\"object\"}");
    return a->schema_words != NULL || refuse(r, 503, a->form.field, "no memory for the schema");
}

static bool compile_grammar(ask *a, const ask_rules *rules, refusal *r) {
    const ask_form *f = &a->form;
    tern_error err = {0};
    const bool pattern = f->pattern != NULL;
    const char *words = pattern ? f->pattern : f->grammar;
    return (pattern ? grammars_pattern : grammars_gbnf)(rules->grammars, words, strlen(words),
                                                        f->place, &a->grammar, &err) == TERN_OK
               ? record_text(a, rules, pattern ? "pattern" : "grammar", words, r)
               : refuse_grammar(r, f->field, &err);
}

static bool has_words(const ask_form *f) {
    return f->grammar != NULL || f->pattern != NULL;
}

static bool compile_form(ask *a, const ask_rules *rules, refusal *r) {
    const ask_form *f = &a->form;
    const tern_schema_params params = params_of(rules);
    tern_error err = {0};
    if (has_words(f))
        return compile_grammar(a, rules, r);
    if (!write_schema(a, r))
        return false;
    return grammars_schema(rules->grammars, a->schema_words, strlen(a->schema_words), f->place,
                           &params, &a->grammar, &err) == TERN_OK
               ? record_text(a, rules, "schema", a->schema_words, r)
               : refuse_grammar(r, f->field, &err);
}

static bool compile_calls(ask *a, const ask_rules *rules, refusal *r) {
    const tern_grammar_tag form = {.schema = a->schema_words,
                                   .schema_size =
                                       a->schema_words != NULL ? strlen(a->schema_words) : 0,
                                   .name = a->form.place};
    const call_beside beside = {params_of(rules), a->schema_words != NULL ? &form : NULL};
    json_t *record = NULL;
    bool failed = false;
    return call_grammar(&a->tools, &beside, rules->grammars, &a->grammar,
                        is_kept(a, rules) ? &record : NULL, &failed, r) &&
           (!is_kept(a, rules) || keep_record(a, record, failed, "tools", r));
}

/* ---- which it is ----------------------------------------------------------------------------- */

/* Refuses what cannot be combined with a grammar; `field` is the one that asks for a grammar. */
static bool check_together(const ask *a, const ask_rules *rules, const char *field, refusal *r) {
    if (rules->grammars == NULL)
        return refuse(r, 400, field, "%s: the model has no token that ends a text", field);
    if (has_words(&a->form) && a->tools.n > 0)
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
    if (a->tools.n == 0)
        return compile_form(a, rules, r) && note_schemas(a, r);
    return (a->form.field == NULL || write_schema(a, r)) && compile_calls(a, rules, r) &&
           note_schemas(a, r);
}
