/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processor as a device: memory is memory, a stream runs at once, and an operation is the
 * kernel that tern_kernel_select gives, token by token, on the calling thread.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/block_sparse.h"
#include "device/internal.h"
#include "dispatch/cpu.h"
#include "kernels/cache_row.h"

typedef struct cpu_device {
    tern_device base;
    uint64_t mask; /* features that rows may need */
} cpu_device;

/* Streams of the processor have no state; this is the address of all of them. */
static const char the_stream;

static const tern_kernel_row *select_row(const tern_device *d, tern_op op, tern_format format,
                                         tern_error *err) {
    const cpu_device *cpu = (const cpu_device *)d;
    const tern_kernel_row *row = tern_kernel_select(cpu->mask, op, format);
    const tern_format_info *info = tern_format_describe(format);

    if (row == NULL)
        (void)tern_fail(err, TERN_ERR_KERNEL, "cpu: no kernel for %s of %s", tern_op_name(op),
                        info != NULL ? info->name : "floats");
    return row;
}

/* Bytes of n elements of a format, whole blocks. */
static size_t elements_bytes(tern_format format, size_t n) {
    const tern_format_info *info = tern_format_describe(format);

    return n / info->block_elements * info->block_bytes;
}

/* ---- memory and streams -------------------------------------------------------------------- */

static tern_status cpu_alloc(tern_device *d, size_t bytes, void **memory, tern_error *err) {
    (void)d;
    if (bytes == 0 || bytes > SIZE_MAX - TERN_ALIGN)
        return tern_fail(err, TERN_ERR_ARG, "cpu: cannot allocate %zu bytes", bytes);
    *memory = aligned_alloc(TERN_ALIGN, (bytes + TERN_ALIGN - 1) / TERN_ALIGN * TERN_ALIGN);
    return *memory != NULL ? TERN_OK
                           : tern_fail(err, TERN_ERR_NOMEM, "cpu: no memory for %zu bytes", bytes);
}

static tern_status cpu_free(tern_device *d, void *memory, tern_error *err) {
    (void)d;
    (void)err;
    free(memory);
    return TERN_OK;
}

static tern_status cpu_stream_new(tern_device *d, tern_device_stream **stream, tern_error *err) {
    (void)d;
    (void)err;
    *stream = (tern_device_stream *)(uintptr_t)&the_stream; /* only its address counts */
    return TERN_OK;
}

/* There is nothing to release or to wait for. */
static tern_status cpu_stream_done(tern_device *d, tern_device_stream *stream, tern_error *err) {
    (void)d;
    (void)stream;
    (void)err;
    return TERN_OK;
}

static tern_status cpu_copy(tern_device *d, tern_device_stream *stream, void *to, const void *from,
                            size_t bytes, tern_error *err) {
    (void)d;
    (void)stream;
    if (to == NULL || from == NULL || bytes == 0)
        return tern_fail(err, TERN_ERR_ARG, "cpu: nothing to copy");
    memcpy(to, from, bytes);
    return TERN_OK;
}

static tern_status cpu_upload_matrix(tern_device *d, tern_device_stream *stream,
                                     const tern_matrix *host, tern_matrix *to, tern_error *err) {
    tern_matrix_parts parts;
    void *memory;

    (void)stream;
    tern_status status = tern_check_upload(host, &parts, err);
    if (status == TERN_OK)
        status = cpu_alloc(d, parts.bytes, &memory, err);
    if (status != TERN_OK)
        return status;
    memcpy(memory, host->data, parts.data_bytes);
    if (host->row_scale != NULL)
        memcpy((uint8_t *)memory + parts.scales_at, host->row_scale, parts.scales_bytes);
    *to = tern_matrix_at(host, &parts, memory);
    return TERN_OK;
}

static tern_status cpu_free_matrix(tern_device *d, tern_matrix *matrix, tern_error *err) {
    (void)d;
    (void)err;
    free((void *)matrix->data);
    matrix->data = NULL;
    return TERN_OK;
}

/* ---- matrix products ----------------------------------------------------------------------- */

