/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/session/session.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cache_row.h"
#include "runtime/threads/bind.h"

enum { DEFAULT_CONTEXT = 4096, DEFAULT_BATCH = 128, MAX_BATCH = 4096, MAX_THREADS = 1024 };

tern_session_params tern_session_params_default(void) {
    return (tern_session_params){.kv = TERN_FORMAT_F16};
}

/* ---- memory -------------------------------------------------------------------------------- */

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

/* Takes from the arena, or only adds up when arena is NULL. */
typedef struct taker {
    tern_arena *arena;
    size_t bytes;
    bool overflow;
    tern_status status;
    tern_error *err;
} taker;

static void *take(taker *t, size_t count, size_t size) {
    void *memory = NULL;
    if (!t->arena) {
        t->overflow |= !tern_arena_reserve(&t->bytes, count, size);
        return NULL;
    }
    if (t->status == TERN_OK)
        t->status = tern_arena_take(t->arena, count, size, &memory, t->err);
    return memory;
}

/* count = a * b with overflow remembered. */
static size_t times(taker *t, size_t a, size_t b) {
    size_t product = 0;
    t->overflow |= __builtin_mul_overflow(a, b, &product);
    return product;
}

/* What attention needs beside q and the cache. */
static void lay_out_attention(tern_session *s, uint32_t threads, taker *t) {
    const tern_config *c = &s->model->config;
    tern_scratch *w = &s->scratch;
    const size_t heads = c->n_head / c->n_head_kv * TERN_ATTEND_TOKENS;
    const size_t chunks = (s->n_ctx + (size_t)TERN_ATTEND_CHUNK - 1) / TERN_ATTEND_CHUNK;
    w->attend_stride = TERN_ATTEND_SCRATCH(c->head_dim, heads);
    w->states_stride = times(t, times(t, chunks, heads), TERN_ATTEND_STATE(c->head_dim));
    w->attend = take(t, threads * w->attend_stride, sizeof(float));
    if (threads == 1) /* shares no head */
        return;
    w->states = take(t, times(t, c->n_head_kv, w->states_stride), sizeof(float));
    w->shares = take(t, c->n_head_kv, sizeof *w->shares);
}

/* Inputs of n tokens. */
static tern_inputs lay_out_inputs(const tern_scratch *w, const tern_config *c, size_t n, taker *t) {
    return (tern_inputs){.x = take(t, n * c->n_embd, sizeof(float)),
                         .norm = take(t, n * w->width, sizeof(float)),
                         .qx = take(t, n * w->q_stride, 1),
                         .qx_s = take(t, n, sizeof(float)),
                         .qx_sum = take(t, n, sizeof(int32_t)),
                         .bx = take(t, n * w->q_stride, 1),
                         .bx_d = take(t, n * w->blocks, sizeof(float)),
                         .bx_sum = take(t, n * w->blocks, sizeof(int32_t))};
}

/* The scratch arena; called once to size it and once to fill it. */
static void lay_out_scratch(tern_session *s, uint32_t threads, taker *t) {
    const tern_config *c = &s->model->config;
    tern_scratch *w = &s->scratch;
    const size_t heads = (size_t)c->n_head * c->head_dim;
    const size_t kv = (size_t)c->n_head_kv * c->head_dim;
    const size_t batch = s->n_batch;
    const size_t half = c->n_rot / 2;
    w->width = larger(larger(c->n_embd, c->n_ff), heads);
    w->q_stride = (w->width + TERN_Q_PAD - 1) / TERN_Q_PAD * TERN_Q_PAD;
    w->blocks = (w->width + TERN_BLOCK - 1) / TERN_BLOCK;
    lay_out_attention(s, threads, t);
    w->in = lay_out_inputs(w, c, batch, t);
    w->own = take(t, threads - 1, sizeof *w->own);
    for (uint32_t i = 0; i + 1 < threads; i++) {
        const tern_inputs own = lay_out_inputs(w, c, 1, t);
        if (w->own)
            w->own[i] = own;
    }
    w->attended = take(t, batch * heads, sizeof(float));
    w->q = take(t, batch * heads, sizeof(float));
    w->k = take(t, batch * kv, sizeof(float));
    w->v = take(t, batch * kv, sizeof(float));
    w->gate = take(t, batch * c->n_ff, sizeof(float));
    w->up = take(t, batch * c->n_ff, sizeof(float));
    w->out = take(t, batch * c->n_embd, sizeof(float));
    w->cosine = take(t, batch * half, sizeof(float));
    w->sine = take(t, batch * half, sizeof(float));
    w->logits = take(t, c->n_vocab, sizeof(float));
    if (tern_head_is_imaged(&s->model->image)) {
        w->lower = take(t, c->n_vocab, sizeof(float));
        w->upper = take(t, c->n_vocab, sizeof(float));
    }
}

