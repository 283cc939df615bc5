/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/engine/session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/engine/cache/placed.h"
#include "runtime/engine/slot.h"

enum {
    DEFAULT_CONTEXT = 4096,
    DEFAULT_BATCH = 128,
    DEVICE_BATCH = 512, /* a device can use larger passes */
    MAX_BATCH = 4096,
    MAX_THREADS = 1024,
    PICKS_AHEAD = 8 /* guessed tokens whose picks read the head together */
};

tern_session_params tern_session_params_default(void) {
    return (tern_session_params){.kv = TERN_FORMAT_F16};
}

uint32_t tern_model_default_context(const tern_model *m) {
    return m->config.n_ctx < DEFAULT_CONTEXT ? m->config.n_ctx : DEFAULT_CONTEXT;
}

/* ---- life ---------------------------------------------------------------------------------- */

static tern_status refuse_context(const tern_config *c, uint32_t n_ctx, tern_error *err) {
    const bool longer = c->n_ctx_long > c->n_ctx; /* with other factors of angles */
    char hint[64] = "";
    if (longer)
        (void)snprintf(hint, sizeof hint, " (%u with its factors for a long context)",
                       c->n_ctx_long);
    return tern_fail(err, TERN_ERR_CONTEXT,
                     "a context of %u positions exceeds the %u that the model was trained for%s",
                     n_ctx, c->n_ctx, hint);
}

static tern_status check_params(const tern_model *model, const tern_session_params *p,
                                tern_error *err) {
    if (!tern_is_cache_format(&model->kernels, p->kv))
        return tern_fail(err, TERN_ERR_ARG, "the cache can hold f32, f16 or q8_0");
    if (p->n_ctx > model->config.n_ctx)
        return refuse_context(&model->config, p->n_ctx, err);
    if (p->n_batch > MAX_BATCH)
        return tern_fail(err, TERN_ERR_ARG, "a batch of %u tokens exceeds %u", p->n_batch,
                         (unsigned)MAX_BATCH);
    if (p->threads > MAX_THREADS)
        return tern_fail(err, TERN_ERR_ARG, "%u threads exceed %u", p->threads,
                         (unsigned)MAX_THREADS);
    return TERN_OK;
}

/* Parameters of the runner for session parameters that were checked. */
static tern_runner_params runner_params(const tern_model *model, const tern_session_params *p) {
    const uint32_t n_ctx = p->n_ctx ? p->n_ctx : tern_model_default_context(model);
    const uint32_t usual = model->mirror != NULL ? DEVICE_BATCH : DEFAULT_BATCH;
    const uint32_t n_batch = p->n_batch ? p->n_batch : usual;
    return (tern_runner_params){.threads = tern_model_threads(model, p->threads),
                                .n_batch = n_batch < n_ctx ? n_batch : n_ctx,
                                .n_ctx = n_ctx,
                                .n_picks = n_batch < PICKS_AHEAD ? n_batch : PICKS_AHEAD};
}

/* Pages of a session with this runner. */
static tern_pool_size pool_size(const tern_model *model, const tern_session_params *p,
                                const tern_runner_params *runner) {
    const uint32_t window = tern_config_window(&model->config);
    const uint32_t pages = tern_pages_of(runner->n_ctx);
    const uint32_t seen = window > 0 ? tern_window_pages(window, runner->n_batch) + 1 : pages;
    return (tern_pool_size){
        .pages = pages, .window_pages = !p->keep_all && seen < pages ? seen : 0, .states = 1};
}

static void lay_out_sequence(tern_sequence *q, tern_taker *t) {
    q->tokens = tern_take(t, q->n_ctx, sizeof *q->tokens);
    q->pages = tern_take(t, tern_pages_of(q->n_ctx), sizeof *q->pages);
    q->window_pages = tern_take(t, tern_pages_of(q->n_ctx), sizeof *q->window_pages);
}

static tern_status plan_sequence(uint32_t n_ctx, size_t *bytes, tern_error *err) {
    tern_taker planner = {.arena = NULL};
    tern_sequence q = {.n_ctx = n_ctx};
    lay_out_sequence(&q, &planner);
    return tern_taker_total(&planner, n_ctx, bytes, err);
}

