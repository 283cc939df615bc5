/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/engine/slot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/engine/session.h"

tern_engine *tern_session_engine(tern_session *session) {
    return session->engine;
}

/* ---- life ---------------------------------------------------------------------------------- */

static void find_frame(tern_engine *e) {
    const tern_session *s = e->session;
    e->frame = (tern_branch_frame){.n_vocab = e->model->config.n_vocab,
                                   .n_embd = e->model->config.n_embd,
                                   .adapters = &e->model->adapters,
                                   .n_ctx = s->sequence.n_ctx,
                                   .n_batch = e->params.n_batch,
                                   .no_guesses = tern_config_delta_layers(&e->model->config) > 0,
                                   .tokens = s->sequence.tokens};
    if (tern_model_tokenizer(e->model, &e->frame.tokenizer, NULL) != TERN_OK)
        e->frame.tokenizer = NULL; /* then no token ends a text, and there is no text */
    else
        e->frame.piece_bytes = tern_tokenizer_longest(e->frame.tokenizer);
}

tern_status tern_slot_open(tern_session *s, tern_engine **out, tern_error *err) {
    tern_engine *e = calloc(1, sizeof *e);
    if (e == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for a session");
    (void)pthread_mutex_init(&e->lock, NULL);
    *out = e;
    e->model = s->model;
    e->session = s;
    e->pool = &s->pool;
    e->runner = s->runner;
    e->params = (tern_engine_params){.n_ctx = s->sequence.n_ctx,
                                     .n_sequences = 1,
                                     .n_queue = 1,
                                     .n_batch = tern_runner_batch(s->runner),
                                     .threads = tern_runner_threads(s->runner),
                                     .kv = s->pool.kv};
    e->n_branches = 1;
    size_t rows;
    (void)tern_runner_buffers(s->runner, &rows);
    e->n_picks = (uint32_t)rows;
    find_frame(e);
    const tern_status status = tern_engine_reserve(e, err);
    if (status == TERN_OK)
        tern_engine_show(e);
    return status;
}

tern_status tern_session_draft_by(tern_session *session, const tern_model *draft, tern_error *err) {
    if (session == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_session_draft_by needs a session");
    tern_engine *e = session->engine;
    if (e->n_live > 0)
        return tern_fail(err, TERN_ERR_STATE, "the session answers a request");
    tern_engine_close_drafter(e);
    return tern_engine_open_drafter(e, draft, err);
}

/* ---- requests ------------------------------------------------------------------------------ */

tern_status tern_slot_fits(const tern_engine *e, const tern_request *r, size_t more,
                           tern_error *err) {
    if (r->n_tokens == 0)
        return tern_fail(err, TERN_ERR_EMPTY, "a request without tokens");
    if (more > e->params.n_ctx || r->n_tokens > e->params.n_ctx - more)
        return tern_fail(err, TERN_ERR_CONTEXT,
                         "a request of %zu tokens and %zu more exceeds the context of %u",
                         r->n_tokens, more, e->params.n_ctx);
    return TERN_OK;
}

static tern_status refuse_second(const tern_engine *e, tern_error *err) {
    return e->n_live == 0 ? TERN_OK
                          : tern_fail(err, TERN_ERR_QUEUE, "the session answers a request already");
}

/* Goes back to a position if layers with a window still have what it sees; else to 0. */
static void go_back(tern_session *s, size_t position) {
    tern_session_move(s, tern_session_sees(s, (uint32_t)position) ? (uint32_t)position : 0);
}

tern_status tern_slot_begin(tern_engine *e, const tern_request *r, tern_error *err) {
    const tern_status status = refuse_second(e, err);
    if (status != TERN_OK)
        return status;
    const size_t same = tern_session_common_prefix(e->session, r->tokens, r->n_tokens);
    go_back(e->session, same < r->n_tokens ? same : r->n_tokens - 1);
    return TERN_OK;
}

void tern_slot_place(tern_engine *e, tern_branch *b) {
    tern_session *s = e->session;
    tern_job *job = &b->job;
    if (job->wants && job->wanted_from < s->sequence.position)
        go_back(s, job->wanted_from);
    e->slot_start = s->sequence.position;
    job->computed = job->n_shared = e->slot_start;
    job->pages = s->sequence.pages;
    job->window.pages = s->sequence.window_pages;
    job->is_running = b->is_scheduled = true;
}

tern_status tern_slot_lend(tern_engine *e, const tern_request *prompt, tern_lent *lent,
                           tern_error *err) {
    tern_sequence *q = &e->session->sequence;
    tern_request all = *prompt;
    tern_branch *b = &e->lent;
    tern_status status = refuse_second(e, err);
    if (status == TERN_OK) /* a failed pass may have moved states */
        status = tern_session_rewind(e->session, q->position, err);
    if (status != TERN_OK)
        return status;
    lent->n_held = q->position;
    memmove(q->tokens + q->position, prompt->tokens, prompt->n_tokens * sizeof *q->tokens);
    all.tokens = q->tokens;
    all.n_tokens += q->position;
    status = tern_branch_lend(&e->frame, &all, lent, b, err);
    if (status != TERN_OK)
        return status;
    tern_slot_place(e, b);
    b->submitted = tern_engine_clock(e);
    b->deadline = INFINITY;
    (void)pthread_mutex_lock(&e->lock);
    (void)tern_engine_enter(e, &b, 1);
    (void)pthread_mutex_unlock(&e->lock);
    return TERN_OK;
}

/* ---- a pass -------------------------------------------------------------------------------- */

static uint32_t smaller(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

size_t tern_slot_plan(tern_engine *e) {
    if (e->n_now == 0)
        return 0;
    tern_job *job = &e->now[0]->job;
    const uint32_t rows = e->params.n_batch;
    job->n_guesses = smaller(job->n_guesses, rows - 1);
    const uint32_t rest = job->n_tokens - job->computed;
    const uint32_t n = tern_job_decodes(job) ? 1 + job->n_guesses : smaller(rest, rows);
    e->plan[0] = tern_plan_next(job, n);
    tern_session_stores(e->session, job->computed + n);
    return 1;
}

void tern_slot_stand(tern_engine *e, uint32_t position, size_t row) {
    tern_session_move(e->session, position);
    e->session->last_row = row;
    e->session->has_last = true;
}

void tern_slot_computed(tern_engine *e, const tern_plan_span *p, uint32_t kept,
                        const tern_engine_span *s) {
    tern_job *job = p->job;
    job->computed += kept;
    job->n_guesses = 0;
    if (s->taken > 0)
        tern_slot_stand(e, job->computed, s->first + s->taken - 1);
    else
        tern_session_move(e->session, job->computed);
}

/* Evaluates the last token, from which nothing is picked. */
static void compute_last(tern_engine *e, tern_branch *b) {
    tern_session *s = e->session;
    const uint32_t position = s->sequence.position;
    b->figures.n_computed++;
    b->figures.n_found += position;
    if (tern_session_eval(s, b->tokens + position, 1, TERN_LOGITS_NONE, NULL, &b->error) != TERN_OK)
        b->end = TERN_END_ERROR;
}

void tern_slot_finish(tern_engine *e, tern_branch *b) {
    tern_job *job = &b->job;
    if (b->end == TERN_END_ERROR && job->computed < b->n_prompt) {
        if (tern_session_rewind(e->session, e->slot_start, NULL) != TERN_OK)
            tern_session_move(e->session, 0);
    } else if (b->end != TERN_END_ERROR && b->figures.n_generated > 0 &&
               job->computed < job->n_tokens) {
        compute_last(e, b);
    }
    tern_draft_free(&b->draft);
}
