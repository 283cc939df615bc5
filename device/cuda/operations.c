/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of a CUDA device: each fills a job, finds its kernel and launches it. */

#include <stdio.h>

#include "device/cuda/module.h"

/* CUDA's limit for the second dimension of a grid. Kernels stride over what does not fit. */
enum { GRID_Y_MAX = 65535, GRID_X_MAX = 0x7fffffff };

typedef struct launch {
    const tern_cuda_kernel *kernel;
    size_t x, y; /* blocks wanted */
    unsigned z, threads;
} launch;

static tern_status launch_kernel(const cuda_device *cuda, tern_device_stream *stream,
                                 const launch *l, const tern_cuda_job *job, tern_error *err) {
    const unsigned grid[3] = {(unsigned)(l->x < GRID_X_MAX ? l->x : GRID_X_MAX),
                              (unsigned)(l->y < GRID_Y_MAX ? l->y : GRID_Y_MAX), l->z};

    const int error =
        cuda->rt->launch(l->kernel->function, grid, l->threads, cuda->overlaps, job, stream);

    return cuda_check(cuda, error, l->kernel->name, err);
}

/* Operations that still wait come first. */
static tern_status start(cuda_device *cuda, tern_device_stream *stream, const launch *l,
                         const tern_cuda_job *job, tern_error *err) {
    const tern_status status = cuda_begin_waiting(cuda, err);

    return status == TERN_OK ? launch_kernel(cuda, stream, l, job, err) : status;
}

/* The kernel of an operation that is not a product. */
static const tern_cuda_kernel *find(const cuda_device *cuda, tern_op op, tern_format format,
                                    tern_error *err) {
    const tern_format_info *info = tern_format_describe(format);

    for (size_t i = 0; i < cuda->kernel_count; i++)
        if (cuda->kernels[i].op == op && cuda->kernels[i].format == format)
            return &cuda->kernels[i];
    (void)tern_fail(err, TERN_ERR_KERNEL, "cuda: no kernel for %s of %s", tern_op_name(op),
                    info != NULL ? info->name : "floats");
    return NULL;
}

static unsigned threads_of(tern_op op) {
    const bool whole_rows =
        op == TERN_OP_RMSNORM || op == TERN_OP_RMSNORM_TOKEN || op == TERN_OP_QUANTIZE_TOKEN;

    return whole_rows ? TERN_CUDA_ROW_THREADS : TERN_CUDA_THREADS;
}

tern_status cuda_run_pair(tern_device *d, tern_device_stream *stream, tern_op op,
                          tern_format format, size_t x, size_t y, unsigned z,
                          const tern_cuda_job *job, tern_error *err) {
    cuda_device *cuda = (cuda_device *)d;
    const launch l = {find(cuda, op, format, err), x, y, z, threads_of(op)};

    return l.kernel != NULL ? start(cuda, stream, &l, job, err) : TERN_ERR_KERNEL;
}

tern_status cuda_run(tern_device *d, tern_device_stream *stream, tern_op op, tern_format format,
                     size_t x, size_t y, const tern_cuda_job *job, tern_error *err) {
    return cuda_run_pair(d, stream, op, format, x, y, 1, job, err);
}

static size_t ceil_div(size_t a, size_t b) {
    return a / b + (a % b != 0);
}

static tern_status elementwise(tern_device *d, tern_device_stream *stream, tern_op op,
                               const tern_cuda_elementwise *e, tern_error *err) {
    return cuda_run(d, stream, op, TERN_FORMAT_NONE, ceil_div(e->n, TERN_CUDA_THREADS), 1,
                    &(tern_cuda_job){.elementwise = *e}, err);
}

/* ---- matrix products ----------------------------------------------------------------------- */

/* Float formats share ROWS. */
static bool multiplies(const tern_cuda_kernel *k, tern_op op, const tern_matrix *w) {
    return k->op == op && k->layout == w->layout &&
           (w->layout != TERN_LAYOUT_ROWS || k->format == w->format);
}

/* The kernel for a layout: the smallest tile that has room for all tokens, or the largest. */
static const tern_cuda_kernel *find_product(const cuda_device *cuda, tern_op op,
                                            const tern_matrix *w, size_t tokens, tern_error *err) {
    const tern_format_info *info = tern_format_describe(w->format);
    const tern_cuda_kernel *found = NULL;

    for (size_t i = 0; i < cuda->kernel_count; i++) {
        const tern_cuda_kernel *k = &cuda->kernels[i];
        if (!multiplies(k, op, w))
            continue;
        if (found == NULL || (found->tokens_tile < k->tokens_tile ? found->tokens_tile < tokens
                                                                  : k->tokens_tile >= tokens))
            found = k;
    }
    if (found == NULL)
        (void)tern_fail(err, TERN_ERR_KERNEL, "cuda: no kernel for %s of %s in layout %s",
                        tern_op_name(op), info != NULL ? info->name : "no format",
                        tern_layout_name(w->layout));
    return found;
}