static tern_status matmul(const tern_device *d, tern_op op, const tern_matrix *w,
                          const tern_activations *x, const tern_tile *tile, float *y,
                          size_t y_stride, tern_error *err) {
    const tern_status status = tern_check_matmul(tern_op_name(op), w, x, tile, y, y_stride, err);
    if (status != TERN_OK)
        return status;
    const cpu_device *cpu = (const cpu_device *)d;
    const tern_kernel_row *row = tern_kernel_select_layout(cpu->mask, op, w->format, w->layout);
    if (row == NULL)
        return tern_fail(err, TERN_ERR_KERNEL, "cpu: no kernel for %s in layout %s",
                         tern_op_name(op), tern_layout_name(w->layout));
    row->fn.matmul(w, x, tile, y, y_stride);
    return TERN_OK;
}

static tern_status cpu_gemv(tern_device *d, tern_device_stream *stream, const tern_matrix *w,
                            const tern_activations *x, const tern_tile *tile, float *y,
                            size_t y_stride, tern_error *err) {
    (void)stream;
    return matmul(d, TERN_OP_GEMV, w, x, tile, y, y_stride, err);
}

static tern_status cpu_gemm(tern_device *d, tern_device_stream *stream, const tern_matrix *w,
                            const tern_activations *x, const tern_tile *tile, float *y,
                            size_t y_stride, tern_error *err) {
    (void)stream;
    return matmul(d, TERN_OP_GEMM, w, x, tile, y, y_stride, err);
}

static tern_status cpu_gemv_block_sparse_f32(tern_device *d, const tern_block_sparse *w,
                                             const float *x, float *y, tern_error *err) {
    const tern_kernel_row *row = select_row(d, TERN_OP_GEMV_SPARSE, TERN_FORMAT_F32, err);
    return row != NULL ? tern_block_sparse_gemv(row, w, x, y, err) : TERN_ERR_KERNEL;
}

/* ---- rows of floats ------------------------------------------------------------------------ */

static tern_status cpu_quantize_token(tern_device *d, tern_device_stream *stream,
                                      const tern_device_rows *x, const tern_device_quantized *out,
                                      tern_error *err) {
    const tern_status status = tern_check_quantize("quantize_token", x, out, true, err);
    (void)stream;
    if (status != TERN_OK)
        return status;
    const tern_kernel_row *row = select_row(d, TERN_OP_QUANTIZE_TOKEN, TERN_FORMAT_NONE, err);
    if (row == NULL)
        return TERN_ERR_KERNEL;
    for (size_t t = 0; t < x->rows; t++)
        row->fn.quantize_token(x->data + t * x->stride, x->n, out->q + t * out->q_stride,
                               out->s + t, out->sum + t);
    return TERN_OK;
}

static tern_status cpu_quantize_block(tern_device *d, tern_device_stream *stream,
                                      const tern_device_rows *x, const tern_device_quantized *out,
                                      tern_error *err) {
    const tern_status status = tern_check_quantize("quantize_block", x, out, false, err);
    (void)stream;
    if (status != TERN_OK)
        return status;
    const tern_kernel_row *row = select_row(d, TERN_OP_QUANTIZE_BLOCK, TERN_FORMAT_NONE, err);
    if (row == NULL)
        return TERN_ERR_KERNEL;
    for (size_t t = 0; t < x->rows; t++)
        row->fn.quantize_block(x->data + t * x->stride, x->n, out->q + t * out->q_stride,
                               out->d + t * out->d_stride, out->block_sum + t * out->d_stride);
    return TERN_OK;
}

static tern_status cpu_rmsnorm(tern_device *d, tern_device_stream *stream,
                               const tern_device_rows *x, const float *g, float eps,
                               const tern_device_rows *y, tern_error *err) {
    const tern_status status = tern_check_norm(x, g, y, err);
    (void)stream;
    if (status != TERN_OK)
        return status;
    const tern_kernel_row *row = select_row(d, TERN_OP_RMSNORM, TERN_FORMAT_NONE, err);
    if (row == NULL)
        return TERN_ERR_KERNEL;
    for (size_t t = 0; t < x->rows; t++)
        row->fn.rmsnorm(x->data + t * x->stride, g, x->n, eps, y->data + t * y->stride);
    return TERN_OK;
}

