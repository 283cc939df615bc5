/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_gemm_i2_s_32x16_amx of kernels/kernels.toml
 * and template kernels/matmul_ternary_tiles.c.j2. Do not edit.
 */

#include "tern/kernels.h"

tern_matmul_fn tern_gemm_i2_s_32x16_amx;

/*
 * Ternary matrix product: lanes are rows. A 64-byte chunk holds 16 rows x CHUNK_COLS columns as
 * planes of four; plane p of chunk c meets columns CHUNK_COLS * c + 4p .. + 3 of each token, which
 * a splat hands to all rows. Layout T2R16 has four planes of two bits.
 */
#include "kernels/isa/amx.h"

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
    return vf_mul(vf_quotient(y, x->s[t]), scale);
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
            ask_ahead(next.at + c * next.step);
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
            ask_ahead(next.at + c * next.step);
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
            ask_ahead(next.at + c * next.step);
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
            ask_ahead(next.at + c * next.step);
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

enum {
    GROUPS = 2,
    PAIR_BYTES = GROUPS * CHUNK_BYTES,
    PLANES = 4,
    STEP_BYTES = GROUPS * sizeof(vb), /* four columns of both groups, unpacked */
    PART_CHUNKS = 384 / CHUNK_COLS,   /* 12 KB, unpacked */
    PART_STEPS = PART_CHUNKS * PLANES,
    BLOCK_TOKENS = 128, /* whose sums are 16 KB */
    LEAST_TOKENS = TERN_TILE_TOKENS_TERNARY,  /* for which unpacking once is faster */
    LANES = 16,
    LONGEST = 65535 /* columns */
};

_Static_assert((int)LANES == (int)TERN_ROW_GROUP, "a group is a vector");
_Static_assert((int)LEAST_TOKENS <= (int)TERN_MANY_TOKENS, "tests of many tokens miss the blocks");
_Static_assert(LONGEST / 4 + PLANES < TERN_MACS_2BIT, "sums of the longest row may overflow");
/* A part of two row groups: [step][group], and raw sums of a block: [token][group]. */
typedef struct scratch {
    _Alignas(TERN_ALIGN) uint8_t codes[PART_STEPS * STEP_BYTES];
    _Alignas(TERN_ALIGN) int32_t sums[BLOCK_TOKENS * GROUPS * LANES];
    _Alignas(TERN_ALIGN) int8_t rest[TILE_ROWS * 4 * PART_STEPS]; /* of the last tokens */
} scratch;
/* Where a pass over a pair prefetches: the address for its first chunk, bytes a chunk,
    and a second line of each. */
typedef struct pair_ahead {
    const uint8_t *at;
    size_t step, second;
} pair_ahead;

/* Pass `i` of `passes` asks for its share of the two groups that follow; alone, for all. */
static pair_ahead prefetch_pair(const uint8_t *pair, size_t chunks, size_t i, size_t passes) {
    const size_t bytes = chunks * PAIR_BYTES;
    return (pair_ahead){pair + bytes + bytes / passes * i, PAIR_BYTES / passes,
        passes == 1 ? CHUNK_BYTES : 0};
}

