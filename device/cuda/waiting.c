/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations that wait for the next one, because it may do them, too, or be launched beside them:
 * a launch takes longer than many of them. What waits begins before any other operation (start in
 * operations.c), copy or wait.
 */

#include "device/cuda/module.h"
#include "device/finite.h"

static bool are_same(const tern_device_rows *a, const tern_device_rows *b) {
    return a->data == b->data && a->stride == b->stride && a->n == b->n && a->rows == b->rows;
}

/* A watch as kernels take it. */
static tern_cuda_watch as_watch(const tern_device_watch *a) {
    return (tern_cuda_watch){*a, a->squares ? TERN_SQUARES_LIMIT : a->limit};
}

tern_cuda_watch cuda_watch_of(tern_device *d, const tern_device_stream *stream,
                              const tern_device_rows *x) {
    cuda_waiting *w = &((cuda_device *)d)->waiting;
    const bool is_its = w->watch.notes != NULL && w->sum.data == NULL && w->stream == stream &&
                        are_same(&w->watch.x, x);
    const tern_cuda_watch watch = is_its ? as_watch(&w->watch) : (tern_cuda_watch){.limit = 0.0f};

    if (is_its)
        w->watch.notes = NULL;
    return watch;
}

/* The rows that a rope gives, if they are the heads as a watch takes them, one after the other. */
static bool gives(const tern_device_rope *a, const tern_device_rows *x) {
    const tern_device_rows heads = {
        .data = a->x, .stride = a->dim, .n = a->dim, .rows = a->heads * a->tokens};

    return 2 * a->half == a->dim && a->stride == a->heads * a->dim && are_same(&heads, x);
}

/* Has the last rope that waits look at what it gives. */
static bool rope_watches(cuda_waiting *w, const tern_device_watch *a) {
    tern_cuda_rope *rope = w->n_ropes > 0 ? &w->ropes[w->n_ropes - 1] : NULL;

    if (rope == NULL || rope->watch.a.notes != NULL || a->squares || !gives(&rope->a, &a->x))
        return false;
    rope->watch = as_watch(a);
    return true;
}

/* True if a watch may wait beside what waits: for the norm of a sum, or for a second store. */
static bool may_join(const cuda_waiting *w, const tern_device_watch *a) {
    return w->watch.notes == NULL && w->norm.y.data == NULL && w->n_ropes == 0 &&
           (w->sum.data != NULL ? are_same(&w->sum, &a->x) : w->n_stores > 0);
}

tern_status cuda_watch(tern_device *d, tern_device_stream *stream, const tern_device_watch *a,
                       tern_error *err) {
    cuda_device *cuda = (cuda_device *)d;
    cuda_waiting *w = &cuda->waiting;
    tern_status status = tern_check_watch(a, err);

    if (status != TERN_OK || (w->stream == stream && rope_watches(w, a)))
        return status;
    if (w->stream != stream || !may_join(w, a))
        status = cuda_begin_waiting(cuda, err);
    if (status != TERN_OK)
        return status;
    w->stream = stream;
    w->watch = *a;
    return TERN_OK;
}

/* ---- what waits begins ---------------------------------------------------------------------- */

/* Ropes and stores that wait, each kind in one launch. */
static tern_status begin_pairs(tern_device *d, const cuda_waiting *w, tern_error *err) {
    tern_cuda_job job;
    size_t x = 0;
    tern_status status = TERN_OK;

    for (unsigned i = 0; i < w->n_ropes; i++) {
        job.ropes[i] = w->ropes[i];
        x = cuda_larger(x, w->ropes[i].a.heads * w->ropes[i].a.tokens);
    }
    if (w->n_ropes > 0)
        status = cuda_run_pair(d, w->stream, w->ropes[0].a.op, TERN_FORMAT_NONE, x, 1, w->n_ropes,
                               &job, err);
    x = 0;
    for (unsigned i = 0; i < w->n_stores; i++) {
        job.stores[i] = w->stores[i];
        x = cuda_larger(x, w->stores[i].x.rows);
    }
    if (status == TERN_OK && w->n_stores > 0)
        status =
            cuda_run_pair(d, w->stream, TERN_OP_STORE, w->stored, x, 1, w->n_stores, &job, err);
    return status;
}

tern_status cuda_begin_waiting(cuda_device *cuda, tern_error *err) {
    const cuda_waiting w = cuda->waiting;
    tern_device *d = &cuda->base;

    cuda->waiting = (cuda_waiting){.stream = NULL};
    tern_status status = begin_pairs(d, &w, err);
    if (status == TERN_OK && w.sum.data != NULL)
        status = cuda_elements(d, w.stream, TERN_OP_ADD, &w.sum, &w.more, &w.sum, err);
    if (status == TERN_OK && w.watch.notes != NULL)
        status = cuda_run(d, w.stream, TERN_OP_WATCH, TERN_FORMAT_NONE, w.watch.x.rows, 1,
                          &(tern_cuda_job){.watch = as_watch(&w.watch)}, err);
    if (status == TERN_OK && w.norm.y.data != NULL)
        status = cuda_run(d, w.stream, TERN_OP_RMSNORM, TERN_FORMAT_NONE, w.norm.x.rows, 1,
                          &(tern_cuda_job){.norm = w.norm}, err);
    return status;
}

/* ---- sums, norms, codes -----------------------------------------------------------------------
 */

