/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of a CUDA device: each fills a job, finds its kernel and launches it. */

#include <stdio.h>

#include "device/cuda/module.h"

/* What CUDA allows for the second dimension of a grid. Kernels stride over what does not fit. */
enum { GRID_Y_MAX = 65535, GRID_X_MAX = 0x7fffffff };

typedef struct launch {
    const tern_cuda_kernel *kernel;
    size_t x, y; /* blocks wanted */
    unsigned threads;
} launch;

static tern_status start(const cuda_device *cuda, tern_device_stream *stream, const launch *l,
                         const tern_cuda_job *job, tern_error *err) {
    const unsigned grid[3] = {(unsigned)(l->x < GRID_X_MAX ? l->x : GRID_X_MAX),
                              (unsigned)(l->y < GRID_Y_MAX ? l->y : GRID_Y_MAX), 1};

    return cuda_check(cuda, cuda->rt->launch(l->kernel->function, grid, l->threads, job, stream),
                      l->kernel->name, err);
}

/* Launches the kernel of an operation that is no product on x * y blocks. */
static tern_status run(tern_device *d, tern_device_stream *stream, tern_op op, tern_format format,
                       size_t x, size_t y, const tern_cuda_job *job, tern_error *err) {
    const cuda_device *cuda = (const cuda_device *)d;
    const tern_format_info *info = tern_format_describe(format);
    const unsigned threads = op == TERN_OP_ATTEND ? TERN_CUDA_ATTEND_THREADS : TERN_CUDA_THREADS;

    for (size_t i = 0; i < cuda->kernel_count; i++) {
        if (cuda->kernels[i].op != op || cuda->kernels[i].format != format)
            continue;
        const launch l = {&cuda->kernels[i], x, y, threads};
        return start(cuda, stream, &l, job, err);
    }
    return tern_fail(err, TERN_ERR_KERNEL, "cuda: no kernel for %s of %s", tern_op_name(op),
                     info != NULL ? info->name : "floats");
}

static size_t ceil_div(size_t a, size_t b) {
    return a / b + (a % b != 0);
}

/* ---- matrix products ----------------------------------------------------------------------- */

/* The kernel for a layout; the float formats share ROWS. */
static const tern_cuda_kernel *find_product(const cuda_device *cuda, tern_op op,
                                            const tern_matrix *w, tern_error *err) {
    const tern_format_info *info = tern_format_describe(w->format);

    for (size_t i = 0; i < cuda->kernel_count; i++) {
        const tern_cuda_kernel *k = &cuda->kernels[i];
        if (k->op == op && k->layout == w->layout &&
            (w->layout != TERN_LAYOUT_ROWS || k->format == w->format))
            return k;
    }
    (void)tern_fail(err, TERN_ERR_KERNEL, "cuda: no kernel for %s of %s in layout %s",
                    tern_op_name(op), info != NULL ? info->name : "no format",
                    tern_layout_name(w->layout));
    return NULL;
}

/* A block of threads takes 16 rows and a tile of tokens, in every kernel. */
static tern_status matmul(tern_device *d, tern_device_stream *stream, tern_op op,
                          const tern_cuda_matmul *m, tern_error *err) {
    const cuda_device *cuda = (const cuda_device *)d;
    const tern_cuda_kernel *kernel = find_product(cuda, op, &m->w, err);
    const bool floats = m->w.layout == TERN_LAYOUT_ROWS;

    if (kernel == NULL)
        return TERN_ERR_KERNEL;
    const launch l = {kernel, ceil_div(m->tile.r1 - m->tile.r0, TERN_ROW_GROUP),
                      ceil_div(m->tile.t1 - m->tile.t0, kernel->tokens_tile),
                      floats ? TERN_CUDA_FLOAT_THREADS : TERN_CUDA_THREADS};
    return start(cuda, stream, &l, &(tern_cuda_job){.matmul = *m}, err);
}

tern_status cuda_gemv(tern_device *d, tern_device_stream *stream, const tern_matrix *w,
                      const tern_activations *x, const tern_tile *tile, float *y, size_t y_stride,
                      tern_error *err) {
    const tern_status status = tern_check_matmul("gemv", w, x, tile, y, y_stride, err);

    if (status != TERN_OK)
        return status;
    return matmul(d, stream, TERN_OP_GEMV, &(tern_cuda_matmul){*w, *x, *tile, y, y_stride}, err);
}

tern_status cuda_gemm(tern_device *d, tern_device_stream *stream, const tern_matrix *w,
                      const tern_activations *x, const tern_tile *tile, float *y, size_t y_stride,
                      tern_error *err) {
    const tern_status status = tern_check_matmul("gemm", w, x, tile, y, y_stride, err);

    if (status != TERN_OK)
        return status;
    return matmul(d, stream, TERN_OP_GEMM, &(tern_cuda_matmul){*w, *x, *tile, y, y_stride}, err);
}

tern_status cuda_gemv_block_sparse_f32(tern_device *d, const tern_block_sparse *w, const float *x,
                                       float *y, tern_error *err) {
    (void)d;
    (void)w;
    (void)x;
    (void)y;
    return tern_fail(err, TERN_ERR_UNIMPLEMENTED, "cuda: gemv_block_sparse_f32 is not implemented");
}

/* ---- rows of floats ------------------------------------------------------------------------ */