/* Two groups from row r x 8 token(s) from t; codes of the first at w. */
static void wide_8(const tern_matrix *m, const uint8_t *w, size_t chunks, pair_ahead next,
    const tern_activations *x,
                   size_t r, size_t rows, size_t t, float *y, size_t y_stride) {
    const uint8_t *w1 = w + chunks * CHUNK_BYTES;
    const size_t stride = x->q_stride;
    const int8_t *x0 = x->q + t * x->q_stride;
    const int8_t *x3 = x->q + t * x->q_stride + 3 * stride;
    const int8_t *x6 = x->q + t * x->q_stride + 6 * stride;

    vp s0_0_0 = vp_zero();
    vp s0_1_0 = vp_zero();
    vp s1_0_0 = vp_zero();
    vp s1_1_0 = vp_zero();
    vp s2_0_0 = vp_zero();
    vp s2_1_0 = vp_zero();
    vp s3_0_0 = vp_zero();
    vp s3_1_0 = vp_zero();
    vp s4_0_0 = vp_zero();
    vp s4_1_0 = vp_zero();
    vp s5_0_0 = vp_zero();
    vp s5_1_0 = vp_zero();
    vp s6_0_0 = vp_zero();
    vp s6_1_0 = vp_zero();
    vp s7_0_0 = vp_zero();
    vp s7_1_0 = vp_zero();
    for (size_t c = chunks; c > 0; c--) {
        const vb c0 = vb_load(w);
        const vb c1 = vb_load(w1);
        ask_ahead(next.at);
        ask_ahead(next.at + next.second);
        {
            const vb p0 = vb_plane2(c0, 0);
            const vb p1 = vb_plane2(c1, 0);
            const vb b0 = vb_splat4(x0);
            s0_0_0 = vp_mac(s0_0_0, p0, b0);
            s0_1_0 = vp_mac(s0_1_0, p1, b0);
            const vb b1 = vb_splat4(x0 + stride);
            s1_0_0 = vp_mac(s1_0_0, p0, b1);
            s1_1_0 = vp_mac(s1_1_0, p1, b1);
            const vb b2 = vb_splat4(x0 + 2 * stride);
            s2_0_0 = vp_mac(s2_0_0, p0, b2);
            s2_1_0 = vp_mac(s2_1_0, p1, b2);
            const vb b3 = vb_splat4(x3);
            s3_0_0 = vp_mac(s3_0_0, p0, b3);
            s3_1_0 = vp_mac(s3_1_0, p1, b3);
            const vb b4 = vb_splat4(x3 + stride);
            s4_0_0 = vp_mac(s4_0_0, p0, b4);
            s4_1_0 = vp_mac(s4_1_0, p1, b4);
            const vb b5 = vb_splat4(x3 + 2 * stride);
            s5_0_0 = vp_mac(s5_0_0, p0, b5);
            s5_1_0 = vp_mac(s5_1_0, p1, b5);
            const vb b6 = vb_splat4(x6);
            s6_0_0 = vp_mac(s6_0_0, p0, b6);
            s6_1_0 = vp_mac(s6_1_0, p1, b6);
            const vb b7 = vb_splat4(x6 + stride);
            s7_0_0 = vp_mac(s7_0_0, p0, b7);
            s7_1_0 = vp_mac(s7_1_0, p1, b7);
        }
        {
            const vb p0 = vb_plane2(c0, 1);
            const vb p1 = vb_plane2(c1, 1);
            const vb b0 = vb_splat4(x0 + 4);
            s0_0_0 = vp_mac(s0_0_0, p0, b0);
            s0_1_0 = vp_mac(s0_1_0, p1, b0);
            const vb b1 = vb_splat4(x0 + stride + 4);
            s1_0_0 = vp_mac(s1_0_0, p0, b1);
            s1_1_0 = vp_mac(s1_1_0, p1, b1);
            const vb b2 = vb_splat4(x0 + 2 * stride + 4);
            s2_0_0 = vp_mac(s2_0_0, p0, b2);
            s2_1_0 = vp_mac(s2_1_0, p1, b2);
            const vb b3 = vb_splat4(x3 + 4);
            s3_0_0 = vp_mac(s3_0_0, p0, b3);
            s3_1_0 = vp_mac(s3_1_0, p1, b3);
            const vb b4 = vb_splat4(x3 + stride + 4);
            s4_0_0 = vp_mac(s4_0_0, p0, b4);
            s4_1_0 = vp_mac(s4_1_0, p1, b4);
            const vb b5 = vb_splat4(x3 + 2 * stride + 4);
            s5_0_0 = vp_mac(s5_0_0, p0, b5);
            s5_1_0 = vp_mac(s5_1_0, p1, b5);
            const vb b6 = vb_splat4(x6 + 4);
            s6_0_0 = vp_mac(s6_0_0, p0, b6);
            s6_1_0 = vp_mac(s6_1_0, p1, b6);
            const vb b7 = vb_splat4(x6 + stride + 4);
            s7_0_0 = vp_mac(s7_0_0, p0, b7);
            s7_1_0 = vp_mac(s7_1_0, p1, b7);
        }
        {
            const vb p0 = vb_plane2(c0, 2);
            const vb p1 = vb_plane2(c1, 2);
            const vb b0 = vb_splat4(x0 + 8);
            s0_0_0 = vp_mac(s0_0_0, p0, b0);
            s0_1_0 = vp_mac(s0_1_0, p1, b0);
            const vb b1 = vb_splat4(x0 + stride + 8);
            s1_0_0 = vp_mac(s1_0_0, p0, b1);
            s1_1_0 = vp_mac(s1_1_0, p1, b1);
            const vb b2 = vb_splat4(x0 + 2 * stride + 8);
            s2_0_0 = vp_mac(s2_0_0, p0, b2);
            s2_1_0 = vp_mac(s2_1_0, p1, b2);
            const vb b3 = vb_splat4(x3 + 8);
            s3_0_0 = vp_mac(s3_0_0, p0, b3);
            s3_1_0 = vp_mac(s3_1_0, p1, b3);
            const vb b4 = vb_splat4(x3 + stride + 8);
            s4_0_0 = vp_mac(s4_0_0, p0, b4);
            s4_1_0 = vp_mac(s4_1_0, p1, b4);
            const vb b5 = vb_splat4(x3 + 2 * stride + 8);
            s5_0_0 = vp_mac(s5_0_0, p0, b5);
            s5_1_0 = vp_mac(s5_1_0, p1, b5);
            const vb b6 = vb_splat4(x6 + 8);
            s6_0_0 = vp_mac(s6_0_0, p0, b6);
            s6_1_0 = vp_mac(s6_1_0, p1, b6);
            const vb b7 = vb_splat4(x6 + stride + 8);
            s7_0_0 = vp_mac(s7_0_0, p0, b7);
            s7_1_0 = vp_mac(s7_1_0, p1, b7);
        }
        {
            const vb p0 = vb_plane2(c0, 3);
            const vb p1 = vb_plane2(c1, 3);
            const vb b0 = vb_splat4(x0 + 12);
            s0_0_0 = vp_mac(s0_0_0, p0, b0);
            s0_1_0 = vp_mac(s0_1_0, p1, b0);
            const vb b1 = vb_splat4(x0 + stride + 12);
            s1_0_0 = vp_mac(s1_0_0, p0, b1);
            s1_1_0 = vp_mac(s1_1_0, p1, b1);
            const vb b2 = vb_splat4(x0 + 2 * stride + 12);
            s2_0_0 = vp_mac(s2_0_0, p0, b2);
            s2_1_0 = vp_mac(s2_1_0, p1, b2);
            const vb b3 = vb_splat4(x3 + 12);
            s3_0_0 = vp_mac(s3_0_0, p0, b3);
            s3_1_0 = vp_mac(s3_1_0, p1, b3);
            const vb b4 = vb_splat4(x3 + stride + 12);
            s4_0_0 = vp_mac(s4_0_0, p0, b4);
            s4_1_0 = vp_mac(s4_1_0, p1, b4);
            const vb b5 = vb_splat4(x3 + 2 * stride + 12);
            s5_0_0 = vp_mac(s5_0_0, p0, b5);
            s5_1_0 = vp_mac(s5_1_0, p1, b5);
            const vb b6 = vb_splat4(x6 + 12);
            s6_0_0 = vp_mac(s6_0_0, p0, b6);
            s6_1_0 = vp_mac(s6_1_0, p1, b6);
            const vb b7 = vb_splat4(x6 + stride + 12);
            s7_0_0 = vp_mac(s7_0_0, p0, b7);
            s7_1_0 = vp_mac(s7_1_0, p1, b7);
        }
        w += CHUNK_BYTES;
        w1 += CHUNK_BYTES;
        next.at += next.step;
        x0 += CHUNK_COLS;
        x3 += CHUNK_COLS;
        x6 += CHUNK_COLS;
    }
    const size_t n0 = tail_lanes(rows, 0 * LANES, LANES);
    const vf scale0 = scales(m, r + 0 * LANES, n0);
    vi a0_0 = vi_zero();
    a0_0 = vi_flush(a0_0, s0_0_0);
    vf_store_n(y + 0 * y_stride + 0 * LANES, rescale(a0_0, x, t + 0, scale0), n0);
    vi a1_0 = vi_zero();
    a1_0 = vi_flush(a1_0, s1_0_0);
    vf_store_n(y + 1 * y_stride + 0 * LANES, rescale(a1_0, x, t + 1, scale0), n0);
    vi a2_0 = vi_zero();
    a2_0 = vi_flush(a2_0, s2_0_0);
    vf_store_n(y + 2 * y_stride + 0 * LANES, rescale(a2_0, x, t + 2, scale0), n0);
    vi a3_0 = vi_zero();
    a3_0 = vi_flush(a3_0, s3_0_0);
    vf_store_n(y + 3 * y_stride + 0 * LANES, rescale(a3_0, x, t + 3, scale0), n0);
    vi a4_0 = vi_zero();
    a4_0 = vi_flush(a4_0, s4_0_0);
    vf_store_n(y + 4 * y_stride + 0 * LANES, rescale(a4_0, x, t + 4, scale0), n0);
    vi a5_0 = vi_zero();
    a5_0 = vi_flush(a5_0, s5_0_0);
    vf_store_n(y + 5 * y_stride + 0 * LANES, rescale(a5_0, x, t + 5, scale0), n0);
    vi a6_0 = vi_zero();
    a6_0 = vi_flush(a6_0, s6_0_0);
    vf_store_n(y + 6 * y_stride + 0 * LANES, rescale(a6_0, x, t + 6, scale0), n0);
    vi a7_0 = vi_zero();
    a7_0 = vi_flush(a7_0, s7_0_0);
    vf_store_n(y + 7 * y_stride + 0 * LANES, rescale(a7_0, x, t + 7, scale0), n0);
    const size_t n1 = tail_lanes(rows, 1 * LANES, LANES);
    const vf scale1 = scales(m, r + 1 * LANES, n1);
    vi a0_1 = vi_zero();
    a0_1 = vi_flush(a0_1, s0_1_0);
    vf_store_n(y + 0 * y_stride + 1 * LANES, rescale(a0_1, x, t + 0, scale1), n1);
    vi a1_1 = vi_zero();
    a1_1 = vi_flush(a1_1, s1_1_0);
    vf_store_n(y + 1 * y_stride + 1 * LANES, rescale(a1_1, x, t + 1, scale1), n1);
    vi a2_1 = vi_zero();
    a2_1 = vi_flush(a2_1, s2_1_0);
    vf_store_n(y + 2 * y_stride + 1 * LANES, rescale(a2_1, x, t + 2, scale1), n1);
    vi a3_1 = vi_zero();
    a3_1 = vi_flush(a3_1, s3_1_0);
    vf_store_n(y + 3 * y_stride + 1 * LANES, rescale(a3_1, x, t + 3, scale1), n1);
    vi a4_1 = vi_zero();
    a4_1 = vi_flush(a4_1, s4_1_0);
    vf_store_n(y + 4 * y_stride + 1 * LANES, rescale(a4_1, x, t + 4, scale1), n1);
    vi a5_1 = vi_zero();
    a5_1 = vi_flush(a5_1, s5_1_0);
    vf_store_n(y + 5 * y_stride + 1 * LANES, rescale(a5_1, x, t + 5, scale1), n1);
    vi a6_1 = vi_zero();
    a6_1 = vi_flush(a6_1, s6_1_0);
    vf_store_n(y + 6 * y_stride + 1 * LANES, rescale(a6_1, x, t + 6, scale1), n1);
    vi a7_1 = vi_zero();
    a7_1 = vi_flush(a7_1, s7_1_0);
    vf_store_n(y + 7 * y_stride + 1 * LANES, rescale(a7_1, x, t + 7, scale1), n1);
}

