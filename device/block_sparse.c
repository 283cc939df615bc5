/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Product of a block-sparse float matrix and one vector. Column k goes to the virtual lane k % 16
 * in increasing k, as in a dense matrix, so leaving out a block of zeros leaves out additions of +0
 * or -0, which change no sum: the result is that of the dense matrix (docs/numerics.md).
 */
#include "device/block_sparse.h"

enum { USUAL_SIDE = 16 };

static size_t height_of(const tern_block_sparse *w) {
    return w->block_rows != 0 ? w->block_rows : USUAL_SIDE;
}

static size_t width_of(const tern_block_sparse *w) {
    return w->block_cols != 0 ? w->block_cols : USUAL_SIDE;
}

static tern_status check(const tern_block_sparse *w, const float *x, const float *y,
                         tern_error *err) {
    if (w == NULL || x == NULL || y == NULL || w->start == NULL || w->rows == 0 || w->cols == 0)
        return tern_fail(err, TERN_ERR_ARG, "gemv_block_sparse_f32: an operand is missing");
    const size_t block_rows = (w->rows - 1) / height_of(w) + 1;
    const size_t block_cols = (w->cols - 1) / width_of(w) + 1;
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

/* Row r of the matrix, which lies in the blocks [b, end). */
static float dot(const tern_block_sparse *w, size_t r, size_t b, size_t end, const float *x) {
    const size_t height = height_of(w), width = width_of(w);
    float p[TERN_LANES] = {0.0f};

    for (; b < end; b++) {
        const float *weights = w->blocks + (b * height + r % height) * width;
        const size_t first = (size_t)w->column[b] * width;
        const size_t n = w->cols - first < width ? w->cols - first : width;
        for (size_t j = 0; j < n; j++)
            p[(first + j) % TERN_LANES] += weights[j] * x[first + j];
    }
    for (size_t s = TERN_LANES / 2; s > 0; s /= 2)
        for (size_t j = 0; j < s; j++)
            p[j] += p[j + s];
    return p[0];
}

tern_status tern_block_sparse_gemv(const tern_block_sparse *w, const float *x, float *y,
                                   tern_error *err) {
    const tern_status status = check(w, x, y, err);

    if (status != TERN_OK)
        return status;
    for (size_t r = 0; r < w->rows; r++) {
        const size_t i = r / height_of(w);
        const float product = dot(w, r, w->start[i], w->start[i + 1], x);
        y[r] = w->bias != NULL ? product + w->bias[r] : product;
    }
    return TERN_OK;
}
