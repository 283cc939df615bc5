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

static bool compile_calls(ask *a, const ask_rules *rules, refusal *r) {
    json_t *record = NULL;
    bool failed = false;
    return call_grammar(&a->tools, rules->grammars, &a->grammar, a->receipt ? &record : NULL,
                        &failed, r) &&
           (!a->receipt || keep_record(a, record, failed, "tools", r));
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