static tern_status cpu_softmax(tern_device *d, tern_device_stream *stream,
                               const tern_device_rows *x, tern_error *err) {
    const tern_status status = tern_check_rows("softmax", x, err);
    (void)stream;
    if (status != TERN_OK)
        return status;
    const tern_kernel_row *row = select_row(d, TERN_OP_SOFTMAX, TERN_FORMAT_NONE, err);
    if (row == NULL)
        return TERN_ERR_KERNEL;
    for (size_t t = 0; t < x->rows; t++)
        row->fn.softmax(x->data + t * x->stride, x->n);
    return TERN_OK;
}

static tern_status cpu_gate(tern_device *d, tern_device_stream *stream, tern_op op, const float *g,
                            const float *u, size_t n, float *y, tern_error *err) {
    const tern_status status = tern_check_gate(op, g, u, n, y, err);
    (void)stream;
    if (status != TERN_OK)
        return status;
    const tern_kernel_row *row = select_row(d, op, TERN_FORMAT_NONE, err);
    if (row == NULL)
        return TERN_ERR_KERNEL;
    row->fn.gate(g, u, n, y);
    return TERN_OK;
}

static tern_status cpu_add(tern_device *d, tern_device_stream *stream, float *x, const float *y,
                           size_t n, tern_error *err) {
    const tern_kernel_row *row = select_row(d, TERN_OP_ADD, TERN_FORMAT_NONE, err);
    (void)stream;
    if (row == NULL)
        return TERN_ERR_KERNEL;
    if (x == NULL || y == NULL || n == 0)
        return tern_fail(err, TERN_ERR_ARG, "add: an operand is missing");
    row->fn.add(x, y, n);
    return TERN_OK;
}

static tern_status cpu_embed(tern_device *d, tern_device_stream *stream, const tern_matrix *w,
                             const int32_t *ids, const tern_device_rows *y, tern_error *err) {
    const tern_status status = tern_check_embed(w, ids, y, err);
    (void)stream;
    if (status != TERN_OK)
        return status;
    const tern_kernel_row *row = select_row(d, TERN_OP_EMBED, w->format, err);
    if (row == NULL)
        return TERN_ERR_KERNEL;
    const size_t row_bytes = elements_bytes(w->format, w->cols);
    for (size_t t = 0; t < y->rows; t++)
        row->fn.embed((const uint8_t *)w->data + (size_t)ids[t] * row_bytes, y->n,
                      y->data + t * y->stride);
    return TERN_OK;
}

static tern_status cpu_store(tern_device *d, tern_device_stream *stream, tern_format format,
                             const tern_device_rows *x, void *out, size_t stride, tern_error *err) {
    const tern_status status = tern_check_rows("store", x, err);
    (void)stream;
    if (status != TERN_OK)
        return status;
    const tern_kernel_row *row = select_row(d, TERN_OP_STORE, format, err);
    if (row == NULL)
        return TERN_ERR_KERNEL;
    if (out == NULL || stride < x->n)
        return tern_fail(err, TERN_ERR_ARG, "store: rows of %zu do not fit in %zu", x->n, stride);
    for (size_t t = 0; t < x->rows; t++)
        row->fn.store(x->data + t * x->stride, x->n,
                      (uint8_t *)out + t * elements_bytes(format, stride));
    return TERN_OK;
}

/* ---- rope, attention ----------------------------------------------------------------------- */

static tern_status cpu_rope(tern_device *d, tern_device_stream *stream, const tern_device_rope *a,
                            tern_error *err) {
    const tern_status status = tern_check_rope(a, err);
    (void)stream;
    if (status != TERN_OK)
        return status;
    const tern_kernel_row *row = select_row(d, a->op, TERN_FORMAT_NONE, err);
    if (row == NULL)
        return TERN_ERR_KERNEL;
    for (size_t t = 0; t < a->tokens; t++)
        for (size_t h = 0; h < a->heads; h++)
            row->fn.rope(a->x + t * a->stride + h * 2 * a->half, a->c + t * a->half,
                         a->s + t * a->half, a->half);
    return TERN_OK;
}