/* Checks parameters and returns those of the runner. */
static tern_status plan(const tern_model *model, const tern_session_params *params,
                        tern_runner_params *runner, tern_error *err) {
    const tern_status status = check_params(model, params, err);
    if (status == TERN_OK)
        *runner = runner_params(model, params);
    return status;
}

tern_status tern_session_cache_bytes(const tern_model *model, const tern_session_params *params,
                                     tern_session_cache_size *size, tern_error *err) {
    tern_runner_params p;
    size_t bytes = 0;
    if (model == NULL || params == NULL || size == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_session_cache_bytes: NULL argument");
    tern_status status = plan(model, params, &p, err);
    if (status != TERN_OK)
        return status;
    const tern_pool_size pages = pool_size(model, params, &p);
    status = tern_pool_bytes(model, params->kv, pages, &bytes, err);
    if (status != TERN_OK)
        return status;
    *size = (tern_session_cache_size){.layers = model->config.n_layer -
                                                tern_config_delta_layers(&model->config),
                                      .positions = pages.pages * TERN_PAGE,
                                      .window_positions = pages.window_pages * TERN_PAGE,
                                      .bytes = bytes};
    for (uint32_t i = 0; i < model->config.n_kinds && pages.window_pages > 0; i++)
        if (model->config.kinds[i].window > 0)
            size->window_layers += tern_config_layers_of(&model->config, i);
    size->layers -= size->window_layers;
    return TERN_OK;
}

tern_status tern_session_bytes(const tern_model *model, const tern_session_params *params,
                               uint64_t *bytes, tern_error *err) {
    if (model == NULL || params == NULL || bytes == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_session_bytes: NULL argument");
    tern_runner_params p;
    tern_status status = plan(model, params, &p, err);
    if (status != TERN_OK)
        return status;
    size_t cache = 0, sequence = 0, scratch = 0;
    status = tern_pool_bytes(model, params->kv, pool_size(model, params, &p), &cache, err);
    if (status == TERN_OK)
        status = plan_sequence(p.n_ctx, &sequence, err);
    if (status == TERN_OK)
        status = tern_runner_bytes(model, &p, &scratch, err);
    if (status == TERN_OK)
        *bytes = (uint64_t)cache + sequence + scratch;
    return status;
}

/* Opens the sequence, which has every page of the pool. */
static tern_status open_sequence(tern_session *s, uint32_t n_ctx, tern_error *err) {
    size_t bytes = 0;
    s->sequence.n_ctx = n_ctx;
    tern_status status = plan_sequence(n_ctx, &bytes, err);
    const tern_placed_size wanted = {
        .bytes = bytes, .positions = n_ctx, .missing = TERN_ERR_CACHE_MEMORY};
    if (status == TERN_OK)
        status = tern_arena_new_placed(s->model, &wanted, &s->arena, &s->refused, err);
    tern_taker filler = {.arena = &s->arena, .status = status, .err = err};
    lay_out_sequence(&s->sequence, &filler);
    const uint32_t round = s->pool.parts[TERN_PART_WINDOW].n;
    for (uint32_t i = 0; filler.status == TERN_OK && i < tern_pages_of(n_ctx); i++) {
        s->sequence.pages[i] = i;
        s->sequence.window_pages[i] = round > 0 ? i % round : i;
    }
    return filler.status;
}

static tern_status open_session(tern_session *s, const tern_session_params *params,
                                tern_error *err) {
    const tern_runner_params p = runner_params(s->model, params);
    tern_status status = tern_pool_open(s->model, params->kv, pool_size(s->model, params, &p),
                                        &s->pool, &s->refused, err);
    if (status == TERN_OK)
        status = open_sequence(s, p.n_ctx, err);
    if (status == TERN_OK)
        status = tern_runner_new(s->model, &p, &s->runner, err);
    if (status == TERN_OK)
        status = tern_runner_hold(s->runner, &s->pool, err);
    if (status == TERN_OK && s->refused == 0)
        s->refused = tern_runner_refused(s->runner);
    return status == TERN_OK ? tern_slot_open(s, &s->engine, err) : status;
}

tern_status tern_session_new(const tern_model *model, const tern_session_params *params,
                             tern_session **out, tern_error *err) {
    const tern_session_params defaults = tern_session_params_default();
    const tern_session_params *p = params != NULL ? params : &defaults;
    if (model == NULL || out == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_session_new needs a model and a place");
    if (!model->runnable)
        return tern_fail(err, TERN_ERR_STATE, "the model was opened without its weights");
    if (!tern_model_continues(model))
        return tern_fail(
            err, TERN_ERR_ARCH,
            "%s: architecture %s makes vectors of texts (tern embed), it continues none",
            tern_gguf_name(model->file), model->config.arch->name);
    tern_status status = check_params(model, p, err);
    if (status != TERN_OK)
        return status;
    tern_session *s = calloc(1, sizeof *s);
    if (s == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for a session");
    s->model = model;
    s->refused = model->refused;
    status = open_session(s, p, err);
    if (status != TERN_OK) {
        tern_session_free(&s);
        return status;
    }
    *out = s;
    return TERN_OK;
}

void tern_session_free(tern_session **session) {
    if (session == NULL || *session == NULL)
        return;
    tern_engine_free(&(*session)->engine);
    tern_runner_free(&(*session)->runner);
    tern_arena_free(&(*session)->arena);
    tern_pool_close(&(*session)->pool);
    free(*session);
    *session = NULL;
}

const tern_model *tern_session_model(const tern_session *s) {
    return s->model;
}
uint32_t tern_session_position(const tern_session *s) {
    return s->sequence.position;
}
uint32_t tern_session_context(const tern_session *s) {
    return s->sequence.n_ctx;
}
tern_format tern_session_cache(const tern_session *s) {
    return s->pool.kv;
}
int tern_session_refused(const tern_session *s) {
    return s->refused;
}
uint32_t tern_session_threads(const tern_session *s) {
    return tern_runner_threads(s->runner);
}
uint32_t tern_session_batch(const tern_session *s) {
    return tern_runner_batch(s->runner);
}
float *tern_session_logits(tern_session *s) {
    return tern_runner_buffer(s->runner);
}
tern_session_work tern_session_work_done(const tern_session *s) {
    return tern_runner_work(s->runner);
}
size_t tern_session_kernels(const tern_session *s, const tern_kernel_row **kernels,
                            size_t capacity) {
    return tern_runner_kernels(s->runner, kernels, capacity);
}

/* ---- evaluation ---------------------------------------------------------------------------- */

static tern_status check_room(const tern_session *s, size_t n, uint32_t position, tern_error *err) {
    if (n == 0)
        return tern_fail(err, TERN_ERR_EMPTY, "an empty sequence cannot be evaluated");
    if (n > s->sequence.n_ctx)
        return tern_fail(err, TERN_ERR_CONTEXT, "%zu tokens exceed the context of %u positions", n,
                         s->sequence.n_ctx);
    if (n > s->sequence.n_ctx - position)
        return tern_fail(err, TERN_ERR_FULL,
                         "%zu tokens at position %u exceed the context of %u positions", n,
                         position, s->sequence.n_ctx);
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

/* Tokens, or rows of floats instead. */
typedef struct inputs {
    const int32_t *tokens; /* [n]; NULL: there are rows */
    const float *rows;     /* [n][n_embd] */
    size_t n;
} inputs;

static tern_status check_call(const tern_session *s, const void *in, tern_logits_mode mode,
                              const float *logits, tern_error *err) {
    if (s == NULL || in == NULL || (mode != TERN_LOGITS_NONE && logits == NULL))
        return tern_fail(err, TERN_ERR_NULL,
                         "tern_session_eval needs a session, tokens (or rows) and logits");
    if ((uintptr_t)logits % TERN_ALIGN != 0)
        return tern_fail(err, TERN_ERR_UNALIGNED, "the logits buffer is not aligned to %d bytes",
                         TERN_ALIGN);
    return TERN_OK;
}

void tern_session_stores(tern_session *s, uint32_t end) {
    const uint32_t round = s->pool.parts[TERN_PART_WINDOW].n;
    const uint32_t first = tern_pages_of(end) > round ? tern_pages_of(end) - round : 0;
    if (round > 0 && first > s->sequence.kept)
        s->sequence.kept = first;
    s->sequence.state = end;
}

bool tern_session_sees(const tern_session *s, uint32_t position) {
    if (position > 0 && s->pool.n_states > 0 && s->sequence.state != position)
        return false;
    return position == 0 || s->sequence.kept == 0 ||
           tern_window_first(tern_config_window(&s->model->config), position) >= s->sequence.kept;
}

/* Runs one pass after the sequence, without changing it. Computes the logits of the wanted rows
 * unless logits is NULL. TERN_ERR_NONFINITE. */
static tern_status pass(tern_session *s, const tern_pass_span *span, float *logits,
                        tern_error *err) {
    tern_session_stores(s, span->position + (uint32_t)span->n);
    tern_runner_run(s->runner, &s->pool, span, 1);
    const tern_status status = tern_runner_check(s->runner, 0, err);
    if (status != TERN_OK || logits == NULL)
        return status;
    return tern_runner_logits(s->runner, 0, span->wanted, logits, err);
}

/* Runs passes over all of the inputs after the sequence, without changing it. */
static tern_status compute(tern_session *s, const inputs *in, tern_logits_mode mode, float *logits,
                           tern_error *err) {
    const size_t n = in->n, n_vocab = s->model->config.n_vocab, n_embd = s->model->config.n_embd;
    const size_t n_batch = tern_runner_batch(s->runner);
    for (size_t first = 0, size; first < n; first += size) {
        size = n - first < n_batch ? n - first : n_batch;
        const bool last = first + size == n;
        const tern_pass_span span = {.pages = s->sequence.pages,
                                     .window_pages = s->sequence.window_pages,
                                     .position = s->sequence.position + (uint32_t)first,
                                     .tokens = in->tokens != NULL ? in->tokens + first : NULL,
                                     .rows = in->rows != NULL ? in->rows + first * n_embd : NULL,
                                     .adapters = &s->model->adapters.usual,
                                     .n = size,
                                     .wanted = mode == TERN_LOGITS_ALL ? size : last};
        float *place = mode == TERN_LOGITS_ALL            ? logits + first * n_vocab
                       : mode == TERN_LOGITS_LAST && last ? logits
                                                          : NULL;
        const tern_status status = pass(s, &span, place, err);
        if (status != TERN_OK)
            return status;
        s->last_row = span.wanted - 1;
    }
    return TERN_OK;
}

/* Computes the tokens before a position again, so that layers with a window have what it sees. */
static tern_status compute_again(tern_session *s, uint32_t position, tern_error *err) {
    const inputs in = {.tokens = s->sequence.tokens, .n = position};
    tern_session_move(s, 0);
    const tern_status status = compute(s, &in, TERN_LOGITS_NONE, NULL, err);
    tern_session_move(s, status == TERN_OK ? position : 0);
    return status;
}

/* The first position before this one that came from a row; this position if none did. */
static uint32_t first_row(const tern_session *s, uint32_t position) {
    uint32_t i = 0;
    while (i < position && s->sequence.tokens[i] != TERN_NO_TOKEN)
        i++;
    return i;
}

/* Restores the sequence after failed passes; it becomes empty if that cannot be computed. */
static void put_back(tern_session *s, uint32_t position) {
    if (first_row(s, position) < position || compute_again(s, position, NULL) != TERN_OK)
        tern_session_move(s, 0);
}

/* Evaluates inputs, which were checked, after the sequence. */
static tern_status evaluate(tern_session *s, const inputs *in, tern_logits_mode mode, float *logits,
                            tern_error *err) {
    const uint32_t position = s->sequence.position;
    tern_session_move(s, position);
    const tern_status status = compute(s, in, mode, logits, err);
    if (status != TERN_OK) {
        if (!tern_session_sees(s, position)) /* earlier passes replaced its pages */
            put_back(s, position);
        return status;
    }
    for (size_t i = 0; i < in->n; i++)
        s->sequence.tokens[position + i] = in->tokens != NULL ? in->tokens[i] : TERN_NO_TOKEN;
    s->sequence.position += (uint32_t)in->n;
    s->has_last = true;
    return TERN_OK;
}

tern_status tern_session_rewind(tern_session *s, uint32_t position, tern_error *err) {
    if (s == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_session_rewind needs a session");
    if (position > s->sequence.position)
        return tern_fail(err, TERN_ERR_POSITION, "cannot rewind to position %u of %u", position,
                         s->sequence.position);
    if (tern_session_sees(s, position)) {
        tern_session_move(s, position);
        return TERN_OK;
    }
    const uint32_t row = first_row(s, position);
    const bool deltas = s->pool.n_states > 0;
    if (row < position)
        return tern_fail(
            err, TERN_ERR_STATE,
            "cannot rewind to position %u: %s %u%s, and position %u came from a row, which cannot "
            "be computed again",
            position, deltas ? "delta nets stand at" : "layers with a window have positions from",
            deltas ? s->sequence.state : s->sequence.kept * TERN_PAGE, deltas ? "" : " on", row);
    return compute_again(s, position, err);
}

tern_status tern_session_eval_at(tern_session *s, uint32_t position, const int32_t *tokens,
                                 size_t n, tern_logits_mode mode, float *logits, tern_error *err) {
    tern_status status = check_call(s, tokens, mode, logits, err);
    if (status != TERN_OK)
        return status;
    if (position > s->sequence.position && position < s->sequence.n_ctx)
        return tern_fail(err, TERN_ERR_POSITION,
                         "cannot evaluate at position %u: the sequence has %u tokens", position,
                         s->sequence.position);
    status = tern_session_check(s, tokens, n,
                                position < s->sequence.n_ctx ? position : s->sequence.n_ctx, err);
    if (status != TERN_OK)
        return status;
    status = tern_session_rewind(s, position, err);
    if (status != TERN_OK)
        return status;
    return evaluate(s, &(inputs){.tokens = tokens, .n = n}, mode, logits, err);
}

tern_status tern_session_eval(tern_session *s, const int32_t *tokens, size_t n,
                              tern_logits_mode mode, float *logits, tern_error *err) {
    return tern_session_eval_at(s, s != NULL ? s->sequence.position : 0, tokens, n, mode, logits,
                                err);
}

tern_status tern_session_eval_rows(tern_session *s, const float *rows, size_t n,
                                   tern_logits_mode mode, float *logits, tern_error *err) {
    tern_status status = check_call(s, rows, mode, logits, err);
    if (status == TERN_OK)
        status = check_room(s, n, s->sequence.position, err);
    if (status == TERN_OK) /* a failed pass may have moved states */
        status = tern_session_rewind(s, s->sequence.position, err);
    if (status != TERN_OK)
        return status;
    const size_t n_embd = s->model->config.n_embd;
    for (size_t i = 0; i < n * n_embd; i++)
        if (!isfinite(rows[i]))
            return tern_fail(err, TERN_ERR_NONFINITE, "element %zu of row %zu is not finite",
                             i % n_embd, i / n_embd);
    return evaluate(s, &(inputs){.rows = rows, .n = n}, mode, logits, err);
}

/* ---- the next token ------------------------------------------------------------------------ */

tern_status tern_session_last_logits(tern_session *s, const float **logits, tern_error *err) {
    if (s == NULL || logits == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_session_last_logits: NULL argument");
    if (!s->has_last)
        return tern_fail(err, TERN_ERR_STATE, "no token was evaluated last: there are no logits");
    return tern_runner_buffered(s->runner, s->last_row, logits, err);
}

tern_status tern_session_pick(tern_session *s, tern_sampler *sampler, int32_t *token,
                              tern_error *err) {
    if (s == NULL || sampler == NULL || token == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_session_pick: NULL argument");
    if (!s->has_last)
        return tern_fail(err, TERN_ERR_STATE, "no token was evaluated last: there are no logits");
    return tern_runner_pick(s->runner, s->last_row, sampler, token, err);
}

tern_status tern_model_embed(const tern_model *m, int32_t token, float *row, tern_error *err) {
    if (m == NULL || row == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_model_embed needs a model and a place");
    if (!m->runnable)
        return tern_fail(err, TERN_ERR_STATE, "the model was opened without its weights");
    if (token < 0 || (uint32_t)token >= m->config.n_vocab)
        return tern_fail(err, TERN_ERR_TOKEN_RANGE, "token %d is outside the vocabulary of %u",
                         token, m->config.n_vocab);
    const tern_embedding *e = &m->own.embedding;
    e->kernel->fn.embed(e->data + (size_t)token * e->row_bytes, m->config.n_embd, row);
    for (uint32_t i = 0; m->config.embedding_scale != 1.0f && i < m->config.n_embd; i++)
        row[i] *= m->config.embedding_scale;
    const tern_hadamard *back = &m->hadamards.embedding;
    if (back->block > 0)
        m->kernels.hadamard->fn.hadamard(row, NULL, back->signs, m->config.n_embd, back->block,
                                         row);
    return TERN_OK;
}
