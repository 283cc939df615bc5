/* SPDX-License-Identifier: Apache-2.0 */

/* Logits of wanted rows, from their hidden states. */

#include "base/logprob.h"
#include "runtime/engine/forward/internal.h"
#include "runtime/engine/forward/together.h"

void tern_count_head(tern_runner *r, size_t first, size_t n) {
    bool fresh = false;
    for (size_t i = first; i < first + n; i++) {
        fresh |= !r->counted[i];
        r->counted[i] = true;
    }
    r->work.products += fresh;
}

tern_activations tern_wanted_activations(const tern_runner *r, const tern_linear *linear,
                                         size_t row) {
    return tern_activations_of(&r->scratch, &r->scratch.in, linear, r->batch.first_wanted + row);
}

const tern_linear *tern_head_of(const tern_runner *r, tern_worker worker) {
    return &tern_model_weights(r->model, tern_team_place(worker.team, worker.index))->head;
}

const float *tern_runner_hidden(const tern_runner *r, size_t row) {
    const size_t at = r->batch.first_wanted + row;
    return r->model->hadamards.head.block > 0 ? r->scratch.out + at * r->model->config.n_embd
                                              : r->scratch.in.norm + at * r->scratch.width;
}

float *tern_runner_buffer(tern_runner *r) {
    return r->scratch.logits;
}

float *tern_runner_buffers(tern_runner *r, size_t *rows) {
    r->foreseen.n = 0;
    *rows = r->scratch.lower != NULL ? r->n_picks : 1;
    return r->scratch.lower != NULL ? r->scratch.lower : r->scratch.logits;
}

/* ---- all logits ---------------------------------------------------------------------------- */

typedef struct exact {
    tern_runner *runner;
    size_t first, n; /* wanted rows */
    float *logits;
    tern_status status;
    tern_error err;
} exact;

tern_device_product tern_product_of(const tern_linear *linear, const tern_activations *x, size_t n,
                                    float *y, size_t y_stride) {
    return (tern_device_product){.w = &linear->matrix,
                                 .x = *x,
                                 .tokens = n,
                                 .y = y,
                                 .y_stride = y_stride,
                                 .factor = linear->factor,
                                 .bias =
                                     linear->bias != NULL ? linear->bias + linear->first_row : NULL,
                                 .gemv = linear->gemv,
                                 .gemm = linear->gemm};
}

static void exact_part(tern_worker worker, void *argument) {
    exact *c = argument;
    tern_runner *r = c->runner;
    const tern_linear *head = tern_head_of(r, worker);
    const tern_activations x = tern_wanted_activations(r, head, c->first);
    const tern_device_product product =
        tern_product_of(head, &x, c->n, c->logits + head->first_row, head->all_rows);
    tern_lane lane;
    tern_error err = {0};
    tern_lane_begin(&lane, worker, &r->model->fetching, r->stages, TERN_STAGE_HEAD);
    if (r->observer != NULL && worker.index == 0)
        r->observer(r->observer_user, head, &x, c->n, NULL);
    const tern_status status =
        head->matrix.rows > 0
            ? r->backend->ops->multiply(r->backend, tern_lane_stream(&lane), &product, 1, &err)
            : TERN_OK;
    if (worker.index == 0) {
        c->status = status;
        c->err = err;
    }
}

tern_status tern_runner_multiply_own(tern_runner *r, size_t first, size_t n, float *logits,
                                     tern_error *err) {
    exact c = {.runner = r, .first = first, .n = n, .logits = logits};
    tern_stages_run(r->stages, r->team, exact_part, &c, TERN_STAGE_HEAD);
    tern_count_head(r, first, n);
    if (c.status != TERN_OK && err != NULL)
        *err = c.err;
    return c.status;
}

/* All ranks multiply rows of the head; this one gets the logits. */
static tern_status multiply_together(tern_runner *r, size_t first, size_t n, float *logits,
                                     tern_error *err) {
    tern_together_begin(r, (tern_order){.kind = TERN_ORDER_LOGITS, .a = {first, n}});
    tern_status status = tern_runner_multiply_own(r, first, n, logits, err);
    if (status == TERN_OK)
        status = tern_runner_join_head(r, logits, n, err);
    tern_together_end(r);
    return status;
}

/* On another device logits are computed in the counterpart of the scratch, as many rows at once as
 * it holds, and are then copied to `logits`. */
