/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_gemv_sparse_f32_avx2 of kernels/kernels.toml
 * and template kernels/gemv_sparse.c.j2. Do not edit.
 */

#include "tern/kernels.h"

tern_gemv_sparse_fn tern_gemv_sparse_f32_avx2;

/*
 * Product of a block-sparse matrix of floats and one token. Column k goes to the virtual lane
 * k % 16 in increasing k, as in a dense matrix,
     so leaving out a block of zeros leaves out additions
 * of +0 or -0, which change no sum: the result is that of the dense matrix (docs/numerics.md).
 */
#include "kernels/isa/avx2.h"

#include "kernels/block_sparse.h"
#include "kernels/isa/vmath.h"

/* Row r's weights in block b. */
static inline const float *weights_of(const tern_block_sparse *w, size_t r, size_t b) {
    const size_t height = tern_sparse_height(w);
    return w->blocks + (b * height + r % height) * tern_sparse_width(w);
}

/* 4 row(s) from r on, of one row of blocks whose width is a multiple of the virtual lanes. */
static void lanes_4(const tern_block_sparse *w, const float *x, size_t r, float *y) {
    const size_t width = tern_sparse_width(w);
    const size_t i = r / tern_sparse_height(w);
    vf s0_0 = vf_zero();
    vf s0_1 = vf_zero();
    vf s1_0 = vf_zero();
    vf s1_1 = vf_zero();
    vf s2_0 = vf_zero();
    vf s2_1 = vf_zero();
    vf s3_0 = vf_zero();
    vf s3_1 = vf_zero();
    for (size_t b = w->start[i]; b < w->start[i + 1]; b++) {
        const float *const at = x + (size_t)w->column[b] * width;
        const size_t n = tern_sparse_columns(w, b);
        const float *const w0 = weights_of(w, r, b);
        const float *const w1 = weights_of(w, r, b) + 1 * width;
        const float *const w2 = weights_of(w, r, b) + 2 * width;
        const float *const w3 = weights_of(w, r, b) + 3 * width;
        size_t k = 0;
        for (; k + TERN_LANES <= n; k += TERN_LANES) {
            const vf x0 = vf_load(at + k + 0);
            s0_0 = vf_add(s0_0, vf_mul(vf_load(w0 + k + 0), x0));
            s1_0 = vf_add(s1_0, vf_mul(vf_load(w1 + k + 0), x0));
            s2_0 = vf_add(s2_0, vf_mul(vf_load(w2 + k + 0), x0));
            s3_0 = vf_add(s3_0, vf_mul(vf_load(w3 + k + 0), x0));
            const vf x1 = vf_load(at + k + 8);
            s0_1 = vf_add(s0_1, vf_mul(vf_load(w0 + k + 8), x1));
            s1_1 = vf_add(s1_1, vf_mul(vf_load(w1 + k + 8), x1));
            s2_1 = vf_add(s2_1, vf_mul(vf_load(w2 + k + 8), x1));
            s3_1 = vf_add(s3_1, vf_mul(vf_load(w3 + k + 8), x1));
        }
        if (k < n) {
            const size_t left0 = tail_lanes(n - k, 0, 8);
            const vf x0 = vf_load_fill(at + k + 0, left0, 0.0f);
            s0_0 = vf_add(s0_0, vf_mul(vf_load_fill(w0 + k + 0, left0, 0.0f), x0));
            s1_0 = vf_add(s1_0, vf_mul(vf_load_fill(w1 + k + 0, left0, 0.0f), x0));
            s2_0 = vf_add(s2_0, vf_mul(vf_load_fill(w2 + k + 0, left0, 0.0f), x0));
            s3_0 = vf_add(s3_0, vf_mul(vf_load_fill(w3 + k + 0, left0, 0.0f), x0));
            const size_t left1 = tail_lanes(n - k, 8, 8);
            const vf x1 = vf_load_fill(at + k + 8, left1, 0.0f);
            s0_1 = vf_add(s0_1, vf_mul(vf_load_fill(w0 + k + 8, left1, 0.0f), x1));
            s1_1 = vf_add(s1_1, vf_mul(vf_load_fill(w1 + k + 8, left1, 0.0f), x1));
            s2_1 = vf_add(s2_1, vf_mul(vf_load_fill(w2 + k + 8, left1, 0.0f), x1));
            s3_1 = vf_add(s3_1, vf_mul(vf_load_fill(w3 + k + 8, left1, 0.0f), x1));
        }
    }
    y[0] = vf_sum16(s0_0, s0_1);
    y[1] = vf_sum16(s1_0, s1_1);
    y[2] = vf_sum16(s2_0, s2_1);
    y[3] = vf_sum16(s3_0, s3_1);
}

