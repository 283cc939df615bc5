/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_gemm_i2_s_16x8_avx512vbmi of kernels/kernels.toml
 * and template kernels/matmul_ternary_wide.c.j2. Do not edit.
 */

#include "tern/kernels.h"

tern_matmul_fn tern_gemm_i2_s_16x8_avx512vbmi;

/*
 * Ternary matrix product: lanes are rows. A 64-byte chunk holds 16 rows x CHUNK_COLS columns as
 * planes of four; plane p of chunk c meets columns CHUNK_COLS * c + 4p .. + 3 of each token, which
 * a splat hands to all rows. Layout T2R16 has four planes of two bits.
 */
#include "kernels/isa/avx512vbmi.h"

#include "kernels/isa/vmath.h"

enum {
    CHUNK_BYTES = 64,
    CHUNK_COLS = 16,
    PREFETCH_BYTES = 4096 /* ahead in the one stream that a thread reads */
};

/* Where a pass over a row group prefetches: the address for its first chunk, bytes a chunk. */
typedef struct ahead {
    const uint8_t *at;
    size_t step;
} ahead;

/* Scales of n rows from row r. */
static inline vf scales(const tern_matrix *m, size_t r, size_t n) {
    return m->row_scale ? vf_load_fill(m->row_scale + r, n, 0.0f) : vf_set1(m->scale);
}

static inline vf rescale(vi raw, const tern_activations *x, size_t t, vf scale) {
    const vf y = vf_sub(vi_to_f(raw), vf_set1((float)x->sum[t]));
    return vf_mul(vf_div(y, vf_set1(x->s[t])), scale);
}

