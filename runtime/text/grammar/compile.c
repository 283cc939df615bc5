/* SPDX-License-Identifier: Apache-2.0 */

/* The public functions that make a grammar. */

#include <stdlib.h>
#include <string.h>

#include "runtime/text/grammar/schema.h"

enum { MOST_TEXT = 1 << 20 };

#define WHOLE "the whole text" /* name of the rule */

static tern_status check(const tern_grammar_tokens *tokens, const char *text, size_t size,
                         const char *name, void *out, tern_error *err) {
    if (tokens == NULL || text == NULL || name == NULL || out == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_grammar: NULL argument");
    if (size > MOST_TEXT)
        return tern_fail(err, TERN_ERR_GRAMMAR, "%s: too large: %zu bytes, at most %d", name, size,
                         MOST_TEXT);
    return TERN_OK;
}

tern_status tern_grammar_from_gbnf(const tern_grammar_tokens *tokens, const char *text, size_t size,
                                   const char *name, tern_grammar **out, tern_error *err) {
    const tern_status status = check(tokens, text, size, name, out, err);
    if (status != TERN_OK)
        return status;
    tern_exprs x;
    tern_exprs_start(&x, name, err);
    tern_gbnf_read(&x, text, size);
    return tern_grammar_make(tokens, &x, NULL, out, err);
}

static tern_status compile_schema(const tern_grammar_tokens *tokens, const char *text, size_t size,
                                  const char *name, const tern_schema_params *params, bool *narrow,
                                  tern_grammar **out, tern_error *err) {
    tern_exprs x;
    tern_schema_notes notes = {0};
    tern_exprs_start(&x, name, err);
    const uint32_t root = tern_expr_rule_new(&x, WHOLE, strlen(WHOLE));
    tern_expr_rule_define(&x, root,
                          tern_schema_read(&x, text, size, name, params, *narrow, &notes));
    *narrow = notes.narrowed;
    return tern_grammar_make(tokens, &x, &notes, out, err);
}

tern_status tern_grammar_from_pattern(const tern_grammar_tokens *tokens, const char *text,
                                      size_t size, const char *name, tern_grammar **out,
                                      tern_error *err) {
    const tern_status status = check(tokens, text, size, name, out, err);
    if (status != TERN_OK)
        return status;
    tern_exprs x;
    tern_exprs_start(&x, name, err);
    const uint32_t root = tern_expr_rule_new(&x, WHOLE, strlen(WHOLE));
    tern_expr_rule_define(&x, root, tern_pattern_whole(&x, text, size));
    return tern_grammar_make(tokens, &x, NULL, out, err);
}

tern_status tern_grammar_from_schema(const tern_grammar_tokens *tokens, const char *text,
                                     size_t size, const char *name,
                                     const tern_schema_params *params, tern_grammar **out,
                                     tern_error *err) {
    bool narrow = true;
    tern_status status = check(tokens, text, size, name, out, err);
    if (status != TERN_OK)
        return status;
    status = compile_schema(tokens, text, size, name, params, &narrow, out, err);
    if (status != TERN_ERR_GRAMMAR || !narrow)
        return status;
    narrow = false; /* nothing was left, or it took too much: the parts are noted, then */
    return compile_schema(tokens, text, size, name, params, &narrow, out, err);
}

/* ---- whole texts ----------------------------------------------------------------------------- */

static tern_status read_copy(const char *text, size_t size, const char *name, tern_json *out,
                             tern_error *err) {
    char *copy = malloc(size + 1);
    if (copy == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory", name);
    memcpy(copy, text, size);
    return tern_json_parse(copy, size, name, out, err);
}

/* Checks a value, and says in *why where it fails. */
static bool accepts(const tern_json *schema, const tern_json *text, tern_error *why) {
    char at[TERN_POINTER_BYTES], of[TERN_POINTER_BYTES];
    tern_schema_check c = {.root = schema->values};
    if (tern_schema_accepts(&c, text->values))
        return true;
    tern_json_pointer(text->values, c.value, at);
    tern_json_pointer(schema->values, c.schema, of);
    (void)tern_fail(why, TERN_ERR_GRAMMAR, "the value at \"%s\" does not satisfy %s at \"%s\"", at,
                    c.keyword, of);
    return false;
}

tern_status tern_schema_validate(const char *schema, size_t schema_size, const char *text,
                                 size_t size, bool *valid, tern_error *why) {
    tern_json read[2] = {{0}, {0}};
    if (schema == NULL || text == NULL || valid == NULL)
        return tern_fail(why, TERN_ERR_NULL, "tern_schema_validate: NULL argument");
    tern_status status = read_copy(schema, schema_size, "schema", &read[0], why);
    if (status == TERN_OK)
        status = read_copy(text, size, "text", &read[1], why);
    if (status == TERN_OK)
        *valid = accepts(&read[0], &read[1], why);
    tern_json_free(&read[0]);
    tern_json_free(&read[1]);
    return status;
}
