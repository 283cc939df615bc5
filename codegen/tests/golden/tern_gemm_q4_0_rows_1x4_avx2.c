/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_gemm_q4_0_rows_1x4_avx2 of kernels/kernels.toml
 * and template kernels/matmul_decoded.c.j2. Do not edit.
 */

#include "tern/kernels.h"

tern_matmul_fn tern_gemm_q4_0_rows_1x4_avx2;

/*
 * Float activations meet weights in blocks, in the file's own layout: weights become floats as
 * embedding rows do, a few columns at a time, and are summed in the sixteen virtual lanes of
 * docs/numerics.md. What is decoded meets many tokens before the next columns are.
 */
#include "kernels/isa/avx2.h"

#include "kernels/half.h"
#include "kernels/isa/vmath.h"

enum {
    COLUMNS = 256, /* decoded at once, whole blocks: they stay in the first-level cache */
    TOKENS = 32,   /* that meet them there */
    ELEMENTS = 32,
    BYTES = 18
};

static inline void block_floats(const void *row, size_t n, float *y) {
    const uint8_t *block = row;
    for (size_t first = 0; first < n; first += TERN_BLOCK, block += 18) {
        const vf d = vf_set1(tern_f16_load(block));
        const vi zero = vi_set1(8);
        const uint8_t *codes = block + 2;
        for (size_t i = 0; i < 16; i += 8) {
            const vi both = vi_load_u8(codes + i);
            const vi q0 = vi_sub(vi_and(both, vi_set1(15)), zero);
            vf_store(y + first + i + 0, vf_mul(vi_to_f(q0), d));
            const vi q16 = vi_sub(vi_srl4(both), zero);
            vf_store(y + first + i + 16, vf_mul(vi_to_f(q16), d));
        }
    }
}

/* Adds n columns for 4 token(s) to their lanes. */
static void add_4(const float *w, const float *x, size_t x_stride, size_t n, float *sums) {
    const float *x0 = x + 0 * x_stride;
    vf s0_0 = vf_load(sums + 0);
    vf s0_1 = vf_load(sums + 8);
    const float *x1 = x + 1 * x_stride;
    vf s1_0 = vf_load(sums + 16);
    vf s1_1 = vf_load(sums + 24);
    const float *x2 = x + 2 * x_stride;
    vf s2_0 = vf_load(sums + 32);
    vf s2_1 = vf_load(sums + 40);
    const float *x3 = x + 3 * x_stride;
    vf s3_0 = vf_load(sums + 48);
    vf s3_1 = vf_load(sums + 56);
    for (size_t k = 0; k < n; k += TERN_LANES) {
        const vf w0 = vf_load(w + k + 0);
        const vf w1 = vf_load(w + k + 8);
        s0_0 = vf_add(s0_0, vf_mul(w0, vf_load(x0 + k + 0)));
        s0_1 = vf_add(s0_1, vf_mul(w1, vf_load(x0 + k + 8)));
        s1_0 = vf_add(s1_0, vf_mul(w0, vf_load(x1 + k + 0)));
        s1_1 = vf_add(s1_1, vf_mul(w1, vf_load(x1 + k + 8)));
        s2_0 = vf_add(s2_0, vf_mul(w0, vf_load(x2 + k + 0)));
        s2_1 = vf_add(s2_1, vf_mul(w1, vf_load(x2 + k + 8)));
        s3_0 = vf_add(s3_0, vf_mul(w0, vf_load(x3 + k + 0)));
        s3_1 = vf_add(s3_1, vf_mul(w1, vf_load(x3 + k + 8)));
    }
    vf_store(sums + 0, s0_0);
    vf_store(sums + 8, s0_1);
    vf_store(sums + 16, s1_0);
    vf_store(sums + 24, s1_1);
    vf_store(sums + 32, s2_0);
    vf_store(sums + 40, s2_1);
    vf_store(sums + 48, s3_0);
    vf_store(sums + 56, s3_1);
}