/* 16 rows from r x 8 token(s) from t; codes of the row group (or its part) at w. */
static void tile_8(const tern_matrix *m, const uint8_t *w, size_t chunks, ahead next,
    const tern_activations *x,
                   size_t r, size_t rows, size_t t, float *y, size_t y_stride) {
    const int8_t *x0 = x->q + (t + 0) * x->q_stride;
    const int8_t *x1 = x->q + (t + 1) * x->q_stride;
    const int8_t *x2 = x->q + (t + 2) * x->q_stride;
    const int8_t *x3 = x->q + (t + 3) * x->q_stride;
    const int8_t *x4 = x->q + (t + 4) * x->q_stride;
    const int8_t *x5 = x->q + (t + 5) * x->q_stride;
    const int8_t *x6 = x->q + (t + 6) * x->q_stride;
    const int8_t *x7 = x->q + (t + 7) * x->q_stride;
    /* Four vp_mac go into each partial sum per chunk. */
    const size_t chunks_per_flush = TERN_MACS_2BIT / 4;
    vi a0_0 = vi_zero();
    vi a1_0 = vi_zero();
    vi a2_0 = vi_zero();
    vi a3_0 = vi_zero();
    vi a4_0 = vi_zero();
    vi a5_0 = vi_zero();
    vi a6_0 = vi_zero();
    vi a7_0 = vi_zero();
    for (size_t c = 0; c < chunks;) {
        const size_t stop = chunks - c < chunks_per_flush ? chunks : c + chunks_per_flush;
        vp s0_0_0 = vp_zero();
        vp s1_0_0 = vp_zero();
        vp s2_0_0 = vp_zero();
        vp s3_0_0 = vp_zero();
        vp s4_0_0 = vp_zero();
        vp s5_0_0 = vp_zero();
        vp s6_0_0 = vp_zero();
        vp s7_0_0 = vp_zero();
        for (; c < stop; c++) {
            const uint8_t *chunk = w + c * CHUNK_BYTES;
            __builtin_prefetch(next.at + c * next.step);
            const vb c0 = vb_load(chunk + 0);
            const vb p0_0 = vb_plane2(c0, 0);
            const vb b0_0 = vb_splat4(x0 + c * CHUNK_COLS + 0);
            s0_0_0 = vp_mac(s0_0_0, p0_0, b0_0);
            const vb b0_1 = vb_splat4(x1 + c * CHUNK_COLS + 0);
            s1_0_0 = vp_mac(s1_0_0, p0_0, b0_1);
            const vb b0_2 = vb_splat4(x2 + c * CHUNK_COLS + 0);
            s2_0_0 = vp_mac(s2_0_0, p0_0, b0_2);
            const vb b0_3 = vb_splat4(x3 + c * CHUNK_COLS + 0);
            s3_0_0 = vp_mac(s3_0_0, p0_0, b0_3);
            const vb b0_4 = vb_splat4(x4 + c * CHUNK_COLS + 0);
            s4_0_0 = vp_mac(s4_0_0, p0_0, b0_4);
            const vb b0_5 = vb_splat4(x5 + c * CHUNK_COLS + 0);
            s5_0_0 = vp_mac(s5_0_0, p0_0, b0_5);
            const vb b0_6 = vb_splat4(x6 + c * CHUNK_COLS + 0);
            s6_0_0 = vp_mac(s6_0_0, p0_0, b0_6);
            const vb b0_7 = vb_splat4(x7 + c * CHUNK_COLS + 0);
            s7_0_0 = vp_mac(s7_0_0, p0_0, b0_7);
            const vb p1_0 = vb_plane2(c0, 1);
            const vb b1_0 = vb_splat4(x0 + c * CHUNK_COLS + 4);
            s0_0_0 = vp_mac(s0_0_0, p1_0, b1_0);
            const vb b1_1 = vb_splat4(x1 + c * CHUNK_COLS + 4);
            s1_0_0 = vp_mac(s1_0_0, p1_0, b1_1);
            const vb b1_2 = vb_splat4(x2 + c * CHUNK_COLS + 4);
            s2_0_0 = vp_mac(s2_0_0, p1_0, b1_2);
            const vb b1_3 = vb_splat4(x3 + c * CHUNK_COLS + 4);
            s3_0_0 = vp_mac(s3_0_0, p1_0, b1_3);
            const vb b1_4 = vb_splat4(x4 + c * CHUNK_COLS + 4);
            s4_0_0 = vp_mac(s4_0_0, p1_0, b1_4);
            const vb b1_5 = vb_splat4(x5 + c * CHUNK_COLS + 4);
            s5_0_0 = vp_mac(s5_0_0, p1_0, b1_5);
            const vb b1_6 = vb_splat4(x6 + c * CHUNK_COLS + 4);
            s6_0_0 = vp_mac(s6_0_0, p1_0, b1_6);
            const vb b1_7 = vb_splat4(x7 + c * CHUNK_COLS + 4);
            s7_0_0 = vp_mac(s7_0_0, p1_0, b1_7);
            const vb p2_0 = vb_plane2(c0, 2);
            const vb b2_0 = vb_splat4(x0 + c * CHUNK_COLS + 8);
            s0_0_0 = vp_mac(s0_0_0, p2_0, b2_0);
            const vb b2_1 = vb_splat4(x1 + c * CHUNK_COLS + 8);
            s1_0_0 = vp_mac(s1_0_0, p2_0, b2_1);
            const vb b2_2 = vb_splat4(x2 + c * CHUNK_COLS + 8);
            s2_0_0 = vp_mac(s2_0_0, p2_0, b2_2);
            const vb b2_3 = vb_splat4(x3 + c * CHUNK_COLS + 8);
            s3_0_0 = vp_mac(s3_0_0, p2_0, b2_3);
            const vb b2_4 = vb_splat4(x4 + c * CHUNK_COLS + 8);
            s4_0_0 = vp_mac(s4_0_0, p2_0, b2_4);
            const vb b2_5 = vb_splat4(x5 + c * CHUNK_COLS + 8);
            s5_0_0 = vp_mac(s5_0_0, p2_0, b2_5);
            const vb b2_6 = vb_splat4(x6 + c * CHUNK_COLS + 8);
            s6_0_0 = vp_mac(s6_0_0, p2_0, b2_6);
            const vb b2_7 = vb_splat4(x7 + c * CHUNK_COLS + 8);
            s7_0_0 = vp_mac(s7_0_0, p2_0, b2_7);
            const vb p3_0 = vb_plane2(c0, 3);
            const vb b3_0 = vb_splat4(x0 + c * CHUNK_COLS + 12);
            s0_0_0 = vp_mac(s0_0_0, p3_0, b3_0);
            const vb b3_1 = vb_splat4(x1 + c * CHUNK_COLS + 12);
            s1_0_0 = vp_mac(s1_0_0, p3_0, b3_1);
            const vb b3_2 = vb_splat4(x2 + c * CHUNK_COLS + 12);
            s2_0_0 = vp_mac(s2_0_0, p3_0, b3_2);
            const vb b3_3 = vb_splat4(x3 + c * CHUNK_COLS + 12);
            s3_0_0 = vp_mac(s3_0_0, p3_0, b3_3);
            const vb b3_4 = vb_splat4(x4 + c * CHUNK_COLS + 12);
            s4_0_0 = vp_mac(s4_0_0, p3_0, b3_4);
            const vb b3_5 = vb_splat4(x5 + c * CHUNK_COLS + 12);
            s5_0_0 = vp_mac(s5_0_0, p3_0, b3_5);
            const vb b3_6 = vb_splat4(x6 + c * CHUNK_COLS + 12);
            s6_0_0 = vp_mac(s6_0_0, p3_0, b3_6);
            const vb b3_7 = vb_splat4(x7 + c * CHUNK_COLS + 12);
            s7_0_0 = vp_mac(s7_0_0, p3_0, b3_7);
        }
        a0_0 = vi_flush(a0_0, s0_0_0);
        a1_0 = vi_flush(a1_0, s1_0_0);
        a2_0 = vi_flush(a2_0, s2_0_0);
        a3_0 = vi_flush(a3_0, s3_0_0);
        a4_0 = vi_flush(a4_0, s4_0_0);
        a5_0 = vi_flush(a5_0, s5_0_0);
        a6_0 = vi_flush(a6_0, s6_0_0);
        a7_0 = vi_flush(a7_0, s7_0_0);
    }
    const size_t n0 = tail_lanes(rows, 0, 16);
    const vf scale0 = scales(m, r + 0, n0);
    vf_store_n(y + 0 * y_stride + 0, rescale(a0_0, x, t + 0, scale0), n0);
    vf_store_n(y + 1 * y_stride + 0, rescale(a1_0, x, t + 1, scale0), n0);
    vf_store_n(y + 2 * y_stride + 0, rescale(a2_0, x, t + 2, scale0), n0);
    vf_store_n(y + 3 * y_stride + 0, rescale(a3_0, x, t + 3, scale0), n0);
    vf_store_n(y + 4 * y_stride + 0, rescale(a4_0, x, t + 4, scale0), n0);
    vf_store_n(y + 5 * y_stride + 0, rescale(a5_0, x, t + 5, scale0), n0);
    vf_store_n(y + 6 * y_stride + 0, rescale(a6_0, x, t + 6, scale0), n0);
    vf_store_n(y + 7 * y_stride + 0, rescale(a7_0, x, t + 7, scale0), n0);
}

