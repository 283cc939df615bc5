/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_INTERFACES_CALL_GRAMMAR_H
#define TERN_SERVE_INTERFACES_CALL_GRAMMAR_H

/* The grammar of answers that may have calls: in the form of the template, held to the schemas of
 * the tools. */

#include "serve/http/refusal.h"
#include "serve/interfaces/grammars.h"
#include "serve/interfaces/tools.h"

/* How schemas are read, and a form that a text in place of calls has; NULL: free text. */
typedef struct call_beside {
    tern_schema_params schema;
    const tern_grammar_tag *form;
} call_beside;

/*
 * Compiles the grammar of the tools that may be called, at least one. `record`, unless NULL, gets
 * its source for receipts, which the caller owns; *failed: memory for that was short. False after a
 * refusal.
 */
bool call_grammar(const toolset *set, const call_beside *beside, grammars *g, tern_grammar **out,
                  json_t **record, bool *failed, refusal *r);

#endif