/* Adds n columns for 2 token(s) to their lanes. */
static void add_2(const float *w, const float *x, size_t x_stride, size_t n, float *sums) {
    const float *x0 = x + 0 * x_stride;
    vf s0_0 = vf_load(sums + 0);
    vf s0_1 = vf_load(sums + 8);
    const float *x1 = x + 1 * x_stride;
    vf s1_0 = vf_load(sums + 16);
    vf s1_1 = vf_load(sums + 24);
    for (size_t k = 0; k < n; k += TERN_LANES) {
        const vf w0 = vf_load(w + k + 0);
        const vf w1 = vf_load(w + k + 8);
        s0_0 = vf_add(s0_0, vf_mul(w0, vf_load(x0 + k + 0)));
        s0_1 = vf_add(s0_1, vf_mul(w1, vf_load(x0 + k + 8)));
        s1_0 = vf_add(s1_0, vf_mul(w0, vf_load(x1 + k + 0)));
        s1_1 = vf_add(s1_1, vf_mul(w1, vf_load(x1 + k + 8)));
    }
    vf_store(sums + 0, s0_0);
    vf_store(sums + 8, s0_1);
    vf_store(sums + 16, s1_0);
    vf_store(sums + 24, s1_1);
}

/* Adds n columns for 1 token(s) to their lanes. */
static void add_1(const float *w, const float *x, size_t x_stride, size_t n, float *sums) {
    const float *x0 = x + 0 * x_stride;
    vf s0_0 = vf_load(sums + 0);
    vf s0_1 = vf_load(sums + 8);
    for (size_t k = 0; k < n; k += TERN_LANES) {
        const vf w0 = vf_load(w + k + 0);
        const vf w1 = vf_load(w + k + 8);
        s0_0 = vf_add(s0_0, vf_mul(w0, vf_load(x0 + k + 0)));
        s0_1 = vf_add(s0_1, vf_mul(w1, vf_load(x0 + k + 8)));
    }
    vf_store(sums + 0, s0_0);
    vf_store(sums + 8, s0_1);
    (void)x_stride;
}

static inline float total(const float *sums) {
    return vf_sum16(vf_load(sums + 0), vf_load(sums + 8));
}

/* One row x at most TOKENS tokens at x. */
static void multiply_row(const uint8_t *row, size_t cols, const float *x, size_t x_stride,
    size_t tokens, float *y,
    size_t y_stride) {
    float w[COLUMNS];
    float sums[TOKENS * TERN_LANES] = {0};
    for (size_t k = 0; k < cols; k += COLUMNS, row += COLUMNS / ELEMENTS * BYTES) {
        const size_t n = cols - k < COLUMNS ? cols - k : COLUMNS;
        size_t t = 0;
        block_floats(row, n, w);
        for (; t + 4 <= tokens; t += 4)
            add_4(w, x + t * x_stride + k, x_stride, n, sums + t * TERN_LANES);
        for (; t + 2 <= tokens; t += 2)
            add_2(w, x + t * x_stride + k, x_stride, n, sums + t * TERN_LANES);
        for (; t + 1 <= tokens; t += 1)
            add_1(w, x + t * x_stride + k, x_stride, n, sums + t * TERN_LANES);
    }
    for (size_t t = 0; t < tokens; t++)
        y[t * y_stride] = total(sums + t * TERN_LANES);
}

void tern_gemm_q4_0_rows_1x4_avx2(const tern_matrix *w, const tern_activations *x,
    const tern_tile *tile, float *y,
    size_t y_stride) {
    const size_t row_bytes = w->cols / ELEMENTS * BYTES;
    for (size_t t = tile->t0; t < tile->t1; t += TOKENS) {
        const size_t tokens = tile->t1 - t < TOKENS ? tile->t1 - t : TOKENS;
        for (size_t r = tile->r0; r < tile->r1; r++)
            multiply_row((const uint8_t *)w->data + r * row_bytes, w->cols,
                x->x + t * x->x_stride, x->x_stride,
                         tokens, y + t * y_stride + r, y_stride);
    }
}