/* 16 rows from r x 4 token(s) from t; codes of the row group (or its part) at w. */
static void tile_4(const tern_matrix *m, const uint8_t *w, size_t chunks, ahead next,
    const tern_activations *x,
                   size_t r, size_t rows, size_t t, float *y, size_t y_stride) {
    const int8_t *x0 = x->q + (t + 0) * x->q_stride;
    const int8_t *x1 = x->q + (t + 1) * x->q_stride;
    const int8_t *x2 = x->q + (t + 2) * x->q_stride;
    const int8_t *x3 = x->q + (t + 3) * x->q_stride;
    /* Four vp_mac go into each partial sum per chunk. */
    const size_t chunks_per_flush = TERN_MACS_2BIT / 4;
    vi a0_0 = vi_zero();
    vi a1_0 = vi_zero();
    vi a2_0 = vi_zero();
    vi a3_0 = vi_zero();
    for (size_t c = 0; c < chunks;) {
        const size_t stop = chunks - c < chunks_per_flush ? chunks : c + chunks_per_flush;
        vp s0_0_0 = vp_zero();
        vp s0_0_1 = vp_zero();
        vp s1_0_0 = vp_zero();
        vp s1_0_1 = vp_zero();
        vp s2_0_0 = vp_zero();
        vp s2_0_1 = vp_zero();
        vp s3_0_0 = vp_zero();
        vp s3_0_1 = vp_zero();
        for (; c < stop; c++) {
            const uint8_t *chunk = w + c * CHUNK_BYTES;
            __builtin_prefetch(next.at + c * next.step);
            const vb c0 = vb_load(chunk + 0);
            const vb p0_0 = vb_plane2(c0, 0);
            const vb b0_0 = vb_splat4(x0 + c * CHUNK_COLS + 0);
            s0_0_0 = vp_mac(s0_0_0, p0_0, b0_0);
            const vb b0_1 = vb_splat4(x1 + c * CHUNK_COLS + 0);
            s1_0_0 = vp_mac(s1_0_0, p0_0, b0_1);
            const vb b0_2 = vb_splat4(x2 + c * CHUNK_COLS + 0);
            s2_0_0 = vp_mac(s2_0_0, p0_0, b0_2);
            const vb b0_3 = vb_splat4(x3 + c * CHUNK_COLS + 0);
            s3_0_0 = vp_mac(s3_0_0, p0_0, b0_3);
            const vb p1_0 = vb_plane2(c0, 1);
            const vb b1_0 = vb_splat4(x0 + c * CHUNK_COLS + 4);
            s0_0_1 = vp_mac(s0_0_1, p1_0, b1_0);
            const vb b1_1 = vb_splat4(x1 + c * CHUNK_COLS + 4);
            s1_0_1 = vp_mac(s1_0_1, p1_0, b1_1);
            const vb b1_2 = vb_splat4(x2 + c * CHUNK_COLS + 4);
            s2_0_1 = vp_mac(s2_0_1, p1_0, b1_2);
            const vb b1_3 = vb_splat4(x3 + c * CHUNK_COLS + 4);
            s3_0_1 = vp_mac(s3_0_1, p1_0, b1_3);
            const vb p2_0 = vb_plane2(c0, 2);
            const vb b2_0 = vb_splat4(x0 + c * CHUNK_COLS + 8);
            s0_0_0 = vp_mac(s0_0_0, p2_0, b2_0);
            const vb b2_1 = vb_splat4(x1 + c * CHUNK_COLS + 8);
            s1_0_0 = vp_mac(s1_0_0, p2_0, b2_1);
            const vb b2_2 = vb_splat4(x2 + c * CHUNK_COLS + 8);
            s2_0_0 = vp_mac(s2_0_0, p2_0, b2_2);
            const vb b2_3 = vb_splat4(x3 + c * CHUNK_COLS + 8);
            s3_0_0 = vp_mac(s3_0_0, p2_0, b2_3);
            const vb p3_0 = vb_plane2(c0, 3);
            const vb b3_0 = vb_splat4(x0 + c * CHUNK_COLS + 12);
            s0_0_1 = vp_mac(s0_0_1, p3_0, b3_0);
            const vb b3_1 = vb_splat4(x1 + c * CHUNK_COLS + 12);
            s1_0_1 = vp_mac(s1_0_1, p3_0, b3_1);
            const vb b3_2 = vb_splat4(x2 + c * CHUNK_COLS + 12);
            s2_0_1 = vp_mac(s2_0_1, p3_0, b3_2);
            const vb b3_3 = vb_splat4(x3 + c * CHUNK_COLS + 12);
            s3_0_1 = vp_mac(s3_0_1, p3_0, b3_3);
        }
        a0_0 = vi_flush(a0_0, s0_0_0);
        a0_0 = vi_flush(a0_0, s0_0_1);
        a1_0 = vi_flush(a1_0, s1_0_0);
        a1_0 = vi_flush(a1_0, s1_0_1);
        a2_0 = vi_flush(a2_0, s2_0_0);
        a2_0 = vi_flush(a2_0, s2_0_1);
        a3_0 = vi_flush(a3_0, s3_0_0);
        a3_0 = vi_flush(a3_0, s3_0_1);
    }
    const size_t n0 = tail_lanes(rows, 0, 16);
    const vf scale0 = scales(m, r + 0, n0);
    vf_store_n(y + 0 * y_stride + 0, rescale(a0_0, x, t + 0, scale0), n0);
    vf_store_n(y + 1 * y_stride + 0, rescale(a1_0, x, t + 1, scale0), n0);
    vf_store_n(y + 2 * y_stride + 0, rescale(a2_0, x, t + 2, scale0), n0);
    vf_store_n(y + 3 * y_stride + 0, rescale(a3_0, x, t + 3, scale0), n0);
}