/* Two groups from row r x 4 token(s) from t; codes of the first at w. */
static void wide_4(const tern_matrix *m, const uint8_t *w, size_t chunks, pair_ahead next,
    const tern_activations *x,
                   size_t r, size_t rows, size_t t, float *y, size_t y_stride) {
    const uint8_t *w1 = w + chunks * CHUNK_BYTES;
    const size_t stride = x->q_stride;
    const int8_t *x0 = x->q + t * x->q_stride;
    const int8_t *x3 = x->q + t * x->q_stride + 3 * stride;

    vp s0_0_0 = vp_zero();
    vp s0_0_1 = vp_zero();
    vp s0_1_0 = vp_zero();
    vp s0_1_1 = vp_zero();
    vp s1_0_0 = vp_zero();
    vp s1_0_1 = vp_zero();
    vp s1_1_0 = vp_zero();
    vp s1_1_1 = vp_zero();
    vp s2_0_0 = vp_zero();
    vp s2_0_1 = vp_zero();
    vp s2_1_0 = vp_zero();
    vp s2_1_1 = vp_zero();
    vp s3_0_0 = vp_zero();
    vp s3_0_1 = vp_zero();
    vp s3_1_0 = vp_zero();
    vp s3_1_1 = vp_zero();
    for (size_t c = chunks; c > 0; c--) {
        const vb c0 = vb_load(w);
        const vb c1 = vb_load(w1);
        ask_ahead(next.at);
        ask_ahead(next.at + next.second);
        {
            const vb p0 = vb_plane2(c0, 0);
            const vb p1 = vb_plane2(c1, 0);
            const vb b0 = vb_splat4(x0);
            s0_0_0 = vp_mac(s0_0_0, p0, b0);
            s0_1_0 = vp_mac(s0_1_0, p1, b0);
            const vb b1 = vb_splat4(x0 + stride);
            s1_0_0 = vp_mac(s1_0_0, p0, b1);
            s1_1_0 = vp_mac(s1_1_0, p1, b1);
            const vb b2 = vb_splat4(x0 + 2 * stride);
            s2_0_0 = vp_mac(s2_0_0, p0, b2);
            s2_1_0 = vp_mac(s2_1_0, p1, b2);
            const vb b3 = vb_splat4(x3);
            s3_0_0 = vp_mac(s3_0_0, p0, b3);
            s3_1_0 = vp_mac(s3_1_0, p1, b3);
        }
        {
            const vb p0 = vb_plane2(c0, 1);
            const vb p1 = vb_plane2(c1, 1);
            const vb b0 = vb_splat4(x0 + 4);
            s0_0_1 = vp_mac(s0_0_1, p0, b0);
            s0_1_1 = vp_mac(s0_1_1, p1, b0);
            const vb b1 = vb_splat4(x0 + stride + 4);
            s1_0_1 = vp_mac(s1_0_1, p0, b1);
            s1_1_1 = vp_mac(s1_1_1, p1, b1);
            const vb b2 = vb_splat4(x0 + 2 * stride + 4);
            s2_0_1 = vp_mac(s2_0_1, p0, b2);
            s2_1_1 = vp_mac(s2_1_1, p1, b2);
            const vb b3 = vb_splat4(x3 + 4);
            s3_0_1 = vp_mac(s3_0_1, p0, b3);
            s3_1_1 = vp_mac(s3_1_1, p1, b3);
        }
        {
            const vb p0 = vb_plane2(c0, 2);
            const vb p1 = vb_plane2(c1, 2);
            const vb b0 = vb_splat4(x0 + 8);
            s0_0_0 = vp_mac(s0_0_0, p0, b0);
            s0_1_0 = vp_mac(s0_1_0, p1, b0);
            const vb b1 = vb_splat4(x0 + stride + 8);
            s1_0_0 = vp_mac(s1_0_0, p0, b1);
            s1_1_0 = vp_mac(s1_1_0, p1, b1);
            const vb b2 = vb_splat4(x0 + 2 * stride + 8);
            s2_0_0 = vp_mac(s2_0_0, p0, b2);
            s2_1_0 = vp_mac(s2_1_0, p1, b2);
            const vb b3 = vb_splat4(x3 + 8);
            s3_0_0 = vp_mac(s3_0_0, p0, b3);
            s3_1_0 = vp_mac(s3_1_0, p1, b3);
        }
        {
            const vb p0 = vb_plane2(c0, 3);
            const vb p1 = vb_plane2(c1, 3);
            const vb b0 = vb_splat4(x0 + 12);
            s0_0_1 = vp_mac(s0_0_1, p0, b0);
            s0_1_1 = vp_mac(s0_1_1, p1, b0);
            const vb b1 = vb_splat4(x0 + stride + 12);
            s1_0_1 = vp_mac(s1_0_1, p0, b1);
            s1_1_1 = vp_mac(s1_1_1, p1, b1);
            const vb b2 = vb_splat4(x0 + 2 * stride + 12);
            s2_0_1 = vp_mac(s2_0_1, p0, b2);
            s2_1_1 = vp_mac(s2_1_1, p1, b2);
            const vb b3 = vb_splat4(x3 + 12);
            s3_0_1 = vp_mac(s3_0_1, p0, b3);
            s3_1_1 = vp_mac(s3_1_1, p1, b3);
        }
        w += CHUNK_BYTES;
        w1 += CHUNK_BYTES;
        next.at += next.step;
        x0 += CHUNK_COLS;
        x3 += CHUNK_COLS;
    }
    const size_t n0 = tail_lanes(rows, 0 * LANES, LANES);
    const vf scale0 = scales(m, r + 0 * LANES, n0);
    vi a0_0 = vi_zero();
    a0_0 = vi_flush(a0_0, s0_0_0);
    a0_0 = vi_flush(a0_0, s0_0_1);
    vf_store_n(y + 0 * y_stride + 0 * LANES, rescale(a0_0, x, t + 0, scale0), n0);
    vi a1_0 = vi_zero();
    a1_0 = vi_flush(a1_0, s1_0_0);
    a1_0 = vi_flush(a1_0, s1_0_1);
    vf_store_n(y + 1 * y_stride + 0 * LANES, rescale(a1_0, x, t + 1, scale0), n0);
    vi a2_0 = vi_zero();
    a2_0 = vi_flush(a2_0, s2_0_0);
    a2_0 = vi_flush(a2_0, s2_0_1);
    vf_store_n(y + 2 * y_stride + 0 * LANES, rescale(a2_0, x, t + 2, scale0), n0);
    vi a3_0 = vi_zero();
    a3_0 = vi_flush(a3_0, s3_0_0);
    a3_0 = vi_flush(a3_0, s3_0_1);
    vf_store_n(y + 3 * y_stride + 0 * LANES, rescale(a3_0, x, t + 3, scale0), n0);
    const size_t n1 = tail_lanes(rows, 1 * LANES, LANES);
    const vf scale1 = scales(m, r + 1 * LANES, n1);
    vi a0_1 = vi_zero();
    a0_1 = vi_flush(a0_1, s0_1_0);
    a0_1 = vi_flush(a0_1, s0_1_1);
    vf_store_n(y + 0 * y_stride + 1 * LANES, rescale(a0_1, x, t + 0, scale1), n1);
    vi a1_1 = vi_zero();
    a1_1 = vi_flush(a1_1, s1_1_0);
    a1_1 = vi_flush(a1_1, s1_1_1);
    vf_store_n(y + 1 * y_stride + 1 * LANES, rescale(a1_1, x, t + 1, scale1), n1);
    vi a2_1 = vi_zero();
    a2_1 = vi_flush(a2_1, s2_1_0);
    a2_1 = vi_flush(a2_1, s2_1_1);
    vf_store_n(y + 2 * y_stride + 1 * LANES, rescale(a2_1, x, t + 2, scale1), n1);
    vi a3_1 = vi_zero();
    a3_1 = vi_flush(a3_1, s3_1_0);
    a3_1 = vi_flush(a3_1, s3_1_1);
    vf_store_n(y + 3 * y_stride + 1 * LANES, rescale(a3_1, x, t + 3, scale1), n1);
}

