/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_FORWARD_PASS_H
#define TERN_RUNTIME_ENGINE_FORWARD_PASS_H

/* A pass as one worker runs it, for forward.c and the files of its parts: operands, and steps that
 * several parts use. */

#include <math.h>

#include "runtime/engine/forward/internal.h"
#include "runtime/engine/forward/together.h"

/* One worker's view of the running batch. */
typedef struct pass {
    tern_lane lane;
    tern_device_stream *stream; /* the lane as a stream */
    tern_device *d;
    const tern_device_ops *ops;
    const tern_runner *runner;
    const tern_batch *batch;
    const tern_model *model;
    const tern_config *config;
    const tern_weight_set *weights; /* read by this worker: perhaps those of its own node */
    const tern_scratch *s;
    const tern_inputs *in; /* read by this worker: shared, or its own for a single row */
    tern_part rows;        /* computed by the layer */
    size_t layer;          /* running */
    uint64_t digest;       /* of rows that every rank computes for itself */
    tern_status status;    /* of the first operation that failed */
    tern_error err;
} pass;

/*
 * For the error of an operation, whose status `keep` takes: the first one stays. After an error the
 * pass goes on, so that no worker waits for one that stopped.
 */
static inline tern_error *error_of(pass *p) {
    return p->status == TERN_OK ? &p->err : NULL;
}

static inline void keep(pass *p, tern_status status) {
    if (p->status == TERN_OK)
        p->status = status;
}

/* Sets the stage that the next operations count towards. */
static inline void stage(pass *p, tern_stage next) {
    p->lane.next = next;
}

/* ---- operands ------------------------------------------------------------------------------ */

static inline size_t count_of(tern_part rows) {
    return rows.end - rows.begin;
}

/* p->rows of a matrix that all workers share. */
static inline tern_device_rows shared(const pass *p, float *x, size_t stride, size_t width) {
    return (tern_device_rows){.data = x + p->rows.begin * stride,
                              .stride = stride,
                              .n = width,
                              .rows = count_of(p->rows)};
}

/* True if each worker has its own inputs, because the pass has only one row. */
static inline bool is_own(const pass *p) {
    return p->batch->n == 1;
}

/* The same rows of a worker's inputs. */
static inline tern_device_rows input(const pass *p, float *x, size_t stride, size_t width) {
    tern_device_rows rows = shared(p, x, stride, width);
    rows.own = is_own(p);
    return rows;
}

/* The residual stream. */
static inline tern_device_rows stream_rows(const pass *p) {
    return input(p, p->in->x, p->config->n_embd, p->config->n_embd);
}

/* The input of the next matrices, `width` columns of it. */
static inline tern_device_rows norm_rows(const pass *p, size_t width) {
    return input(p, p->in->norm, p->s->width, width);
}

/* The summand of the residual stream. */
static inline tern_device_rows out_rows(const pass *p) {
    return shared(p, p->s->out, p->config->n_embd, p->config->n_embd);
}

/* ---- steps of several parts --------------------------------------------------------------- */

/* Notes overflows in rows as `a` says; a.at: the sequence and position of each row. */
static inline void watch(pass *p, tern_device_watch a, tern_overflow_place place) {
    a.code = tern_overflow_code(p->layer, place);
    a.notes = p->batch->overflow;
    keep(p, p->ops->watch(p->d, p->stream, &a, error_of(p)));
}

/* Notes rows with an element that is not below the limit. Each row of the batch has `group` of
 * these rows; `first` is the first one of the batch. */
static inline void watch_below(pass *p, const tern_device_rows *x, size_t group, size_t first,
                               float limit, tern_overflow_place place) {
    watch(p,
          (tern_device_watch){.x = *x, .group = group, .limit = limit, .at = p->batch->at + first},
          place);
}

