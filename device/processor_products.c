/* SPDX-License-Identifier: Apache-2.0 */
/* Products of the processor. Lanes share the rows of a matrix in groups. */

#include "device/block_sparse.h"
#include "device/finish.h"
#include "device/processor.h"

/* ---- one tile ------------------------------------------------------------------------------- */

static const tern_kernel_row *select_product(const tern_device *d, tern_op op, const tern_matrix *w,
                                             tern_error *err) {
    const tern_processor_device *p = (const tern_processor_device *)d;
    const tern_kernel_row *kernel = tern_kernel_select_layout(p->mask, op, w->format, w->layout);

    if (kernel == NULL)
        (void)tern_fail(err, TERN_ERR_KERNEL, "cpu: no kernel for %s in layout %s",
                        tern_op_name(op), tern_layout_name(w->layout));
    return kernel;
}

/* A product as lanes share it. */
typedef struct product {
    const tern_device_product *of;
    const tern_kernel_row *kernel, *add;
} product;

/* These rows of the matrix, for all tokens. */
static void multiply_rows(const product *p, tern_part rows) {
    const tern_device_product *of = p->of;
    const tern_tile tile = {.t0 = 0, .t1 = of->tokens, .r0 = rows.begin, .r1 = rows.end};

    p->kernel->fn.matmul(of->w, &of->x, &tile, of->y, of->y_stride);
    const float *bias = of->bias != NULL ? of->bias + rows.begin : NULL;
    for (size_t t = 0; t < of->tokens; t++)
        tern_finish_row(p->add, of->factor, bias, of->y + t * of->y_stride + rows.begin,
                        rows.end - rows.begin);
}

/* The memory that it reads of its activations, and that it writes. Scales are written with their
 * codes. */
static void find_uses(const tern_device_product *p, tern_lane_use uses[2]) {
    const tern_activations *x = &p->x;
    const bool floats = tern_layout_input(p->w->layout) == TERN_INPUT_FLOAT;
    const size_t last = p->tokens - 1;

    uses[0] = floats ? tern_lane_use_all(x->x, (last * x->x_stride + x->cols) * sizeof *x->x, false)
                     : tern_lane_use_all(x->q, last * x->q_stride + x->cols, false);
    uses[1] = tern_lane_use_all(p->y, (last * p->y_stride + p->w->rows) * sizeof *p->y, true);
}

/* The kernels of a product, whose operands are checked. */
static tern_status find_kernels(const tern_device *d, const tern_device_product *of, product *p,
                                tern_error *err) {
    const tern_op op = of->tokens == 1 ? TERN_OP_GEMV : TERN_OP_GEMM;
    const tern_tile all = {.t1 = of->tokens, .r1 = of->w != NULL ? of->w->rows : 0};
    const tern_status status =
        tern_check_matmul("multiply", of->w, &of->x, &all, of->y, of->y_stride, err);

    if (status != TERN_OK)
        return status;
    *p = (product){.of = of, .kernel = op == TERN_OP_GEMV ? of->gemv : of->gemm};
    if (p->kernel == NULL)
        p->kernel = select_product(d, op, of->w, err);
    if (p->kernel != NULL && of->bias != NULL)
        p->add = tern_processor_kernel(d, TERN_OP_ADD, TERN_FORMAT_NONE, err);
    return p->kernel == NULL || (of->bias != NULL && p->add == NULL) ? TERN_ERR_KERNEL : TERN_OK;
}

/* Asks memory for the lane's rows of a matrix, which lie side by side. */
static void fetch_rows(tern_lane *lane, const tern_matrix *w, tern_part rows) {
    tern_matrix before = *w, up_to = *w;

    before.rows = rows.begin;
    up_to.rows = rows.end;
    const size_t begin = rows.begin > 0 ? tern_matrix_bytes(&before) : 0;
    (void)tern_fetch_ask(lane->fetching, (const char *)w->data + begin,
                         tern_matrix_bytes(&up_to) - begin, &lane->due);
}

/* Asks for what the lane will read of the products, whatever others still write. */
static void fetch_parts(tern_lane *lane, const tern_device_product *products,
                        const tern_lane_works *works) {
    if (lane == NULL || lane->fetching == NULL || lane->fetching->ahead == 0)
        return;
    tern_lane_pieces parts = tern_lane_divide(lane, works, false);
    for (tern_lane_piece part; tern_lane_next(&parts, &part);)
        fetch_rows(lane, products[part.work].w, part.items);
}