/* Two groups from row r x 2 token(s) from t; codes of the first at w. */
static void wide_2(const tern_matrix *m, const uint8_t *w, size_t chunks, pair_ahead next,
    const tern_activations *x,
                   size_t r, size_t rows, size_t t, float *y, size_t y_stride) {
    const uint8_t *w1 = w + chunks * CHUNK_BYTES;
    const size_t stride = x->q_stride;
    const int8_t *x0 = x->q + t * x->q_stride;

    vp s0_0_0 = vp_zero();
    vp s0_0_1 = vp_zero();
    vp s0_0_2 = vp_zero();
    vp s0_0_3 = vp_zero();
    vp s0_1_0 = vp_zero();
    vp s0_1_1 = vp_zero();
    vp s0_1_2 = vp_zero();
    vp s0_1_3 = vp_zero();
    vp s1_0_0 = vp_zero();
    vp s1_0_1 = vp_zero();
    vp s1_0_2 = vp_zero();
    vp s1_0_3 = vp_zero();
    vp s1_1_0 = vp_zero();
    vp s1_1_1 = vp_zero();
    vp s1_1_2 = vp_zero();
    vp s1_1_3 = vp_zero();
    for (size_t c = chunks; c > 0; c--) {
        const vb c0 = vb_load(w);
        const vb c1 = vb_load(w1);
        ask_ahead(next.at);
        ask_ahead(next.at + next.second);
        {
            const vb p0 = vb_plane2(c0, 0);
            const vb p1 = vb_plane2(c1, 0);
            const vb b0 = vb_splat4(x0);
            s0_0_0 = vp_mac(s0_0_0, p0, b0);
            s0_1_0 = vp_mac(s0_1_0, p1, b0);
            const vb b1 = vb_splat4(x0 + stride);
            s1_0_0 = vp_mac(s1_0_0, p0, b1);
            s1_1_0 = vp_mac(s1_1_0, p1, b1);
        }
        {
            const vb p0 = vb_plane2(c0, 1);
            const vb p1 = vb_plane2(c1, 1);
            const vb b0 = vb_splat4(x0 + 4);
            s0_0_1 = vp_mac(s0_0_1, p0, b0);
            s0_1_1 = vp_mac(s0_1_1, p1, b0);
            const vb b1 = vb_splat4(x0 + stride + 4);
            s1_0_1 = vp_mac(s1_0_1, p0, b1);
            s1_1_1 = vp_mac(s1_1_1, p1, b1);
        }
        {
            const vb p0 = vb_plane2(c0, 2);
            const vb p1 = vb_plane2(c1, 2);
            const vb b0 = vb_splat4(x0 + 8);
            s0_0_2 = vp_mac(s0_0_2, p0, b0);
            s0_1_2 = vp_mac(s0_1_2, p1, b0);
            const vb b1 = vb_splat4(x0 + stride + 8);
            s1_0_2 = vp_mac(s1_0_2, p0, b1);
            s1_1_2 = vp_mac(s1_1_2, p1, b1);
        }
        {
            const vb p0 = vb_plane2(c0, 3);
            const vb p1 = vb_plane2(c1, 3);
            const vb b0 = vb_splat4(x0 + 12);
            s0_0_3 = vp_mac(s0_0_3, p0, b0);
            s0_1_3 = vp_mac(s0_1_3, p1, b0);
            const vb b1 = vb_splat4(x0 + stride + 12);
            s1_0_3 = vp_mac(s1_0_3, p0, b1);
            s1_1_3 = vp_mac(s1_1_3, p1, b1);
        }
        w += CHUNK_BYTES;
        w1 += CHUNK_BYTES;
        next.at += next.step;
        x0 += CHUNK_COLS;
    }
    const size_t n0 = tail_lanes(rows, 0 * LANES, LANES);
    const vf scale0 = scales(m, r + 0 * LANES, n0);
    vi a0_0 = vi_zero();
    a0_0 = vi_flush(a0_0, s0_0_0);
    a0_0 = vi_flush(a0_0, s0_0_1);
    a0_0 = vi_flush(a0_0, s0_0_2);
    a0_0 = vi_flush(a0_0, s0_0_3);
    vf_store_n(y + 0 * y_stride + 0 * LANES, rescale(a0_0, x, t + 0, scale0), n0);
    vi a1_0 = vi_zero();
    a1_0 = vi_flush(a1_0, s1_0_0);
    a1_0 = vi_flush(a1_0, s1_0_1);
    a1_0 = vi_flush(a1_0, s1_0_2);
    a1_0 = vi_flush(a1_0, s1_0_3);
    vf_store_n(y + 1 * y_stride + 0 * LANES, rescale(a1_0, x, t + 1, scale0), n0);
    const size_t n1 = tail_lanes(rows, 1 * LANES, LANES);
    const vf scale1 = scales(m, r + 1 * LANES, n1);
    vi a0_1 = vi_zero();
    a0_1 = vi_flush(a0_1, s0_1_0);
    a0_1 = vi_flush(a0_1, s0_1_1);
    a0_1 = vi_flush(a0_1, s0_1_2);
    a0_1 = vi_flush(a0_1, s0_1_3);
    vf_store_n(y + 0 * y_stride + 1 * LANES, rescale(a0_1, x, t + 0, scale1), n1);
    vi a1_1 = vi_zero();
    a1_1 = vi_flush(a1_1, s1_1_0);
    a1_1 = vi_flush(a1_1, s1_1_1);
    a1_1 = vi_flush(a1_1, s1_1_2);
    a1_1 = vi_flush(a1_1, s1_1_3);
    vf_store_n(y + 1 * y_stride + 1 * LANES, rescale(a1_1, x, t + 1, scale1), n1);
}

