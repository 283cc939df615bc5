/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/engine/forward/runner.h"

#include <stdlib.h>

#include "runtime/engine/cache/placed.h"
#include "runtime/engine/forward/delta.h"
#include "runtime/engine/forward/internal.h"
#include "runtime/engine/forward/together.h"

/* ---- memory -------------------------------------------------------------------------------- */

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

/* Lays out inputs of n rows. */
static tern_inputs lay_out_inputs(const tern_scratch *w, const tern_config *c, size_t n,
                                  tern_taker *t) {
    return (tern_inputs){.experts = tern_experts_lay_out(c, &w->expert_sizes, n, t),
                         .x = tern_take(t, n * c->n_embd, sizeof(float)),
                         .norm = tern_take(t, n * w->width, sizeof(float)),
                         .qx = tern_take(t, n * w->q_stride, 1),
                         .qx_s = tern_take(t, n, sizeof(float)),
                         .qx_sum = tern_take(t, n, sizeof(int32_t)),
                         .bx = tern_take(t, n * w->q_stride, 1),
                         .bx_d = tern_take(t, n * w->blocks, sizeof(float)),
                         .bx_sum = tern_take(t, n * w->blocks, sizeof(int32_t))};
}

/* Lays out attention's memory for this many lanes, and sequences of up to n_ctx positions. */
static void lay_out_attention(tern_runner *r, uint32_t threads, tern_taker *t) {
    const tern_config *c = &r->model->config;
    tern_attend_scratch *s = &r->processor.attend;
    tern_attend_scratch_sizes(c->n_head / c->n_head_kv, c->head_dim, s);
    s->heads = tern_take(t, threads, s->stride);
    if (threads == 1) /* nothing is shared */
        return;
    const size_t of_head = tern_taker_times(t, tern_pages_of(r->n_ctx), s->scratch_begin);
    s->states_bytes = tern_taker_times(t, c->n_head_kv, of_head);
    s->states = tern_take(t, s->states_bytes, 1);
    s->n_shares = threads - 1 > c->n_head_kv ? threads - 1 : c->n_head_kv;
    s->shares = tern_take(t, s->n_shares, sizeof *s->shares);
}

/* Lays out what products with adapters need. */
static void lay_out_adapt(tern_runner *r, tern_taker *t) {
    const tern_adapters *a = &r->model->adapters;
    tern_adapt_scratch *s = &r->scratch.adapt;
    if (a->n == 0)
        return;
    s->stride = a->first[a->n];
    const size_t rows = tern_taker_times(t, TERN_ADAPT_MAPS, r->n_batch);
    s->inner = tern_take(t, tern_taker_times(t, rows, s->stride), sizeof(float));
}

/* Lays out the memory that a pass computes in. */
static void lay_out_scratch(tern_runner *r, uint32_t threads, tern_taker *t) {
    const tern_config *c = &r->model->config;
    tern_scratch *w = &r->scratch;
    const size_t heads = (size_t)c->n_head * c->head_dim;
    const size_t kv = (size_t)c->n_head_kv * c->head_dim;
    const size_t batch = r->n_batch;
    const size_t ff = c->n_expert > 0 ? c->n_ff_shared : c->n_ff; /* of all tokens */
    w->width =
        larger(larger(larger(c->n_embd, larger(c->n_ff, ff)), heads), tern_delta_inner(&c->delta));
    w->q_stride = (w->width + TERN_Q_PAD - 1) / TERN_Q_PAD * TERN_Q_PAD;
    w->blocks = (w->width + TERN_BLOCK - 1) / TERN_BLOCK;
    w->expert_sizes = tern_experts_sizes(r->model);
    lay_out_attention(r, threads, t);
    w->in = lay_out_inputs(w, c, batch, t);
    w->own = tern_take(t, threads - 1, sizeof *w->own);
    for (uint32_t i = 0; i + 1 < threads; i++) {
        const tern_inputs own = lay_out_inputs(w, c, 1, t);
        if (w->own != NULL)
            w->own[i] = own;
    }
    w->attended = tern_take(t, batch * heads, sizeof(float));
    w->q = tern_take(t, batch * heads, sizeof(float));
    w->k = tern_take(t, batch * kv, sizeof(float));
    w->v = tern_take(t, batch * kv, sizeof(float));
    if (c->arch->has & TERN_HAS_QUERY_GATES)
        w->gated_q = tern_take(t, 2 * batch * heads, sizeof(float));
    w->delta = tern_delta_lay_out(c, batch, t);
    if (ff > 0) {
        w->gate = tern_take(t, batch * ff, sizeof(float));
        w->up = tern_take(t, batch * ff, sizeof(float));
    }
    if (c->n_ff_shared > 0)
        w->shared_gate = tern_take(t, batch, sizeof(float));
    w->experts = tern_experts_lay_out_shared(c, batch, t);
    w->out = tern_take(t, batch * c->n_embd, sizeof(float));
    lay_out_adapt(r, t);
}

