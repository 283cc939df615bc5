/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_PARTS_LINEAR_H
#define TERN_RUNTIME_MODEL_PARTS_LINEAR_H

/*
 * Linear maps and embeddings, as passes read them: a matrix together with the kernels that it was
 * packed for.
 */

#include "runtime/files/gguf/gguf.h"
#include "tern/inspect.h"
#include "tern/kernels.h"

/* One linear map: the matrix, the kernels that multiply by it, an optional factor of the products
 * (runtime/model/config/factors.h) and an optional bias[rows]. Where ranks share a model
 * (runtime/model/load/split.h) the matrix has the rows of this one, perhaps none; the bias is that
 * of all rows. */
struct tern_linear {
    tern_matrix matrix;
    const tern_kernel_row *gemv;
    const tern_kernel_row *gemm;
    tern_input_form form;
    const float *factor;            /* of the products, before the bias: one number, or one for each
                                       expert; NULL: none */
    const float *bias;              /* [all_rows]; NULL: none */
    const tern_gguf_tensor *tensor; /* where it came from */
    size_t all_rows;                /* of the model's matrix; `matrix` has those of this rank */
    size_t first_row;               /* of `matrix` in it */
    bool in_file;                   /* `matrix` lies in the file: so do all rows of it */
    uint32_t experts;    /* 0: one matrix; else all_rows are so many, one after the other, of equal
                            size, and `matrix` has some of them whole */
    size_t expert_bytes; /* from one expert to the next */
};

/* Rows of the matrix of each expert. */
static inline size_t tern_linear_expert_rows(const tern_linear *linear) {
    return linear->all_rows / linear->experts;
}

/* The matrix of one expert that this rank has. */
static inline tern_matrix tern_linear_expert(const tern_linear *linear, size_t expert) {
    tern_matrix m = linear->matrix;
    m.rows = tern_linear_expert_rows(linear);
    const size_t own = expert - linear->first_row / m.rows;
    m.data = (const uint8_t *)m.data + own * linear->expert_bytes;
    if (m.row_scale != NULL)
        m.row_scale += own * m.rows;
    return m;
}

/* The factor of its products, or NULL. */
static inline const float *tern_linear_expert_factor(const tern_linear *linear, size_t expert) {
    return linear->factor != NULL ? linear->factor + expert : NULL;
}

/* Its bias, or NULL. */
static inline const float *tern_linear_expert_bias(const tern_linear *linear, size_t expert) {
    return linear->bias != NULL ? linear->bias + expert * tern_linear_expert_rows(linear) : NULL;
}

/* The matrix that one product multiplies by, for measurements: its data does not count. */
static inline tern_matrix tern_linear_one(const tern_linear *linear) {
    tern_matrix m = linear->matrix;
    if (linear->experts > 0)
        m.rows = tern_linear_expert_rows(linear);
    return m;
}

/* True if the matrix is read as the file has it, in place or copied. INT4 becomes blocks first, and
 * sparse blocks become rows. */
static inline bool tern_linear_is_in_file(const tern_linear *linear) {
    return linear->matrix.layout == TERN_LAYOUT_ROWS && linear->matrix.format != TERN_FORMAT_INT4 &&
           linear->tensor->type != TERN_GGUF_SPARSE_TYPE;
}

/* True if products decode the blocks of the matrix to multiply floats. The tuner does not measure
 * such products. */
static inline bool tern_matrix_is_decoded(const tern_matrix *matrix) {
    return matrix->layout == TERN_LAYOUT_ROWS &&
           tern_format_layout(matrix->format) != TERN_LAYOUT_ROWS;
}

/*
 * The kernel for `tokens` tokens at once: gemv for one, gemm from two on. Let a pass read b bytes
 * of w weights at B bytes a second, and multiply at V weights a second with gemv, at G(n) weights
 * times tokens with a gemm tile of n. n tokens take n * max(b / B, w / V) by gemv, max(b / B, n * w
 * / G(n)) by gemm. Both terms of gemm are smaller from n = 2 on if G(2) >= V, which holds because a
 * tile unpacks a weight once for all of its tokens. If a pass has more tokens than a tile, gemm's
 * template decides the order in which they are taken (TERN_MANY_TOKENS).
 */
static inline const tern_kernel_row *tern_linear_kernel(const tern_linear *linear, size_t tokens) {
    return tokens == 1 ? linear->gemv : linear->gemm;
}

/* An embedding matrix, read row by row in the file's own layout. */
typedef struct tern_embedding {
    const uint8_t *data;
    size_t row_bytes;
    const tern_kernel_row *kernel;
} tern_embedding;

/* Row r of a float matrix, whose layout is ROWS; r may be its number of rows. Where the matrix lies
 * in the file all rows of the model's matrix are there: see tern_linear_row. */
static inline const uint8_t *tern_float_row(const tern_matrix *m, size_t r) {
    return (const uint8_t *)m->data + r * m->cols * tern_format_describe(m->format)->block_bytes;
}

/* Row r, of all rows, of a map whose matrix is of floats and whole or in the file. */
static inline const uint8_t *tern_linear_row(const tern_linear *linear, size_t r) {
    const tern_matrix *m = &linear->matrix;
    const size_t bytes = m->cols * tern_format_describe(m->format)->block_bytes;
    return (const uint8_t *)m->data - linear->first_row * bytes + r * bytes;
}

/* Bytes that one multiplication by the matrix reads. */
uint64_t tern_linear_bytes(const tern_linear *linear);

#endif