/* Two groups from row r x 1 token(s) from t; codes of the first at w. */
static void wide_1(const tern_matrix *m, const uint8_t *w, size_t chunks, pair_ahead next,
    const tern_activations *x,
                   size_t r, size_t rows, size_t t, float *y, size_t y_stride) {
    const uint8_t *w1 = w + chunks * CHUNK_BYTES;
    const int8_t *x0 = x->q + t * x->q_stride;

    vp s0_0_0 = vp_zero();
    vp s0_0_1 = vp_zero();
    vp s0_0_2 = vp_zero();
    vp s0_0_3 = vp_zero();
    vp s0_1_0 = vp_zero();
    vp s0_1_1 = vp_zero();
    vp s0_1_2 = vp_zero();
    vp s0_1_3 = vp_zero();
    for (size_t c = chunks; c > 0; c--) {
        const vb c0 = vb_load(w);
        const vb c1 = vb_load(w1);
        ask_ahead(next.at);
        ask_ahead(next.at + next.second);
        {
            const vb p0 = vb_plane2(c0, 0);
            const vb p1 = vb_plane2(c1, 0);
            const vb b0 = vb_splat4(x0);
            s0_0_0 = vp_mac(s0_0_0, p0, b0);
            s0_1_0 = vp_mac(s0_1_0, p1, b0);
        }
        {
            const vb p0 = vb_plane2(c0, 1);
            const vb p1 = vb_plane2(c1, 1);
            const vb b0 = vb_splat4(x0 + 4);
            s0_0_1 = vp_mac(s0_0_1, p0, b0);
            s0_1_1 = vp_mac(s0_1_1, p1, b0);
        }
        {
            const vb p0 = vb_plane2(c0, 2);
            const vb p1 = vb_plane2(c1, 2);
            const vb b0 = vb_splat4(x0 + 8);
            s0_0_2 = vp_mac(s0_0_2, p0, b0);
            s0_1_2 = vp_mac(s0_1_2, p1, b0);
        }
        {
            const vb p0 = vb_plane2(c0, 3);
            const vb p1 = vb_plane2(c1, 3);
            const vb b0 = vb_splat4(x0 + 12);
            s0_0_3 = vp_mac(s0_0_3, p0, b0);
            s0_1_3 = vp_mac(s0_1_3, p1, b0);
        }
        w += CHUNK_BYTES;
        w1 += CHUNK_BYTES;
        next.at += next.step;
        x0 += CHUNK_COLS;
    }
    const size_t n0 = tail_lanes(rows, 0 * LANES, LANES);
    const vf scale0 = scales(m, r + 0 * LANES, n0);
    vi a0_0 = vi_zero();
    a0_0 = vi_flush(a0_0, s0_0_0);
    a0_0 = vi_flush(a0_0, s0_0_1);
    a0_0 = vi_flush(a0_0, s0_0_2);
    a0_0 = vi_flush(a0_0, s0_0_3);
    vf_store_n(y + 0 * y_stride + 0 * LANES, rescale(a0_0, x, t + 0, scale0), n0);
    const size_t n1 = tail_lanes(rows, 1 * LANES, LANES);
    const vf scale1 = scales(m, r + 1 * LANES, n1);
    vi a0_1 = vi_zero();
    a0_1 = vi_flush(a0_1, s0_1_0);
    a0_1 = vi_flush(a0_1, s0_1_1);
    a0_1 = vi_flush(a0_1, s0_1_2);
    a0_1 = vi_flush(a0_1, s0_1_3);
    vf_store_n(y + 0 * y_stride + 1 * LANES, rescale(a0_1, x, t + 0, scale1), n1);
}

