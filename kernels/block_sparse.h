/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_KERNELS_BLOCK_SPARSE_H
#define TERN_KERNELS_BLOCK_SPARSE_H

/* Sides of the blocks of a block-sparse matrix. */

#include <stddef.h>

#include "tern/kernels.h"

enum { TERN_SPARSE_SIDE = 16 }; /* unless a matrix says otherwise */

static inline size_t tern_sparse_height(const tern_block_sparse *w) {
    return w->block_rows != 0 ? w->block_rows : TERN_SPARSE_SIDE;
}

static inline size_t tern_sparse_width(const tern_block_sparse *w) {
    return w->block_cols != 0 ? w->block_cols : TERN_SPARSE_SIDE;
}

/* Columns of block b that lie within the matrix. */
static inline size_t tern_sparse_columns(const tern_block_sparse *w, size_t b) {
    const size_t width = tern_sparse_width(w);
    const size_t left = w->cols - (size_t)w->column[b] * width;
    return left < width ? left : width;
}

#endif
