/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_gemm_i2_s_8x8_neoni8mm of kernels/kernels.toml
 * and template kernels/matmul_ternary_pairs.c.j2. Do not edit.
 */

#include "tern/kernels.h"

tern_matmul_fn tern_gemm_i2_s_8x8_neoni8mm;

/*
 * Ternary matrix product: lanes are rows. A 64-byte chunk holds 16 rows x CHUNK_COLS columns as
 * planes of four; plane p of chunk c meets columns CHUNK_COLS * c + 4p .. + 3 of each token, which
 * a splat hands to all rows. Layout T2R16 has four planes of two bits.
 */
#include "kernels/isa/neoni8mm.h"

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

/* 8 rows from r x 8 token(s) from t; codes of the row group (or its part) at w. */
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

    vi s0_0_01 = vi_zero();
    vi s0_0_23 = vi_zero();
    vi s0_1_01 = vi_zero();
    vi s0_1_23 = vi_zero();
    vi s1_0_01 = vi_zero();
    vi s1_0_23 = vi_zero();
    vi s1_1_01 = vi_zero();
    vi s1_1_23 = vi_zero();
    vi s2_0_01 = vi_zero();
    vi s2_0_23 = vi_zero();
    vi s2_1_01 = vi_zero();
    vi s2_1_23 = vi_zero();
    vi s3_0_01 = vi_zero();
    vi s3_0_23 = vi_zero();
    vi s3_1_01 = vi_zero();
    vi s3_1_23 = vi_zero();
    for (size_t c = 0; c < chunks; c++) {
        const uint8_t *chunk = w + c * CHUNK_BYTES;
        ask_ahead(next.at + c * next.step);
        const vb even0 = vb_load(x0 + c * CHUNK_COLS);
        const vb odd0 = vb_load(x1 + c * CHUNK_COLS);
        const vb x0_lo = vb_tokens_lo(even0, odd0); /* columns 0-7 of the chunk */
        const vb x0_hi = vb_tokens_hi(even0, odd0);
        const vb even1 = vb_load(x2 + c * CHUNK_COLS);
        const vb odd1 = vb_load(x3 + c * CHUNK_COLS);
        const vb x1_lo = vb_tokens_lo(even1, odd1); /* columns 0-7 of the chunk */
        const vb x1_hi = vb_tokens_hi(even1, odd1);
        const vb even2 = vb_load(x4 + c * CHUNK_COLS);
        const vb odd2 = vb_load(x5 + c * CHUNK_COLS);
        const vb x2_lo = vb_tokens_lo(even2, odd2); /* columns 0-7 of the chunk */
        const vb x2_hi = vb_tokens_hi(even2, odd2);
        const vb even3 = vb_load(x6 + c * CHUNK_COLS);
        const vb odd3 = vb_load(x7 + c * CHUNK_COLS);
        const vb x3_lo = vb_tokens_lo(even3, odd3); /* columns 0-7 of the chunk */
        const vb x3_hi = vb_tokens_hi(even3, odd3);
        const vb c0 = vb_load(chunk + 0);
        const vb next0 = vb_srl2(c0); /* planes 1 and 3 where c has 0 and 2 */
        const vb c0_01 = vb_rows01(c0, next0);
        const vb lo0_01 = vb_plane2(c0_01, 0);
        const vb hi0_01 = vb_plane2(c0_01, 2);
        s0_0_01 = vi_mmla(s0_0_01, lo0_01, x0_lo);
        s1_0_01 = vi_mmla(s1_0_01, lo0_01, x1_lo);
        s2_0_01 = vi_mmla(s2_0_01, lo0_01, x2_lo);
        s3_0_01 = vi_mmla(s3_0_01, lo0_01, x3_lo);
        s0_0_01 = vi_mmla(s0_0_01, hi0_01, x0_hi);
        s1_0_01 = vi_mmla(s1_0_01, hi0_01, x1_hi);
        s2_0_01 = vi_mmla(s2_0_01, hi0_01, x2_hi);
        s3_0_01 = vi_mmla(s3_0_01, hi0_01, x3_hi);
        const vb c0_23 = vb_rows23(c0, next0);
        const vb lo0_23 = vb_plane2(c0_23, 0);
        const vb hi0_23 = vb_plane2(c0_23, 2);
        s0_0_23 = vi_mmla(s0_0_23, lo0_23, x0_lo);
        s1_0_23 = vi_mmla(s1_0_23, lo0_23, x1_lo);
        s2_0_23 = vi_mmla(s2_0_23, lo0_23, x2_lo);
        s3_0_23 = vi_mmla(s3_0_23, lo0_23, x3_lo);
        s0_0_23 = vi_mmla(s0_0_23, hi0_23, x0_hi);
        s1_0_23 = vi_mmla(s1_0_23, hi0_23, x1_hi);
        s2_0_23 = vi_mmla(s2_0_23, hi0_23, x2_hi);
        s3_0_23 = vi_mmla(s3_0_23, hi0_23, x3_hi);
        const vb c1 = vb_load(chunk + 16);
        const vb next1 = vb_srl2(c1); /* planes 1 and 3 where c has 0 and 2 */
        const vb c1_01 = vb_rows01(c1, next1);
        const vb lo1_01 = vb_plane2(c1_01, 0);
        const vb hi1_01 = vb_plane2(c1_01, 2);
        s0_1_01 = vi_mmla(s0_1_01, lo1_01, x0_lo);
        s1_1_01 = vi_mmla(s1_1_01, lo1_01, x1_lo);
        s2_1_01 = vi_mmla(s2_1_01, lo1_01, x2_lo);
        s3_1_01 = vi_mmla(s3_1_01, lo1_01, x3_lo);
        s0_1_01 = vi_mmla(s0_1_01, hi1_01, x0_hi);
        s1_1_01 = vi_mmla(s1_1_01, hi1_01, x1_hi);
        s2_1_01 = vi_mmla(s2_1_01, hi1_01, x2_hi);
        s3_1_01 = vi_mmla(s3_1_01, hi1_01, x3_hi);
        const vb c1_23 = vb_rows23(c1, next1);
        const vb lo1_23 = vb_plane2(c1_23, 0);
        const vb hi1_23 = vb_plane2(c1_23, 2);
        s0_1_23 = vi_mmla(s0_1_23, lo1_23, x0_lo);
        s1_1_23 = vi_mmla(s1_1_23, lo1_23, x1_lo);
        s2_1_23 = vi_mmla(s2_1_23, lo1_23, x2_lo);
        s3_1_23 = vi_mmla(s3_1_23, lo1_23, x3_lo);
        s0_1_23 = vi_mmla(s0_1_23, hi1_23, x0_hi);
        s1_1_23 = vi_mmla(s1_1_23, hi1_23, x1_hi);
        s2_1_23 = vi_mmla(s2_1_23, hi1_23, x2_hi);
        s3_1_23 = vi_mmla(s3_1_23, hi1_23, x3_hi);
    }
    const vi a0_0 = vi_first_token(s0_0_01, s0_0_23);
    const vi a0_1 = vi_first_token(s0_1_01, s0_1_23);
    const vi a1_0 = vi_second_token(s0_0_01, s0_0_23);
    const vi a1_1 = vi_second_token(s0_1_01, s0_1_23);
    const vi a2_0 = vi_first_token(s1_0_01, s1_0_23);
    const vi a2_1 = vi_first_token(s1_1_01, s1_1_23);
    const vi a3_0 = vi_second_token(s1_0_01, s1_0_23);
    const vi a3_1 = vi_second_token(s1_1_01, s1_1_23);
    const vi a4_0 = vi_first_token(s2_0_01, s2_0_23);
    const vi a4_1 = vi_first_token(s2_1_01, s2_1_23);
    const vi a5_0 = vi_second_token(s2_0_01, s2_0_23);
    const vi a5_1 = vi_second_token(s2_1_01, s2_1_23);
    const vi a6_0 = vi_first_token(s3_0_01, s3_0_23);
    const vi a6_1 = vi_first_token(s3_1_01, s3_1_23);
    const vi a7_0 = vi_second_token(s3_0_01, s3_0_23);
    const vi a7_1 = vi_second_token(s3_1_01, s3_1_23);
    const size_t n0 = tail_lanes(rows, 0, 4);
    const vf scale0 = scales(m, r + 0, n0);
    vf_store_n(y + 0 * y_stride + 0, rescale(a0_0, x, t + 0, scale0), n0);
    vf_store_n(y + 1 * y_stride + 0, rescale(a1_0, x, t + 1, scale0), n0);
    vf_store_n(y + 2 * y_stride + 0, rescale(a2_0, x, t + 2, scale0), n0);
    vf_store_n(y + 3 * y_stride + 0, rescale(a3_0, x, t + 3, scale0), n0);
    vf_store_n(y + 4 * y_stride + 0, rescale(a4_0, x, t + 4, scale0), n0);
    vf_store_n(y + 5 * y_stride + 0, rescale(a5_0, x, t + 5, scale0), n0);
    vf_store_n(y + 6 * y_stride + 0, rescale(a6_0, x, t + 6, scale0), n0);
    vf_store_n(y + 7 * y_stride + 0, rescale(a7_0, x, t + 7, scale0), n0);
    const size_t n1 = tail_lanes(rows, 4, 4);
    const vf scale1 = scales(m, r + 4, n1);
    vf_store_n(y + 0 * y_stride + 4, rescale(a0_1, x, t + 0, scale1), n1);
    vf_store_n(y + 1 * y_stride + 4, rescale(a1_1, x, t + 1, scale1), n1);
    vf_store_n(y + 2 * y_stride + 4, rescale(a2_1, x, t + 2, scale1), n1);
    vf_store_n(y + 3 * y_stride + 4, rescale(a3_1, x, t + 3, scale1), n1);
    vf_store_n(y + 4 * y_stride + 4, rescale(a4_1, x, t + 4, scale1), n1);
    vf_store_n(y + 5 * y_stride + 4, rescale(a5_1, x, t + 5, scale1), n1);
    vf_store_n(y + 6 * y_stride + 4, rescale(a6_1, x, t + 6, scale1), n1);
    vf_store_n(y + 7 * y_stride + 4, rescale(a7_1, x, t + 7, scale1), n1);
}