/* The cache arena, likewise. */
static void lay_out_cache(tern_session *s, uint32_t threads, taker *t) {
    const tern_config *c = &s->model->config;
    (void)threads;
    const size_t rows = times(t, times(t, c->n_layer, c->n_head_kv), s->n_ctx);
    s->cache_k = take(t, rows, s->kv_row_bytes);
    s->cache_v = take(t, rows, s->kv_row_bytes);
    s->tokens = take(t, s->n_ctx, sizeof *s->tokens);
}

typedef void lay_out(tern_session *s, uint32_t threads, taker *t);

/* Bytes of an arena of the session. */
static tern_status plan(tern_session *s, lay_out *fill, uint32_t threads, size_t *bytes,
                        tern_error *err) {
    taker planner = {.arena = NULL};
    fill(s, threads, &planner);
    if (planner.overflow)
        return tern_fail(err, TERN_ERR_NOMEM, "a session of %u positions exceeds the address space",
                         s->n_ctx);
    *bytes = planner.bytes;
    return TERN_OK;
}

/* Maps an arena and fills it; `missing` is what the system's refusal is reported as. */
static tern_status allocate(tern_session *s, lay_out *fill, tern_arena *arena, tern_status missing,
                            tern_error *err) {
    const uint32_t threads = tern_team_size(s->team);
    size_t bytes = 0;
    tern_status status = plan(s, fill, threads, &bytes, err);
    if (status == TERN_OK && tern_arena_new(bytes, false, arena, NULL) != TERN_OK)
        status = tern_fail(err, missing, "%s: cannot map %zu bytes for %u positions",
                           tern_status_str(missing), bytes, s->n_ctx);
    if (status == TERN_OK)
        status = tern_model_note_refusal(
            s->model, tern_place_memory(s->model->topology, &s->model->places, arena->base, bytes),
            &s->refused, err);
    if (status != TERN_OK)
        return status;
    taker filler = {.arena = arena, .err = err};
    fill(s, threads, &filler);
    return filler.status;
}

/* ---- life ---------------------------------------------------------------------------------- */

uint32_t tern_model_default_context(const tern_model *m) {
    return m->config.n_ctx < DEFAULT_CONTEXT ? m->config.n_ctx : DEFAULT_CONTEXT;
}

static tern_status check_params(const tern_model *model, const tern_session_params *p,
                                tern_error *err) {
    if (!tern_is_cache_format(&model->rows, p->kv))
        return tern_fail(err, TERN_ERR_ARG, "the cache can hold f32, f16 or q8_0");
    if (p->n_ctx > model->config.n_ctx)
        return tern_fail(err, TERN_ERR_CONTEXT,
                         "a context of %u positions exceeds the %u that the model was trained for",
                         p->n_ctx, model->config.n_ctx);
    if (p->n_batch > MAX_BATCH)
        return tern_fail(err, TERN_ERR_ARG, "a batch of %u tokens exceeds %u", p->n_batch,
                         (unsigned)MAX_BATCH);
    if (p->threads > MAX_THREADS)
        return tern_fail(err, TERN_ERR_ARG, "%u threads exceed %u", p->threads,
                         (unsigned)MAX_THREADS);
    return TERN_OK;
}