/* Two groups from row r x the tokens of the tile. */
static void few(const tern_matrix *m, const uint8_t *w, size_t chunks, const tern_activations *x,
                const tern_tile *tile, size_t r, size_t rows, float *y, size_t y_stride) {
    const size_t n = tile->t1 - tile->t0;
    size_t passes = 0;
    size_t pass = 0;
    size_t t = tile->t0;
    passes += n / 8;
    passes += n % 8 / 4;
    passes += n % 4 / 2;
    passes += n % 2;
    for (; t + 8 <= tile->t1; t += 8)
        wide_8(m, w, chunks, prefetch_pair(w, chunks, pass++, passes), x, r, rows, t,
            y + t * y_stride + r, y_stride);
    for (; t + 4 <= tile->t1; t += 4)
        wide_4(m, w, chunks, prefetch_pair(w, chunks, pass++, passes), x, r, rows, t,
            y + t * y_stride + r, y_stride);
    for (; t + 2 <= tile->t1; t += 2)
        wide_2(m, w, chunks, prefetch_pair(w, chunks, pass++, passes), x, r, rows, t,
            y + t * y_stride + r, y_stride);
    for (; t + 1 <= tile->t1; t += 1)
        wide_1(m, w, chunks, prefetch_pair(w, chunks, pass++, passes), x, r, rows, t,
            y + t * y_stride + r, y_stride);
}

