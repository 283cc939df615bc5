/* SPDX-License-Identifier: Apache-2.0 */

/* The public functions that make a grammar. */

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
    return tern_grammar_make(tokens, &x, out, err);
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
    return tern_grammar_make(tokens, &x, out, err);
}

tern_status tern_grammar_from_schema(const tern_grammar_tokens *tokens, const char *text,
                                     size_t size, const char *name,
                                     const tern_schema_params *params, tern_grammar **out,
                                     tern_error *err) {
    const tern_status status = check(tokens, text, size, name, out, err);
    if (status != TERN_OK)
        return status;
    tern_exprs x;
    tern_exprs_start(&x, name, err);
    const uint32_t root = tern_expr_rule_new(&x, WHOLE, strlen(WHOLE));
    tern_expr_rule_define(&x, root, tern_schema_read(&x, text, size, name, params));
    return tern_grammar_make(tokens, &x, out, err);
}
