/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_gemm_bsr_f16_2x2_avx2 of kernels/kernels.toml
 * and template kernels/matmul_bsr_float.c.j2. Do not edit.
 */

#include "tern/kernels.h"

tern_matmul_fn tern_gemm_bsr_f16_2x2_avx2;

/*
 * Matrix product over blocks of floats (kernels/iebs.h). Column k goes to the virtual lane k % 16
 * in increasing k, as in a dense matrix, so a block that is not stored leaves out additions of +0
 * or -0, which change no sum: the result is that of the dense matrix (docs/numerics.md).
 */
#include "kernels/isa/avx2.h"

#include "kernels/half.h"
#include "kernels/iebs.h"
#include "kernels/isa/vmath.h"
/*
 * A pass reads 2 of the rows of each block: pieces that lie a block apart, which
 * processors do not fetch by themselves. So each piece is asked for some blocks early; past the
 * last block that is advice about memory which nothing reads.
 */
enum { BLOCKS_AHEAD = 20 };

typedef uint16_t element;

static inline vf weights(const element *w) { return vf_load_f16(w); }

static inline vf weights_n(const element *w, size_t n) {
    return vf_load_f16_n(w, n);
}

static inline float weight(const element *w) { return tern_f16_to_f32(*w); }

/* Row r's weights in block b. */
static inline const element *weights_of(const tern_iebs *m, size_t r, size_t b) {
    return (const element *)(const void *)tern_iebs_block(m, b) + r % m->block_rows * m->block_cols;
}

/* 2 row(s) from r on, of one row of blocks of whole lanes, x 2 token(s) at x. */
static void tile_2_2(const tern_iebs *m, size_t r, const float *x, size_t x_stride, float *y,
    size_t y_stride) {
    const size_t i = r / m->block_rows;
    vf s0_0_0 = vf_zero();
    vf s0_0_1 = vf_zero();
    vf s0_1_0 = vf_zero();
    vf s0_1_1 = vf_zero();
    vf s1_0_0 = vf_zero();
    vf s1_0_1 = vf_zero();
    vf s1_1_0 = vf_zero();
    vf s1_1_1 = vf_zero();
    for (size_t b = m->start[i]; b < m->start[i + 1]; b++) {
        const size_t n = tern_iebs_width(m, b);
        const element *const w0 = weights_of(m, r, b);
        const element *const w1 = w0 + 1 * (size_t)m->block_cols;
        const float *const x0 = x + (size_t)m->column[b] * m->block_cols;
        const float *const x1 = x0 + 1 * x_stride;
        const size_t ahead = BLOCKS_AHEAD * m->block_bytes;
        size_t k = 0;
        for (; k + TERN_LANES <= n; k += TERN_LANES) {
            ask_ahead((const char *)(w0 + k) + ahead);
            ask_ahead((const char *)(w1 + k) + ahead);
            const vf w0_0 = weights(w0 + k + 0);
            const vf w0_1 = weights(w0 + k + 8);
            const vf w1_0 = weights(w1 + k + 0);
            const vf w1_1 = weights(w1 + k + 8);
            const vf x0_0 = vf_load(x0 + k + 0);
            s0_0_0 = vf_add(s0_0_0, vf_mul(w0_0, x0_0));
            s1_0_0 = vf_add(s1_0_0, vf_mul(w1_0, x0_0));
            const vf x0_1 = vf_load(x0 + k + 8);
            s0_0_1 = vf_add(s0_0_1, vf_mul(w0_1, x0_1));
            s1_0_1 = vf_add(s1_0_1, vf_mul(w1_1, x0_1));
            const vf x1_0 = vf_load(x1 + k + 0);
            s0_1_0 = vf_add(s0_1_0, vf_mul(w0_0, x1_0));
            s1_1_0 = vf_add(s1_1_0, vf_mul(w1_0, x1_0));
            const vf x1_1 = vf_load(x1 + k + 8);
            s0_1_1 = vf_add(s0_1_1, vf_mul(w0_1, x1_1));
            s1_1_1 = vf_add(s1_1_1, vf_mul(w1_1, x1_1));

        }
        if (k < n) {
            const vf w0_0 = weights_n(w0 + k + 0, tail_lanes(n - k, 0, 8));
            const vf w0_1 = weights_n(w0 + k + 8, tail_lanes(n - k, 8, 8));
            const vf w1_0 = weights_n(w1 + k + 0, tail_lanes(n - k, 0, 8));
            const vf w1_1 = weights_n(w1 + k + 8, tail_lanes(n - k, 8, 8));
            const vf x0_0 = vf_load_fill(x0 + k + 0, tail_lanes(n - k, 0, 8), 0.0f);
            s0_0_0 = vf_add(s0_0_0, vf_mul(w0_0, x0_0));
            s1_0_0 = vf_add(s1_0_0, vf_mul(w1_0, x0_0));
            const vf x0_1 = vf_load_fill(x0 + k + 8, tail_lanes(n - k, 8, 8), 0.0f);
            s0_0_1 = vf_add(s0_0_1, vf_mul(w0_1, x0_1));
            s1_0_1 = vf_add(s1_0_1, vf_mul(w1_1, x0_1));
            const vf x1_0 = vf_load_fill(x1 + k + 0, tail_lanes(n - k, 0, 8), 0.0f);
            s0_1_0 = vf_add(s0_1_0, vf_mul(w0_0, x1_0));
            s1_1_0 = vf_add(s1_1_0, vf_mul(w1_0, x1_0));
            const vf x1_1 = vf_load_fill(x1 + k + 8, tail_lanes(n - k, 8, 8), 0.0f);
            s0_1_1 = vf_add(s0_1_1, vf_mul(w0_1, x1_1));
            s1_1_1 = vf_add(s1_1_1, vf_mul(w1_1, x1_1));

        }
    }
    y[0 * y_stride + 0] = vf_sum16(s0_0_0, s0_0_1);
    y[1 * y_stride + 0] = vf_sum16(s0_1_0, s0_1_1);
    y[0 * y_stride + 1] = vf_sum16(s1_0_0, s1_0_1);
    y[1 * y_stride + 1] = vf_sum16(s1_1_0, s1_1_1);
}

