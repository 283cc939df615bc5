/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_REPLAY_REPLAY_ANSWER_H
#define TERN_TOOLS_REPLAY_REPLAY_ANSWER_H

/* Repeats the answer of a server, with the server's kind of engine, but alone. */

#include "tern/engine.h"
#include "tools/record/receipt.h"

/* The recorded answer; everything is borrowed. */
typedef struct answer_plan {
    const tern_model *model;
    const json_t *receipt; /* has passed receipt_check */
    const int32_t *prompt; /* [n_prompt] */
    size_t n_prompt;
    const int32_t *tokens; /* [n_tokens] the tokens that must be picked */
    size_t n_tokens;
    const tern_sampler_params *sampling;
    tern_format kv;
    uint32_t threads, batch; /* 0: the engine's defaults */
} answer_plan;

/*
 * Adds a finding for the first difference: a token, the end, the digest of the hidden states, the
 * text. *threads gets the number of threads. Errors are the engine's.
 */
TERN_MUST_CHECK tern_status replay_answer(const answer_plan *plan, receipt_findings *f,
                                          uint32_t *threads, tern_error *err);

#endif