/* The same before an rmsnorm, which also needs a finite sum of squares. */
static inline void watch_squares(pass *p, const tern_device_rows *x, size_t group, size_t first,
                                 tern_overflow_place place) {
    watch(p,
          (tern_device_watch){.x = *x,
                              .group = group,
                              .limit = INFINITY,
                              .squares = true,
                              .at = p->batch->at + first},
          place);
}

/* Below this the sum of LayerNorm's squares is finite: 2^16 times (2 * 2^54)^2 < 2^127. */
#define TERN_LAYERNORM_LIMIT 0x1p54f

/* norm[T][width] = rmsnorm(x[T][width]) * g, or LayerNorm. g NULL: the block has no norm here, norm
 * = x. */
static inline void norm_of(pass *p, const tern_device_rows *x, const float *g,
                           tern_overflow_place place) {
    const tern_device_rows y = norm_rows(p, x->n);
    if (g != NULL && p->config->arch->layer_norms) {
        watch_below(p, x, 1, p->rows.begin, TERN_LAYERNORM_LIMIT, place);
        keep(p,
             p->ops->layernorm(p->d, p->stream, x, g, NULL, p->config->norm_eps, &y, error_of(p)));
    } else if (g != NULL) {
        watch_squares(p, x, 1, p->rows.begin, place);
        keep(p, p->ops->rmsnorm(p->d, p->stream, x, g, p->config->norm_eps, &y, error_of(p)));
    } else {
        watch_below(p, x, 1, p->rows.begin, INFINITY, place);
        keep(p, p->ops->copy(p->d, p->stream, x, &y, error_of(p)));
    }
}

/* The forms of a row that the next matrices read. */
typedef struct wanted {
    unsigned forms;       /* bits of tern_input_form */
    tern_hadamard turned; /* applied before the forms are made */
    bool kept;            /* a copy of the row before that goes to p->s->out */
} wanted;

/* The forms of an input that matrices of the layer read. */
static inline wanted wanted_of(const pass *p, size_t layer, tern_block_input input,
                               unsigned forms) {
    const tern_hadamards *h = &p->model->hadamards;
    const tern_hadamard none = {.block = 0};
    return (wanted){.forms = forms, .turned = h->block > 0 ? h->blocks[layer][input] : none};
}

/* Transforms norm[T][width] as the next matrices need it: H(signs * x). */
static inline void rotate_rows(pass *p, const wanted *next, const tern_device_rows *x) {
    if (next->turned.block == 0)
        return;
    if (next->kept) {
        const tern_device_rows out = out_rows(p);
        keep(p, p->ops->copy(p->d, p->stream, x, &out, error_of(p)));
    }
    keep(p, p->ops->hadamard(p->d, p->stream, x, next->turned.signs, NULL, next->turned.block, x,
                             error_of(p)));
    watch_below(p, x, 1, p->rows.begin, INFINITY, TERN_OVERFLOW_TURNED);
}

/* Makes the forms of rows that matrices read; rounds floats to the precision asked for. */
static inline void make_forms(pass *p, unsigned forms, const tern_device_rows *x,
                              const tern_device_quantized *token,
                              const tern_device_quantized *block) {
    const tern_kernel_row *precision = p->model->kernels.round;
    if (forms & TERN_INPUT_FLOAT && precision != NULL)
        keep(p, p->ops->round(p->d, p->stream, precision->op, x, x, error_of(p)));
    if (forms & TERN_INPUT_TOKEN)
        keep(p, p->ops->quantize_token(p->d, p->stream, x, token, error_of(p)));
    if (forms & TERN_INPUT_BLOCK)
        keep(p, p->ops->quantize_block(p->d, p->stream, x, block, error_of(p)));
}