_Static_assert(PART_STEPS % TILE_ROWS == 0, "a part is whole tiles");
_Static_assert(BLOCK_TOKENS % TILE_ROWS == 0, "a block has room for whole tiles");

/*
 * Unpacks the first `steps` steps of both groups. A last tile that is not whole is filled with
 * zeros; what the last chunk has beyond the matrix's columns meets activations that are 0.
 */
static void unpack(const uint8_t *w, size_t group_bytes, size_t steps, uint8_t *codes) {
    const size_t whole = (steps + TILE_ROWS - 1) / TILE_ROWS * TILE_ROWS;
    memset(codes + steps * STEP_BYTES, 0, (whole - steps) * STEP_BYTES);
    for (size_t step = 0; step < steps; step += PLANES) {
        const vb c0 = vb_load(w);
        const vb c1 = vb_load(w + group_bytes);
        ask_ahead(w + 2 * group_bytes);
        ask_ahead(w + 3 * group_bytes);
        const vb p0_0 = vb_plane2(c0, 0);
        memcpy(codes + 0 * STEP_BYTES + 0 * sizeof(vb), &p0_0, sizeof(vb));
        const vb p0_1 = vb_plane2(c1, 0);
        memcpy(codes + 0 * STEP_BYTES + 1 * sizeof(vb), &p0_1, sizeof(vb));
        const vb p1_0 = vb_plane2(c0, 1);
        memcpy(codes + 1 * STEP_BYTES + 0 * sizeof(vb), &p1_0, sizeof(vb));
        const vb p1_1 = vb_plane2(c1, 1);
        memcpy(codes + 1 * STEP_BYTES + 1 * sizeof(vb), &p1_1, sizeof(vb));
        const vb p2_0 = vb_plane2(c0, 2);
        memcpy(codes + 2 * STEP_BYTES + 0 * sizeof(vb), &p2_0, sizeof(vb));
        const vb p2_1 = vb_plane2(c1, 2);
        memcpy(codes + 2 * STEP_BYTES + 1 * sizeof(vb), &p2_1, sizeof(vb));
        const vb p3_0 = vb_plane2(c0, 3);
        memcpy(codes + 3 * STEP_BYTES + 0 * sizeof(vb), &p3_0, sizeof(vb));
        const vb p3_1 = vb_plane2(c1, 3);
        memcpy(codes + 3 * STEP_BYTES + 1 * sizeof(vb), &p3_1, sizeof(vb));
        w += CHUNK_BYTES;
        codes += PLANES * STEP_BYTES;
    }
}

/* Adds the products of n > 0 tiles of codes with 32 tokens to `sums`,
    which begin with them if `first`. */
static void tiles_2(const uint8_t *codes, size_t n, const int8_t *q, size_t stride, bool first,
    int32_t *sums) {
    const size_t sums_stride = GROUPS * LANES * sizeof *sums;
    if (first) {
        tile_zero(0);
        tile_zero(1);
        tile_zero(2);
        tile_zero(3);
    } else {
        tile_load(0, sums + 0 * GROUPS * LANES + 0 * LANES, sums_stride);
        tile_load(1, sums + 0 * GROUPS * LANES + 1 * LANES, sums_stride);
        tile_load(2, sums + 16 * GROUPS * LANES + 0 * LANES, sums_stride);
        tile_load(3, sums + 16 * GROUPS * LANES + 1 * LANES, sums_stride);
    }
    do {
        tile_load(4, q, stride);
        tile_load(5, q + TILE_ROWS * stride, stride);
        tile_load(6, codes + 0 * sizeof(vb), STEP_BYTES);
        tile_multiply(0, 4, 6);
        tile_multiply(2, 5, 6);
        tile_load(7, codes + 1 * sizeof(vb), STEP_BYTES);
        tile_multiply(1, 4, 7);
        tile_multiply(3, 5, 7);
        codes += TILE_ROWS * STEP_BYTES;
        q += TILE_ROW_BYTES;
    } while (--n > 0);
    tile_store(0, sums + 0 * GROUPS * LANES + 0 * LANES, sums_stride);
    tile_store(1, sums + 0 * GROUPS * LANES + 1 * LANES, sums_stride);
    tile_store(2, sums + 16 * GROUPS * LANES + 0 * LANES, sums_stride);
    tile_store(3, sums + 16 * GROUPS * LANES + 1 * LANES, sums_stride);
}

/* Adds the products of n > 0 tiles of codes with 16 tokens to `sums`,
    which begin with them if `first`. */
static void tiles_1(const uint8_t *codes, size_t n, const int8_t *q, size_t stride, bool first,
    int32_t *sums) {
    const size_t sums_stride = GROUPS * LANES * sizeof *sums;
    if (first) {
        tile_zero(0);
        tile_zero(1);
    } else {
        tile_load(0, sums + 0 * GROUPS * LANES + 0 * LANES, sums_stride);
        tile_load(1, sums + 0 * GROUPS * LANES + 1 * LANES, sums_stride);
    }
    do {
        tile_load(4, q, stride);
        tile_load(6, codes + 0 * sizeof(vb), STEP_BYTES);
        tile_multiply(0, 4, 6);
        tile_load(7, codes + 1 * sizeof(vb), STEP_BYTES);
        tile_multiply(1, 4, 7);
        codes += TILE_ROWS * STEP_BYTES;
        q += TILE_ROW_BYTES;
    } while (--n > 0);
    tile_store(0, sums + 0 * GROUPS * LANES + 0 * LANES, sums_stride);
    tile_store(1, sums + 0 * GROUPS * LANES + 1 * LANES, sums_stride);
}