/* Products that wait for their launch: l.z of them. */
typedef struct batch {
    launch l;
    tern_cuda_job job;
} batch;

static tern_status start_batch(cuda_device *cuda, tern_device_stream *stream, batch *b,
                               tern_error *err) {
    const tern_status status = b->l.z > 0 ? start(cuda, stream, &b->l, &b->job, err) : TERN_OK;

    b->l = (launch){0};
    return status;
}

/*
 * Adds a product to the batch; if that is full, or another kernel's, its launch comes first. A
 * block of threads takes a tile of rows and tokens.
 */
static tern_status add_product(cuda_device *cuda, tern_device_stream *stream, tern_op op,
                               const tern_cuda_matmul *m, batch *b, tern_error *err) {
    const size_t rows = m->tile.r1 - m->tile.r0, tokens = m->tile.t1 - m->tile.t0;
    const tern_cuda_kernel *kernel = find_product(cuda, op, &m->w, tokens, err);
    tern_status status = TERN_OK;

    if (kernel == NULL)
        return TERN_ERR_KERNEL;
    if (b->l.kernel != kernel || b->l.z == TERN_CUDA_PRODUCTS)
        status = start_batch(cuda, stream, b, err);
    const bool wide = m->w.layout == TERN_LAYOUT_ROWS || kernel->rows_tile > TERN_ROW_GROUP;
    b->l.kernel = kernel;
    b->l.threads = wide ? TERN_CUDA_TILE_THREADS : TERN_CUDA_THREADS;
    b->l.x = cuda_larger(b->l.x, ceil_div(rows, kernel->rows_tile));
    b->l.y = cuda_larger(b->l.y, ceil_div(tokens, kernel->tokens_tile));
    b->job.products[b->l.z++] = *m;
    return status;
}