/* The number of page numbers that all spans of a pass may have, where a device reads them. */
static size_t page_numbers(const tern_runner *r, tern_taker *t) {
    const size_t of_span = (size_t)TERN_POOL_PARTS * tern_pages_of(r->n_ctx);
    return r->model->mirror != NULL ? tern_taker_times(t, of_span, r->n_batch) : 0;
}

/* Lays out the data about the rows of a pass. It is contiguous from `at` to the sines, because
 * on_device.c sends it in one copy. */
static void lay_out_batch(tern_runner *r, tern_taker *t) {
    const tern_config *c = &r->model->config;
    const size_t angles = (size_t)r->n_batch * tern_config_angle_tables(c) * (c->n_rot / 2);
    tern_batch *b = &r->batch;
    b->at = tern_take(t, r->n_batch, sizeof *b->at);
    b->ids = tern_take(t, r->n_batch, sizeof *b->ids);
    b->sees = b->at;
    if (c->arch->encodes) {
        b->sees = tern_take(t, r->n_batch, sizeof *b->sees);
        b->places = tern_take(t, r->n_batch, sizeof *b->places);
        b->types = tern_take(t, r->n_batch, sizeof *b->types);
    }
    for (size_t i = 0; i < TERN_POOL_PARTS; i++)
        b->tables[i] = tern_take(t, r->n_batch, sizeof *b->tables[i]);
    b->overflow = tern_take(t, r->n_batch, sizeof *b->overflow);
    b->rows = tern_take(t, r->n_batch, sizeof *b->rows);
    r->scratch.cosine = tern_take(t, angles, sizeof(float));
    r->scratch.sine = tern_take(t, angles, sizeof(float));
    b->numbers = tern_take(t, page_numbers(r, t), sizeof *b->numbers);
    r->counted = tern_take(t, r->n_batch, sizeof *r->counted);
}

/* Lays out logits, or bounds of them. */
static void lay_out_logits(tern_runner *r, tern_taker *t) {
    const size_t n_vocab = r->model->config.n_vocab;
    tern_scratch *w = &r->scratch;
    w->logits = tern_take(t, n_vocab, sizeof(float));
    r->slots = tern_take(t, r->n_picks, sizeof *r->slots);
    r->foreseen.fresh = tern_take(t, r->n_picks, sizeof *r->foreseen.fresh);
    if (r->n_picks > 1 || tern_head_is_imaged(&r->model->image))
        w->lower = tern_take(t, r->n_picks * n_vocab, sizeof(float));
    if (tern_head_is_imaged(&r->model->image))
        w->upper = tern_take(t, r->n_picks * n_vocab, sizeof(float));
}

/* Lays out the whole arena; called once to size it and once to fill it. */
static void lay_out(tern_runner *r, uint32_t threads, tern_taker *t) {
    lay_out_scratch(r, threads, t);
    lay_out_batch(r, t);
    lay_out_logits(r, t);
}