/* The products of the last n < TILE_ROWS tokens: a tile is read whole,
    so they are copied into one. */
static void tiles_rest(scratch *part, size_t tiles, const int8_t *q, size_t stride, size_t n,
    bool first, int32_t *sums) {
    for (size_t t = 0; t < n; t++)
        memcpy(part->rest + t * 4 * PART_STEPS, q + t * stride, tiles * TILE_ROW_BYTES);
    tiles_1(part->codes, tiles, part->rest, 4 * PART_STEPS, first, sums);
}

/* Rescales the sums of n tokens from t, which are at `sums`. */
static void finish(const tern_matrix *m, const tern_activations *x, const int32_t *sums, size_t t,
    size_t n,
                   size_t r, size_t rows, float *y, size_t y_stride) {
    const size_t n0 = tail_lanes(rows, 0 * LANES, LANES);
    const vf scale0 = scales(m, r + 0 * LANES, n0);
    const size_t n1 = tail_lanes(rows, 1 * LANES, LANES);
    const vf scale1 = scales(m, r + 1 * LANES, n1);
    for (size_t i = t; i < t + n; i++, sums += GROUPS * LANES) {
        vi a0;
        memcpy(&a0, sums + 0 * LANES, sizeof(vi));
        vf_store_n(y + i * y_stride + r + 0 * LANES, rescale(a0, x, i, scale0), n0);
        vi a1;
        memcpy(&a1, sums + 1 * LANES, sizeof(vi));
        vf_store_n(y + i * y_stride + r + 1 * LANES, rescale(a1, x, i, scale1), n1);
    }
}

/* Two groups from row r x tokens [t0, t0 + n), n <= BLOCK_TOKENS. */
static void block(const tern_matrix *m, const uint8_t *w, size_t chunks,
    const tern_activations *x, size_t t0,
                  size_t n, size_t r, size_t rows, float *y, size_t y_stride) {
    const size_t stride = x->q_stride;
    const size_t all = chunks * PLANES;
    scratch part;
    if (n % TILE_ROWS > 0)
        memset(part.rest, 0, sizeof part.rest);
    for (size_t step = 0; step < all; step += PART_STEPS) {
        const size_t steps = all - step < PART_STEPS ? all - step : PART_STEPS;
        const size_t tiles = (steps + TILE_ROWS - 1) / TILE_ROWS;
        const bool last = step + steps == all;
        const int8_t *q = x->q + t0 * stride + 4 * step;
        size_t t = 0;
        unpack(w + step / PLANES * CHUNK_BYTES, chunks * CHUNK_BYTES, steps, part.codes);
        for (; t + 32 <= n; t += 32) {
            int32_t *sums = part.sums + t * GROUPS * LANES;
            tiles_2(part.codes, tiles, q + t * stride, stride, step == 0, sums);
            if (last)
                finish(m, x, sums, t0 + t, 32, r, rows, y, y_stride);
        }
        for (; t + 16 <= n; t += 16) {
            int32_t *sums = part.sums + t * GROUPS * LANES;
            tiles_1(part.codes, tiles, q + t * stride, stride, step == 0, sums);
            if (last)
                finish(m, x, sums, t0 + t, 16, r, rows, y, y_stride);
        }
        if (t < n) {
            int32_t *sums = part.sums + t * GROUPS * LANES;
            tiles_rest(&part, tiles, q + t * stride, stride, n - t, step == 0, sums);
            if (last)
                finish(m, x, sums, t0 + t, n - t, r, rows, y, y_stride);
        }
    }
}

/* Two groups from row r x the tokens of the tile, in blocks; the rest as few. */
static void many(const tern_matrix *m, const uint8_t *w, size_t chunks, const tern_activations *x,
                 const tern_tile *tile, size_t r, size_t rows, float *y, size_t y_stride) {
    tern_tile rest = *tile;
    while (rest.t1 - rest.t0 >= LEAST_TOKENS) {
        const size_t left = rest.t1 - rest.t0;
        const size_t n = left < BLOCK_TOKENS ? left : BLOCK_TOKENS;
        block(m, w, chunks, x, rest.t0, n, r, rows, y, y_stride);
        rest.t0 += n;
    }
    few(m, w, chunks, x, &rest, r, rows, y, y_stride);
}

void tern_gemm_i2_s_32x16_amx(const tern_matrix *w, const tern_activations *x,
    const tern_tile *tile, float *y,
    size_t y_stride) {
    const size_t chunks = (w->cols + CHUNK_COLS - 1) / CHUNK_COLS;
    const bool tiles = tile->t1 - tile->t0 >= LEAST_TOKENS;
    if (tiles)
        tiles_open(TILE_ROW_BYTES);
    for (size_t r = tile->r0; r < tile->r1; r += GROUPS * TERN_ROW_GROUP) {
        const uint8_t *group = (const uint8_t *)w->data + r / TERN_ROW_GROUP * chunks * CHUNK_BYTES;
        const size_t rows = tile->r1 - r;
        if (rows > TERN_ROW_GROUP)
            many(w, group, chunks, x, tile, r, rows, y, y_stride);
        else
            direct(w, group, chunks, x, tile, r, rows, y, y_stride);
    }
    if (tiles)
        tiles_close();
}
