/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of the processor by row, or by head of a row. Lanes share the rows. */

#include <string.h>

#include "device/finite.h"
#include "device/processor.h"
#include "kernels/cache_row.h"

static float *row_at(const tern_device_rows *x, size_t row) {
    return x->data + row * x->stride;
}

/* Begins an operation that reads x and writes y, or only one of them, and gives the lane's rows. */
static tern_part enter_rows(tern_device_stream *stream, const tern_device_rows *x,
                            const tern_device_rows *y) {
    tern_lane *lane = tern_lane_of(stream);
    const tern_device_rows *split = y != NULL ? y : x;
    tern_lane_use uses[2];
    size_t n = 0;

    if (x != NULL)
        uses[n++] = tern_lane_use_rows(x, split, false);
    if (y != NULL)
        uses[n++] = tern_lane_use_rows(y, split, true);
    tern_lane_enter(lane, uses, n);
    return tern_lane_rows(lane, split);
}

/* ---- quantized rows ------------------------------------------------------------------------ */

/* The codes are used as the rows are; who has codes has their scales and sums. */
static tern_part enter_quantize(tern_device_stream *stream, const tern_device_rows *x,
                                const tern_device_quantized *out) {
    tern_lane *lane = tern_lane_of(stream);
    const tern_lane_use uses[] = {tern_lane_use_rows(x, x, false),
                                  {.begin = out->q,
                                   .bytes = x->own ? 0 : x->rows * out->q_stride,
                                   .stride = out->q_stride,
                                   .count = x->rows,
                                   .writes = true}};

    tern_lane_enter(lane, uses, 2);
    return tern_lane_rows(lane, x);
}

tern_status tern_processor_quantize_token(tern_device *d, tern_device_stream *stream,
                                          const tern_device_rows *x,
                                          const tern_device_quantized *out, tern_error *err) {
    const tern_status status = tern_check_quantize("quantize_token", x, out, true, err);
    if (status != TERN_OK)
        return status;
    const tern_kernel_row *kernel =
        tern_processor_kernel(d, TERN_OP_QUANTIZE_TOKEN, TERN_FORMAT_NONE, err);
    if (kernel == NULL)
        return TERN_ERR_KERNEL;
    const tern_part part = enter_quantize(stream, x, out);
    tern_processor_ran(d, stream, kernel);
    for (size_t t = part.begin; t < part.end; t++)
        kernel->fn.quantize_token(row_at(x, t), x->n, out->q + t * out->q_stride, out->s + t,
                                  out->sum + t);
    return TERN_OK;
}

tern_status tern_processor_quantize_block(tern_device *d, tern_device_stream *stream,
                                          const tern_device_rows *x,
                                          const tern_device_quantized *out, tern_error *err) {
    const tern_status status = tern_check_quantize("quantize_block", x, out, false, err);
    if (status != TERN_OK)
        return status;
    const tern_kernel_row *kernel =
        tern_processor_kernel(d, TERN_OP_QUANTIZE_BLOCK, TERN_FORMAT_NONE, err);
    if (kernel == NULL)
        return TERN_ERR_KERNEL;
    const tern_part part = enter_quantize(stream, x, out);
    tern_processor_ran(d, stream, kernel);
    for (size_t t = part.begin; t < part.end; t++)
        kernel->fn.quantize_block(row_at(x, t), x->n, out->q + t * out->q_stride,
                                  out->d + t * out->d_stride, out->block_sum + t * out->d_stride);
    return TERN_OK;
}

/* ---- rows of floats ------------------------------------------------------------------------ */

tern_status tern_processor_rmsnorm(tern_device *d, tern_device_stream *stream,
                                   const tern_device_rows *x, const float *g, float eps,
                                   const tern_device_rows *y, tern_error *err) {
    const tern_status status = tern_check_norm(x, g, y, err);
    if (status != TERN_OK)
        return status;
    const tern_kernel_row *kernel =
        tern_processor_kernel(d, TERN_OP_RMSNORM, TERN_FORMAT_NONE, err);
    if (kernel == NULL)
        return TERN_ERR_KERNEL;
    const tern_part part = enter_rows(stream, x, y);
    tern_processor_ran(d, stream, kernel);
    for (size_t t = part.begin; t < part.end; t++)
        kernel->fn.rmsnorm(row_at(x, t), g, x->n, eps, row_at(y, t));
    return TERN_OK;
}

