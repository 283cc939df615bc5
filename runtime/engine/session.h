/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_SESSION_H
#define TERN_RUNTIME_ENGINE_SESSION_H

/*
 * What a tern_session is made of: a runner, a pool, one sequence, which has all of its pages, and
 * the engine that answers requests in it (runtime/engine/slot.h).
 *
 * Where layers with a window have pages of their own, these go round: page p of the sequence lies
 * in page p % n of the pool, in place of page p - n. There are as many as a pass of n_batch tokens
 * sees, and a page more, so that a step back of that much finds what it needs. Between calls the
 * sequence always has what its next token sees.
 */

#include "runtime/engine/cache/pool.h"
#include "runtime/engine/cache/sequence.h"
#include "runtime/engine/forward/runner.h"
#include "tern/engine.h"

struct tern_session {
    const tern_model *model;
    tern_runner *runner;
    tern_pool pool;
    tern_arena arena; /* what the sequence needs: tokens and table of pages */
    tern_sequence sequence;
    int refused;   /* errno of the first binding that the system refused; 0: none */
    bool has_last; /* the runner has the hidden state of the last token, and nothing was changed */
    size_t last_row; /* then: the runner's number of its row */
    tern_engine *engine;
};

/*
 * Whether n tokens can be appended after the first `position` ones of the session: TERN_ERR_EMPTY,
 * TERN_ERR_CONTEXT (more tokens than the context), TERN_ERR_FULL (no room after `position`),
 * TERN_ERR_TOKEN_RANGE.
 */
TERN_MUST_CHECK tern_status tern_session_check(const tern_session *s, const int32_t *tokens,
                                               size_t n, uint32_t position, tern_error *err);

/* Changes where the sequence ends; what was known of its last token is not true any more. Layers
 * with a window must have what this position sees. */
static inline void tern_session_move(tern_session *s, uint32_t position) {
    s->sequence.position = position;
    s->sequence.kept = position > 0 ? s->sequence.kept : 0;
    s->has_last = false;
}

/* Whether a token at a position would find all that it sees. At position 0 that is nothing. */
bool tern_session_sees(const tern_session *s, uint32_t position);

/* A pass stores positions before `end`: notes what pages of layers with a window hold then. */
void tern_session_stores(tern_session *s, uint32_t end);

#endif