/* Sets up the processor's operations with the kernels that the model has chosen; their memory comes
 * later. */
static void choose_backend(tern_runner *r) {
    const tern_kernel_set *kernels = &r->model->kernels;
    tern_processor_device *p = &r->processor;
    const tern_kernel_row *const chosen[] = {kernels->quantize_token,
                                             kernels->quantize_block,
                                             kernels->rmsnorm,
                                             kernels->layernorm,
                                             kernels->rope,
                                             kernels->gate,
                                             kernels->add,
                                             r->model->own.embedding.kernel,
                                             kernels->hadamard,
                                             kernels->softmax};
    tern_processor_init(p, r->model->guard.mask);
    p->tally = r->tally;
    if (kernels->round != NULL)
        p->kernels[kernels->round->op][TERN_FORMAT_NONE] = kernels->round;
    for (size_t i = 0; i < sizeof chosen / sizeof *chosen; i++)
        p->kernels[chosen[i]->op][chosen[i]->format] = chosen[i];
    for (tern_format kv = 0; kv < TERN_FORMAT_COUNT; kv++) {
        p->kernels[TERN_OP_ATTEND][kv] = kernels->attend[kv];
        p->kernels[TERN_OP_STORE][kv] = kernels->store[kv];
    }
    r->backend = &p->base;
}

static void configure(tern_runner *r, const tern_model *model, const tern_runner_params *p) {
    r->model = model;
    r->n_batch = p->n_batch;
    r->n_ctx = p->n_ctx;
    r->n_picks = p->n_picks;
    r->buffer_row = TERN_NO_ROW;
    r->foreseen.n = 0;
}

tern_status tern_runner_bytes(const tern_model *model, const tern_runner_params *params,
                              size_t *bytes, tern_error *err) {
    tern_taker planner = {.arena = NULL};
    tern_runner r = {.team = NULL};
    configure(&r, model, params);
    lay_out(&r, params->threads, &planner);
    return tern_taker_total(&planner, params->n_ctx, bytes, err);
}

/* ---- life ---------------------------------------------------------------------------------- */

/* True if another runner's threads are as many, on the same places. */
static bool may_borrow(const tern_runner *r, const tern_runner *beside, uint32_t threads) {
    const tern_model *m = r->model, *other = beside->model;
    return m->mirror == NULL && other->mirror == NULL && !tern_split_is(&m->split) &&
           !tern_split_is(&other->split) && tern_team_size(beside->team) == threads &&
           m->places.affinity == other->places.affinity && m->places.numa == other->places.numa &&
           m->places.node == other->places.node;
}

/* Starts the team on the model's places, or borrows one. */
static tern_status start_team(tern_runner *r, uint32_t threads, const tern_runner *beside,
                              tern_error *err) {
    const tern_model *m = r->model;
    if (beside != NULL && may_borrow(r, beside, threads)) {
        r->team = beside->team;
        r->borrows = true;
        return TERN_OK;
    }
    const tern_status status =
        tern_team_new_placed(threads, m->topology, &m->places, &r->team, err);
    if (status != TERN_OK)
        return status;
    if (m->strict && tern_team_size(r->team) < threads)
        return tern_fail(err, TERN_ERR_STRICT,
                         "strict: the system starts %u threads of %u, they would stand in",
                         tern_team_size(r->team), threads);
    return tern_model_note_refusal(m, tern_team_refused(r->team), &r->refused, err);
}

/* Maps the scratch for the threads that were started. */
static tern_status reserve(tern_runner *r, const tern_runner_params *params, tern_error *err) {
    tern_runner_params p = *params;
    size_t bytes = 0;
    p.threads = tern_team_size(r->team);
    tern_status status = tern_runner_bytes(r->model, &p, &bytes, err);
    const tern_placed_size wanted = {
        .bytes = bytes, .positions = p.n_ctx, .missing = TERN_ERR_SCRATCH_MEMORY};
    if (status == TERN_OK)
        status = tern_arena_new_placed(r->model, &wanted, &r->arena, &r->refused, err);
    tern_taker filler = {.arena = &r->arena, .status = status, .err = err};
    if (status == TERN_OK)
        lay_out(r, p.threads, &filler);
    return filler.status;
}