/* 8 rows from r x 4 token(s) from t; codes of the row group (or its part) at w. */
static void tile_4(const tern_matrix *m, const uint8_t *w, size_t chunks, ahead next,
    const tern_activations *x,
                   size_t r, size_t rows, size_t t, float *y, size_t y_stride) {
    const int8_t *x0 = x->q + (t + 0) * x->q_stride;
    const int8_t *x1 = x->q + (t + 1) * x->q_stride;
    const int8_t *x2 = x->q + (t + 2) * x->q_stride;
    const int8_t *x3 = x->q + (t + 3) * x->q_stride;

    vi s0_0_01 = vi_zero();
    vi s0_0_23 = vi_zero();
    vi s0_1_01 = vi_zero();
    vi s0_1_23 = vi_zero();
    vi s1_0_01 = vi_zero();
    vi s1_0_23 = vi_zero();
    vi s1_1_01 = vi_zero();
    vi s1_1_23 = vi_zero();
    for (size_t c = 0; c < chunks; c++) {
        const uint8_t *chunk = w + c * CHUNK_BYTES;
        ask_ahead(next.at + c * next.step);
        const vb even0 = vb_load(x0 + c * CHUNK_COLS);
        const vb odd0 = vb_load(x1 + c * CHUNK_COLS);
        const vb x0_lo = vb_tokens_lo(even0, odd0); /* columns 0-7 of the chunk */
        const vb x0_hi = vb_tokens_hi(even0, odd0);
        const vb even1 = vb_load(x2 + c * CHUNK_COLS);
        const vb odd1 = vb_load(x3 + c * CHUNK_COLS);
        const vb x1_lo = vb_tokens_lo(even1, odd1); /* columns 0-7 of the chunk */
        const vb x1_hi = vb_tokens_hi(even1, odd1);
        const vb c0 = vb_load(chunk + 0);
        const vb next0 = vb_srl2(c0); /* planes 1 and 3 where c has 0 and 2 */
        const vb c0_01 = vb_rows01(c0, next0);
        const vb lo0_01 = vb_plane2(c0_01, 0);
        const vb hi0_01 = vb_plane2(c0_01, 2);
        s0_0_01 = vi_mmla(s0_0_01, lo0_01, x0_lo);
        s1_0_01 = vi_mmla(s1_0_01, lo0_01, x1_lo);
        s0_0_01 = vi_mmla(s0_0_01, hi0_01, x0_hi);
        s1_0_01 = vi_mmla(s1_0_01, hi0_01, x1_hi);
        const vb c0_23 = vb_rows23(c0, next0);
        const vb lo0_23 = vb_plane2(c0_23, 0);
        const vb hi0_23 = vb_plane2(c0_23, 2);
        s0_0_23 = vi_mmla(s0_0_23, lo0_23, x0_lo);
        s1_0_23 = vi_mmla(s1_0_23, lo0_23, x1_lo);
        s0_0_23 = vi_mmla(s0_0_23, hi0_23, x0_hi);
        s1_0_23 = vi_mmla(s1_0_23, hi0_23, x1_hi);
        const vb c1 = vb_load(chunk + 16);
        const vb next1 = vb_srl2(c1); /* planes 1 and 3 where c has 0 and 2 */
        const vb c1_01 = vb_rows01(c1, next1);
        const vb lo1_01 = vb_plane2(c1_01, 0);
        const vb hi1_01 = vb_plane2(c1_01, 2);
        s0_1_01 = vi_mmla(s0_1_01, lo1_01, x0_lo);
        s1_1_01 = vi_mmla(s1_1_01, lo1_01, x1_lo);
        s0_1_01 = vi_mmla(s0_1_01, hi1_01, x0_hi);
        s1_1_01 = vi_mmla(s1_1_01, hi1_01, x1_hi);
        const vb c1_23 = vb_rows23(c1, next1);
        const vb lo1_23 = vb_plane2(c1_23, 0);
        const vb hi1_23 = vb_plane2(c1_23, 2);
        s0_1_23 = vi_mmla(s0_1_23, lo1_23, x0_lo);
        s1_1_23 = vi_mmla(s1_1_23, lo1_23, x1_lo);
        s0_1_23 = vi_mmla(s0_1_23, hi1_23, x0_hi);
        s1_1_23 = vi_mmla(s1_1_23, hi1_23, x1_hi);
    }
    const vi a0_0 = vi_first_token(s0_0_01, s0_0_23);
    const vi a0_1 = vi_first_token(s0_1_01, s0_1_23);
    const vi a1_0 = vi_second_token(s0_0_01, s0_0_23);
    const vi a1_1 = vi_second_token(s0_1_01, s0_1_23);
    const vi a2_0 = vi_first_token(s1_0_01, s1_0_23);
    const vi a2_1 = vi_first_token(s1_1_01, s1_1_23);
    const vi a3_0 = vi_second_token(s1_0_01, s1_0_23);
    const vi a3_1 = vi_second_token(s1_1_01, s1_1_23);
    const size_t n0 = tail_lanes(rows, 0, 4);
    const vf scale0 = scales(m, r + 0, n0);
    vf_store_n(y + 0 * y_stride + 0, rescale(a0_0, x, t + 0, scale0), n0);
    vf_store_n(y + 1 * y_stride + 0, rescale(a1_0, x, t + 1, scale0), n0);
    vf_store_n(y + 2 * y_stride + 0, rescale(a2_0, x, t + 2, scale0), n0);
    vf_store_n(y + 3 * y_stride + 0, rescale(a3_0, x, t + 3, scale0), n0);
    const size_t n1 = tail_lanes(rows, 4, 4);
    const vf scale1 = scales(m, r + 4, n1);
    vf_store_n(y + 0 * y_stride + 4, rescale(a0_1, x, t + 0, scale1), n1);
    vf_store_n(y + 1 * y_stride + 4, rescale(a1_1, x, t + 1, scale1), n1);
    vf_store_n(y + 2 * y_stride + 4, rescale(a2_1, x, t + 2, scale1), n1);
    vf_store_n(y + 3 * y_stride + 4, rescale(a3_1, x, t + 3, scale1), n1);
}