/* 16 rows from r x 2 token(s) from t; codes of the row group (or its part) at w. */
static void tile_2(const tern_matrix *m, const uint8_t *w, size_t chunks, ahead next,
    const tern_activations *x,
                   size_t r, size_t rows, size_t t, float *y, size_t y_stride) {
    const int8_t *x0 = x->q + (t + 0) * x->q_stride;
    const int8_t *x1 = x->q + (t + 1) * x->q_stride;
    /* Four vp_mac go into each partial sum per chunk. */
    const size_t chunks_per_flush = TERN_MACS_2BIT / 4;
    vi a0_0 = vi_zero();
    vi a1_0 = vi_zero();
    for (size_t c = 0; c < chunks;) {
        const size_t stop = chunks - c < chunks_per_flush ? chunks : c + chunks_per_flush;
        vp s0_0_0 = vp_zero();
        vp s0_0_1 = vp_zero();
        vp s0_0_2 = vp_zero();
        vp s0_0_3 = vp_zero();
        vp s1_0_0 = vp_zero();
        vp s1_0_1 = vp_zero();
        vp s1_0_2 = vp_zero();
        vp s1_0_3 = vp_zero();
        for (; c < stop; c++) {
            const uint8_t *chunk = w + c * CHUNK_BYTES;
            __builtin_prefetch(next.at + c * next.step);
            const vb c0 = vb_load(chunk + 0);
            const vb p0_0 = vb_plane2(c0, 0);
            const vb b0_0 = vb_splat4(x0 + c * CHUNK_COLS + 0);
            s0_0_0 = vp_mac(s0_0_0, p0_0, b0_0);
            const vb b0_1 = vb_splat4(x1 + c * CHUNK_COLS + 0);
            s1_0_0 = vp_mac(s1_0_0, p0_0, b0_1);
            const vb p1_0 = vb_plane2(c0, 1);
            const vb b1_0 = vb_splat4(x0 + c * CHUNK_COLS + 4);
            s0_0_1 = vp_mac(s0_0_1, p1_0, b1_0);
            const vb b1_1 = vb_splat4(x1 + c * CHUNK_COLS + 4);
            s1_0_1 = vp_mac(s1_0_1, p1_0, b1_1);
            const vb p2_0 = vb_plane2(c0, 2);
            const vb b2_0 = vb_splat4(x0 + c * CHUNK_COLS + 8);
            s0_0_2 = vp_mac(s0_0_2, p2_0, b2_0);
            const vb b2_1 = vb_splat4(x1 + c * CHUNK_COLS + 8);
            s1_0_2 = vp_mac(s1_0_2, p2_0, b2_1);
            const vb p3_0 = vb_plane2(c0, 3);
            const vb b3_0 = vb_splat4(x0 + c * CHUNK_COLS + 12);
            s0_0_3 = vp_mac(s0_0_3, p3_0, b3_0);
            const vb b3_1 = vb_splat4(x1 + c * CHUNK_COLS + 12);
            s1_0_3 = vp_mac(s1_0_3, p3_0, b3_1);
        }
        a0_0 = vi_flush(a0_0, s0_0_0);
        a0_0 = vi_flush(a0_0, s0_0_1);
        a0_0 = vi_flush(a0_0, s0_0_2);
        a0_0 = vi_flush(a0_0, s0_0_3);
        a1_0 = vi_flush(a1_0, s1_0_0);
        a1_0 = vi_flush(a1_0, s1_0_1);
        a1_0 = vi_flush(a1_0, s1_0_2);
        a1_0 = vi_flush(a1_0, s1_0_3);
    }
    const size_t n0 = tail_lanes(rows, 0, 16);
    const vf scale0 = scales(m, r + 0, n0);
    vf_store_n(y + 0 * y_stride + 0, rescale(a0_0, x, t + 0, scale0), n0);
    vf_store_n(y + 1 * y_stride + 0, rescale(a1_0, x, t + 1, scale0), n0);
}