/* `memory` holds the states of a group's heads, then scratch. */
static void attend_all(const tern_kernel_row *row, const tern_device_attend *a, uint8_t *memory) {
    const size_t group = a->heads / a->kv_heads;
    const size_t head_bytes = elements_bytes(a->format, a->kv_stride);

    for (size_t t = 0; t < a->tokens; t++) {
        for (size_t g = 0; g < a->kv_heads; g++) {
            const tern_attend_args args = {.heads = {.positions = a->before + t + 1,
                                                     .tokens = 1,
                                                     .group = group,
                                                     .dim = a->dim},
                                           .q = a->q + t * a->q_stride + g * group * a->dim,
                                           .k = (const uint8_t *)a->k + g * head_bytes,
                                           .v = (const uint8_t *)a->v + g * head_bytes,
                                           .page_stride = tern_cache_page_bytes(a->format, a->dim),
                                           .scale = a->scale,
                                           .scratch =
                                               memory + tern_attend_state_bytes(group, a->dim)};
            tern_attend_all(row, &args, memory, a->out + t * a->out_stride + g * group * a->dim,
                            group * a->dim);
        }
    }
}

static tern_status cpu_attend(tern_device *d, tern_device_stream *stream,
                              const tern_device_attend *a, tern_error *err) {
    tern_status status = tern_check_attend(a, err);
    void *scratch;
    (void)stream;
    if (status != TERN_OK)
        return status;
    const tern_kernel_row *row = select_row(d, TERN_OP_ATTEND, a->format, err);
    if (row == NULL)
        return TERN_ERR_KERNEL;
    const size_t group = a->heads / a->kv_heads;
    const size_t bytes =
        tern_attend_state_bytes(group, a->dim) + tern_attend_scratch_bytes(group, a->dim);
    status = cpu_alloc(d, bytes, &scratch, err);
    if (status != TERN_OK)
        return status;
    attend_all(row, a, scratch);
    free(scratch);
    return TERN_OK;
}

/* ---- the device ---------------------------------------------------------------------------- */

static void cpu_close(tern_device *d) {
    free(d);
}

tern_status tern_cpu_device_open(tern_device **device, tern_error *err) {
    static const tern_device_ops ops = {
        .alloc = cpu_alloc,
        .free = cpu_free,
        .stream_new = cpu_stream_new,
        .stream_free = cpu_stream_done,
        .stream_sync = cpu_stream_done,
        .upload = cpu_copy,
        .download = cpu_copy,
        .upload_matrix = cpu_upload_matrix,
        .free_matrix = cpu_free_matrix,
        .gemv = cpu_gemv,
        .gemm = cpu_gemm,
        .quantize_token = cpu_quantize_token,
        .quantize_block = cpu_quantize_block,
        .rmsnorm = cpu_rmsnorm,
        .rope = cpu_rope,
        .attend = cpu_attend,
        .softmax = cpu_softmax,
        .gate = cpu_gate,
        .add = cpu_add,
        .embed = cpu_embed,
        .store = cpu_store,
        .gemv_block_sparse_f32 = cpu_gemv_block_sparse_f32,
        .close = cpu_close,
    };
    uint64_t mask;
    const tern_status status = tern_cpu_mask(NULL, NULL, &mask, err);

    *device = NULL;
    if (status != TERN_OK)
        return status;
    cpu_device *cpu = calloc(1, sizeof *cpu);
    if (cpu == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "cpu: no memory for the device");
    cpu->base.ops = &ops;
    cpu->base.kind = TERN_DEVICE_CPU;
    (void)snprintf(cpu->base.name, sizeof cpu->base.name, "%s", tern_cpu_name());
    cpu->mask = mask;
    *device = &cpu->base;
    return TERN_OK;
}