static tern_status fetch_logits(tern_runner *r, size_t first, size_t n, float *logits,
                                tern_error *err) {
    const size_t n_vocab = r->model->config.n_vocab;
    float *room = r->scratch.lower != NULL ? r->scratch.lower : r->scratch.logits;
    const size_t most = r->scratch.lower != NULL ? r->n_picks : 1;
    tern_status status = TERN_OK;
    for (size_t i = 0, rows; status == TERN_OK && i < n; i += rows) {
        rows = n - i < most ? n - i : most;
        status = tern_runner_multiply_own(r, first + i, rows, room, err);
        if (status == TERN_OK)
            status = tern_mirror_fetch(r->mirror, logits + i * n_vocab, room,
                                       rows * n_vocab * sizeof *logits, err);
    }
    return status;
}

/* Logits that are bounded softly. */
typedef struct capping {
    tern_runner *runner;
    float *logits;
    size_t n;
    float cap;
} capping;

static void cap_part(tern_worker worker, void *argument) {
    const capping *c = argument;
    const tern_kernel_row *tanh = c->runner->model->kernels.tanh;
    const tern_part part = tern_team_split(worker, c->n, TERN_LANES);
    float *y = c->logits + part.begin;
    const size_t n = part.end - part.begin;
    for (size_t i = 0; i < n; i++)
        y[i] = y[i] / c->cap;
    tanh->fn.tanh(y, n, y);
    for (size_t i = 0; i < n; i++)
        y[i] = y[i] * c->cap;
    if (worker.index == 0)
        tern_tally_count(c->runner->tally, tanh);
}

/* cap * tanh(y / cap) of each logit y, which must be finite before: a bound would hide it. */
static tern_status cap_logits(tern_runner *r, size_t n, float *logits, tern_error *err) {
    const size_t n_vocab = r->model->config.n_vocab;
    capping c = {
        .runner = r, .logits = logits, .n = n * n_vocab, .cap = r->model->config.logit_cap};
    const tern_status status = tern_check_logits(logits, n, n_vocab, err);
    if (status == TERN_OK)
        tern_stages_run(r->stages, r->team, cap_part, &c, TERN_STAGE_HEAD);
    return status;
}

tern_status tern_runner_multiply_head(tern_runner *r, size_t first, size_t n, float *logits,
                                      tern_error *err) {
    if (r->mirror != NULL)
        return fetch_logits(r, first, n, logits, err);
    const tern_status status = tern_together_leads(r)
                                   ? multiply_together(r, first, n, logits, err)
                                   : tern_runner_multiply_own(r, first, n, logits, err);
    return status == TERN_OK && r->model->config.logit_cap > 0.0f ? cap_logits(r, n, logits, err)
                                                                  : status;
}

tern_status tern_runner_logits(tern_runner *r, size_t first, size_t n, float *logits,
                               tern_error *err) {
    if (logits == r->scratch.logits)
        r->buffer_row = TERN_NO_ROW;
    tern_status status = tern_runner_multiply_head(r, first, n, logits, err);
    if (status == TERN_OK)
        status = tern_check_logits(logits, n, r->model->config.n_vocab, err);
    if (status == TERN_OK && logits == r->scratch.logits)
        r->buffer_row = (uint32_t)first;
    return status;
}

tern_status tern_runner_buffered(tern_runner *r, size_t row, const float **logits,
                                 tern_error *err) {
    const tern_status status =
        r->buffer_row == row ? TERN_OK : tern_runner_logits(r, row, 1, r->scratch.logits, err);
    if (status == TERN_OK)
        *logits = r->scratch.logits;
    return status;
}

/* ---- their sums ---------------------------------------------------------------------------- */

typedef struct sums {
    const float *logits; /* [n][n_vocab] */
    size_t n, n_vocab;
    double *out;
} sums;

static void sums_part(tern_worker worker, void *argument) {
    const sums *s = argument;
    const tern_part part = tern_team_split(worker, s->n, 1);
    for (size_t i = part.begin; i < part.end; i++)
        s->out[i] = tern_log_sum_exp(s->logits + i * s->n_vocab, s->n_vocab);
}

void tern_runner_log_sums(tern_runner *r, const float *logits, size_t n, double *out) {
    sums s = {.logits = logits, .n = n, .n_vocab = r->model->config.n_vocab, .out = out};
    tern_stages_run(r->stages, r->team, sums_part, &s, TERN_STAGE_ALONE);
}
