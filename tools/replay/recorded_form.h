/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_REPLAY_RECORDED_FORM_H
#define TERN_TOOLS_REPLAY_RECORDED_FORM_H

/* The form of a receipt's answer, for a replay of the answer. */

#include "base/json_tree/value.h"
#include "tern/grammar.h"

typedef struct recorded_form {
    tern_grammar_tokens *tokens;
    tern_grammar *grammar;
    tern_grammar_state *state; /* for tern_grammar_mask; NULL: any text */
} recorded_form;

/* Compiles the form for the model that answers again. *form must be zero; close it in any case. */
TERN_MUST_CHECK tern_status recorded_form_open(const tern_model *model, const json_t *receipt,
                                               recorded_form *form, tern_error *err);
void recorded_form_close(recorded_form *form);

#endif