/* Makes the forms of norm[T][width] that the next matrices read. */
static inline void quantize(pass *p, size_t width, wanted next) {
    const tern_scratch *s = p->s;
    const tern_inputs *in = p->in;
    const size_t first = p->rows.begin;
    const tern_device_rows x = norm_rows(p, width);
    const tern_device_quantized token = {.q = in->qx + first * s->q_stride,
                                         .q_stride = s->q_stride,
                                         .s = in->qx_s + first,
                                         .sum = in->qx_sum + first};
    const tern_device_quantized block = {.q = in->bx + first * s->q_stride,
                                         .q_stride = s->q_stride,
                                         .d = in->bx_d + first * s->blocks,
                                         .block_sum = in->bx_sum + first * s->blocks,
                                         .d_stride = s->blocks};
    rotate_rows(p, &next, &x);
    make_forms(p, next.forms, &x, &token, &block);
}

/* Shows products to the observer before they are computed, once the rows of all workers are there.
 * routes: of experts, or NULL. */
static inline void show(pass *p, const tern_device_product *products,
                        const tern_linear *const *linear, size_t n,
                        const tern_product_routes *routes) {
    const tern_runner *r = p->runner;
    if (r->observer == NULL)
        return;
    if (r->mirror != NULL || tern_split_is(&p->model->split)) {
        keep(p, tern_fail(error_of(p), TERN_ERR_UNIMPLEMENTED,
                          "products of a pass on another device or on ranks cannot be looked at"));
        return;
    }
    keep(p, p->ops->stream_sync(p->d, p->stream, error_of(p)));
    for (size_t i = 0; p->lane.worker.index == 0 && i < n; i++)
        r->observer(r->observer_user, linear[i], &products[i].x, products[i].tokens, routes);
}

/* One matrix of several that read the same rows. */
typedef struct map {
    const tern_linear *linear;
    tern_part rows; /* of the batch */
    float *y;       /* [T][stride], of which the matrix's rows are written */
    size_t stride;
} map;

/* The map into rows that hold the results of all ranks, y[T][all rows]. */
static inline map map_of(const tern_linear *linear, tern_part rows, float *y) {
    return (map){linear, rows, y + linear->first_row, linear->all_rows};
}

/* The map into rows that hold the results of this rank alone, y[T][rows]. */
static inline map own_map(const tern_linear *linear, tern_part rows, float *y) {
    return (map){linear, rows, y, linear->matrix.rows};
}

enum { MAPS = TERN_ADAPT_MAPS }; /* most maps at once */

/* Adds to the products of maps with the stream what the adapters of their rows say; in adapt.c. */
void tern_adapt(pass *p, const map *maps, size_t count);

/* Lists the products of maps that have rows, and shows them to the observer. Returns how many. In
 * forward.c. */
size_t tern_list_products(pass *p, const map *maps, size_t count,
                          tern_device_product products[MAPS]);

/* y[t][rows] = matrix * norm[t][cols] (+ bias), for up to MAPS matrices, and adapters. */
static inline void multiply(pass *p, const map *maps, size_t count) {
    tern_device_product products[MAPS];
    const size_t n = tern_list_products(p, maps, count, products);
    if (n > 0)
        keep(p, p->ops->multiply(p->d, p->stream, products, n, error_of(p)));
    if (p->batch->adapted)
        tern_adapt(p, maps, count);
}

/*
 * Brings the parts that ranks made of y[T][width] together, rows p->rows of the batch: all lanes
 * wait, and the first one exchanges. Where the process is alone, or every rank made all, it does
 * nothing.
 */
static inline void join(pass *p, float *y, size_t width, tern_split_kind kind) {
    const tern_split *s = &p->model->split;
    const size_t rows = count_of(p->rows);
    if (!tern_split_is(s) || !s->divided[kind] || rows == 0)
        return;
    float *first = y + p->rows.begin * width;
    const tern_lane_use use = tern_lane_use_all(first, rows * width * sizeof *y, true);
    tern_lane_enter(&p->lane, &use, 1);
    if (p->lane.worker.index == 0)
        keep(p, tern_runner_join(p->runner, first, rows, width, kind, error_of(p)));
}

#endif