/* Everything that parameters decide, except threads and memory. */
static void configure(tern_session *s, const tern_model *model, const tern_session_params *p) {
    s->model = model;
    s->kv = p->kv;
    s->kv_row_bytes = tern_cache_row_bytes(p->kv, model->config.head_dim);
    s->attend = model->rows.attend[p->kv];
    s->store = model->rows.store[p->kv];
    s->attend_scale = model->config.attention_scale;
    s->n_ctx = p->n_ctx ? p->n_ctx : tern_model_default_context(model);
    s->n_batch = p->n_batch ? p->n_batch : DEFAULT_BATCH;
    if (s->n_batch > s->n_ctx)
        s->n_batch = s->n_ctx;
}

/* The team, where the model's places want it. */
static tern_status start_team(tern_session *s, uint32_t threads, tern_error *err) {
    const tern_model *m = s->model;
    const tern_status status =
        tern_team_new_placed(threads, m->topology, &m->places, &s->team, err);
    if (status != TERN_OK)
        return status;
    if (m->strict && tern_team_size(s->team) < threads)
        return tern_fail(err, TERN_ERR_STRICT,
                         "strict: the system starts %u threads of %u, they would stand in",
                         tern_team_size(s->team), threads);
    s->refused = m->refused;
    return tern_model_note_refusal(m, tern_team_refused(s->team), &s->refused, err);
}

tern_status tern_session_bytes(const tern_model *model, const tern_session_params *params,
                               uint64_t *bytes, tern_error *err) {
    if (!model || !params || !bytes)
        return tern_fail(err, TERN_ERR_NULL, "tern_session_bytes: NULL argument");
    tern_status status = check_params(model, params, err);
    if (status != TERN_OK)
        return status;
    tern_session s = {.team = NULL};
    configure(&s, model, params);
    const uint32_t threads = tern_model_threads(model, params->threads);
    size_t cache = 0, scratch = 0;
    status = plan(&s, lay_out_cache, threads, &cache, err);
    if (status == TERN_OK)
        status = plan(&s, lay_out_scratch, threads, &scratch, err);
    if (status == TERN_OK)
        *bytes = (uint64_t)cache + scratch;
    return status;
}

tern_status tern_session_new(const tern_model *model, const tern_session_params *params,
                             tern_session **out, tern_error *err) {
    const tern_session_params defaults = tern_session_params_default();
    const tern_session_params *p = params ? params : &defaults;
    if (!model || !out)
        return tern_fail(err, TERN_ERR_NULL, "tern_session_new needs a model and a place");
    if (!model->runnable)
        return tern_fail(err, TERN_ERR_STATE, "the model was opened without its weights");
    tern_status status = check_params(model, p, err);
    if (status != TERN_OK)
        return status;
    tern_session *s = calloc(1, sizeof *s);
    if (!s)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for a session");
    configure(s, model, p);
    status = start_team(s, tern_model_threads(model, p->threads), err);
    if (status == TERN_OK)
        status = allocate(s, lay_out_cache, &s->cache_arena, TERN_ERR_CACHE_MEMORY, err);
    if (status == TERN_OK)
        status = allocate(s, lay_out_scratch, &s->scratch_arena, TERN_ERR_SCRATCH_MEMORY, err);
    if (status != TERN_OK) {
        tern_session_free(&s);
        return status;
    }
    *out = s;
    return TERN_OK;
}

void tern_session_free(tern_session **session) {
    if (!session || !*session)
        return;
    tern_team_free(&(*session)->team);
    tern_arena_free(&(*session)->scratch_arena);
    tern_arena_free(&(*session)->cache_arena);
    free(*session);
    *session = NULL;
}

const tern_model *tern_session_model(const tern_session *s) {
    return s->model;
}
uint32_t tern_session_position(const tern_session *s) {
    return s->position;
}
uint32_t tern_session_context(const tern_session *s) {
    return s->n_ctx;
}
tern_format tern_session_cache(const tern_session *s) {
    return s->kv;
}
int tern_session_refused(const tern_session *s) {
    return s->refused;
}
uint32_t tern_session_threads(const tern_session *s) {
    return tern_team_size(s->team);
}
uint32_t tern_session_batch(const tern_session *s) {
    return s->n_batch;
}
float *tern_session_logits(tern_session *s) {
    return s->scratch.logits;
}

