/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_GRAMMAR_FACTS_H
#define TERN_RUNTIME_TEXT_GRAMMAR_FACTS_H

/* Facts about expressions that are found without running them. */

#include "runtime/text/grammar/expression.h"

typedef struct tern_expr_facts {
    bool *nullable;   /* [n expressions] matches the empty text */
    bool *productive; /* [n] matches some text */
} tern_expr_facts;

/*
 * Finds the facts. Refuses rules without an expression, and left recursion, by name:
 * TERN_ERR_GRAMMAR. x fails, too. Free in any case.
 */
TERN_MUST_CHECK tern_status tern_expr_facts_find(tern_exprs *x, tern_expr_facts *out);
void tern_expr_facts_free(tern_expr_facts *f);

#endif