/* 2 row(s) from r on, of one row of blocks of whole lanes, x 1 token(s) at x. */
static void tile_2_1(const tern_iebs *m, size_t r, const float *x, size_t x_stride, float *y,
    size_t y_stride) {
    const size_t i = r / m->block_rows;
    vf s0_0_0 = vf_zero();
    vf s0_0_1 = vf_zero();
    vf s1_0_0 = vf_zero();
    vf s1_0_1 = vf_zero();
    for (size_t b = m->start[i]; b < m->start[i + 1]; b++) {
        const size_t n = tern_iebs_width(m, b);
        const element *const w0 = weights_of(m, r, b);
        const element *const w1 = w0 + 1 * (size_t)m->block_cols;
        const float *const x0 = x + (size_t)m->column[b] * m->block_cols;
        const size_t ahead = BLOCKS_AHEAD * m->block_bytes;
        size_t k = 0;
        for (; k + TERN_LANES <= n; k += TERN_LANES) {
            ask_ahead((const char *)(w0 + k) + ahead);
            ask_ahead((const char *)(w1 + k) + ahead);
            const vf w0_0 = weights(w0 + k + 0);
            const vf w0_1 = weights(w0 + k + 8);
            const vf w1_0 = weights(w1 + k + 0);
            const vf w1_1 = weights(w1 + k + 8);
            const vf x0_0 = vf_load(x0 + k + 0);
            s0_0_0 = vf_add(s0_0_0, vf_mul(w0_0, x0_0));
            s1_0_0 = vf_add(s1_0_0, vf_mul(w1_0, x0_0));
            const vf x0_1 = vf_load(x0 + k + 8);
            s0_0_1 = vf_add(s0_0_1, vf_mul(w0_1, x0_1));
            s1_0_1 = vf_add(s1_0_1, vf_mul(w1_1, x0_1));

        }
        if (k < n) {
            const vf w0_0 = weights_n(w0 + k + 0, tail_lanes(n - k, 0, 8));
            const vf w0_1 = weights_n(w0 + k + 8, tail_lanes(n - k, 8, 8));
            const vf w1_0 = weights_n(w1 + k + 0, tail_lanes(n - k, 0, 8));
            const vf w1_1 = weights_n(w1 + k + 8, tail_lanes(n - k, 8, 8));
            const vf x0_0 = vf_load_fill(x0 + k + 0, tail_lanes(n - k, 0, 8), 0.0f);
            s0_0_0 = vf_add(s0_0_0, vf_mul(w0_0, x0_0));
            s1_0_0 = vf_add(s1_0_0, vf_mul(w1_0, x0_0));
            const vf x0_1 = vf_load_fill(x0 + k + 8, tail_lanes(n - k, 8, 8), 0.0f);
            s0_0_1 = vf_add(s0_0_1, vf_mul(w0_1, x0_1));
            s1_0_1 = vf_add(s1_0_1, vf_mul(w1_1, x0_1));

        }
    }
    y[0 * y_stride + 0] = vf_sum16(s0_0_0, s0_0_1);
    y[0 * y_stride + 1] = vf_sum16(s1_0_0, s1_0_1);
    (void)x_stride;
    (void)y_stride;
}