/* 8 rows from r x 2 token(s) from t; codes of the row group (or its part) at w. */
static void tile_2(const tern_matrix *m, const uint8_t *w, size_t chunks, ahead next,
    const tern_activations *x,
                   size_t r, size_t rows, size_t t, float *y, size_t y_stride) {
    const int8_t *x0 = x->q + (t + 0) * x->q_stride;
    const int8_t *x1 = x->q + (t + 1) * x->q_stride;

    vi s0_0_01 = vi_zero();
    vi s0_0_23 = vi_zero();
    vi s0_1_01 = vi_zero();
    vi s0_1_23 = vi_zero();
    for (size_t c = 0; c < chunks; c++) {
        const uint8_t *chunk = w + c * CHUNK_BYTES;
        ask_ahead(next.at + c * next.step);
        const vb even0 = vb_load(x0 + c * CHUNK_COLS);
        const vb odd0 = vb_load(x1 + c * CHUNK_COLS);
        const vb x0_lo = vb_tokens_lo(even0, odd0); /* columns 0-7 of the chunk */
        const vb x0_hi = vb_tokens_hi(even0, odd0);
        const vb c0 = vb_load(chunk + 0);
        const vb next0 = vb_srl2(c0); /* planes 1 and 3 where c has 0 and 2 */
        const vb c0_01 = vb_rows01(c0, next0);
        const vb lo0_01 = vb_plane2(c0_01, 0);
        const vb hi0_01 = vb_plane2(c0_01, 2);
        s0_0_01 = vi_mmla(s0_0_01, lo0_01, x0_lo);
        s0_0_01 = vi_mmla(s0_0_01, hi0_01, x0_hi);
        const vb c0_23 = vb_rows23(c0, next0);
        const vb lo0_23 = vb_plane2(c0_23, 0);
        const vb hi0_23 = vb_plane2(c0_23, 2);
        s0_0_23 = vi_mmla(s0_0_23, lo0_23, x0_lo);
        s0_0_23 = vi_mmla(s0_0_23, hi0_23, x0_hi);
        const vb c1 = vb_load(chunk + 16);
        const vb next1 = vb_srl2(c1); /* planes 1 and 3 where c has 0 and 2 */
        const vb c1_01 = vb_rows01(c1, next1);
        const vb lo1_01 = vb_plane2(c1_01, 0);
        const vb hi1_01 = vb_plane2(c1_01, 2);
        s0_1_01 = vi_mmla(s0_1_01, lo1_01, x0_lo);
        s0_1_01 = vi_mmla(s0_1_01, hi1_01, x0_hi);
        const vb c1_23 = vb_rows23(c1, next1);
        const vb lo1_23 = vb_plane2(c1_23, 0);
        const vb hi1_23 = vb_plane2(c1_23, 2);
        s0_1_23 = vi_mmla(s0_1_23, lo1_23, x0_lo);
        s0_1_23 = vi_mmla(s0_1_23, hi1_23, x0_hi);
    }
    const vi a0_0 = vi_first_token(s0_0_01, s0_0_23);
    const vi a0_1 = vi_first_token(s0_1_01, s0_1_23);
    const vi a1_0 = vi_second_token(s0_0_01, s0_0_23);
    const vi a1_1 = vi_second_token(s0_1_01, s0_1_23);
    const size_t n0 = tail_lanes(rows, 0, 4);
    const vf scale0 = scales(m, r + 0, n0);
    vf_store_n(y + 0 * y_stride + 0, rescale(a0_0, x, t + 0, scale0), n0);
    vf_store_n(y + 1 * y_stride + 0, rescale(a1_0, x, t + 1, scale0), n0);
    const size_t n1 = tail_lanes(rows, 4, 4);
    const vf scale1 = scales(m, r + 4, n1);
    vf_store_n(y + 0 * y_stride + 4, rescale(a0_1, x, t + 0, scale1), n1);
    vf_store_n(y + 1 * y_stride + 4, rescale(a1_1, x, t + 1, scale1), n1);
}

