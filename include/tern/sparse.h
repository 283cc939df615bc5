/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SPARSE_H
#define TERN_SPARSE_H

/*
 * Block-sparse matrices of floats and the operation that multiplies them. kernels.h includes this
 * header and has the rules of shapes, ownership and errors.
 */

#include <stddef.h>
#include <stdint.h>

/*
 * A matrix of floats of which only some blocks of h rows x w columns are stored; all other weights
 * are 0. Blocks of block row i are [start[i], start[i+1]), in increasing `column`. A block is h * w
 * floats, row by row; of rows and columns past the matrix's edge nothing is read. The result is
 * that of the dense matrix, bit for bit, whatever the size of blocks.
 */
typedef struct tern_block_sparse {
    size_t rows, cols;
    const uint32_t *start;  /* [ceil(rows/h) + 1] */
    const uint32_t *column; /* [blocks]: first column / w */
    const float *blocks;    /* [blocks][h][w] */
    const float *bias;      /* [rows], added last; may be NULL */
    uint32_t block_rows;    /* h; 0: 16 */
    uint32_t block_cols;    /* w; 0: 16 */
} tern_block_sparse;

/*
 * gemv_sparse: y[r] = sum_k W[r][k] * x[k] (+ bias[r]) for rows [r0, r1) of a block-sparse matrix
 * and one token of finite floats. Writes no other row.
 */
typedef void tern_gemv_sparse_fn(const tern_block_sparse *w, const float *x, size_t r0, size_t r1,
                                 float *y);

#endif