/* 2 row(s) from r on, of one row of blocks whose width is a multiple of the virtual lanes. */
static void lanes_2(const tern_block_sparse *w, const float *x, size_t r, float *y) {
    const size_t width = tern_sparse_width(w);
    const size_t i = r / tern_sparse_height(w);
    vf s0_0 = vf_zero();
    vf s0_1 = vf_zero();
    vf s1_0 = vf_zero();
    vf s1_1 = vf_zero();
    for (size_t b = w->start[i]; b < w->start[i + 1]; b++) {
        const float *const at = x + (size_t)w->column[b] * width;
        const size_t n = tern_sparse_columns(w, b);
        const float *const w0 = weights_of(w, r, b);
        const float *const w1 = weights_of(w, r, b) + 1 * width;
        size_t k = 0;
        for (; k + TERN_LANES <= n; k += TERN_LANES) {
            const vf x0 = vf_load(at + k + 0);
            s0_0 = vf_add(s0_0, vf_mul(vf_load(w0 + k + 0), x0));
            s1_0 = vf_add(s1_0, vf_mul(vf_load(w1 + k + 0), x0));
            const vf x1 = vf_load(at + k + 8);
            s0_1 = vf_add(s0_1, vf_mul(vf_load(w0 + k + 8), x1));
            s1_1 = vf_add(s1_1, vf_mul(vf_load(w1 + k + 8), x1));
        }
        if (k < n) {
            const size_t left0 = tail_lanes(n - k, 0, 8);
            const vf x0 = vf_load_fill(at + k + 0, left0, 0.0f);
            s0_0 = vf_add(s0_0, vf_mul(vf_load_fill(w0 + k + 0, left0, 0.0f), x0));
            s1_0 = vf_add(s1_0, vf_mul(vf_load_fill(w1 + k + 0, left0, 0.0f), x0));
            const size_t left1 = tail_lanes(n - k, 8, 8);
            const vf x1 = vf_load_fill(at + k + 8, left1, 0.0f);
            s0_1 = vf_add(s0_1, vf_mul(vf_load_fill(w0 + k + 8, left1, 0.0f), x1));
            s1_1 = vf_add(s1_1, vf_mul(vf_load_fill(w1 + k + 8, left1, 0.0f), x1));
        }
    }
    y[0] = vf_sum16(s0_0, s0_1);
    y[1] = vf_sum16(s1_0, s1_1);
}

/* 1 row(s) from r on, of one row of blocks whose width is a multiple of the virtual lanes. */
static void lanes_1(const tern_block_sparse *w, const float *x, size_t r, float *y) {
    const size_t width = tern_sparse_width(w);
    const size_t i = r / tern_sparse_height(w);
    vf s0_0 = vf_zero();
    vf s0_1 = vf_zero();
    for (size_t b = w->start[i]; b < w->start[i + 1]; b++) {
        const float *const at = x + (size_t)w->column[b] * width;
        const size_t n = tern_sparse_columns(w, b);
        const float *const w0 = weights_of(w, r, b);
        size_t k = 0;
        for (; k + TERN_LANES <= n; k += TERN_LANES) {
            const vf x0 = vf_load(at + k + 0);
            s0_0 = vf_add(s0_0, vf_mul(vf_load(w0 + k + 0), x0));
            const vf x1 = vf_load(at + k + 8);
            s0_1 = vf_add(s0_1, vf_mul(vf_load(w0 + k + 8), x1));
        }
        if (k < n) {
            const size_t left0 = tail_lanes(n - k, 0, 8);
            const vf x0 = vf_load_fill(at + k + 0, left0, 0.0f);
            s0_0 = vf_add(s0_0, vf_mul(vf_load_fill(w0 + k + 0, left0, 0.0f), x0));
            const size_t left1 = tail_lanes(n - k, 8, 8);
            const vf x1 = vf_load_fill(at + k + 8, left1, 0.0f);
            s0_1 = vf_add(s0_1, vf_mul(vf_load_fill(w0 + k + 8, left1, 0.0f), x1));
        }
    }
    y[0] = vf_sum16(s0_0, s0_1);
}

/* Row r in blocks of any width. */
static float any_width(const tern_block_sparse *w, const float *x, size_t r) {
    const size_t width = tern_sparse_width(w);
    const size_t i = r / tern_sparse_height(w);
    float p[TERN_LANES] = {0.0f};
    for (size_t b = w->start[i]; b < w->start[i + 1]; b++) {
        const float *const row = weights_of(w, r, b);
        const size_t first = (size_t)w->column[b] * width;
        const size_t n = tern_sparse_columns(w, b);
        for (size_t k = 0; k < n; k++)
            p[(first + k) % TERN_LANES] += row[k] * x[first + k];
    }
    return vf_sum16(vf_load(p + 0), vf_load(p + 8));
}

void tern_gemv_sparse_f32_avx2(const tern_block_sparse *w, const float *x, size_t r0, size_t r1,
    float *y) {
    const size_t height = tern_sparse_height(w);
    const bool whole = tern_sparse_width(w) % TERN_LANES == 0;
    size_t r = r0;
    while (r < r1) {
        const size_t edge = (r / height + 1) * height; /* of the row of blocks */
        const size_t end = edge < r1 ? edge : r1;
        for (; whole && r + 4 <= end; r += 4)
            lanes_4(w, x, r, y + r);
        for (; whole && r + 2 <= end; r += 2)
            lanes_2(w, x, r, y + r);
        for (; whole && r + 1 <= end; r += 1)
            lanes_1(w, x, r, y + r);
        for (; r < end; r++)
            y[r] = any_width(w, x, r);
    }
    for (r = r0; w->bias && r < r1; r++)
        y[r] += w->bias[r];
}