/* Makes a runner of zeros. */
static tern_status make_runner(tern_runner *r, const tern_model *model,
                               const tern_runner_params *params, tern_error *err) {
    configure(r, model, params);
    r->refused = model->refused;
    r->tally = tern_tally_new();
    choose_backend(r);
    /* The calling thread drives another device. */
    tern_status status =
        r->tally != NULL
            ? start_team(r, model->mirror != NULL ? 1 : params->threads, params->beside, err)
            : tern_fail(err, TERN_ERR_NOMEM, "no memory for a session");
    if (status == TERN_OK)
        status = reserve(r, params, err);
    if (status != TERN_OK)
        return status;
    if (model->config.arch->ungated) /* act(x) is act(x) * 1 */
        for (size_t i = 0; i < (size_t)r->n_batch * model->config.n_ff; i++)
            r->scratch.up[i] = 1.0f;
    return model->mirror != NULL ? tern_runner_open_mirror(r, err) : TERN_OK;
}

/* Has the other ranks make theirs, too; on these the order is given already. */
static tern_status make_together(tern_runner *r, const tern_model *model,
                                 const tern_runner_params *p, tern_error *err) {
    tern_order order = {.kind = TERN_ORDER_OPEN,
                        .a = {p->threads, p->n_batch, p->n_ctx, p->n_picks}};
    if (!tern_split_is(&model->split))
        return make_runner(r, model, p, err);
    r->model = model;
    if (tern_together_leads(r)) {
        r->far.number = atomic_fetch_add(&((tern_model *)(uintptr_t)model)->runners, 1);
        tern_together_begin(r, order);
    }
    const tern_status status =
        tern_ranks_agree(model->split.ranks, make_runner(r, model, p, err), err);
    if (tern_together_leads(r))
        tern_together_end(r);
    return status;
}

