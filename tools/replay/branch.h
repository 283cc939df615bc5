/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_REPLAY_BRANCH_H
#define TERN_TOOLS_REPLAY_BRANCH_H

/* Branches a recorded answer: its beginning is kept, and another end follows. */

#include "tools/answer/answerer.h"
#include "tools/replay/recorded_answer.h"

/*
 * Answers again with the first `kept` recorded tokens, then put[n_put], then what the model picks,
 * with the recorded sampler, form, stops and limit. Random numbers are those of the same positions:
 * without `put` the same model gives the recorded answer. Tokens that the form does not allow are
 * TERN_ERR_ARG. The answer is `latest` of *out, which the caller closes; it lives as long as the
 * session.
 */
TERN_MUST_CHECK tern_status branch_ask(tern_session *session, const tern_tokenizer *tokenizer,
                                       const recorded_answer *a, size_t kept, const int32_t *put,
                                       size_t n_put, answerer *out, tern_error *err);

#endif