/* 16 rows from r x 1 token(s) from t; codes of the row group (or its part) at w. */
static void tile_1(const tern_matrix *m, const uint8_t *w, size_t chunks, ahead next,
    const tern_activations *x,
                   size_t r, size_t rows, size_t t, float *y, size_t y_stride) {
    const int8_t *x0 = x->q + (t + 0) * x->q_stride;
    /* Four vp_mac go into each partial sum per chunk. */
    const size_t chunks_per_flush = TERN_MACS_2BIT / 4;
    vi a0_0 = vi_zero();
    for (size_t c = 0; c < chunks;) {
        const size_t stop = chunks - c < chunks_per_flush ? chunks : c + chunks_per_flush;
        vp s0_0_0 = vp_zero();
        vp s0_0_1 = vp_zero();
        vp s0_0_2 = vp_zero();
        vp s0_0_3 = vp_zero();
        for (; c < stop; c++) {
            const uint8_t *chunk = w + c * CHUNK_BYTES;
            __builtin_prefetch(next.at + c * next.step);
            const vb c0 = vb_load(chunk + 0);
            const vb p0_0 = vb_plane2(c0, 0);
            const vb b0_0 = vb_splat4(x0 + c * CHUNK_COLS + 0);
            s0_0_0 = vp_mac(s0_0_0, p0_0, b0_0);
            const vb p1_0 = vb_plane2(c0, 1);
            const vb b1_0 = vb_splat4(x0 + c * CHUNK_COLS + 4);
            s0_0_1 = vp_mac(s0_0_1, p1_0, b1_0);
            const vb p2_0 = vb_plane2(c0, 2);
            const vb b2_0 = vb_splat4(x0 + c * CHUNK_COLS + 8);
            s0_0_2 = vp_mac(s0_0_2, p2_0, b2_0);
            const vb p3_0 = vb_plane2(c0, 3);
            const vb b3_0 = vb_splat4(x0 + c * CHUNK_COLS + 12);
            s0_0_3 = vp_mac(s0_0_3, p3_0, b3_0);
        }
        a0_0 = vi_flush(a0_0, s0_0_0);
        a0_0 = vi_flush(a0_0, s0_0_1);
        a0_0 = vi_flush(a0_0, s0_0_2);
        a0_0 = vi_flush(a0_0, s0_0_3);
    }
    const size_t n0 = tail_lanes(rows, 0, 16);
    const vf scale0 = scales(m, r + 0, n0);
    vf_store_n(y + 0 * y_stride + 0, rescale(a0_0, x, t + 0, scale0), n0);
}

/*
 * Where pass `i` of `passes` over a row group prefetches. One pass: a little ahead of itself. More:
 * each its share of the group that follows, since after the first one this group is in the cache.
 */
static ahead prefetches(const uint8_t *group, size_t chunks, size_t i, size_t passes) {
    const size_t bytes = chunks * CHUNK_BYTES;
    if (passes == 1)
        return (ahead){group + PREFETCH_BYTES, CHUNK_BYTES};
    return (ahead){group + bytes + bytes / passes * i, CHUNK_BYTES / passes};
}

/* Rows [r, r + rows), whose codes are at w, x the tokens of the tile. */
static void direct(const tern_matrix *m, const uint8_t *w, size_t chunks, const tern_activations *x,
    const tern_tile *tile, size_t r, size_t rows, float *y, size_t y_stride) {
    const size_t n = tile->t1 - tile->t0;
    const size_t passes = n / 8 + n % 8 / 4 + n % 4 / 2 + n % 2;
    size_t t = tile->t0;
    size_t pass = 0;
    for (; t + 8 <= tile->t1; t += 8)
        tile_8(m, w, chunks, prefetches(w, chunks, pass++, passes), x, r, rows, t,
            y + t * y_stride + r, y_stride);
    for (; t + 4 <= tile->t1; t += 4)
        tile_4(m, w, chunks, prefetches(w, chunks, pass++, passes), x, r, rows, t,
            y + t * y_stride + r, y_stride);
    for (; t + 2 <= tile->t1; t += 2)
        tile_2(m, w, chunks, prefetches(w, chunks, pass++, passes), x, r, rows, t,
            y + t * y_stride + r, y_stride);
    for (; t + 1 <= tile->t1; t += 1)
        tile_1(m, w, chunks, prefetches(w, chunks, pass++, passes), x, r, rows, t,
            y + t * y_stride + r, y_stride);
}

enum { GROUPS = 2, TOKENS = 8, LANES = 16 };
_Static_assert((int)LANES == (int)TERN_ROW_GROUP, "a group is a vector");

/* Where pass `i` of `passes`, two or more, prefetches: its share of the two groups that follow. */
static ahead prefetch_pair(const uint8_t *pair, size_t chunks, size_t i, size_t passes) {
    const size_t bytes = GROUPS * chunks * CHUNK_BYTES;
    return (ahead){pair + bytes + bytes / passes * i, GROUPS * CHUNK_BYTES / passes};
}

