/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_SESSION_SESSION_H
#define TERN_RUNTIME_SESSION_SESSION_H

/* What a tern_session is made of: a runner, a pool and one sequence, which has all of its pages. */

#include "runtime/cache/pool.h"
#include "runtime/cache/sequence.h"
#include "runtime/forward/runner.h"
#include "tern/tern.h"

struct tern_session {
    const tern_model *model;
    tern_runner *runner;
    tern_pool pool;
    tern_arena arena; /* what the sequence needs: tokens and table of pages */
    tern_sequence sequence;
    int refused;   /* errno of the first binding that the system refused; 0: none */
    bool has_last; /* the runner has the hidden state of the last token, and nothing was changed */
    size_t last_row; /* then: the runner's number of its row */
};

/*
 * Whether n tokens can be appended after the first `position` ones of the session: TERN_ERR_EMPTY,
 * TERN_ERR_CONTEXT (more tokens than the context), TERN_ERR_FULL (no room after `position`),
 * TERN_ERR_TOKEN_RANGE.
 */
TERN_MUST_CHECK tern_status tern_session_check(const tern_session *s, const int32_t *tokens,
                                               size_t n, uint32_t position, tern_error *err);

/* Changes where the sequence ends; what was known of its last token is not true any more. */
static inline void tern_session_move(tern_session *s, uint32_t position) {
    s->sequence.position = position;
    s->has_last = false;
}

#endif
