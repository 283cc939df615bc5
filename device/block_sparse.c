/* SPDX-License-Identifier: Apache-2.0 */
/* Checks before a block-sparse product, whose kernels check nothing. */
#include "device/block_sparse.h"

#include "kernels/block_sparse.h"

static tern_status check(const tern_block_sparse *w, const float *x, const float *y,
                         tern_error *err) {
    if (w == NULL || x == NULL || y == NULL || w->start == NULL || w->rows == 0 || w->cols == 0)
        return tern_fail(err, TERN_ERR_ARG, "gemv_block_sparse_f32: an operand is missing");
    const size_t block_rows = (w->rows - 1) / tern_sparse_height(w) + 1;
    const size_t block_cols = (w->cols - 1) / tern_sparse_width(w) + 1;
    if (w->start[0] != 0 || (w->start[block_rows] > 0 && (w->column == NULL || w->blocks == NULL)))
        return tern_fail(err, TERN_ERR_ARG, "gemv_block_sparse_f32: the blocks are missing");
    for (size_t i = 0; i < block_rows; i++) {
        if (w->start[i] > w->start[i + 1])
            return tern_fail(err, TERN_ERR_ARG,
                             "gemv_block_sparse_f32: block row %zu ends before it starts", i);
        for (size_t b = w->start[i]; b < w->start[i + 1]; b++)
            if (w->column[b] >= block_cols || (b > w->start[i] && w->column[b] <= w->column[b - 1]))
                return tern_fail(err, TERN_ERR_ARG,
                                 "gemv_block_sparse_f32: block %zu is out of place", b);
    }
    return TERN_OK;
}

tern_status tern_block_sparse_gemv(const tern_kernel_row *kernel, const tern_block_sparse *w,
                                   const float *x, float *y, tern_error *err) {
    const tern_status status = check(w, x, y, err);

    if (status == TERN_OK)
        kernel->fn.gemv_sparse(w, x, 0, w->rows, y);
    return status;
}