tern_status tern_processor_layernorm(tern_device *d, tern_device_stream *stream,
                                     const tern_device_rows *x, const float *g, const float *b,
                                     float eps, const tern_device_rows *y, tern_error *err) {
    const tern_status status = tern_check_norm(x, g, y, err);
    if (status != TERN_OK)
        return status;
    const tern_kernel_row *kernel =
        tern_processor_kernel(d, TERN_OP_LAYERNORM, TERN_FORMAT_NONE, err);
    if (kernel == NULL)
        return TERN_ERR_KERNEL;
    const tern_part part = enter_rows(stream, x, y);
    tern_processor_ran(d, stream, kernel);
    for (size_t t = part.begin; t < part.end; t++)
        kernel->fn.layernorm(row_at(x, t), g, b, x->n, eps, row_at(y, t));
    return TERN_OK;
}

tern_status tern_processor_hadamard(tern_device *d, tern_device_stream *stream,
                                    const tern_device_rows *x, const float *before,
                                    const float *after, size_t block, const tern_device_rows *y,
                                    tern_error *err) {
    const tern_status status = tern_check_hadamard(x, block, y, err);
    if (status != TERN_OK)
        return status;
    const tern_kernel_row *kernel =
        tern_processor_kernel(d, TERN_OP_HADAMARD, TERN_FORMAT_NONE, err);
    if (kernel == NULL)
        return TERN_ERR_KERNEL;
    const tern_part part = enter_rows(stream, x, y);
    tern_processor_ran(d, stream, kernel);
    for (size_t t = part.begin; t < part.end; t++)
        kernel->fn.hadamard(row_at(x, t), before, after, x->n, block, row_at(y, t));
    return TERN_OK;
}

tern_status tern_processor_softmax(tern_device *d, tern_device_stream *stream,
                                   const tern_device_rows *x, tern_error *err) {
    const tern_status status = tern_check_rows("softmax", x, err);
    if (status != TERN_OK)
        return status;
    const tern_kernel_row *kernel =
        tern_processor_kernel(d, TERN_OP_SOFTMAX, TERN_FORMAT_NONE, err);
    if (kernel == NULL)
        return TERN_ERR_KERNEL;
    const tern_part part = enter_rows(stream, NULL, x);
    tern_processor_ran(d, stream, kernel);
    for (size_t t = part.begin; t < part.end; t++)
        kernel->fn.softmax(row_at(x, t), x->n);
    return TERN_OK;
}

tern_status tern_processor_gate(tern_device *d, tern_device_stream *stream, tern_op op,
                                const tern_device_rows *g, const tern_device_rows *u,
                                const tern_device_rows *y, tern_error *err) {
    const tern_status status = tern_check_gate(op, g, u, y, err);
    if (status != TERN_OK)
        return status;
    const tern_kernel_row *kernel = tern_processor_kernel(d, op, TERN_FORMAT_NONE, err);
    if (kernel == NULL)
        return TERN_ERR_KERNEL;
    tern_lane *lane = tern_lane_of(stream);
    const tern_lane_use uses[] = {tern_lane_use_rows(g, y, false), tern_lane_use_rows(u, y, false),
                                  tern_lane_use_rows(y, y, true)};
    tern_lane_enter(lane, uses, 3);
    const tern_part part = tern_lane_rows(lane, y);
    tern_processor_ran(d, stream, kernel);
    for (size_t t = part.begin; t < part.end; t++)
        kernel->fn.gate(row_at(g, t), row_at(u, t), y->n, row_at(y, t));
    return TERN_OK;
}

tern_status tern_processor_round(tern_device *d, tern_device_stream *stream, tern_op op,
                                 const tern_device_rows *x, const tern_device_rows *y,
                                 tern_error *err) {
    const tern_status status = tern_check_round(op, x, y, err);
    if (status != TERN_OK)
        return status;
    const tern_kernel_row *kernel = tern_processor_kernel(d, op, TERN_FORMAT_NONE, err);
    if (kernel == NULL)
        return TERN_ERR_KERNEL;
    const tern_part part = enter_rows(stream, x, y);
    tern_processor_ran(d, stream, kernel);
    for (size_t t = part.begin; t < part.end; t++)
        kernel->fn.tanh(row_at(x, t), x->n, row_at(y, t));
    return TERN_OK;
}