/* 1 row(s) from r on, of one row of blocks of whole lanes, x 2 token(s) at x. */
static void tile_1_2(const tern_iebs *m, size_t r, const float *x, size_t x_stride, float *y,
    size_t y_stride) {
    const size_t i = r / m->block_rows;
    vf s0_0_0 = vf_zero();
    vf s0_0_1 = vf_zero();
    vf s0_1_0 = vf_zero();
    vf s0_1_1 = vf_zero();
    for (size_t b = m->start[i]; b < m->start[i + 1]; b++) {
        const size_t n = tern_iebs_width(m, b);
        const element *const w0 = weights_of(m, r, b);
        const float *const x0 = x + (size_t)m->column[b] * m->block_cols;
        const float *const x1 = x0 + 1 * x_stride;
        const size_t ahead = BLOCKS_AHEAD * m->block_bytes;
        size_t k = 0;
        for (; k + TERN_LANES <= n; k += TERN_LANES) {
            ask_ahead((const char *)(w0 + k) + ahead);
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
        if (k < n) {
            const vf w0_0 = weights_n(w0 + k + 0, tail_lanes(n - k, 0, 8));
            const vf w0_1 = weights_n(w0 + k + 8, tail_lanes(n - k, 8, 8));
            const vf x0_0 = vf_load_fill(x0 + k + 0, tail_lanes(n - k, 0, 8), 0.0f);
            s0_0_0 = vf_add(s0_0_0, vf_mul(w0_0, x0_0));
            const vf x0_1 = vf_load_fill(x0 + k + 8, tail_lanes(n - k, 8, 8), 0.0f);
            s0_0_1 = vf_add(s0_0_1, vf_mul(w0_1, x0_1));
            const vf x1_0 = vf_load_fill(x1 + k + 0, tail_lanes(n - k, 0, 8), 0.0f);
            s0_1_0 = vf_add(s0_1_0, vf_mul(w0_0, x1_0));
            const vf x1_1 = vf_load_fill(x1 + k + 8, tail_lanes(n - k, 8, 8), 0.0f);
            s0_1_1 = vf_add(s0_1_1, vf_mul(w0_1, x1_1));

        }
    }
    y[0 * y_stride + 0] = vf_sum16(s0_0_0, s0_0_1);
    y[1 * y_stride + 0] = vf_sum16(s0_1_0, s0_1_1);
}

/* 1 row(s) from r on, of one row of blocks of whole lanes, x 1 token(s) at x. */
static void tile_1_1(const tern_iebs *m, size_t r, const float *x, size_t x_stride, float *y,
    size_t y_stride) {
    const size_t i = r / m->block_rows;
    vf s0_0_0 = vf_zero();
    vf s0_0_1 = vf_zero();
    for (size_t b = m->start[i]; b < m->start[i + 1]; b++) {
        const size_t n = tern_iebs_width(m, b);
        const element *const w0 = weights_of(m, r, b);
        const float *const x0 = x + (size_t)m->column[b] * m->block_cols;
        const size_t ahead = BLOCKS_AHEAD * m->block_bytes;
        size_t k = 0;
        for (; k + TERN_LANES <= n; k += TERN_LANES) {
            ask_ahead((const char *)(w0 + k) + ahead);
            const vf w0_0 = weights(w0 + k + 0);
            const vf w0_1 = weights(w0 + k + 8);
            const vf x0_0 = vf_load(x0 + k + 0);
            s0_0_0 = vf_add(s0_0_0, vf_mul(w0_0, x0_0));
            const vf x0_1 = vf_load(x0 + k + 8);
            s0_0_1 = vf_add(s0_0_1, vf_mul(w0_1, x0_1));

        }
        if (k < n) {
            const vf w0_0 = weights_n(w0 + k + 0, tail_lanes(n - k, 0, 8));
            const vf w0_1 = weights_n(w0 + k + 8, tail_lanes(n - k, 8, 8));
            const vf x0_0 = vf_load_fill(x0 + k + 0, tail_lanes(n - k, 0, 8), 0.0f);
            s0_0_0 = vf_add(s0_0_0, vf_mul(w0_0, x0_0));
            const vf x0_1 = vf_load_fill(x0 + k + 8, tail_lanes(n - k, 8, 8), 0.0f);
            s0_0_1 = vf_add(s0_0_1, vf_mul(w0_1, x0_1));

        }
    }
    y[0 * y_stride + 0] = vf_sum16(s0_0_0, s0_0_1);
    (void)x_stride;
    (void)y_stride;
}

/* Row r in blocks of any width x one token. */
static float any_width(const tern_iebs *m, size_t r, const float *x) {
    const size_t i = r / m->block_rows;
    float p[TERN_LANES] = {0.0f};
    for (size_t b = m->start[i]; b < m->start[i + 1]; b++) {
        const element *const w = weights_of(m, r, b);
        const size_t first = (size_t)m->column[b] * m->block_cols;
        const size_t n = tern_iebs_width(m, b);
        for (size_t k = 0; k < n; k++)
            p[(first + k) % TERN_LANES] += weight(w + k) * x[first + k];
    }
    return vf_sum16(vf_load(p + 0), vf_load(p + 8));
}

/* Rows [r0, r1), which share their blocks' places, x the tokens of the tile. */
static void whole_lanes(const tern_iebs *m, const tern_activations *x, const tern_tile *tile,
    size_t r0, size_t r1,
    float *y, size_t y_stride) {
    size_t t = tile->t0;
    for (; t + 2 <= tile->t1; t += 2) {
        const float *at = x->x + t * x->x_stride;
        size_t r = r0;
        for (; r + 2 <= r1; r += 2)
            tile_2_2(m, r, at, x->x_stride, y + t * y_stride + r, y_stride);
        for (; r + 1 <= r1; r += 1)
            tile_1_2(m, r, at, x->x_stride, y + t * y_stride + r, y_stride);
    }
    for (; t + 1 <= tile->t1; t += 1) {
        const float *at = x->x + t * x->x_stride;
        size_t r = r0;
        for (; r + 2 <= r1; r += 2)
            tile_2_1(m, r, at, x->x_stride, y + t * y_stride + r, y_stride);
        for (; r + 1 <= r1; r += 1)
            tile_1_1(m, r, at, x->x_stride, y + t * y_stride + r, y_stride);
    }
}

void tern_gemm_bsr_f16_2x2_avx2(const tern_matrix *w, const tern_activations *x,
    const tern_tile *tile, float *y,
    size_t y_stride) {
    const tern_iebs m = tern_iebs_view(w->data);
    for (size_t r = tile->r0, end; r < tile->r1; r = end) {
        const size_t edge = (r / m.block_rows + 1) * m.block_rows; /* of the row of blocks */
        end = edge < tile->r1 ? edge : tile->r1;
        if (m.block_cols % TERN_LANES == 0) {
            whole_lanes(&m, x, tile, r, end, y, y_stride);
            continue;
        }
        for (size_t t = tile->t0; t < tile->t1; t++)
            for (size_t i = r; i < end; i++)
                y[t * y_stride + i] = any_width(&m, i, x->x + t * x->x_stride);
    }
}
