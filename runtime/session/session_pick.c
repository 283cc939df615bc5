/* SPDX-License-Identifier: Apache-2.0 */

/* From the hidden state of the last token to its logits, or to as many of them as a pick needs. */

#include <math.h>

#include "runtime/sample/logit_source.h"
#include "runtime/session/session.h"

/* Counts the head once for each position, however often it is asked. */
static void count_head(tern_session *s, unsigned ran) {
    s->work.products += !s->last.counted;
    s->last.counted = true;
    s->ran |= ran;
}

static tern_activations last_activations(const tern_session *s, const tern_linear *linear) {
    return tern_activations_of(&s->scratch, &s->scratch.in, linear, s->last.row);
}

/* The head as the worker reads it. */
static const tern_linear *head_of(const tern_session *s, tern_worker worker) {
    return &tern_model_weights(s->model, tern_team_place(worker.team, worker.index))->head;
}

/* ---- all logits ---------------------------------------------------------------------------- */

static void exact_part(tern_worker worker, void *argument) {
    const tern_session *s = argument;
    const tern_linear *head = head_of(s, worker);
    const tern_activations x = last_activations(s, head);
    tern_pieces pieces = tern_team_pieces(worker, head->matrix.rows, TERN_ROW_GROUP);
    for (tern_part piece; tern_pieces_next(&pieces, &piece);) {
        const tern_tile tile = {.t0 = 0, .t1 = 1, .r0 = piece.begin, .r1 = piece.end};
        head->gemv->fn.matmul(&head->matrix, &x, &tile, s->scratch.logits, head->matrix.rows);
    }
}

tern_status tern_check_logits(const float *logits, size_t rows, size_t n_vocab, tern_error *err) {
    for (size_t i = 0; i < rows * n_vocab; i++)
        if (!isfinite(logits[i]))
            return tern_fail(err, TERN_ERR_NONFINITE, "the logit of token %zu is not finite",
                             i % n_vocab);
    return TERN_OK;
}

tern_status tern_session_last_logits(tern_session *s, const float **logits, tern_error *err) {
    if (!s || !logits)
        return tern_fail(err, TERN_ERR_NULL, "tern_session_last_logits: NULL argument");
    if (s->last.state == TERN_LAST_NONE)
        return tern_fail(err, TERN_ERR_STATE, "no token was evaluated last: there are no logits");
    if (s->last.state == TERN_LAST_HIDDEN) {
        tern_stages_run(s->stages, s->team, exact_part, s, TERN_STAGE_HEAD);
        count_head(s, TERN_RAN_HEAD_GEMV);
        const tern_status status =
            tern_check_logits(s->scratch.logits, 1, s->model->config.n_vocab, err);
        if (status != TERN_OK)
            return status;
        s->last.state = TERN_LAST_LOGITS;
    }
    *logits = s->scratch.logits;
    return TERN_OK;
}

/* ---- bounds of all, and some of them -------------------------------------------------------- */

typedef struct scan {
    const tern_session *session;
    tern_activations x;
    tern_head_slack slack;
} scan;

static void scan_part(tern_worker worker, void *argument) {
    const scan *c = argument;
    const tern_head_image *image = &c->session->model->image;
    const tern_matrix *m = &image->scan.matrix;
    const tern_scratch *scratch = &c->session->scratch;
    tern_pieces pieces = tern_team_pieces(worker, m->rows, TERN_ROW_GROUP);
    for (tern_part piece; tern_pieces_next(&pieces, &piece);) {
        const tern_tile tile = {.t0 = 0, .t1 = 1, .r0 = piece.begin, .r1 = piece.end};
        image->scan.gemv->fn.matmul(m, &c->x, &tile, scratch->lower, m->rows);
        tern_head_bounds(image, c->slack, piece.begin, piece.end, scratch->lower, scratch->upper);
    }
}

static bool scan_bounds(void *user, float **lower, float **upper) {
    tern_session *s = user;
    const tern_head_image *image = &s->model->image;
    scan c = {.session = s, .x = last_activations(s, &image->scan)};
    c.slack = tern_head_slack_of(image, c.x.x, c.x.q, c.x.d);
    if (!c.slack.certain)
        return false;
    tern_stages_run(s->stages, s->team, scan_part, &c, TERN_STAGE_SCAN);
    count_head(s, TERN_RAN_HEAD_SCAN);
    *lower = s->scratch.lower;
    *upper = s->scratch.upper;
    return true;
}

typedef struct selection {
    const tern_session *session;
    const uint32_t *ids;
    size_t n;
    float *logits;
} selection;

/* Each row as a matrix of its own, at its place in the head. */
static void selected_part(tern_worker worker, void *argument) {
    const selection *c = argument;
    const tern_linear *head = head_of(c->session, worker);
    const tern_activations x = last_activations(c->session, head);
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
    tern_session *s = user;
    selection c = {.session = s, .ids = ids, .n = n, .logits = logits};
    tern_stages_run(s->stages, s->team, selected_part, &c, TERN_STAGE_ROWS);
    s->ran |= TERN_RAN_HEAD_GEMV;
    s->work.scans++;
    s->work.head_rows += n;
}

static tern_status scan_all(void *user, const float **logits, tern_error *err) {
    return tern_session_last_logits(user, logits, err);
}

tern_status tern_session_pick(tern_session *s, tern_sampler *sampler, int32_t *token,
                              tern_error *err) {
    const float *logits;
    if (!s || !sampler || !token)
        return tern_fail(err, TERN_ERR_NULL, "tern_session_pick: NULL argument");
    if (s->last.state == TERN_LAST_HIDDEN && tern_head_is_imaged(&s->model->image)) {
        const tern_logit_source source = {
            .user = s, .bounds = scan_bounds, .rows = scan_rows, .all = scan_all};
        return tern_sampler_pick_from(sampler, &source, token, err);
    }
    const tern_status status = tern_session_last_logits(s, &logits, err);
    return status == TERN_OK ? tern_sampler_pick(sampler, logits, token, err) : status;
}