/* Two groups from row r x 8 tokens from t; codes of the first at w. */
static void wide(const tern_matrix *m, const uint8_t *w, size_t chunks, ahead next,
    const tern_activations *x,
                 size_t r, size_t rows, size_t t, float *y, size_t y_stride) {
    const size_t chunks_per_flush = TERN_MACS_2BIT / 4;
    const uint8_t *w1 = w + chunks * CHUNK_BYTES;
    const int8_t *x0 = x->q + (t + 0) * x->q_stride;
    vi a0_0 = vi_zero();
    vi a0_1 = vi_zero();
    const int8_t *x1 = x->q + (t + 1) * x->q_stride;
    vi a1_0 = vi_zero();
    vi a1_1 = vi_zero();
    const int8_t *x2 = x->q + (t + 2) * x->q_stride;
    vi a2_0 = vi_zero();
    vi a2_1 = vi_zero();
    const int8_t *x3 = x->q + (t + 3) * x->q_stride;
    vi a3_0 = vi_zero();
    vi a3_1 = vi_zero();
    const int8_t *x4 = x->q + (t + 4) * x->q_stride;
    vi a4_0 = vi_zero();
    vi a4_1 = vi_zero();
    const int8_t *x5 = x->q + (t + 5) * x->q_stride;
    vi a5_0 = vi_zero();
    vi a5_1 = vi_zero();
    const int8_t *x6 = x->q + (t + 6) * x->q_stride;
    vi a6_0 = vi_zero();
    vi a6_1 = vi_zero();
    const int8_t *x7 = x->q + (t + 7) * x->q_stride;
    vi a7_0 = vi_zero();
    vi a7_1 = vi_zero();
    for (size_t c = 0; c < chunks;) {
        const size_t stop = chunks - c < chunks_per_flush ? chunks : c + chunks_per_flush;
        vp s0_0 = vp_zero();
        vp s0_1 = vp_zero();
        vp s1_0 = vp_zero();
        vp s1_1 = vp_zero();
        vp s2_0 = vp_zero();
        vp s2_1 = vp_zero();
        vp s3_0 = vp_zero();
        vp s3_1 = vp_zero();
        vp s4_0 = vp_zero();
        vp s4_1 = vp_zero();
        vp s5_0 = vp_zero();
        vp s5_1 = vp_zero();
        vp s6_0 = vp_zero();
        vp s6_1 = vp_zero();
        vp s7_0 = vp_zero();
        vp s7_1 = vp_zero();
        for (; c < stop; c++) {
            const vb c0 = vb_load(w + c * CHUNK_BYTES);
            const vb c1 = vb_load(w1 + c * CHUNK_BYTES);
            __builtin_prefetch(next.at + c * next.step);
            const vb p0_0 = vb_plane2(c0, 0);
            const vb p0_1 = vb_plane2(c1, 0);
            const vb b0_0 = vb_splat4(x0 + c * CHUNK_COLS + 0);
            s0_0 = vp_mac(s0_0, p0_0, b0_0);
            s0_1 = vp_mac(s0_1, p0_1, b0_0);
            const vb b0_1 = vb_splat4(x1 + c * CHUNK_COLS + 0);
            s1_0 = vp_mac(s1_0, p0_0, b0_1);
            s1_1 = vp_mac(s1_1, p0_1, b0_1);
            const vb b0_2 = vb_splat4(x2 + c * CHUNK_COLS + 0);
            s2_0 = vp_mac(s2_0, p0_0, b0_2);
            s2_1 = vp_mac(s2_1, p0_1, b0_2);
            const vb b0_3 = vb_splat4(x3 + c * CHUNK_COLS + 0);
            s3_0 = vp_mac(s3_0, p0_0, b0_3);
            s3_1 = vp_mac(s3_1, p0_1, b0_3);
            const vb b0_4 = vb_splat4(x4 + c * CHUNK_COLS + 0);
            s4_0 = vp_mac(s4_0, p0_0, b0_4);
            s4_1 = vp_mac(s4_1, p0_1, b0_4);
            const vb b0_5 = vb_splat4(x5 + c * CHUNK_COLS + 0);
            s5_0 = vp_mac(s5_0, p0_0, b0_5);
            s5_1 = vp_mac(s5_1, p0_1, b0_5);
            const vb b0_6 = vb_splat4(x6 + c * CHUNK_COLS + 0);
            s6_0 = vp_mac(s6_0, p0_0, b0_6);
            s6_1 = vp_mac(s6_1, p0_1, b0_6);
            const vb b0_7 = vb_splat4(x7 + c * CHUNK_COLS + 0);
            s7_0 = vp_mac(s7_0, p0_0, b0_7);
            s7_1 = vp_mac(s7_1, p0_1, b0_7);
            const vb p1_0 = vb_plane2(c0, 1);
            const vb p1_1 = vb_plane2(c1, 1);
            const vb b1_0 = vb_splat4(x0 + c * CHUNK_COLS + 4);
            s0_0 = vp_mac(s0_0, p1_0, b1_0);
            s0_1 = vp_mac(s0_1, p1_1, b1_0);
            const vb b1_1 = vb_splat4(x1 + c * CHUNK_COLS + 4);
            s1_0 = vp_mac(s1_0, p1_0, b1_1);
            s1_1 = vp_mac(s1_1, p1_1, b1_1);
            const vb b1_2 = vb_splat4(x2 + c * CHUNK_COLS + 4);
            s2_0 = vp_mac(s2_0, p1_0, b1_2);
            s2_1 = vp_mac(s2_1, p1_1, b1_2);
            const vb b1_3 = vb_splat4(x3 + c * CHUNK_COLS + 4);
            s3_0 = vp_mac(s3_0, p1_0, b1_3);
            s3_1 = vp_mac(s3_1, p1_1, b1_3);
            const vb b1_4 = vb_splat4(x4 + c * CHUNK_COLS + 4);
            s4_0 = vp_mac(s4_0, p1_0, b1_4);
            s4_1 = vp_mac(s4_1, p1_1, b1_4);
            const vb b1_5 = vb_splat4(x5 + c * CHUNK_COLS + 4);
            s5_0 = vp_mac(s5_0, p1_0, b1_5);
            s5_1 = vp_mac(s5_1, p1_1, b1_5);
            const vb b1_6 = vb_splat4(x6 + c * CHUNK_COLS + 4);
            s6_0 = vp_mac(s6_0, p1_0, b1_6);
            s6_1 = vp_mac(s6_1, p1_1, b1_6);
            const vb b1_7 = vb_splat4(x7 + c * CHUNK_COLS + 4);
            s7_0 = vp_mac(s7_0, p1_0, b1_7);
            s7_1 = vp_mac(s7_1, p1_1, b1_7);
            const vb p2_0 = vb_plane2(c0, 2);
            const vb p2_1 = vb_plane2(c1, 2);
            const vb b2_0 = vb_splat4(x0 + c * CHUNK_COLS + 8);
            s0_0 = vp_mac(s0_0, p2_0, b2_0);
            s0_1 = vp_mac(s0_1, p2_1, b2_0);
            const vb b2_1 = vb_splat4(x1 + c * CHUNK_COLS + 8);
            s1_0 = vp_mac(s1_0, p2_0, b2_1);
            s1_1 = vp_mac(s1_1, p2_1, b2_1);
            const vb b2_2 = vb_splat4(x2 + c * CHUNK_COLS + 8);
            s2_0 = vp_mac(s2_0, p2_0, b2_2);
            s2_1 = vp_mac(s2_1, p2_1, b2_2);
            const vb b2_3 = vb_splat4(x3 + c * CHUNK_COLS + 8);
            s3_0 = vp_mac(s3_0, p2_0, b2_3);
            s3_1 = vp_mac(s3_1, p2_1, b2_3);
            const vb b2_4 = vb_splat4(x4 + c * CHUNK_COLS + 8);
            s4_0 = vp_mac(s4_0, p2_0, b2_4);
            s4_1 = vp_mac(s4_1, p2_1, b2_4);
            const vb b2_5 = vb_splat4(x5 + c * CHUNK_COLS + 8);
            s5_0 = vp_mac(s5_0, p2_0, b2_5);
            s5_1 = vp_mac(s5_1, p2_1, b2_5);
            const vb b2_6 = vb_splat4(x6 + c * CHUNK_COLS + 8);
            s6_0 = vp_mac(s6_0, p2_0, b2_6);
            s6_1 = vp_mac(s6_1, p2_1, b2_6);
            const vb b2_7 = vb_splat4(x7 + c * CHUNK_COLS + 8);
            s7_0 = vp_mac(s7_0, p2_0, b2_7);
            s7_1 = vp_mac(s7_1, p2_1, b2_7);
            const vb p3_0 = vb_plane2(c0, 3);
            const vb p3_1 = vb_plane2(c1, 3);
            const vb b3_0 = vb_splat4(x0 + c * CHUNK_COLS + 12);
            s0_0 = vp_mac(s0_0, p3_0, b3_0);
            s0_1 = vp_mac(s0_1, p3_1, b3_0);
            const vb b3_1 = vb_splat4(x1 + c * CHUNK_COLS + 12);
            s1_0 = vp_mac(s1_0, p3_0, b3_1);
            s1_1 = vp_mac(s1_1, p3_1, b3_1);
            const vb b3_2 = vb_splat4(x2 + c * CHUNK_COLS + 12);
            s2_0 = vp_mac(s2_0, p3_0, b3_2);
            s2_1 = vp_mac(s2_1, p3_1, b3_2);
            const vb b3_3 = vb_splat4(x3 + c * CHUNK_COLS + 12);
            s3_0 = vp_mac(s3_0, p3_0, b3_3);
            s3_1 = vp_mac(s3_1, p3_1, b3_3);
            const vb b3_4 = vb_splat4(x4 + c * CHUNK_COLS + 12);
            s4_0 = vp_mac(s4_0, p3_0, b3_4);
            s4_1 = vp_mac(s4_1, p3_1, b3_4);
            const vb b3_5 = vb_splat4(x5 + c * CHUNK_COLS + 12);
            s5_0 = vp_mac(s5_0, p3_0, b3_5);
            s5_1 = vp_mac(s5_1, p3_1, b3_5);
            const vb b3_6 = vb_splat4(x6 + c * CHUNK_COLS + 12);
            s6_0 = vp_mac(s6_0, p3_0, b3_6);
            s6_1 = vp_mac(s6_1, p3_1, b3_6);
            const vb b3_7 = vb_splat4(x7 + c * CHUNK_COLS + 12);
            s7_0 = vp_mac(s7_0, p3_0, b3_7);
            s7_1 = vp_mac(s7_1, p3_1, b3_7);
        }
        a0_0 = vi_flush(a0_0, s0_0);
        a0_1 = vi_flush(a0_1, s0_1);
        a1_0 = vi_flush(a1_0, s1_0);
        a1_1 = vi_flush(a1_1, s1_1);
        a2_0 = vi_flush(a2_0, s2_0);
        a2_1 = vi_flush(a2_1, s2_1);
        a3_0 = vi_flush(a3_0, s3_0);
        a3_1 = vi_flush(a3_1, s3_1);
        a4_0 = vi_flush(a4_0, s4_0);
        a4_1 = vi_flush(a4_1, s4_1);
        a5_0 = vi_flush(a5_0, s5_0);
        a5_1 = vi_flush(a5_1, s5_1);
        a6_0 = vi_flush(a6_0, s6_0);
        a6_1 = vi_flush(a6_1, s6_1);
        a7_0 = vi_flush(a7_0, s7_0);
        a7_1 = vi_flush(a7_1, s7_1);
    }
    const size_t n0 = tail_lanes(rows, 0 * LANES, LANES);
    const vf scale0 = scales(m, r + 0 * LANES, n0);
    vf_store_n(y + 0 * y_stride + 0 * LANES, rescale(a0_0, x, t + 0, scale0), n0);
    vf_store_n(y + 1 * y_stride + 0 * LANES, rescale(a1_0, x, t + 1, scale0), n0);
    vf_store_n(y + 2 * y_stride + 0 * LANES, rescale(a2_0, x, t + 2, scale0), n0);
    vf_store_n(y + 3 * y_stride + 0 * LANES, rescale(a3_0, x, t + 3, scale0), n0);
    vf_store_n(y + 4 * y_stride + 0 * LANES, rescale(a4_0, x, t + 4, scale0), n0);
    vf_store_n(y + 5 * y_stride + 0 * LANES, rescale(a5_0, x, t + 5, scale0), n0);
    vf_store_n(y + 6 * y_stride + 0 * LANES, rescale(a6_0, x, t + 6, scale0), n0);
    vf_store_n(y + 7 * y_stride + 0 * LANES, rescale(a7_0, x, t + 7, scale0), n0);
    const size_t n1 = tail_lanes(rows, 1 * LANES, LANES);
    const vf scale1 = scales(m, r + 1 * LANES, n1);
    vf_store_n(y + 0 * y_stride + 1 * LANES, rescale(a0_1, x, t + 0, scale1), n1);
    vf_store_n(y + 1 * y_stride + 1 * LANES, rescale(a1_1, x, t + 1, scale1), n1);
    vf_store_n(y + 2 * y_stride + 1 * LANES, rescale(a2_1, x, t + 2, scale1), n1);
    vf_store_n(y + 3 * y_stride + 1 * LANES, rescale(a3_1, x, t + 3, scale1), n1);
    vf_store_n(y + 4 * y_stride + 1 * LANES, rescale(a4_1, x, t + 4, scale1), n1);
    vf_store_n(y + 5 * y_stride + 1 * LANES, rescale(a5_1, x, t + 5, scale1), n1);
    vf_store_n(y + 6 * y_stride + 1 * LANES, rescale(a6_1, x, t + 6, scale1), n1);
    vf_store_n(y + 7 * y_stride + 1 * LANES, rescale(a7_1, x, t + 7, scale1), n1);
}