static void count_products(const tern_device *d, tern_lane *lane, const product *p, size_t count) {
    for (size_t i = 0; i < count; i++) {
        tern_processor_ran(d, tern_lane_stream(lane), p[i].kernel);
        if (p[i].of->bias != NULL)
            tern_processor_ran(d, tern_lane_stream(lane), p[i].add);
    }
}

enum { TOGETHER = TERN_LANE_USES_OF_OP / 2 };

/* Up to TOGETHER products, between which no lane waits. */
static tern_status multiply_some(const tern_device *d, tern_lane *lane,
                                 const tern_device_product *products, size_t count,
                                 tern_error *err) {
    product p[TOGETHER];
    tern_lane_use uses[2 * TOGETHER];
    size_t rows[TOGETHER];
    const tern_lane_works works = {rows, count, TERN_ROW_GROUP};

    for (size_t i = 0; i < count; i++) {
        const tern_status status = find_kernels(d, &products[i], &p[i], err);
        if (status != TERN_OK)
            return status;
        find_uses(&products[i], uses + 2 * i);
        rows[i] = products[i].w->rows;
    }
    fetch_parts(lane, products, &works);
    count_products(d, lane, p, count);
    tern_lane_enter(lane, uses, 2 * count);
    tern_lane_pieces pieces = tern_lane_divide(lane, &works, true);
    for (tern_lane_piece piece; tern_lane_next(&pieces, &piece);)
        multiply_rows(&p[piece.work], piece.items);
    return TERN_OK;
}

tern_status tern_processor_multiply(tern_device *d, tern_device_stream *stream,
                                    const tern_device_product *products, size_t count,
                                    tern_error *err) {
    tern_status status = TERN_OK;

    if (products == NULL || count == 0)
        return tern_fail(err, TERN_ERR_ARG, "multiply: no products");
    for (size_t i = 0; status == TERN_OK && i < count; i += TOGETHER)
        status = multiply_some(d, tern_lane_of(stream), products + i,
                               count - i < TOGETHER ? count - i : TOGETHER, err);
    return status;
}

/* A tile is what its caller made of it: every lane that calls computes all of it. */
static tern_status multiply_tile(const tern_device *d, tern_device_stream *stream, tern_op op,
                                 const tern_matrix *w, const tern_activations *x,
                                 const tern_tile *tile, float *y, size_t y_stride,
                                 tern_error *err) {
    const tern_status status = tern_check_matmul(tern_op_name(op), w, x, tile, y, y_stride, err);

    if (status != TERN_OK)
        return status;
    const tern_kernel_row *kernel = select_product(d, op, w, err);
    if (kernel == NULL)
        return TERN_ERR_KERNEL;
    tern_processor_ran(d, stream, kernel);
    kernel->fn.matmul(w, x, tile, y, y_stride);
    return TERN_OK;
}

tern_status tern_processor_gemv(tern_device *d, tern_device_stream *stream, const tern_matrix *w,
                                const tern_activations *x, const tern_tile *tile, float *y,
                                size_t y_stride, tern_error *err) {
    return multiply_tile(d, stream, TERN_OP_GEMV, w, x, tile, y, y_stride, err);
}

tern_status tern_processor_gemm(tern_device *d, tern_device_stream *stream, const tern_matrix *w,
                                const tern_activations *x, const tern_tile *tile, float *y,
                                size_t y_stride, tern_error *err) {
    return multiply_tile(d, stream, TERN_OP_GEMM, w, x, tile, y, y_stride, err);
}

tern_status tern_processor_gemv_block_sparse_f32(tern_device *d, const tern_block_sparse *w,
                                                 const float *x, float *y, tern_error *err) {
    const tern_kernel_row *kernel =
        tern_processor_kernel(d, TERN_OP_GEMV_SPARSE, TERN_FORMAT_F32, err);

    if (kernel == NULL)
        return TERN_ERR_KERNEL;
    tern_processor_ran(d, NULL, kernel);
    return tern_block_sparse_gemv(kernel, w, x, y, err);
}