tern_status cuda_add(tern_device *d, tern_device_stream *stream, const tern_device_rows *x,
                     const tern_device_rows *y, tern_error *err) {
    cuda_device *cuda = (cuda_device *)d;
    tern_status status = tern_check_pair("add", x, y, err);

    if (status == TERN_OK)
        status = cuda_begin_waiting(cuda, err);
    if (status == TERN_OK)
        cuda->waiting = (cuda_waiting){.stream = stream, .sum = *x, .more = *y};
    return status;
}

/* The norm makes the sum that waits, if that gives the rows that it reads. */
static void take_sum(cuda_waiting *w, tern_cuda_norm *norm) {
    if (w->sum.data == NULL || !are_same(&w->sum, &norm->x))
        return;
    norm->more = w->more;
    w->sum.data = NULL;
}

tern_status cuda_rmsnorm(tern_device *d, tern_device_stream *stream, const tern_device_rows *x,
                         const float *g, float eps, const tern_device_rows *y, tern_error *err) {
    cuda_device *cuda = (cuda_device *)d;
    tern_cuda_norm norm = {.x = *x, .g = g, .eps = eps, .y = *y};
    tern_status status = tern_check_norm(x, g, y, err);

    if (status != TERN_OK)
        return status;
    if (cuda->waiting.stream == stream)
        take_sum(&cuda->waiting, &norm);
    norm.watch = cuda_watch_of(d, stream, x);
    status = cuda_begin_waiting(cuda, err); /* what it did not take */
    if (status == TERN_OK)
        cuda->waiting = (cuda_waiting){.stream = stream, .norm = norm};
    return status;
}

tern_status cuda_quantize_token(tern_device *d, tern_device_stream *stream,
                                const tern_device_rows *x, const tern_device_quantized *out,
                                tern_error *err) {
    const tern_status status = tern_check_quantize("quantize_token", x, out, true, err);

    if (status != TERN_OK)
        return status;
    cuda_device *cuda = (cuda_device *)d;
    const cuda_waiting w = cuda->waiting;
    if (w.norm.y.data != NULL && w.stream == stream && are_same(&w.norm.y, x)) {
        cuda->waiting.norm.y.data = NULL; /* one kernel does both */
        return cuda_run(d, stream, TERN_OP_RMSNORM_TOKEN, TERN_FORMAT_NONE, x->rows, 1,
                        &(tern_cuda_job){.norm_token = {w.norm, {*x, *out}}}, err);
    }
    return cuda_run(d, stream, TERN_OP_QUANTIZE_TOKEN, TERN_FORMAT_NONE, x->rows, 1,
                    &(tern_cuda_job){.quantize = {*x, *out}}, err);
}

/* ---- heads --------------------------------------------------------------------------------- */

/* True if two ropes have heads in common. */
static bool overlap(const tern_device_rope *a, const tern_device_rope *b) {
    const float *end_a = a->x + (a->tokens - 1) * a->stride + a->heads * a->dim;
    const float *end_b = b->x + (b->tokens - 1) * b->stride + b->heads * b->dim;

    return a->x < end_b && b->x < end_a;
}

tern_status cuda_rope(tern_device *d, tern_device_stream *stream, const tern_device_rope *a,
                      tern_error *err) {
    cuda_device *cuda = (cuda_device *)d;
    cuda_waiting *w = &cuda->waiting;
    tern_status status = tern_check_rope(a, err);

    if (status != TERN_OK)
        return status;
    if (w->n_ropes != 1 || w->stream != stream || w->ropes[0].a.op != a->op ||
        overlap(&w->ropes[0].a, a))
        status = cuda_begin_waiting(cuda, err);
    if (status != TERN_OK)
        return status;
    w->stream = stream;
    w->ropes[w->n_ropes++] = (tern_cuda_rope){.a = *a};
    return TERN_OK;
}

/* Beside a store that waits, if it goes elsewhere; a watch of other rows does not wait longer. */
static tern_status wait_to_store(cuda_device *cuda, tern_device_stream *stream,
                                 const tern_cuda_store *store, tern_format format,
                                 tern_error *err) {
    cuda_waiting *w = &cuda->waiting;
    const bool joins = w->n_stores == 1 && w->stream == stream && w->stored == format &&
                       w->stores[0].out != store->out && w->watch.notes == NULL;
    const tern_status status = joins ? TERN_OK : cuda_begin_waiting(cuda, err);

    if (status != TERN_OK)
        return status;
    w->stream = stream;
    w->stored = format;
    w->stores[w->n_stores++] = *store;
    return TERN_OK;
}

/* The page tables and places are read on the device, as all operands are. */
tern_status cuda_store_pages(tern_device *d, tern_device_stream *stream, const tern_device_store *a,
                             tern_error *err) {
    const tern_status status = tern_check_store_pages(a, err);

    if (status != TERN_OK)
        return status;
    const tern_device_rows x = {
        .data = (float *)a->x, .stride = a->dim, .n = a->dim, .rows = a->tokens * a->heads};
    const bool close = a->stride == a->heads * a->dim; /* each head follows the one before it */
    const tern_cuda_store store = {.x = x,
                                   .watch = close ? cuda_watch_of(d, stream, &x)
                                                  : (tern_cuda_watch){.limit = 0.0f},
                                   .out = a->to.data,
                                   .stride = a->dim,
                                   .at = a->at,
                                   .tables = a->to.tables,
                                   .heads = a->heads,
                                   .token = a->stride,
                                   .head_stride = a->to.head_stride,
                                   .page_stride = a->to.page_stride};
    return wait_to_store((cuda_device *)d, stream, &store, a->to.format, err);
}
