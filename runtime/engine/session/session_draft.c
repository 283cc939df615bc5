/* SPDX-License-Identifier: Apache-2.0 */

/* Tokens one after the other, some of which were guessed and computed before they were picked. */

#include "base/metrics.h"
#include "runtime/engine/session/session.h"

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Guesses of what follows the session's first n tokens, after them; returns how many are wanted. */
static size_t guess(tern_session *s, const tern_session_drafts *drafts, size_t n) {
    const size_t room = smaller(s->sequence.n_ctx - n, tern_runner_batch(s->runner) - 1);
    int32_t *guesses = s->sequence.tokens + n;
    const size_t found = tern_draft_guesses(drafts->draft, guesses, smaller(room, drafts->left));
    tern_draft_pass pass = {.rows = 1, .tokens = 1.0};
    return drafts->mode == TERN_DRAFT_ALWAYS
               ? found
               : tern_draft_choose(drafts->draft, &s->costs, found, &pass);
}

/* A pass of n tokens, of which the first is to be kept. */
static tern_status compute(tern_session *s, size_t n, tern_error *err) {
    const tern_sequence *q = &s->sequence;
    const tern_pass_span span = {.pages = q->pages,
                                 .window_pages = q->window_pages,
                                 .position = q->position,
                                 .tokens = q->tokens + q->position,
                                 .n = n,
                                 .wanted = n};
    const double begin = tern_clock_seconds();
    const tern_status status = tern_session_pass(s, &span, NULL, err);
    tern_draft_costs_add(&s->costs, (uint32_t)n, tern_clock_seconds() - begin);
    return status;
}

/* The next token after the sequence was computed, in this row. */
static void keep(tern_session *s, size_t row, size_t n_ahead) {
    tern_session_move(s, s->sequence.position + 1);
    s->last_row = row;
    s->n_ahead = n_ahead;
    s->has_last = true;
}

tern_status tern_session_append(tern_session *s, tern_session_drafts *drafts, int32_t token,
                                tern_error *err) {
    const uint32_t position = s->sequence.position;
    int32_t *next = s->sequence.tokens + position;
    if (drafts->draft == NULL)
        return tern_session_eval(s, &token, 1, TERN_LOGITS_NONE, NULL, err);
    drafts->left--;
    if (s->n_ahead > 0 && *next == token) {
        drafts->n_accepted++;
        keep(s, s->last_row + 1, s->n_ahead - 1);
        tern_draft_picked(drafts->draft, s->sequence.tokens, position + 1);
        return TERN_OK;
    }
    tern_session_move(s, position);
    *next = token;
    tern_draft_picked(drafts->draft, s->sequence.tokens, position + 1);
    const size_t n = guess(s, drafts, position + 1);
    size_t computed = n;
    tern_status status = compute(s, 1 + n, err);
    drafts->n_drafted += n;
    if (status != TERN_OK && n > 0) { /* perhaps of a token that the sequence will never have */
        computed = 0;
        status = compute(s, 1, err);
    }
    if (status == TERN_OK)
        keep(s, 0, computed);
    return status;
}