/* 8 rows from r x 1 token(s) from t; codes of the row group (or its part) at w. */
static void tile_1(const tern_matrix *m, const uint8_t *w, size_t chunks, ahead next,
    const tern_activations *x,
                   size_t r, size_t rows, size_t t, float *y, size_t y_stride) {
    const int8_t *x0 = x->q + (t + 0) * x->q_stride;

    vi s0_0_01 = vi_zero();
    vi s0_0_23 = vi_zero();
    vi s0_1_01 = vi_zero();
    vi s0_1_23 = vi_zero();
    for (size_t c = 0; c < chunks; c++) {
        const uint8_t *chunk = w + c * CHUNK_BYTES;
        ask_ahead(next.at + c * next.step);
        const vb even0 = vb_load(x0 + c * CHUNK_COLS);
        const vb odd0 = vb_load(x0 + c * CHUNK_COLS);
        const vb x0_lo = vb_tokens_lo(even0, odd0); /* columns 0-7 of the chunk */
        const vb x0_hi = vb_tokens_hi(even0, odd0);
        const vb c0 = vb_load(chunk + 0);
        const vb next0 = vb_srl2(c0); /* planes 1 and 3 where c has 0 and 2 */
        const vb c0_01 = vb_rows01(c0, next0);
        const vb lo0_01 = vb_plane2(c0_01, 0);
        const vb hi0_01 = vb_plane2(c0_01, 2);
        s0_0_01 = vi_mmla(s0_0_01, lo0_01, x0_lo);
        s0_0_01 = vi_mmla(s0_0_01, hi0_01, x0_hi);
        const vb c0_23 = vb_rows23(c0, next0);
        const vb lo0_23 = vb_plane2(c0_23, 0);
        const vb hi0_23 = vb_plane2(c0_23, 2);
        s0_0_23 = vi_mmla(s0_0_23, lo0_23, x0_lo);
        s0_0_23 = vi_mmla(s0_0_23, hi0_23, x0_hi);
        const vb c1 = vb_load(chunk + 16);
        const vb next1 = vb_srl2(c1); /* planes 1 and 3 where c has 0 and 2 */
        const vb c1_01 = vb_rows01(c1, next1);
        const vb lo1_01 = vb_plane2(c1_01, 0);
        const vb hi1_01 = vb_plane2(c1_01, 2);
        s0_1_01 = vi_mmla(s0_1_01, lo1_01, x0_lo);
        s0_1_01 = vi_mmla(s0_1_01, hi1_01, x0_hi);
        const vb c1_23 = vb_rows23(c1, next1);
        const vb lo1_23 = vb_plane2(c1_23, 0);
        const vb hi1_23 = vb_plane2(c1_23, 2);
        s0_1_23 = vi_mmla(s0_1_23, lo1_23, x0_lo);
        s0_1_23 = vi_mmla(s0_1_23, hi1_23, x0_hi);
    }
    const vi a0_0 = vi_first_token(s0_0_01, s0_0_23);
    const vi a0_1 = vi_first_token(s0_1_01, s0_1_23);
    const size_t n0 = tail_lanes(rows, 0, 4);
    const vf scale0 = scales(m, r + 0, n0);
    vf_store_n(y + 0 * y_stride + 0, rescale(a0_0, x, t + 0, scale0), n0);
    const size_t n1 = tail_lanes(rows, 4, 4);
    const vf scale1 = scales(m, r + 4, n1);
    vf_store_n(y + 0 * y_stride + 4, rescale(a0_1, x, t + 0, scale1), n1);
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

void tern_gemm_i2_s_8x8_neoni8mm(const tern_matrix *w, const tern_activations *x,
    const tern_tile *tile, float *y,
    size_t y_stride) {
    const size_t chunks = (w->cols + CHUNK_COLS - 1) / CHUNK_COLS;
    for (size_t r = tile->r0; r < tile->r1; r += 8) {
        const uint8_t *group = (const uint8_t *)w->data + r / TERN_ROW_GROUP * chunks * CHUNK_BYTES;
        const size_t rows = tile->r1 - r < 8 ? tile->r1 - r : 8;
        direct(w, group + r % TERN_ROW_GROUP * 4, chunks, x, tile, r, rows, y, y_stride);
    }
}