tern_status cuda_quantize_token(tern_device *d, tern_device_stream *stream,
                                const tern_device_rows *x, const tern_device_quantized *out,
                                tern_error *err) {
    const tern_status status = tern_check_quantize("quantize_token", x, out, true, err);

    if (status != TERN_OK)
        return status;
    return run(d, stream, TERN_OP_QUANTIZE_TOKEN, TERN_FORMAT_NONE, x->rows, 1,
               &(tern_cuda_job){.quantize = {*x, *out}}, err);
}

/* A warp for each 32 columns, those that only pad included. */
tern_status cuda_quantize_block(tern_device *d, tern_device_stream *stream,
                                const tern_device_rows *x, const tern_device_quantized *out,
                                tern_error *err) {
    const tern_status status = tern_check_quantize("quantize_block", x, out, false, err);

    if (status != TERN_OK)
        return status;
    const size_t blocks = ceil_div(x->n, TERN_Q_PAD) * (TERN_Q_PAD / TERN_BLOCK);
    return run(d, stream, TERN_OP_QUANTIZE_BLOCK, TERN_FORMAT_NONE,
               ceil_div(blocks, TERN_CUDA_THREADS / TERN_CUDA_WARP), x->rows,
               &(tern_cuda_job){.quantize = {*x, *out}}, err);
}

tern_status cuda_rmsnorm(tern_device *d, tern_device_stream *stream, const tern_device_rows *x,
                         const float *g, float eps, const tern_device_rows *y, tern_error *err) {
    const tern_status status = tern_check_norm(x, g, y, err);

    if (status != TERN_OK)
        return status;
    return run(d, stream, TERN_OP_RMSNORM, TERN_FORMAT_NONE, x->rows, 1,
               &(tern_cuda_job){.norm = {*x, g, eps, *y}}, err);
}

tern_status cuda_softmax(tern_device *d, tern_device_stream *stream, const tern_device_rows *x,
                         tern_error *err) {
    const tern_status status = tern_check_rows("softmax", x, err);

    if (status != TERN_OK)
        return status;
    return run(d, stream, TERN_OP_SOFTMAX, TERN_FORMAT_NONE, x->rows, 1,
               &(tern_cuda_job){.softmax = *x}, err);
}

tern_status cuda_embed(tern_device *d, tern_device_stream *stream, const tern_matrix *w,
                       const int32_t *ids, const tern_device_rows *y, tern_error *err) {
    const tern_status status = tern_check_embed(w, ids, y, err);

    if (status != TERN_OK)
        return status;
    return run(d, stream, TERN_OP_EMBED, w->format, y->rows, 1,
               &(tern_cuda_job){.embed = {*w, ids, *y}}, err);
}

tern_status cuda_store(tern_device *d, tern_device_stream *stream, tern_format format,
                       const tern_device_rows *x, void *out, size_t stride, tern_error *err) {
    const tern_status status = tern_check_rows("store", x, err);

    if (status != TERN_OK)
        return status;
    if (out == NULL || stride < x->n)
        return tern_fail(err, TERN_ERR_ARG, "store: rows of %zu do not fit in %zu", x->n, stride);
    return run(d, stream, TERN_OP_STORE, format, x->rows, 1,
               &(tern_cuda_job){.store = {*x, out, stride}}, err);
}

/* ---- elements ------------------------------------------------------------------------------ */

static tern_status elementwise(tern_device *d, tern_device_stream *stream, tern_op op,
                               const tern_cuda_elementwise *e, tern_error *err) {
    return run(d, stream, op, TERN_FORMAT_NONE, ceil_div(e->n, TERN_CUDA_THREADS), 1,
               &(tern_cuda_job){.elementwise = *e}, err);
}

tern_status cuda_gate(tern_device *d, tern_device_stream *stream, tern_op op, const float *g,
                      const float *u, size_t n, float *y, tern_error *err) {
    const tern_status status = tern_check_gate(op, g, u, n, y, err);

    if (status != TERN_OK)
        return status;
    return elementwise(d, stream, op, &(tern_cuda_elementwise){g, u, n, y}, err);
}

tern_status cuda_add(tern_device *d, tern_device_stream *stream, float *x, const float *y, size_t n,
                     tern_error *err) {
    if (x == NULL || y == NULL || n == 0)
        return tern_fail(err, TERN_ERR_ARG, "add: an operand is missing");
    return elementwise(d, stream, TERN_OP_ADD, &(tern_cuda_elementwise){x, y, n, x}, err);
}

/* ---- rope, attention ----------------------------------------------------------------------- */

tern_status cuda_rope(tern_device *d, tern_device_stream *stream, const tern_device_rope *a,
                      tern_error *err) {
    const tern_status status = tern_check_rope(a, err);

    if (status != TERN_OK)
        return status;
    return run(d, stream, a->op, TERN_FORMAT_NONE, a->heads * a->tokens, 1,
               &(tern_cuda_job){.rope = *a}, err);
}

tern_status cuda_attend(tern_device *d, tern_device_stream *stream, const tern_device_attend *a,
                        tern_error *err) {
    const tern_status status = tern_check_attend(a, err);

    if (status != TERN_OK)
        return status;
    return run(d, stream, TERN_OP_ATTEND, a->format, a->heads, a->tokens,
               &(tern_cuda_job){.attend = *a}, err);
}