tern_status tern_runner_new(const tern_model *model, const tern_runner_params *params,
                            tern_runner **out, tern_error *err) {
    tern_runner *r = calloc(1, sizeof *r);
    if (r == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for a session");
    const tern_status status = make_together(r, model, params, err);
    if (status == TERN_OK)
        *out = r;
    else
        tern_runner_free(&r);
    return status;
}

void tern_runner_free(tern_runner **runner) {
    if (runner == NULL || *runner == NULL)
        return;
    if (tern_together_leads(*runner)) {
        tern_together_begin(*runner, (tern_order){.kind = TERN_ORDER_CLOSE});
        tern_together_end(*runner);
    }
    free((*runner)->far.payload);
    free((*runner)->far.notes);
    free((*runner)->far.logits);
    tern_runner_close_mirror(*runner);
    if (!(*runner)->borrows)
        tern_team_free(&(*runner)->team);
    tern_arena_free(&(*runner)->arena);
    tern_tally_free(&(*runner)->tally);
    free(*runner);
    *runner = NULL;
}

uint32_t tern_runner_threads(const tern_runner *r) {
    return tern_team_size(r->team);
}
uint32_t tern_runner_batch(const tern_runner *r) {
    return r->n_batch;
}
int tern_runner_refused(const tern_runner *r) {
    return r->refused;
}
tern_session_work tern_runner_work(const tern_runner *r) {
    return r->work;
}
void tern_runner_observe(tern_runner *r, tern_product_observer *observer, void *user) {
    r->observer = observer;
    r->observer_user = user;
}
void tern_runner_measure(tern_runner *r, tern_stages *stages) {
    r->stages = stages;
}

/* ---- a pass -------------------------------------------------------------------------------- */

/* Notes a row of an encoder. It sees all of its span, which is the whole text. */
static void note_encoder(tern_batch *b, size_t row, const tern_pass_span *s) {
    b->sees[row] = b->at[row];
    b->sees[row].position = s->position + (uint32_t)s->n - 1;
    b->places[row] = (int32_t)b->at[row].position;
    b->types[row] = s->second > 0 && b->at[row].position >= s->second;
}

/* Appends rows [begin, end) of a span. */
static void add_rows(tern_batch *b, size_t span, size_t begin, size_t end) {
    const tern_pass_span *s = &b->spans[span];
    for (size_t i = begin; i < end; i++, b->n++) {
        b->at[b->n] =
            (tern_device_place){.sequence = (uint32_t)span, .position = s->position + (uint32_t)i};
        b->ids[b->n] = s->tokens != NULL ? s->tokens[i] : 0;
        if (b->sees != b->at)
            note_encoder(b, b->n, s);
    }
}

/* Notes the page tables of a span for operations. */
static void note_pages(tern_runner *r, size_t span, const tern_pass_span *s) {
    const uint32_t *parts[TERN_POOL_PARTS] = {
        [TERN_PART_ALL] = s->pages, [TERN_PART_WINDOW] = s->window_pages};
    const size_t n = tern_pages_of(s->position + (uint32_t)s->n);
    for (size_t i = 0; i < TERN_POOL_PARTS; i++)
        r->batch.tables[i][span] =
            r->mirror != NULL && parts[i] != NULL ? tern_runner_table(r, parts[i], n) : parts[i];
}

/* Makes the batch of the rows of the spans. */
static void make_batch(tern_runner *r, const tern_pool *pool, const tern_pass_span *spans,
                       size_t n_spans) {
    tern_batch *b = &r->batch;
    b->pool = pool;
    b->kv = pool->kv;
    b->spans = spans;
    b->n_spans = n_spans;
    b->n = 0;
    b->n_numbers = 0;
    b->adapted = false;
    for (size_t i = 0; i < n_spans; i++) {
        b->adapted |= spans[i].adapters != NULL && spans[i].adapters->n > 0;
        note_pages(r, i, &spans[i]);
        b->overflow[i] = TERN_NO_OVERFLOW;
        b->rows[i].first = (uint32_t)b->n;
        add_rows(b, i, 0, spans[i].n - spans[i].wanted);
    }
    b->first_wanted = b->n;
    for (size_t i = 0; i < n_spans; i++) {
        b->rows[i].first_wanted = (uint32_t)b->n;
        add_rows(b, i, spans[i].n - spans[i].wanted, spans[i].n);
    }
}

/* Counts a finished pass in the work done. */
static void note_pass(tern_runner *r) {
    const tern_batch *b = &r->batch;
    r->work.passes++;
    r->work.tokens += b->n;
    for (size_t i = 0; i < b->n_spans; i++)
        r->work.reused += b->spans[i].position;
    r->work.products += tern_config_linears(&r->model->config);
    for (size_t i = 0; i < tern_batch_wanted(b); i++)
        r->counted[i] = false;
    r->buffer_row = TERN_NO_ROW;
    r->foreseen.n = 0;
}

void tern_runner_run(tern_runner *r, const tern_pool *pool, const tern_pass_span *spans,
                     size_t n_spans) {
    if (tern_together_leads(r))
        tern_together_begin_pass(r, spans, n_spans);
    make_batch(r, pool, spans, n_spans);
    tern_runner_place_angles(r);
    tern_forward(r);
    tern_runner_fetch_results(r);
    if (tern_split_is(&r->model->split))
        tern_together_compare(r);
    note_pass(r);
    r->batch.spans = NULL; /* both belong to the caller */
    r->batch.pool = NULL;
    if (tern_together_leads(r))
        tern_together_end(r);
}

tern_status tern_runner_check(const tern_runner *r, size_t span, tern_error *err) {
    if (r->failed != TERN_OK && err != NULL)
        *err = r->failure;
    if (r->failed != TERN_OK)
        return r->failed;
    return tern_overflow_tell(&r->batch.overflow[span], r->batch.kv, err);
}