static tern_status matmul(tern_device *d, tern_device_stream *stream, tern_op op,
                          const tern_cuda_matmul *m, tern_error *err) {
    batch b = {.l = {0}};
    const tern_status status = add_product((cuda_device *)d, stream, op, m, &b, err);

    return status == TERN_OK ? start_batch((cuda_device *)d, stream, &b, err) : status;
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

/* The bias of every token, one after the other. */
static tern_status add_bias(tern_device *d, tern_device_stream *stream,
                            const tern_device_product *p, tern_error *err) {
    tern_status status = TERN_OK;

    for (size_t t = 0; status == TERN_OK && p->bias != NULL && t < p->tokens; t++) {
        float *y = p->y + t * p->y_stride;
        status = elementwise(
            d, stream, TERN_OP_ADD,
            &(tern_cuda_elementwise){.a = y, .b = p->bias, .n = p->w->rows, .y = y}, err);
    }
    return status;
}

/* Products in a row that have the same kernel share launches. */
tern_status cuda_multiply(tern_device *d, tern_device_stream *stream,
                          const tern_device_product *products, size_t count, tern_error *err) {
    cuda_device *cuda = (cuda_device *)d;
    batch b = {.l = {0}};
    tern_status status = TERN_OK;

    if (products == NULL || count == 0)
        return tern_fail(err, TERN_ERR_ARG, "multiply: no products");
    for (size_t i = 0; status == TERN_OK && i < count; i++) {
        const tern_device_product *p = &products[i];
        const tern_tile all = {.t1 = p->tokens, .r1 = p->w != NULL ? p->w->rows : 0};
        status = tern_check_matmul("multiply", p->w, &p->x, &all, p->y, p->y_stride, err);
        if (status == TERN_OK)
            status = add_product(cuda, stream, p->tokens == 1 ? TERN_OP_GEMV : TERN_OP_GEMM,
                                 &(tern_cuda_matmul){*p->w, p->x, all, p->y, p->y_stride}, &b, err);
    }
    if (status == TERN_OK)
        status = start_batch(cuda, stream, &b, err);
    for (size_t i = 0; status == TERN_OK && i < count; i++)
        status = add_bias(d, stream, &products[i], err);
    return status;
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

/* A warp for each 32 columns, those that only pad included. */
tern_status cuda_quantize_block(tern_device *d, tern_device_stream *stream,
                                const tern_device_rows *x, const tern_device_quantized *out,
                                tern_error *err) {
    const tern_status status = tern_check_quantize("quantize_block", x, out, false, err);

    if (status != TERN_OK)
        return status;
    const size_t blocks = ceil_div(x->n, TERN_Q_PAD) * (TERN_Q_PAD / TERN_BLOCK);
    return cuda_run(d, stream, TERN_OP_QUANTIZE_BLOCK, TERN_FORMAT_NONE,
                    ceil_div(blocks, TERN_CUDA_THREADS / TERN_CUDA_WARP), x->rows,
                    &(tern_cuda_job){.quantize = {*x, *out}}, err);
}

tern_status cuda_layernorm(tern_device *d, tern_device_stream *stream, const tern_device_rows *x,
                           const float *g, const float *b, float eps, const tern_device_rows *y,
                           tern_error *err) {
    (void)d, (void)stream, (void)x, (void)g, (void)b, (void)eps, (void)y;
    return tern_fail(err, TERN_ERR_UNIMPLEMENTED, "cuda: layernorm is not implemented");
}

tern_status cuda_hadamard(tern_device *d, tern_device_stream *stream, const tern_device_rows *x,
                          const float *before, const float *after, size_t block,
                          const tern_device_rows *y, tern_error *err) {
    (void)d, (void)stream, (void)x, (void)before, (void)after, (void)block, (void)y;
    return tern_fail(err, TERN_ERR_UNIMPLEMENTED, "cuda: hadamard is not implemented");
}

tern_status cuda_softmax(tern_device *d, tern_device_stream *stream, const tern_device_rows *x,
                         tern_error *err) {
    const tern_status status = tern_check_rows("softmax", x, err);

    if (status != TERN_OK)
        return status;
    return cuda_run(d, stream, TERN_OP_SOFTMAX, TERN_FORMAT_NONE, x->rows, 1,
                    &(tern_cuda_job){.softmax = *x}, err);
}

tern_status cuda_round(tern_device *d, tern_device_stream *stream, tern_op op,
                       const tern_device_rows *x, const tern_device_rows *y, tern_error *err) {
    const tern_status status = tern_check_round(op, x, y, err);

    if (status != TERN_OK)
        return status;
    return cuda_run(d, stream, op, TERN_FORMAT_NONE, x->rows, 1,
                    &(tern_cuda_job){.round = {*x, *y}}, err);
}

tern_status cuda_embed(tern_device *d, tern_device_stream *stream, const tern_matrix *w,
                       const int32_t *ids, float factor, const tern_device_rows *y,
                       tern_error *err) {
    const tern_status status = tern_check_embed(w, ids, y, err);

    if (status != TERN_OK)
        return status;
    const tern_grid *grid = tern_grid_of(w->format);
    const tern_cuda_embed embed = {*w, ids, factor, *y,
                                   grid != NULL ? *grid : (tern_grid){.entries = NULL}};
    return cuda_run(d, stream, TERN_OP_EMBED, w->format, y->rows, 1,
                    &(tern_cuda_job){.embed = embed}, err);
}

tern_status cuda_store(tern_device *d, tern_device_stream *stream, tern_format format,
                       const tern_device_rows *x, void *out, size_t stride, tern_error *err) {
    const tern_status status = tern_check_rows("store", x, err);

    if (status != TERN_OK)
        return status;
    if (out == NULL || stride < x->n)
        return tern_fail(err, TERN_ERR_ARG, "store: rows of %zu do not fit in %zu", x->n, stride);
    return cuda_run(
        d, stream, TERN_OP_STORE, format, x->rows, 1,
        &(tern_cuda_job){
            .stores = {{.x = *x, .out = out, .stride = stride, .heads = 1, .token = x->stride}}},
        err);
}

/* ---- elements ------------------------------------------------------------------------------ */

tern_status cuda_elements(tern_device *d, tern_device_stream *stream, tern_op op,
                          const tern_device_rows *a, const tern_device_rows *b,
                          const tern_device_rows *y, tern_error *err) {
    const bool close = a->stride == a->n && b->stride == b->n && y->stride == y->n;
    const size_t calls = close ? 1 : y->rows, n = close ? y->rows * y->n : y->n;
    tern_status status = TERN_OK;

    for (size_t t = 0; status == TERN_OK && t < calls; t++) {
        const tern_cuda_elementwise e = {
            .a = a->data + t * a->stride,
            .b = b->data + t * b->stride,
            .n = n,
            .y = y->data + t * y->stride,
            /* y may be a: a row whose squares are added up must stay */
            .watch = close && !((cuda_device *)d)->waiting.watch.squares
                         ? cuda_watch_of(d, stream, a)
                         : (tern_cuda_watch){.limit = 0.0f}};
        status = elementwise(d, stream, op, &e, err);
    }
    return status;
}

tern_status cuda_gate(tern_device *d, tern_device_stream *stream, tern_op op,
                      const tern_device_rows *g, const tern_device_rows *u,
                      const tern_device_rows *y, tern_error *err) {
    const tern_status status = tern_check_gate(op, g, u, y, err);

    return status == TERN_OK ? cuda_elements(d, stream, op, g, u, y, err) : status;
}

/* Written like a cache of floats. */
tern_status cuda_copy(tern_device *d, tern_device_stream *stream, const tern_device_rows *x,
                      const tern_device_rows *y, tern_error *err) {
    const tern_status status = tern_check_pair("copy", x, y, err);

    if (status != TERN_OK)
        return status;
    return cuda_store(d, stream, TERN_FORMAT_F32, x, y->data, y->stride, err);
}

/* ---- rope, attention ----------------------------------------------------------------------- */

/* Keys and values one after the other: page p of a head is its next TERN_ATTEND_CHUNK rows. */
static tern_device_pages as_pages(const tern_device_attend *a, const void *data,
                                  size_t element_bytes) {
    return (tern_device_pages){.format = a->format,
                               .data = (void *)data,
                               .head_stride = a->kv_stride * element_bytes,
                               .page_stride = TERN_ATTEND_CHUNK * a->dim * element_bytes};
}

/* True if 16-byte loads read the rows of all pages. */
static bool rows_are_whole(const tern_device_pages *p, size_t dim) {
    return dim % TERN_LANES == 0 &&
           ((uintptr_t)p->data | p->head_stride | p->page_stride) % 16 == 0;
}

/*
 * Few blocks take all chunks of a head at the same time. Where there are many, a block takes some
 * heads of a group, which read keys and values once. What is launched depends on no position: those
 * are read on the device.
 */
enum {
    FEW_BLOCKS = 256,
    DIM_MAX = TERN_CUDA_ATTEND_FLOATS / 3, /* one chunk at a time */
    QUERIES_DIM_MAX = DIM_MAX / TERN_CUDA_ATTEND_QUERIES
};

static tern_status attend(tern_device *d, tern_device_stream *stream, tern_cuda_attend job,
                          tern_error *err) {
    cuda_device *cuda = (cuda_device *)d;
    const tern_device_attend_pages *a = &job.a;
    const size_t group = a->heads / a->kv_heads;
    const bool few = a->tokens * a->heads <= FEW_BLOCKS;
    const bool is_whole = rows_are_whole(&a->k, a->dim) && rows_are_whole(&a->v, a->dim);
    const bool shared = !few && group > 2 && is_whole && a->dim <= QUERIES_DIM_MAX;

    if (a->dim > DIM_MAX)
        return tern_fail(err, TERN_ERR_KERNEL, "cuda: no kernel for attend of heads of %zu",
                         a->dim);
    job.is_whole = is_whole;
    job.queries = shared ? TERN_CUDA_ATTEND_QUERIES : 1;
    const launch l = {find(cuda, TERN_OP_ATTEND, a->k.format, err),
                      a->kv_heads * ceil_div(group, job.queries), a->tokens, 1,
                      few ? TERN_CUDA_ATTEND_THREADS : TERN_CUDA_ATTEND_FEW_THREADS};
    return l.kernel != NULL ? start(cuda, stream, &l, &(tern_cuda_job){.attend = job}, err)
                            : TERN_ERR_KERNEL;
}

tern_status cuda_attend(tern_device *d, tern_device_stream *stream, const tern_device_attend *a,
                        tern_error *err) {
    const tern_status status = tern_check_attend(a, err);
    const tern_format_info *info;

    if (status != TERN_OK)
        return status;
    info = tern_format_describe(a->format);
    const size_t bytes = info != NULL ? info->block_bytes : 0; /* no kernel for blocks */
    return attend(d, stream,
                  (tern_cuda_attend){.a = {.k = as_pages(a, a->k, bytes),
                                           .v = as_pages(a, a->v, bytes),
                                           .q = a->q,
                                           .q_stride = a->q_stride,
                                           .tokens = a->tokens,
                                           .heads = a->heads,
                                           .kv_heads = a->kv_heads,
                                           .dim = a->dim,
                                           .scale = a->scale,
                                           .out = a->out,
                                           .out_stride = a->out_stride},
                                     .before = a->before},
                  err);
}

tern_status cuda_attend_pages(tern_device *d, tern_device_stream *stream,
                              const tern_device_attend_pages *a, tern_error *err) {
    const tern_status status = tern_check_attend_pages(a, err);
    if (status == TERN_OK && a->cap > 0.0f)
        return tern_fail(err, TERN_ERR_UNIMPLEMENTED,
                         "cuda: soft bounds of scores are not implemented");
    return status == TERN_OK ? attend(d, stream, (tern_cuda_attend){.a = *a}, err) : status;
}