tern_status tern_session_rewind(tern_session *s, uint32_t position, tern_error *err) {
    if (!s)
        return tern_fail(err, TERN_ERR_NULL, "tern_session_rewind needs a session");
    if (position > s->position)
        return tern_fail(err, TERN_ERR_POSITION, "cannot rewind to position %u of %u", position,
                         s->position);
    tern_session_move(s, position);
    return TERN_OK;
}

/* ---- evaluation ---------------------------------------------------------------------------- */

static tern_status check_room(const tern_session *s, size_t n, uint32_t position, tern_error *err) {
    if (n == 0)
        return tern_fail(err, TERN_ERR_EMPTY, "an empty sequence cannot be evaluated");
    if (n > s->n_ctx)
        return tern_fail(err, TERN_ERR_CONTEXT, "%zu tokens exceed the context of %u positions", n,
                         s->n_ctx);
    if (n > s->n_ctx - position)
        return tern_fail(err, TERN_ERR_FULL,
                         "%zu tokens at position %u exceed the context of %u positions", n,
                         position, s->n_ctx);
    return TERN_OK;
}

tern_status tern_session_check(const tern_session *s, const int32_t *tokens, size_t n,
                               uint32_t position, tern_error *err) {
    const tern_status status = check_room(s, n, position, err);
    if (status != TERN_OK)
        return status;
    const uint32_t vocabulary = s->model->config.n_vocab;
    for (size_t i = 0; i < n; i++)
        if (tokens[i] < 0 || (uint32_t)tokens[i] >= vocabulary)
            return tern_fail(err, TERN_ERR_TOKEN_RANGE,
                             "token %d at index %zu is outside the vocabulary of %u", tokens[i], i,
                             vocabulary);
    return TERN_OK;
}

/* Keeps account of a pass that was made. */
static void note_pass(tern_session *s, const tern_batch *b) {
    const uint64_t linears = (uint64_t)s->model->config.n_layer * TERN_LAYER_LINEARS;
    s->work.passes++;
    s->work.tokens += b->n;
    s->work.reused += b->position;
    s->work.products += linears + (b->n_logits > 0);
    s->last =
        (tern_last){.state = b->logits == s->scratch.logits && b->n_logits == 1 ? TERN_LAST_LOGITS
                                                                                : TERN_LAST_HIDDEN,
                    .row = b->n - 1,
                    .counted = b->n_logits > 0};
    s->ran |= b->n == 1 ? TERN_RAN_GEMV : TERN_RAN_GEMM;
    if (b->n_logits > 0)
        s->ran |= b->n_logits == 1 ? TERN_RAN_HEAD_GEMV : TERN_RAN_HEAD_GEMM;
}

tern_session_work tern_session_work_done(const tern_session *s) {
    return s->work;
}

/* Tokens, or rows of floats in their place. */
typedef struct inputs {
    const int32_t *tokens; /* [n]; NULL: rows */
    const float *rows;     /* [n][n_embd] */
    size_t n;
} inputs;

static tern_status check_call(const tern_session *s, const void *in, tern_logits_mode mode,
                              const float *logits, tern_error *err) {
    if (!s || !in || (mode != TERN_LOGITS_NONE && !logits))
        return tern_fail(err, TERN_ERR_NULL,
                         "tern_session_eval needs a session, tokens (or rows) and logits");
    if ((uintptr_t)logits % TERN_ALIGN != 0)
        return tern_fail(err, TERN_ERR_UNALIGNED, "the logits buffer is not aligned to %d bytes",
                         TERN_ALIGN);
    return TERN_OK;
}

