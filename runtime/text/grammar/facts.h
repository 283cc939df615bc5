/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_GRAMMAR_FACTS_H
#define TERN_RUNTIME_TEXT_GRAMMAR_FACTS_H

/* What can be said of expressions without running them. */

#include "runtime/text/grammar/expression.h"

typedef struct tern_expr_facts {
    bool *nullable;   /* [n expressions] matches the empty text */
    bool *productive; /* [n] matches some text */
} tern_expr_facts;

/*
 * Works the facts out, and refuses rules without an expression and left recursion, by name:
 * TERN_ERR_GRAMMAR. The failure is that of x, too. Free in any case.
 */
TERN_MUST_CHECK tern_status tern_expr_facts_find(tern_exprs *x, tern_expr_facts *out);
void tern_expr_facts_free(tern_expr_facts *f);

#endif
