/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_gemm_f16_1x4_avx2 of kernels/kernels.toml
 * and template kernels/matmul_float.c.j2. Do not edit.
 */

#include "gen/kernels.h"

/*
 * Matrix product over float weights in the file's own layout: lanes are the sixteen virtual
 * lanes of docs/numerics.md, so each row and token sums its columns in the canonical order.
 */
#include "kernels/isa/avx2.h"

#include "kernels/isa/vmath.h"
enum { PREFETCH_ELEMENTS = 2048 }; /* ahead in each row */

typedef uint16_t element;

static inline vf weights(const element *w) { return vf_load_f16(w); }

static inline vf weights_n(const element *w, size_t n) {
    return vf_load_f16_n(w, n);
}

/* 1 row(s) at w x 4 token(s) at x. */
static void tile_1_4(const element *w, size_t cols, const float *x, size_t x_stride, float *y,
                     size_t y_stride) {
    const element *w0 = w + 0 * cols;
    const float *x0 = x + 0 * x_stride;
    const float *x1 = x + 1 * x_stride;
    const float *x2 = x + 2 * x_stride;
    const float *x3 = x + 3 * x_stride;
    vf s0_0_0 = vf_zero();
    vf s0_0_1 = vf_zero();
    vf s0_1_0 = vf_zero();
    vf s0_1_1 = vf_zero();
    vf s0_2_0 = vf_zero();
    vf s0_2_1 = vf_zero();
    vf s0_3_0 = vf_zero();
    vf s0_3_1 = vf_zero();
    size_t k = 0;
    for (; k + TERN_LANES <= cols; k += TERN_LANES) {
        __builtin_prefetch(w0 + k + PREFETCH_ELEMENTS);
        const vf w0_0 = weights(w0 + k + 0);
        const vf w0_1 = weights(w0 + k + 8);
        const vf x0_0 = vf_load(x0 + k + 0);
        s0_0_0 = vf_add(s0_0_0, vf_mul(w0_0, x0_0));
        const vf x0_1 = vf_load(x0 + k + 8);
        s0_0_1 = vf_add(s0_0_1, vf_mul(w0_1, x0_1));
        const vf x1_0 = vf_load(x1 + k + 0);
        s0_1_0 = vf_add(s0_1_0, vf_mul(w0_0, x1_0));
        const vf x1_1 = vf_load(x1 + k + 8);
        s0_1_1 = vf_add(s0_1_1, vf_mul(w0_1, x1_1));
        const vf x2_0 = vf_load(x2 + k + 0);
        s0_2_0 = vf_add(s0_2_0, vf_mul(w0_0, x2_0));
        const vf x2_1 = vf_load(x2 + k + 8);
        s0_2_1 = vf_add(s0_2_1, vf_mul(w0_1, x2_1));
        const vf x3_0 = vf_load(x3 + k + 0);
        s0_3_0 = vf_add(s0_3_0, vf_mul(w0_0, x3_0));
        const vf x3_1 = vf_load(x3 + k + 8);
        s0_3_1 = vf_add(s0_3_1, vf_mul(w0_1, x3_1));

    }
    if (k < cols) {
        const vf w0_0 = weights_n(w0 + k + 0, tail_lanes(cols - k, 0, 8));
        const vf w0_1 = weights_n(w0 + k + 8, tail_lanes(cols - k, 8, 8));
        const vf x0_0 = vf_load_fill(x0 + k + 0, tail_lanes(cols - k, 0, 8), 0.0f);
        s0_0_0 = vf_add(s0_0_0, vf_mul(w0_0, x0_0));
        const vf x0_1 = vf_load_fill(x0 + k + 8, tail_lanes(cols - k, 8, 8), 0.0f);
        s0_0_1 = vf_add(s0_0_1, vf_mul(w0_1, x0_1));
        const vf x1_0 = vf_load_fill(x1 + k + 0, tail_lanes(cols - k, 0, 8), 0.0f);
        s0_1_0 = vf_add(s0_1_0, vf_mul(w0_0, x1_0));
        const vf x1_1 = vf_load_fill(x1 + k + 8, tail_lanes(cols - k, 8, 8), 0.0f);
        s0_1_1 = vf_add(s0_1_1, vf_mul(w0_1, x1_1));
        const vf x2_0 = vf_load_fill(x2 + k + 0, tail_lanes(cols - k, 0, 8), 0.0f);
        s0_2_0 = vf_add(s0_2_0, vf_mul(w0_0, x2_0));
        const vf x2_1 = vf_load_fill(x2 + k + 8, tail_lanes(cols - k, 8, 8), 0.0f);
        s0_2_1 = vf_add(s0_2_1, vf_mul(w0_1, x2_1));
        const vf x3_0 = vf_load_fill(x3 + k + 0, tail_lanes(cols - k, 0, 8), 0.0f);
        s0_3_0 = vf_add(s0_3_0, vf_mul(w0_0, x3_0));
        const vf x3_1 = vf_load_fill(x3 + k + 8, tail_lanes(cols - k, 8, 8), 0.0f);
        s0_3_1 = vf_add(s0_3_1, vf_mul(w0_1, x3_1));

    }
    y[0 * y_stride + 0] = vf_sum16(s0_0_0, s0_0_1);
    y[1 * y_stride + 0] = vf_sum16(s0_1_0, s0_1_1);
    y[2 * y_stride + 0] = vf_sum16(s0_2_0, s0_2_1);
    y[3 * y_stride + 0] = vf_sum16(s0_3_0, s0_3_1);
}