/* Two groups from row r x the first tokens of the tile; returns the first token that is left. */
static size_t pairs(const tern_matrix *m, const uint8_t *w, size_t chunks,
    const tern_activations *x,
                    const tern_tile *tile, size_t r, size_t rows, float *y, size_t y_stride) {
    const size_t passes = (tile->t1 - tile->t0) / TOKENS;
    for (size_t i = 0; i < passes; i++) {
        const size_t t = tile->t0 + i * TOKENS;
        wide(m, w, chunks, prefetch_pair(w, chunks, i, passes), x, r, rows, t,
            y + t * y_stride + r, y_stride);
    }
    return tile->t0 + passes * TOKENS;
}

void tern_gemm_i2_s_16x8_avx512vbmi(const tern_matrix *w, const tern_activations *x,
    const tern_tile *tile, float *y,
    size_t y_stride) {
    const size_t chunks = (w->cols + CHUNK_COLS - 1) / CHUNK_COLS;
    for (size_t r = tile->r0, next; r < tile->r1; r = next) {
        const uint8_t *group = (const uint8_t *)w->data + r / TERN_ROW_GROUP * chunks * CHUNK_BYTES;
        const bool two = tile->r1 - r > TERN_ROW_GROUP && tile->t1 - tile->t0 >= 2 * TOKENS;
        tern_tile rest = *tile;
        next = r + (two ? GROUPS * TERN_ROW_GROUP : TERN_ROW_GROUP);
        if (two)
            rest.t0 = pairs(w, group, chunks, x, tile, r, tile->r1 - r, y, y_stride);
        for (size_t i = r; rest.t0 < rest.t1 && i < next; i += TERN_ROW_GROUP) {
            const size_t rows = tile->r1 - i < TERN_ROW_GROUP ? tile->r1 - i : TERN_ROW_GROUP;
            direct(w, group + (i - r) / TERN_ROW_GROUP * chunks * CHUNK_BYTES, chunks, x, &rest,
                i, rows, y, y_stride);
        }
    }
}
