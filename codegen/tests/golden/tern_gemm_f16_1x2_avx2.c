/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_gemm_f16_1x2_avx2 of kernels/kernels.toml
 * and template kernels/matmul_float.c.j2. Do not edit.
 */

#include "tern/kernels.h"

tern_matmul_fn tern_gemm_f16_1x2_avx2;

/*
 * Matrix product over float weights in the file's own layout: lanes are the sixteen virtual
 * lanes of docs/numerics.md, so each row and token sums its columns in the canonical order.
 */
#include "kernels/isa/avx2.h"

#include "kernels/isa/vmath.h"

enum {
    PREFETCH_BYTES = 1024, /* ahead in each row */
    BLOCK_BYTES = 128 * 1024, /* of weights: they stay in the second-level cache for all tokens */
    SHARES = 8 /* most passes that fetch the next block: 4 bytes of f16 each for 16 columns */
};

typedef uint16_t element;

/*
 * Where a pass prefetches: for its first row; from row to row; bytes for TERN_LANES columns. After
 * column `turn` what lies ahead in a row belongs to another row of its tile, which is read already;
 * `skip` bytes further is the row that follows the tile.
 */
typedef struct ahead {
    const char *at;
    size_t row, step, turn, skip;
} ahead;

static inline vf weights(const element *w) { return vf_load_f16(w); }

static inline vf weights_n(const element *w, size_t n) {
    return vf_load_f16_n(w, n);
}

/* 1 row(s) at w x 2 token(s) at x. */
static void tile_1_2(const element *w, size_t cols, ahead next, const float *x, size_t x_stride,
    float *y,
                     size_t y_stride) {
    const element *w0 = w + 0 * cols;
    const float *x0 = x + 0 * x_stride;
    const float *x1 = x + 1 * x_stride;
    vf s0_0_0 = vf_zero();
    vf s0_0_1 = vf_zero();
    vf s0_1_0 = vf_zero();
    vf s0_1_1 = vf_zero();
    const size_t whole = cols / TERN_LANES * TERN_LANES;
    size_t k = 0;
    for (; k < whole; k += TERN_LANES) {
        ask_ahead(next.at);
        next.at += next.step;
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
static void tile_1_1(const element *w, size_t cols, ahead next, const float *x, size_t x_stride,
    float *y,
                     size_t y_stride) {
    const element *w0 = w + 0 * cols;
    const float *x0 = x + 0 * x_stride;
    vf s0_0_0 = vf_zero();
    vf s0_0_1 = vf_zero();
    const size_t whole = cols / TERN_LANES * TERN_LANES;
    size_t k = 0;
    for (; k < whole; k += TERN_LANES) {
        ask_ahead(next.at);
        next.at += next.step;
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

/*
 * Where pass `i` of `passes` over `rows` rows at w prefetches. One pass: a little ahead of itself.
 * More: each its share of the rows that follow, if there are any, since after the first pass these
 * rows are in the cache: so the memory works while they are multiplied.
 */
static ahead prefetches(const element *w, size_t rows, size_t cols, size_t i, size_t passes,
    bool last) {
    const size_t row = cols * sizeof(element);
    const size_t shares = passes < SHARES ? passes : SHARES;
    const char *at = (const char *)w;
    const size_t step = TERN_LANES * sizeof(element);
    const size_t turn = row > PREFETCH_BYTES ? (row - PREFETCH_BYTES) / step * TERN_LANES : 0;
    if (passes == 1 || last || i >= shares)
        return (ahead){at + PREFETCH_BYTES, row, step, turn, 0 * row};
    return (ahead){at + rows * row + rows * row / shares * i, row / shares, step / shares, 0, 0};
}

/*
 * Rows [r0,
     r1) x the tokens of the tile. Activations are larger than the weights of a row: those of
 * a few tokens stay in the first-level cache and meet all rows of a block.
 */
static void block(const tern_matrix *w, const tern_activations *x, const tern_tile *tile,
    size_t r0, size_t r1,
    float *y, size_t y_stride) {
    const element *data = w->data;
    const size_t cols = w->cols;
    const size_t n = tile->t1 - tile->t0;
    const size_t passes = n / 2 + n % 2;
    size_t t = tile->t0;
    size_t pass = 0;
    for (; t + 2 <= tile->t1; t += 2) {
        ahead next = prefetches(data + r0 * cols, r1 - r0, cols, pass++, passes, r1 == tile->r1);
        const float *at = x->x + t * x->x_stride;
        float *out = y + t * y_stride;
        size_t r = r0;
        for (; r + 1 <= r1; r += 1, next.at += next.row)
            tile_1_2(data + r * cols, cols, next, at, x->x_stride, out + r, y_stride);
    }
    for (; t + 1 <= tile->t1; t += 1) {
        ahead next = prefetches(data + r0 * cols, r1 - r0, cols, pass++, passes, r1 == tile->r1);
        const float *at = x->x + t * x->x_stride;
        float *out = y + t * y_stride;
        size_t r = r0;
        for (; r + 1 <= r1; r += 1, next.at += next.row)
            tile_1_1(data + r * cols, cols, next, at, x->x_stride, out + r, y_stride);
    }
}

void tern_gemm_f16_1x2_avx2(const tern_matrix *w, const tern_activations *x,
    const tern_tile *tile, float *y,
    size_t y_stride) {
    const size_t fit = BLOCK_BYTES / sizeof(element) / w->cols / 1 * 1;
    const size_t rows = fit > 0 ? fit : 1;
    for (size_t r = tile->r0; r < tile->r1; r += rows)
        block(w, x, tile, r, tile->r1 - r < rows ? tile->r1 : r + rows, y, y_stride);
}