/* 1 row(s) at w x 2 token(s) at x. */
static void tile_1_2(const element *w, size_t cols, const float *x, size_t x_stride, float *y,
                     size_t y_stride) {
    const element *w0 = w + 0 * cols;
    const float *x0 = x + 0 * x_stride;
    const float *x1 = x + 1 * x_stride;
    vf s0_0_0 = vf_zero();
    vf s0_0_1 = vf_zero();
    vf s0_1_0 = vf_zero();
    vf s0_1_1 = vf_zero();
    size_t k = 0;
    for (; k + TERN_LANES <= cols; k += TERN_LANES) {
        __builtin_prefetch(w0 + k + PREFETCH_ELEMENTS);
        const vf w0_0 = weights(w0 + k + 0);
        const vf w0_1 = weights(w0 + k + 8);
        const vf x0_0 = vf_load(x0 + k + 0);
        s0_0_0 = vf_add(s0_0_0, vf_mul(w0_0, x0_0));
        const vf x0_1 = vf_load(x0 + k + 8);
        s0_0_1 = vf_add(s0_0_1, vf_mul(w0_1, x0_1));
        const vf x1_0 = vf_load(x1 + k + 0);
        s0_1_0 = vf_add(s0_1_0, vf_mul(w0_0, x1_0));
        const vf x1_1 = vf_load(x1 + k + 8);
        s0_1_1 = vf_add(s0_1_1, vf_mul(w0_1, x1_1));

    }
    if (k < cols) {
        const vf w0_0 = weights_n(w0 + k + 0, tail_lanes(cols - k, 0, 8));
        const vf w0_1 = weights_n(w0 + k + 8, tail_lanes(cols - k, 8, 8));
        const vf x0_0 = vf_load_fill(x0 + k + 0, tail_lanes(cols - k, 0, 8), 0.0f);
        s0_0_0 = vf_add(s0_0_0, vf_mul(w0_0, x0_0));
        const vf x0_1 = vf_load_fill(x0 + k + 8, tail_lanes(cols - k, 8, 8), 0.0f);
        s0_0_1 = vf_add(s0_0_1, vf_mul(w0_1, x0_1));
        const vf x1_0 = vf_load_fill(x1 + k + 0, tail_lanes(cols - k, 0, 8), 0.0f);
        s0_1_0 = vf_add(s0_1_0, vf_mul(w0_0, x1_0));
        const vf x1_1 = vf_load_fill(x1 + k + 8, tail_lanes(cols - k, 8, 8), 0.0f);
        s0_1_1 = vf_add(s0_1_1, vf_mul(w0_1, x1_1));

    }
    y[0 * y_stride + 0] = vf_sum16(s0_0_0, s0_0_1);
    y[1 * y_stride + 0] = vf_sum16(s0_1_0, s0_1_1);
}

/* 1 row(s) at w x 1 token(s) at x. */
static void tile_1_1(const element *w, size_t cols, const float *x, size_t x_stride, float *y,
                     size_t y_stride) {
    const element *w0 = w + 0 * cols;
    const float *x0 = x + 0 * x_stride;
    vf s0_0_0 = vf_zero();
    vf s0_0_1 = vf_zero();
    size_t k = 0;
    for (; k + TERN_LANES <= cols; k += TERN_LANES) {
        __builtin_prefetch(w0 + k + PREFETCH_ELEMENTS);
        const vf w0_0 = weights(w0 + k + 0);
        const vf w0_1 = weights(w0 + k + 8);
        const vf x0_0 = vf_load(x0 + k + 0);
        s0_0_0 = vf_add(s0_0_0, vf_mul(w0_0, x0_0));
        const vf x0_1 = vf_load(x0 + k + 8);
        s0_0_1 = vf_add(s0_0_1, vf_mul(w0_1, x0_1));

    }
    if (k < cols) {
        const vf w0_0 = weights_n(w0 + k + 0, tail_lanes(cols - k, 0, 8));
        const vf w0_1 = weights_n(w0 + k + 8, tail_lanes(cols - k, 8, 8));
        const vf x0_0 = vf_load_fill(x0 + k + 0, tail_lanes(cols - k, 0, 8), 0.0f);
        s0_0_0 = vf_add(s0_0_0, vf_mul(w0_0, x0_0));
        const vf x0_1 = vf_load_fill(x0 + k + 8, tail_lanes(cols - k, 8, 8), 0.0f);
        s0_0_1 = vf_add(s0_0_1, vf_mul(w0_1, x0_1));

    }
    y[0 * y_stride + 0] = vf_sum16(s0_0_0, s0_0_1);
    (void)x_stride;
    (void)y_stride;
}

void tern_gemm_f16_1x4_avx2(const tern_matrix *w, const tern_activations *x,
    const tern_tile *tile, float *y,
    size_t y_stride) {
    const element *data = w->data;
    const size_t cols = w->cols;
    size_t r = tile->r0;
    for (; r + 1 <= tile->r1; r += 1) {
        size_t t = tile->t0;
        for (; t + 4 <= tile->t1; t += 4)
            tile_1_4(data + r * cols, cols, x->x + t * x->x_stride, x->x_stride,
                y + t * y_stride + r, y_stride);
        for (; t + 2 <= tile->t1; t += 2)
            tile_1_2(data + r * cols, cols, x->x + t * x->x_stride, x->x_stride,
                y + t * y_stride + r, y_stride);
        for (; t + 1 <= tile->t1; t += 1)
            tile_1_1(data + r * cols, cols, x->x + t * x->x_stride, x->x_stride,
                y + t * y_stride + r, y_stride);
    }
}
