/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_SESSION_H
#define TERN_RUNTIME_ENGINE_SESSION_H

/*
 * The parts of a tern_session: a runner, a pool, one sequence, which has all of the pool's pages,
 * and the engine that answers requests in it (runtime/engine/slot.h).
 *
 * If layers with a window have pages of their own, the sequence uses these in turn: its page p lies
 * in page p % n of the pool, and replaces page p - n. There are as many as a pass of n_batch tokens
 * sees, and one more, so that after a step back by that many tokens everything needed is still
 * there. Between calls the sequence always has the positions that its next token sees.
 *
 * The states of delta nets stand where the last pass ended. A step back by any number of tokens
 * computes the tokens before it again.
 */

#include "runtime/engine/cache/pool.h"
#include "runtime/engine/cache/sequence.h"
#include "runtime/engine/forward/runner.h"
#include "tern/engine.h"

struct tern_session {
    const tern_model *model;
    tern_runner *runner;
    tern_pool pool;
    tern_arena arena; /* memory of the sequence: tokens and tables of pages */
    tern_sequence sequence;
    int refused;     /* errno of the first binding that the system refused; 0: none */
    bool has_last;   /* the runner still has the hidden state of the last token */
    size_t last_row; /* if has_last: the runner's number of its row */
    tern_engine *engine;
};

/*
 * Checks that n tokens can be appended after the first `position` ones of the session:
 * TERN_ERR_EMPTY, TERN_ERR_CONTEXT (more tokens than the context), TERN_ERR_FULL (no room after
 * `position`), TERN_ERR_TOKEN_RANGE.
 */
TERN_MUST_CHECK tern_status tern_session_check(const tern_session *s, const int32_t *tokens,
                                               size_t n, uint32_t position, tern_error *err);

/* Moves the end of the sequence; the hidden state of its last token is then no longer valid. Layers
 * with a window must have the positions that a token here sees. */
static inline void tern_session_move(tern_session *s, uint32_t position) {
    s->sequence.position = position;
    s->sequence.kept = position > 0 ? s->sequence.kept : 0;
    s->has_last = false;
}

/* True if the session has all positions that a token at this position sees; at 0 these are none. */
bool tern_session_sees(const tern_session *s, uint32_t position);

/* Notes that a pass stores positions before `end`, which replaces pages of layers with a window. */
void tern_session_stores(tern_session *s, uint32_t end);

#endif
