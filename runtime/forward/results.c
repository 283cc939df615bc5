/* SPDX-License-Identifier: Apache-2.0 */

/* From the hidden states of wanted rows to their logits, or to as many of them as a pick needs. */

#include "runtime/forward/internal.h"
#include "runtime/sample/logit_source.h"

/* Counts the head once for each product, but no row twice, however often it is asked. */
static void count_head(tern_runner *r, size_t first, size_t n, unsigned ran) {
    bool fresh = false;
    for (size_t i = first; i < first + n; i++) {
        fresh |= !r->counted[i];
        r->counted[i] = true;
    }
    r->work.products += fresh;
    r->ran |= ran;
}

static tern_activations activations_of(const tern_runner *r, const tern_linear *linear,
                                       size_t row) {
    return tern_activations_of(&r->scratch, &r->scratch.in, linear, r->batch.first_wanted + row);
}

/* The head as the worker reads it. */
static const tern_linear *head_of(const tern_runner *r, tern_worker worker) {
    return &tern_model_weights(r->model, tern_team_place(worker.team, worker.index))->head;
}

const float *tern_runner_hidden(const tern_runner *r, size_t row) {
    return r->scratch.in.norm + (r->batch.first_wanted + row) * r->scratch.width;
}

float *tern_runner_buffer(tern_runner *r) {
    return r->scratch.logits;
}

/* ---- all logits ---------------------------------------------------------------------------- */

typedef struct exact {
    const tern_runner *runner;
    size_t first, n; /* wanted rows */
    float *logits;
} exact;

static void exact_part(tern_worker worker, void *argument) {
    const exact *c = argument;
    const tern_linear *head = head_of(c->runner, worker);
    const tern_kernel_row *row = tern_linear_row(head, c->n);
    const tern_activations x = activations_of(c->runner, head, c->first);
    if (c->runner->observer && worker.index == 0)
        c->runner->observer(c->runner->observer_user, head, &x, c->n);
    tern_pieces pieces = tern_team_pieces(worker, head->matrix.rows, TERN_ROW_GROUP);
    for (tern_part piece; tern_pieces_next(&pieces, &piece);) {
        const tern_tile tile = {.t0 = 0, .t1 = c->n, .r0 = piece.begin, .r1 = piece.end};
        row->fn.matmul(&head->matrix, &x, &tile, c->logits, head->matrix.rows);
    }
}

tern_status tern_runner_logits(tern_runner *r, size_t first, size_t n, float *logits,
                               tern_error *err) {
    exact c = {.runner = r, .first = first, .n = n, .logits = logits};
    if (logits == r->scratch.logits)
        r->buffer_row = TERN_NO_ROW;
    tern_stages_run(r->stages, r->team, exact_part, &c, TERN_STAGE_HEAD);
    count_head(r, first, n, n == 1 ? TERN_RAN_HEAD_GEMV : TERN_RAN_HEAD_GEMM);
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

/* ---- bounds of all, and some of them -------------------------------------------------------- */

/* A pick from one row's hidden state. */
typedef struct asking {
    tern_runner *runner;
    size_t row;
} asking;

typedef struct scan {
    const tern_runner *runner;
    tern_activations x;
    tern_head_slack slack;
} scan;

static void scan_part(tern_worker worker, void *argument) {
    const scan *c = argument;
    const tern_head_image *image = &c->runner->model->image;
    const tern_matrix *m = &image->scan.matrix;
    const tern_scratch *scratch = &c->runner->scratch;
    tern_pieces pieces = tern_team_pieces(worker, m->rows, TERN_ROW_GROUP);
    for (tern_part piece; tern_pieces_next(&pieces, &piece);) {
        const tern_tile tile = {.t0 = 0, .t1 = 1, .r0 = piece.begin, .r1 = piece.end};
        image->scan.gemv->fn.matmul(m, &c->x, &tile, scratch->lower, m->rows);
        tern_head_bounds(image, c->slack, piece.begin, piece.end, scratch->lower, scratch->upper);
    }
}

static bool scan_bounds(void *user, float **lower, float **upper) {
    const asking *a = user;
    tern_runner *r = a->runner;
    const tern_head_image *image = &r->model->image;
    scan c = {.runner = r, .x = activations_of(r, &image->scan, a->row)};
    c.slack = tern_head_slack_of(image, c.x.x, c.x.q, c.x.d);
    if (!c.slack.certain)
        return false;
    tern_stages_run(r->stages, r->team, scan_part, &c, TERN_STAGE_SCAN);
    count_head(r, a->row, 1, TERN_RAN_HEAD_SCAN);
    *lower = r->scratch.lower;
    *upper = r->scratch.upper;
    return true;
}

typedef struct selection {
    const asking *asking;
    const uint32_t *ids;
    size_t n;
    float *logits;
} selection;

/* Each row of the head as a matrix of its own, at its place in the head. */
static void selected_part(tern_worker worker, void *argument) {
    const selection *c = argument;
    const tern_linear *head = head_of(c->asking->runner, worker);
    const tern_activations x = activations_of(c->asking->runner, head, c->asking->row);
    const tern_tile tile = {.t0 = 0, .t1 = 1, .r0 = 0, .r1 = 1};
    const tern_part part = tern_team_split(worker, c->n, 1);
    tern_matrix row = head->matrix;
    row.rows = 1;
    for (size_t i = part.begin; i < part.end; i++) {
        row.data = tern_float_row(&head->matrix, c->ids[i]);
        head->gemv->fn.matmul(&row, &x, &tile, c->logits + c->ids[i], 1);
    }
}

static void scan_rows(void *user, const uint32_t *ids, size_t n, float *logits) {
    const asking *a = user;
    tern_runner *r = a->runner;
    selection c = {.asking = a, .ids = ids, .n = n, .logits = logits};
    tern_stages_run(r->stages, r->team, selected_part, &c, TERN_STAGE_ROWS);
    r->ran |= TERN_RAN_HEAD_GEMV;
    r->work.scans++;
    r->work.head_rows += n;
}

static tern_status scan_all(void *user, const float **logits, tern_error *err) {
    const asking *a = user;
    return tern_runner_buffered(a->runner, a->row, logits, err);
}

tern_status tern_runner_pick(tern_runner *r, size_t row, tern_sampler *sampler, int32_t *token,
                             tern_error *err) {
    const float *logits;
    asking a = {.runner = r, .row = row};
    if (r->buffer_row != row && tern_head_is_imaged(&r->model->image)) {
        const tern_logit_source source = {
            .user = &a, .bounds = scan_bounds, .rows = scan_rows, .all = scan_all};
        return tern_sampler_pick_from(sampler, &source, token, err);
    }
    const tern_status status = tern_runner_buffered(r, row, &logits, err);
    return status == TERN_OK ? tern_sampler_pick(sampler, logits, token, err) : status;
}

void tern_runner_picks(tern_runner *r, tern_pick *picks, size_t n) {
    for (size_t i = 0; i < n; i++)
        picks[i].status =
            tern_runner_pick(r, picks[i].row, picks[i].sampler, &picks[i].token, &picks[i].err);
}
