/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of the scalar set that give wrong answers, under the names of right ones. A program that
 * links this file has these names before the library is searched, so its table calls these. For
 * bench/tests/test_wrong_kernels.py, which shows that benchmarks notice.
 */
#include "gen/kernels.h"

static const float ERROR = 0.5f;

/* Computes the product with another kernel, then adds an error to the last row of the tile. */
static void spoil(tern_matmul_fn *right, const tern_matrix *w, const tern_activations *x,
                  const tern_tile *tile, float *y, size_t y_stride) {
    right(w, x, tile, y, y_stride);
    y[(tile->t1 - 1) * y_stride + tile->r1 - 1] += ERROR;
}

void tern_gemv_bsr_f32_1x1_scalar(const tern_matrix *w, const tern_activations *x,
                                  const tern_tile *tile, float *y, size_t y_stride) {
    spoil(tern_gemm_bsr_f32_1x1_scalar, w, x, tile, y, y_stride);
}

void tern_gemv_bsr_f16_1x1_scalar(const tern_matrix *w, const tern_activations *x,
                                  const tern_tile *tile, float *y, size_t y_stride) {
    spoil(tern_gemm_bsr_f16_1x1_scalar, w, x, tile, y, y_stride);
}

void tern_gemv_bsr_t2_16x1_scalar(const tern_matrix *w, const tern_activations *x,
                                  const tern_tile *tile, float *y, size_t y_stride) {
    spoil(tern_gemm_bsr_t2_16x1_scalar, w, x, tile, y, y_stride);
}

void tern_rmsnorm_scalar(const float *x, const float *g, size_t n, float eps, float *y) {
    (void)g;
    (void)eps;
    for (size_t i = 0; i < n; i++)
        y[i] = x[i];
}
