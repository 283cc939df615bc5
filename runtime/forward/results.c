/* SPDX-License-Identifier: Apache-2.0 */

/* From the hidden states of wanted rows to their logits. */

#include "base/logprob.h"
#include "runtime/forward/internal.h"

void tern_count_head(tern_runner *r, size_t first, size_t n, unsigned ran) {
    bool fresh = false;
    for (size_t i = first; i < first + n; i++) {
        fresh |= !r->counted[i];
        r->counted[i] = true;
    }
    r->work.products += fresh;
    r->ran |= ran;
}

tern_activations tern_wanted_activations(const tern_runner *r, const tern_linear *linear,
                                         size_t row) {
    return tern_activations_of(&r->scratch, &r->scratch.in, linear, r->batch.first_wanted + row);
}

const tern_linear *tern_head_of(const tern_runner *r, tern_worker worker) {
    return &tern_model_weights(r->model, tern_team_place(worker.team, worker.index))->head;
}

const float *tern_runner_hidden(const tern_runner *r, size_t row) {
    return r->scratch.in.norm + (r->batch.first_wanted + row) * r->scratch.width;
}

float *tern_runner_buffer(tern_runner *r) {
    return r->scratch.logits;
}

float *tern_runner_buffers(tern_runner *r, size_t *rows) {
    *rows = r->scratch.lower ? r->n_picks : 1;
    return r->scratch.lower ? r->scratch.lower : r->scratch.logits;
}

/* ---- all logits ---------------------------------------------------------------------------- */

typedef struct exact {
    const tern_runner *runner;
    size_t first, n; /* wanted rows */
    float *logits;
} exact;

static void exact_part(tern_worker worker, void *argument) {
    const exact *c = argument;
    const tern_linear *head = tern_head_of(c->runner, worker);
    const tern_kernel_row *row = tern_linear_row(head, c->n);
    const tern_activations x = tern_wanted_activations(c->runner, head, c->first);
    if (c->runner->observer && worker.index == 0)
        c->runner->observer(c->runner->observer_user, head, &x, c->n);
    tern_pieces pieces = tern_team_pieces(worker, head->matrix.rows, TERN_ROW_GROUP);
    for (tern_part piece; tern_pieces_next(&pieces, &piece);) {
        const tern_tile tile = {.t0 = 0, .t1 = c->n, .r0 = piece.begin, .r1 = piece.end};
        row->fn.matmul(&head->matrix, &x, &tile, c->logits, head->matrix.rows);
    }
}

void tern_runner_multiply_head(tern_runner *r, size_t first, size_t n, float *logits) {
    exact c = {.runner = r, .first = first, .n = n, .logits = logits};
    tern_stages_run(r->stages, r->team, exact_part, &c, TERN_STAGE_HEAD);
    tern_count_head(r, first, n, n == 1 ? TERN_RAN_HEAD_GEMV : TERN_RAN_HEAD_GEMM);
}

tern_status tern_runner_logits(tern_runner *r, size_t first, size_t n, float *logits,
                               tern_error *err) {
    if (logits == r->scratch.logits)
        r->buffer_row = TERN_NO_ROW;
    tern_runner_multiply_head(r, first, n, logits);
    const tern_status status = tern_check_logits(logits, n, r->model->config.n_vocab, err);
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