tern_status tern_processor_add(tern_device *d, tern_device_stream *stream,
                               const tern_device_rows *x, const tern_device_rows *y,
                               tern_error *err) {
    const tern_status status = tern_check_pair("add", x, y, err);
    if (status != TERN_OK)
        return status;
    const tern_kernel_row *kernel = tern_processor_kernel(d, TERN_OP_ADD, TERN_FORMAT_NONE, err);
    if (kernel == NULL)
        return TERN_ERR_KERNEL;
    const tern_part part = enter_rows(stream, y, x);
    tern_processor_ran(d, stream, kernel);
    for (size_t t = part.begin; t < part.end; t++)
        kernel->fn.add(row_at(x, t), row_at(y, t), x->n);
    return TERN_OK;
}

tern_status tern_processor_copy(tern_device *d, tern_device_stream *stream,
                                const tern_device_rows *x, const tern_device_rows *y,
                                tern_error *err) {
    const tern_status status = tern_check_pair("copy", x, y, err);
    (void)d;
    if (status != TERN_OK)
        return status;
    const tern_part part = enter_rows(stream, x, y);
    for (size_t t = part.begin; t < part.end; t++)
        memcpy(row_at(y, t), row_at(x, t), x->n * sizeof *x->data);
    return TERN_OK;
}

tern_status tern_processor_embed(tern_device *d, tern_device_stream *stream, const tern_matrix *w,
                                 const int32_t *ids, float factor, const tern_device_rows *y,
                                 tern_error *err) {
    const tern_status status = tern_check_embed(w, ids, y, err);
    if (status != TERN_OK)
        return status;
    const tern_kernel_row *kernel = tern_processor_kernel(d, TERN_OP_EMBED, w->format, err);
    if (kernel == NULL)
        return TERN_ERR_KERNEL;
    const size_t row_bytes = tern_elements_bytes(w->format, w->cols);
    const tern_part part = enter_rows(stream, NULL, y);
    tern_processor_ran(d, stream, kernel);
    for (size_t t = part.begin; t < part.end; t++) {
        float *const x = row_at(y, t);
        kernel->fn.embed((const uint8_t *)w->data + (size_t)ids[t] * row_bytes, y->n, x);
        for (size_t i = 0; factor != 1.0f && i < y->n; i++)
            x[i] *= factor;
    }
    return TERN_OK;
}

tern_status tern_processor_store(tern_device *d, tern_device_stream *stream, tern_format format,
                                 const tern_device_rows *x, void *out, size_t stride,
                                 tern_error *err) {
    const tern_status status = tern_check_rows("store", x, err);
    if (status != TERN_OK)
        return status;
    const tern_kernel_row *kernel = tern_processor_kernel(d, TERN_OP_STORE, format, err);
    if (kernel == NULL)
        return TERN_ERR_KERNEL;
    if (out == NULL || stride < x->n)
        return tern_fail(err, TERN_ERR_ARG, "store: rows of %zu do not fit in %zu", x->n, stride);
    const size_t row_bytes = tern_elements_bytes(format, stride);
    tern_lane *lane = tern_lane_of(stream);
    const tern_lane_use uses[] = {tern_lane_use_rows(x, x, false),
                                  {.begin = out,
                                   .bytes = x->rows * row_bytes,
                                   .stride = row_bytes,
                                   .count = x->rows,
                                   .writes = true}};
    tern_lane_enter(lane, uses, 2);
    const tern_part part = tern_lane_rows(lane, x);
    tern_processor_ran(d, stream, kernel);
    for (size_t t = part.begin; t < part.end; t++)
        kernel->fn.store(row_at(x, t), x->n, (uint8_t *)out + t * row_bytes);
    return TERN_OK;
}

/* ---- numbers that grew too large ----------------------------------------------------------- */

/* *note = the smaller of it and code. */
static void note_code(uint32_t *note, uint32_t code) {
    uint32_t known = __atomic_load_n(note, __ATOMIC_RELAXED);

    while (code < known && !__atomic_compare_exchange_n(note, &known, code, true, __ATOMIC_RELAXED,
                                                        __ATOMIC_RELAXED)) {
    }
}