/* Behind the sequence; what is asked for was checked. */
static tern_status evaluate(tern_session *s, const inputs *in, tern_logits_mode mode, float *logits,
                            tern_error *err) {
    const size_t n = in->n, n_vocab = s->model->config.n_vocab, n_embd = s->model->config.n_embd;
    for (size_t first = 0; first < n; first += s->n_batch) {
        const size_t size = n - first < s->n_batch ? n - first : s->n_batch;
        const bool last = first + size == n;
        tern_batch batch = {.session = s,
                            .tokens = in->tokens ? in->tokens + first : NULL,
                            .rows = in->rows ? in->rows + first * n_embd : NULL,
                            .n = size,
                            .position = s->position + first,
                            .n_logits = mode == TERN_LOGITS_ALL            ? size
                                        : mode == TERN_LOGITS_LAST && last ? 1
                                                                           : 0,
                            .logits = mode == TERN_LOGITS_ALL ? logits + first * n_vocab : logits,
                            .overflow = TERN_NO_OVERFLOW};
        tern_forward(&batch);
        note_pass(s, &batch);
        tern_status status = tern_overflow_tell(&batch.overflow, s->kv, err);
        if (status == TERN_OK)
            status = tern_check_logits(batch.logits, batch.n_logits, n_vocab, err);
        if (status != TERN_OK) {
            s->last.state = TERN_LAST_NONE;
            return status;
        }
    }
    for (size_t i = 0; i < n; i++)
        s->tokens[s->position + i] = in->tokens ? in->tokens[i] : TERN_NO_TOKEN;
    s->position += (uint32_t)n;
    return TERN_OK;
}

tern_status tern_session_eval_at(tern_session *s, uint32_t position, const int32_t *tokens,
                                 size_t n, tern_logits_mode mode, float *logits, tern_error *err) {
    tern_status status = check_call(s, tokens, mode, logits, err);
    if (status != TERN_OK)
        return status;
    if (position > s->position && position < s->n_ctx)
        return tern_fail(err, TERN_ERR_POSITION,
                         "cannot evaluate at position %u: the sequence has %u tokens", position,
                         s->position);
    status = tern_session_check(s, tokens, n, position < s->n_ctx ? position : s->n_ctx, err);
    if (status != TERN_OK)
        return status;
    tern_session_move(s, position);
    return evaluate(s, &(inputs){.tokens = tokens, .n = n}, mode, logits, err);
}

tern_status tern_session_eval(tern_session *s, const int32_t *tokens, size_t n,
                              tern_logits_mode mode, float *logits, tern_error *err) {
    return tern_session_eval_at(s, s ? s->position : 0, tokens, n, mode, logits, err);
}

tern_status tern_session_eval_rows(tern_session *s, const float *rows, size_t n,
                                   tern_logits_mode mode, float *logits, tern_error *err) {
    tern_status status = check_call(s, rows, mode, logits, err);
    if (status == TERN_OK)
        status = check_room(s, n, s->position, err);
    if (status != TERN_OK)
        return status;
    const size_t n_embd = s->model->config.n_embd;
    for (size_t i = 0; i < n * n_embd; i++)
        if (!isfinite(rows[i]))
            return tern_fail(err, TERN_ERR_NONFINITE, "element %zu of row %zu is not finite",
                             i % n_embd, i / n_embd);
    return evaluate(s, &(inputs){.rows = rows, .n = n}, mode, logits, err);
}

tern_status tern_model_embed(const tern_model *m, int32_t token, float *row, tern_error *err) {
    if (!m || !row)
        return tern_fail(err, TERN_ERR_NULL, "tern_model_embed needs a model and a place");
    if (!m->runnable)
        return tern_fail(err, TERN_ERR_STATE, "the model was opened without its weights");
    if (token < 0 || (uint32_t)token >= m->config.n_vocab)
        return tern_fail(err, TERN_ERR_TOKEN_RANGE, "token %d is outside the vocabulary of %u",
                         token, m->config.n_vocab);
    const tern_embedding *e = &m->own.embedding;
    e->row->fn.embed(e->data + (size_t)token * e->row_bytes, m->config.n_embd, row);
    return TERN_OK;
}