/* True if elements [part.begin, part.end) of a row, or else all of it, are what they have to be. */
static bool fits(const tern_device_watch *a, const float *x, tern_part part) {
    const float limit = a->squares ? TERN_SQUARES_LIMIT : a->limit;

    return tern_all_below(x + part.begin, part.end - part.begin, limit) ||
           (a->squares && tern_squares_fit(x, a->x.n));
}

/* Rows that every lane has for itself are the same in all: each looks at its part of a row. */
tern_status tern_processor_watch(tern_device *d, tern_device_stream *stream,
                                 const tern_device_watch *a, tern_error *err) {
    const tern_status status = tern_check_watch(a, err);
    (void)d;
    if (status != TERN_OK)
        return status;
    const tern_part rows = enter_rows(stream, &a->x, NULL);
    const tern_part columns =
        a->x.own ? tern_lane_part(tern_lane_of(stream), a->x.n) : (tern_part){0, a->x.n};
    for (size_t row = rows.begin; row < rows.end; row++)
        if (!fits(a, row_at(&a->x, row), columns))
            note_code(&a->notes[a->at[row / a->group].sequence], a->code);
    return TERN_OK;
}

/* ---- heads --------------------------------------------------------------------------------- */

tern_status tern_processor_rope(tern_device *d, tern_device_stream *stream,
                                const tern_device_rope *a, tern_error *err) {
    const tern_status status = tern_check_rope(a, err);
    if (status != TERN_OK)
        return status;
    const tern_kernel_row *kernel = tern_processor_kernel(d, a->op, TERN_FORMAT_NONE, err);
    if (kernel == NULL)
        return TERN_ERR_KERNEL;
    tern_lane *lane = tern_lane_of(stream);
    const size_t angles = a->tokens * a->half * sizeof *a->c;
    const tern_lane_use uses[] = {
        tern_lane_use_all(a->c, angles, false), tern_lane_use_all(a->s, angles, false),
        tern_lane_use_heads(a->x, a->stride, a->dim, a->tokens, a->heads, true)};
    tern_lane_enter(lane, uses, 3);
    const tern_part part = tern_lane_part(lane, a->tokens * a->heads);
    tern_processor_ran(d, stream, kernel);
    for (size_t i = part.begin; i < part.end; i++) {
        const size_t t = i / a->heads;
        kernel->fn.rope(a->x + t * a->stride + i % a->heads * a->dim, a->c + t * a->half,
                        a->s + t * a->half, a->half);
    }
    return TERN_OK;
}

/* Only the address of a cache is remembered: whole operations write and read it. */
tern_status tern_processor_store_pages(tern_device *d, tern_device_stream *stream,
                                       const tern_device_store *a, tern_error *err) {
    const tern_status status = tern_check_store_pages(a, err);
    if (status != TERN_OK)
        return status;
    const tern_kernel_row *kernel = tern_processor_kernel(d, TERN_OP_STORE, a->to.format, err);
    if (kernel == NULL)
        return TERN_ERR_KERNEL;
    tern_lane *lane = tern_lane_of(stream);
    const tern_lane_use uses[] = {
        tern_lane_use_heads(a->x, a->stride, a->dim, a->tokens, a->heads, false),
        tern_lane_use_all(a->to.data, 1, true)};
    tern_lane_enter(lane, uses, 2);
    const size_t row_bytes = tern_cache_row_bytes(a->to.format, a->dim);
    const tern_part part = tern_lane_part(lane, a->tokens * a->heads);
    tern_processor_ran(d, stream, kernel);
    for (size_t i = part.begin; i < part.end; i++) {
        const size_t t = i / a->heads, h = i % a->heads;
        const uint32_t position = a->at[t].position;
        const uint32_t page = a->to.tables[a->at[t].sequence][position / TERN_ATTEND_CHUNK];
        kernel->fn.store(a->x + t * a->stride + h * a->dim, a->dim,
                         (uint8_t *)a->to.data + page * a->to.page_stride + h * a->to.head_stride +
                             position % TERN_ATTEND_CHUNK * row_bytes);
    }
    return TERN_OK;
}
