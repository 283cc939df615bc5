/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_gemm_int8_16x8_avx512vnni of kernels/kernels.toml
 * and template kernels/matmul_int_pairs.c.j2. Do not edit.
 */

#include "tern/kernels.h"

tern_matmul_fn tern_gemm_int8_16x8_avx512vnni;

/*
 * Matrix product over int8 in its R16 layout: lanes are rows, integers times the int8 blocks of the
 * activations. A scale for the matrix or for each row is applied at the end.
 */
#include "kernels/isa/avx512vnni.h"

#include "kernels/isa/vmath.h"

enum {
    HEADER_BYTES = 0,
    CHUNK_BYTES = 64,
    BLOCK_BYTES = HEADER_BYTES + 8 * CHUNK_BYTES,
    PREFETCH_BYTES = 4096 /* ahead in the one stream that a thread reads */
};

/* 16 rows from r, in the group at w, x 8 token(s) from t. */
static void tile_8(const tern_matrix *m, const uint8_t *w, size_t blocks,
    const tern_activations *x, size_t r,
                   size_t rows, size_t t, float *y, size_t y_stride) {
    const size_t lane = r % TERN_ROW_GROUP;
    const int8_t *x0 = x->q + (t + 0) * x->q_stride;
    const float *d0 = x->d + (t + 0) * x->d_stride;
    const int32_t *n0 = x->block_sum + (t + 0) * x->d_stride;
    vf y0_0 = vf_zero();
    const int8_t *x1 = x->q + (t + 1) * x->q_stride;
    const float *d1 = x->d + (t + 1) * x->d_stride;
    const int32_t *n1 = x->block_sum + (t + 1) * x->d_stride;
    vf y1_0 = vf_zero();
    const int8_t *x2 = x->q + (t + 2) * x->q_stride;
    const float *d2 = x->d + (t + 2) * x->d_stride;
    const int32_t *n2 = x->block_sum + (t + 2) * x->d_stride;
    vf y2_0 = vf_zero();
    const int8_t *x3 = x->q + (t + 3) * x->q_stride;
    const float *d3 = x->d + (t + 3) * x->d_stride;
    const int32_t *n3 = x->block_sum + (t + 3) * x->d_stride;
    vf y3_0 = vf_zero();
    const int8_t *x4 = x->q + (t + 4) * x->q_stride;
    const float *d4 = x->d + (t + 4) * x->d_stride;
    const int32_t *n4 = x->block_sum + (t + 4) * x->d_stride;
    vf y4_0 = vf_zero();
    const int8_t *x5 = x->q + (t + 5) * x->q_stride;
    const float *d5 = x->d + (t + 5) * x->d_stride;
    const int32_t *n5 = x->block_sum + (t + 5) * x->d_stride;
    vf y5_0 = vf_zero();
    const int8_t *x6 = x->q + (t + 6) * x->q_stride;
    const float *d6 = x->d + (t + 6) * x->d_stride;
    const int32_t *n6 = x->block_sum + (t + 6) * x->d_stride;
    vf y6_0 = vf_zero();
    const int8_t *x7 = x->q + (t + 7) * x->q_stride;
    const float *d7 = x->d + (t + 7) * x->d_stride;
    const int32_t *n7 = x->block_sum + (t + 7) * x->d_stride;
    vf y7_0 = vf_zero();
    for (size_t b = 0; b < blocks; b++) {
        const uint8_t *block = w + b * BLOCK_BYTES;
        const uint8_t *codes = block + HEADER_BYTES + 4 * lane;
        __builtin_prefetch(block + PREFETCH_BYTES + 0);
        __builtin_prefetch(block + PREFETCH_BYTES + 64);
        __builtin_prefetch(block + PREFETCH_BYTES + 128);
        __builtin_prefetch(block + PREFETCH_BYTES + 192);
        __builtin_prefetch(block + PREFETCH_BYTES + 256);
        __builtin_prefetch(block + PREFETCH_BYTES + 320);
        __builtin_prefetch(block + PREFETCH_BYTES + 384);
        __builtin_prefetch(block + PREFETCH_BYTES + 448);
        {
            const vb c0 = vb_load(codes + 0);
            const vb c1 = vb_load(codes + 64);
            const vb c2 = vb_load(codes + 128);
            const vb c3 = vb_load(codes + 192);
            const vb c4 = vb_load(codes + 256);
            const vb c5 = vb_load(codes + 320);
            const vb c6 = vb_load(codes + 384);
            const vb c7 = vb_load(codes + 448);
            {
                vi s = vi_zero();
                s = vi_mac_ss(s, c0, vb_splat4(x0 + b * TERN_BLOCK + 0));
                s = vi_mac_ss(s, c1, vb_splat4(x0 + b * TERN_BLOCK + 4));
                s = vi_mac_ss(s, c2, vb_splat4(x0 + b * TERN_BLOCK + 8));
                s = vi_mac_ss(s, c3, vb_splat4(x0 + b * TERN_BLOCK + 12));
                s = vi_mac_ss(s, c4, vb_splat4(x0 + b * TERN_BLOCK + 16));
                s = vi_mac_ss(s, c5, vb_splat4(x0 + b * TERN_BLOCK + 20));
                s = vi_mac_ss(s, c6, vb_splat4(x0 + b * TERN_BLOCK + 24));
                s = vi_mac_ss(s, c7, vb_splat4(x0 + b * TERN_BLOCK + 28));
                const vf sum = vi_to_f(vi_sub(s, vi_set1(TERN_SS_BIAS * n0[b])));
                y0_0 = vf_add(y0_0, vf_mul(sum, vf_set1(d0[b])));
            }
            {
                vi s = vi_zero();
                s = vi_mac_ss(s, c0, vb_splat4(x1 + b * TERN_BLOCK + 0));
                s = vi_mac_ss(s, c1, vb_splat4(x1 + b * TERN_BLOCK + 4));
                s = vi_mac_ss(s, c2, vb_splat4(x1 + b * TERN_BLOCK + 8));
                s = vi_mac_ss(s, c3, vb_splat4(x1 + b * TERN_BLOCK + 12));
                s = vi_mac_ss(s, c4, vb_splat4(x1 + b * TERN_BLOCK + 16));
                s = vi_mac_ss(s, c5, vb_splat4(x1 + b * TERN_BLOCK + 20));
                s = vi_mac_ss(s, c6, vb_splat4(x1 + b * TERN_BLOCK + 24));
                s = vi_mac_ss(s, c7, vb_splat4(x1 + b * TERN_BLOCK + 28));
                const vf sum = vi_to_f(vi_sub(s, vi_set1(TERN_SS_BIAS * n1[b])));
                y1_0 = vf_add(y1_0, vf_mul(sum, vf_set1(d1[b])));
            }
            {
                vi s = vi_zero();
                s = vi_mac_ss(s, c0, vb_splat4(x2 + b * TERN_BLOCK + 0));
                s = vi_mac_ss(s, c1, vb_splat4(x2 + b * TERN_BLOCK + 4));
                s = vi_mac_ss(s, c2, vb_splat4(x2 + b * TERN_BLOCK + 8));
                s = vi_mac_ss(s, c3, vb_splat4(x2 + b * TERN_BLOCK + 12));
                s = vi_mac_ss(s, c4, vb_splat4(x2 + b * TERN_BLOCK + 16));
                s = vi_mac_ss(s, c5, vb_splat4(x2 + b * TERN_BLOCK + 20));
                s = vi_mac_ss(s, c6, vb_splat4(x2 + b * TERN_BLOCK + 24));
                s = vi_mac_ss(s, c7, vb_splat4(x2 + b * TERN_BLOCK + 28));
                const vf sum = vi_to_f(vi_sub(s, vi_set1(TERN_SS_BIAS * n2[b])));
                y2_0 = vf_add(y2_0, vf_mul(sum, vf_set1(d2[b])));
            }
            {
                vi s = vi_zero();
                s = vi_mac_ss(s, c0, vb_splat4(x3 + b * TERN_BLOCK + 0));
                s = vi_mac_ss(s, c1, vb_splat4(x3 + b * TERN_BLOCK + 4));
                s = vi_mac_ss(s, c2, vb_splat4(x3 + b * TERN_BLOCK + 8));
                s = vi_mac_ss(s, c3, vb_splat4(x3 + b * TERN_BLOCK + 12));
                s = vi_mac_ss(s, c4, vb_splat4(x3 + b * TERN_BLOCK + 16));
                s = vi_mac_ss(s, c5, vb_splat4(x3 + b * TERN_BLOCK + 20));
                s = vi_mac_ss(s, c6, vb_splat4(x3 + b * TERN_BLOCK + 24));
                s = vi_mac_ss(s, c7, vb_splat4(x3 + b * TERN_BLOCK + 28));
                const vf sum = vi_to_f(vi_sub(s, vi_set1(TERN_SS_BIAS * n3[b])));
                y3_0 = vf_add(y3_0, vf_mul(sum, vf_set1(d3[b])));
            }
            {
                vi s = vi_zero();
                s = vi_mac_ss(s, c0, vb_splat4(x4 + b * TERN_BLOCK + 0));
                s = vi_mac_ss(s, c1, vb_splat4(x4 + b * TERN_BLOCK + 4));
                s = vi_mac_ss(s, c2, vb_splat4(x4 + b * TERN_BLOCK + 8));
                s = vi_mac_ss(s, c3, vb_splat4(x4 + b * TERN_BLOCK + 12));
                s = vi_mac_ss(s, c4, vb_splat4(x4 + b * TERN_BLOCK + 16));
                s = vi_mac_ss(s, c5, vb_splat4(x4 + b * TERN_BLOCK + 20));
                s = vi_mac_ss(s, c6, vb_splat4(x4 + b * TERN_BLOCK + 24));
                s = vi_mac_ss(s, c7, vb_splat4(x4 + b * TERN_BLOCK + 28));
                const vf sum = vi_to_f(vi_sub(s, vi_set1(TERN_SS_BIAS * n4[b])));
                y4_0 = vf_add(y4_0, vf_mul(sum, vf_set1(d4[b])));
            }
            {
                vi s = vi_zero();
                s = vi_mac_ss(s, c0, vb_splat4(x5 + b * TERN_BLOCK + 0));
                s = vi_mac_ss(s, c1, vb_splat4(x5 + b * TERN_BLOCK + 4));
                s = vi_mac_ss(s, c2, vb_splat4(x5 + b * TERN_BLOCK + 8));
                s = vi_mac_ss(s, c3, vb_splat4(x5 + b * TERN_BLOCK + 12));
                s = vi_mac_ss(s, c4, vb_splat4(x5 + b * TERN_BLOCK + 16));
                s = vi_mac_ss(s, c5, vb_splat4(x5 + b * TERN_BLOCK + 20));
                s = vi_mac_ss(s, c6, vb_splat4(x5 + b * TERN_BLOCK + 24));
                s = vi_mac_ss(s, c7, vb_splat4(x5 + b * TERN_BLOCK + 28));
                const vf sum = vi_to_f(vi_sub(s, vi_set1(TERN_SS_BIAS * n5[b])));
                y5_0 = vf_add(y5_0, vf_mul(sum, vf_set1(d5[b])));
            }
            {
                vi s = vi_zero();
                s = vi_mac_ss(s, c0, vb_splat4(x6 + b * TERN_BLOCK + 0));
                s = vi_mac_ss(s, c1, vb_splat4(x6 + b * TERN_BLOCK + 4));
                s = vi_mac_ss(s, c2, vb_splat4(x6 + b * TERN_BLOCK + 8));
                s = vi_mac_ss(s, c3, vb_splat4(x6 + b * TERN_BLOCK + 12));
                s = vi_mac_ss(s, c4, vb_splat4(x6 + b * TERN_BLOCK + 16));
                s = vi_mac_ss(s, c5, vb_splat4(x6 + b * TERN_BLOCK + 20));
                s = vi_mac_ss(s, c6, vb_splat4(x6 + b * TERN_BLOCK + 24));
                s = vi_mac_ss(s, c7, vb_splat4(x6 + b * TERN_BLOCK + 28));
                const vf sum = vi_to_f(vi_sub(s, vi_set1(TERN_SS_BIAS * n6[b])));
                y6_0 = vf_add(y6_0, vf_mul(sum, vf_set1(d6[b])));
            }
            {
                vi s = vi_zero();
                s = vi_mac_ss(s, c0, vb_splat4(x7 + b * TERN_BLOCK + 0));
                s = vi_mac_ss(s, c1, vb_splat4(x7 + b * TERN_BLOCK + 4));
                s = vi_mac_ss(s, c2, vb_splat4(x7 + b * TERN_BLOCK + 8));
                s = vi_mac_ss(s, c3, vb_splat4(x7 + b * TERN_BLOCK + 12));
                s = vi_mac_ss(s, c4, vb_splat4(x7 + b * TERN_BLOCK + 16));
                s = vi_mac_ss(s, c5, vb_splat4(x7 + b * TERN_BLOCK + 20));
                s = vi_mac_ss(s, c6, vb_splat4(x7 + b * TERN_BLOCK + 24));
                s = vi_mac_ss(s, c7, vb_splat4(x7 + b * TERN_BLOCK + 28));
                const vf sum = vi_to_f(vi_sub(s, vi_set1(TERN_SS_BIAS * n7[b])));
                y7_0 = vf_add(y7_0, vf_mul(sum, vf_set1(d7[b])));
            }
        }
    }
    const size_t count0 = tail_lanes(rows, 0, 16);
    const float *scale_at0 = m->row_scale ? m->row_scale + r + 0 : NULL;
    const vf scale0 = scale_at0 ? vf_load_fill(scale_at0, count0, 0.0f) : vf_set1(m->scale);
    vf_store_n(y + 0 * y_stride + 0, vf_mul(y0_0, scale0), count0);
    vf_store_n(y + 1 * y_stride + 0, vf_mul(y1_0, scale0), count0);
    vf_store_n(y + 2 * y_stride + 0, vf_mul(y2_0, scale0), count0);
    vf_store_n(y + 3 * y_stride + 0, vf_mul(y3_0, scale0), count0);
    vf_store_n(y + 4 * y_stride + 0, vf_mul(y4_0, scale0), count0);
    vf_store_n(y + 5 * y_stride + 0, vf_mul(y5_0, scale0), count0);
    vf_store_n(y + 6 * y_stride + 0, vf_mul(y6_0, scale0), count0);
    vf_store_n(y + 7 * y_stride + 0, vf_mul(y7_0, scale0), count0);
}

/* 16 rows from r, in the group at w, x 4 token(s) from t. */
static void tile_4(const tern_matrix *m, const uint8_t *w, size_t blocks,
    const tern_activations *x, size_t r,
                   size_t rows, size_t t, float *y, size_t y_stride) {
    const size_t lane = r % TERN_ROW_GROUP;
    const int8_t *x0 = x->q + (t + 0) * x->q_stride;
    const float *d0 = x->d + (t + 0) * x->d_stride;
    const int32_t *n0 = x->block_sum + (t + 0) * x->d_stride;
    vf y0_0 = vf_zero();
    const int8_t *x1 = x->q + (t + 1) * x->q_stride;
    const float *d1 = x->d + (t + 1) * x->d_stride;
    const int32_t *n1 = x->block_sum + (t + 1) * x->d_stride;
    vf y1_0 = vf_zero();
    const int8_t *x2 = x->q + (t + 2) * x->q_stride;
    const float *d2 = x->d + (t + 2) * x->d_stride;
    const int32_t *n2 = x->block_sum + (t + 2) * x->d_stride;
    vf y2_0 = vf_zero();
    const int8_t *x3 = x->q + (t + 3) * x->q_stride;
    const float *d3 = x->d + (t + 3) * x->d_stride;
    const int32_t *n3 = x->block_sum + (t + 3) * x->d_stride;
    vf y3_0 = vf_zero();
    for (size_t b = 0; b < blocks; b++) {
        const uint8_t *block = w + b * BLOCK_BYTES;
        const uint8_t *codes = block + HEADER_BYTES + 4 * lane;
        __builtin_prefetch(block + PREFETCH_BYTES + 0);
        __builtin_prefetch(block + PREFETCH_BYTES + 64);
        __builtin_prefetch(block + PREFETCH_BYTES + 128);
        __builtin_prefetch(block + PREFETCH_BYTES + 192);
        __builtin_prefetch(block + PREFETCH_BYTES + 256);
        __builtin_prefetch(block + PREFETCH_BYTES + 320);
        __builtin_prefetch(block + PREFETCH_BYTES + 384);
        __builtin_prefetch(block + PREFETCH_BYTES + 448);
        {
            const vb c0 = vb_load(codes + 0);
            const vb c1 = vb_load(codes + 64);
            const vb c2 = vb_load(codes + 128);
            const vb c3 = vb_load(codes + 192);
            const vb c4 = vb_load(codes + 256);
            const vb c5 = vb_load(codes + 320);
            const vb c6 = vb_load(codes + 384);
            const vb c7 = vb_load(codes + 448);
            {
                vi s = vi_zero();
                s = vi_mac_ss(s, c0, vb_splat4(x0 + b * TERN_BLOCK + 0));
                s = vi_mac_ss(s, c1, vb_splat4(x0 + b * TERN_BLOCK + 4));
                s = vi_mac_ss(s, c2, vb_splat4(x0 + b * TERN_BLOCK + 8));
                s = vi_mac_ss(s, c3, vb_splat4(x0 + b * TERN_BLOCK + 12));
                s = vi_mac_ss(s, c4, vb_splat4(x0 + b * TERN_BLOCK + 16));
                s = vi_mac_ss(s, c5, vb_splat4(x0 + b * TERN_BLOCK + 20));
                s = vi_mac_ss(s, c6, vb_splat4(x0 + b * TERN_BLOCK + 24));
                s = vi_mac_ss(s, c7, vb_splat4(x0 + b * TERN_BLOCK + 28));
                const vf sum = vi_to_f(vi_sub(s, vi_set1(TERN_SS_BIAS * n0[b])));
                y0_0 = vf_add(y0_0, vf_mul(sum, vf_set1(d0[b])));
            }
            {
                vi s = vi_zero();
                s = vi_mac_ss(s, c0, vb_splat4(x1 + b * TERN_BLOCK + 0));
                s = vi_mac_ss(s, c1, vb_splat4(x1 + b * TERN_BLOCK + 4));
                s = vi_mac_ss(s, c2, vb_splat4(x1 + b * TERN_BLOCK + 8));
                s = vi_mac_ss(s, c3, vb_splat4(x1 + b * TERN_BLOCK + 12));
                s = vi_mac_ss(s, c4, vb_splat4(x1 + b * TERN_BLOCK + 16));
                s = vi_mac_ss(s, c5, vb_splat4(x1 + b * TERN_BLOCK + 20));
                s = vi_mac_ss(s, c6, vb_splat4(x1 + b * TERN_BLOCK + 24));
                s = vi_mac_ss(s, c7, vb_splat4(x1 + b * TERN_BLOCK + 28));
                const vf sum = vi_to_f(vi_sub(s, vi_set1(TERN_SS_BIAS * n1[b])));
                y1_0 = vf_add(y1_0, vf_mul(sum, vf_set1(d1[b])));
            }
            {
                vi s = vi_zero();
                s = vi_mac_ss(s, c0, vb_splat4(x2 + b * TERN_BLOCK + 0));
                s = vi_mac_ss(s, c1, vb_splat4(x2 + b * TERN_BLOCK + 4));
                s = vi_mac_ss(s, c2, vb_splat4(x2 + b * TERN_BLOCK + 8));
                s = vi_mac_ss(s, c3, vb_splat4(x2 + b * TERN_BLOCK + 12));
                s = vi_mac_ss(s, c4, vb_splat4(x2 + b * TERN_BLOCK + 16));
                s = vi_mac_ss(s, c5, vb_splat4(x2 + b * TERN_BLOCK + 20));
                s = vi_mac_ss(s, c6, vb_splat4(x2 + b * TERN_BLOCK + 24));
                s = vi_mac_ss(s, c7, vb_splat4(x2 + b * TERN_BLOCK + 28));
                const vf sum = vi_to_f(vi_sub(s, vi_set1(TERN_SS_BIAS * n2[b])));
                y2_0 = vf_add(y2_0, vf_mul(sum, vf_set1(d2[b])));
            }
            {
                vi s = vi_zero();
                s = vi_mac_ss(s, c0, vb_splat4(x3 + b * TERN_BLOCK + 0));
                s = vi_mac_ss(s, c1, vb_splat4(x3 + b * TERN_BLOCK + 4));
                s = vi_mac_ss(s, c2, vb_splat4(x3 + b * TERN_BLOCK + 8));
                s = vi_mac_ss(s, c3, vb_splat4(x3 + b * TERN_BLOCK + 12));
                s = vi_mac_ss(s, c4, vb_splat4(x3 + b * TERN_BLOCK + 16));
                s = vi_mac_ss(s, c5, vb_splat4(x3 + b * TERN_BLOCK + 20));
                s = vi_mac_ss(s, c6, vb_splat4(x3 + b * TERN_BLOCK + 24));
                s = vi_mac_ss(s, c7, vb_splat4(x3 + b * TERN_BLOCK + 28));
                const vf sum = vi_to_f(vi_sub(s, vi_set1(TERN_SS_BIAS * n3[b])));
                y3_0 = vf_add(y3_0, vf_mul(sum, vf_set1(d3[b])));
            }
        }
    }
    const size_t count0 = tail_lanes(rows, 0, 16);
    const float *scale_at0 = m->row_scale ? m->row_scale + r + 0 : NULL;
    const vf scale0 = scale_at0 ? vf_load_fill(scale_at0, count0, 0.0f) : vf_set1(m->scale);
    vf_store_n(y + 0 * y_stride + 0, vf_mul(y0_0, scale0), count0);
    vf_store_n(y + 1 * y_stride + 0, vf_mul(y1_0, scale0), count0);
    vf_store_n(y + 2 * y_stride + 0, vf_mul(y2_0, scale0), count0);
    vf_store_n(y + 3 * y_stride + 0, vf_mul(y3_0, scale0), count0);
}

/* 16 rows from r, in the group at w, x 2 token(s) from t. */
static void tile_2(const tern_matrix *m, const uint8_t *w, size_t blocks,
    const tern_activations *x, size_t r,
                   size_t rows, size_t t, float *y, size_t y_stride) {
    const size_t lane = r % TERN_ROW_GROUP;
    const int8_t *x0 = x->q + (t + 0) * x->q_stride;
    const float *d0 = x->d + (t + 0) * x->d_stride;
    const int32_t *n0 = x->block_sum + (t + 0) * x->d_stride;
    vf y0_0 = vf_zero();
    const int8_t *x1 = x->q + (t + 1) * x->q_stride;
    const float *d1 = x->d + (t + 1) * x->d_stride;
    const int32_t *n1 = x->block_sum + (t + 1) * x->d_stride;
    vf y1_0 = vf_zero();
    for (size_t b = 0; b < blocks; b++) {
        const uint8_t *block = w + b * BLOCK_BYTES;
        const uint8_t *codes = block + HEADER_BYTES + 4 * lane;
        __builtin_prefetch(block + PREFETCH_BYTES + 0);
        __builtin_prefetch(block + PREFETCH_BYTES + 64);
        __builtin_prefetch(block + PREFETCH_BYTES + 128);
        __builtin_prefetch(block + PREFETCH_BYTES + 192);
        __builtin_prefetch(block + PREFETCH_BYTES + 256);
        __builtin_prefetch(block + PREFETCH_BYTES + 320);
        __builtin_prefetch(block + PREFETCH_BYTES + 384);
        __builtin_prefetch(block + PREFETCH_BYTES + 448);
        {
            const vb c0 = vb_load(codes + 0);
            const vb c1 = vb_load(codes + 64);
            const vb c2 = vb_load(codes + 128);
            const vb c3 = vb_load(codes + 192);
            const vb c4 = vb_load(codes + 256);
            const vb c5 = vb_load(codes + 320);
            const vb c6 = vb_load(codes + 384);
            const vb c7 = vb_load(codes + 448);
            {
                vi s = vi_zero();
                s = vi_mac_ss(s, c0, vb_splat4(x0 + b * TERN_BLOCK + 0));
                s = vi_mac_ss(s, c1, vb_splat4(x0 + b * TERN_BLOCK + 4));
                s = vi_mac_ss(s, c2, vb_splat4(x0 + b * TERN_BLOCK + 8));
                s = vi_mac_ss(s, c3, vb_splat4(x0 + b * TERN_BLOCK + 12));
                s = vi_mac_ss(s, c4, vb_splat4(x0 + b * TERN_BLOCK + 16));
                s = vi_mac_ss(s, c5, vb_splat4(x0 + b * TERN_BLOCK + 20));
                s = vi_mac_ss(s, c6, vb_splat4(x0 + b * TERN_BLOCK + 24));
                s = vi_mac_ss(s, c7, vb_splat4(x0 + b * TERN_BLOCK + 28));
                const vf sum = vi_to_f(vi_sub(s, vi_set1(TERN_SS_BIAS * n0[b])));
                y0_0 = vf_add(y0_0, vf_mul(sum, vf_set1(d0[b])));
            }
            {
                vi s = vi_zero();
                s = vi_mac_ss(s, c0, vb_splat4(x1 + b * TERN_BLOCK + 0));
                s = vi_mac_ss(s, c1, vb_splat4(x1 + b * TERN_BLOCK + 4));
                s = vi_mac_ss(s, c2, vb_splat4(x1 + b * TERN_BLOCK + 8));
                s = vi_mac_ss(s, c3, vb_splat4(x1 + b * TERN_BLOCK + 12));
                s = vi_mac_ss(s, c4, vb_splat4(x1 + b * TERN_BLOCK + 16));
                s = vi_mac_ss(s, c5, vb_splat4(x1 + b * TERN_BLOCK + 20));
                s = vi_mac_ss(s, c6, vb_splat4(x1 + b * TERN_BLOCK + 24));
                s = vi_mac_ss(s, c7, vb_splat4(x1 + b * TERN_BLOCK + 28));
                const vf sum = vi_to_f(vi_sub(s, vi_set1(TERN_SS_BIAS * n1[b])));
                y1_0 = vf_add(y1_0, vf_mul(sum, vf_set1(d1[b])));
            }
        }
    }
    const size_t count0 = tail_lanes(rows, 0, 16);
    const float *scale_at0 = m->row_scale ? m->row_scale + r + 0 : NULL;
    const vf scale0 = scale_at0 ? vf_load_fill(scale_at0, count0, 0.0f) : vf_set1(m->scale);
    vf_store_n(y + 0 * y_stride + 0, vf_mul(y0_0, scale0), count0);
    vf_store_n(y + 1 * y_stride + 0, vf_mul(y1_0, scale0), count0);
}

/* 16 rows from r, in the group at w, x 1 token(s) from t. */
static void tile_1(const tern_matrix *m, const uint8_t *w, size_t blocks,
    const tern_activations *x, size_t r,
                   size_t rows, size_t t, float *y, size_t y_stride) {
    const size_t lane = r % TERN_ROW_GROUP;
    const int8_t *x0 = x->q + (t + 0) * x->q_stride;
    const float *d0 = x->d + (t + 0) * x->d_stride;
    const int32_t *n0 = x->block_sum + (t + 0) * x->d_stride;
    vf y0_0 = vf_zero();
    for (size_t b = 0; b < blocks; b++) {
        const uint8_t *block = w + b * BLOCK_BYTES;
        const uint8_t *codes = block + HEADER_BYTES + 4 * lane;
        __builtin_prefetch(block + PREFETCH_BYTES + 0);
        __builtin_prefetch(block + PREFETCH_BYTES + 64);
        __builtin_prefetch(block + PREFETCH_BYTES + 128);
        __builtin_prefetch(block + PREFETCH_BYTES + 192);
        __builtin_prefetch(block + PREFETCH_BYTES + 256);
        __builtin_prefetch(block + PREFETCH_BYTES + 320);
        __builtin_prefetch(block + PREFETCH_BYTES + 384);
        __builtin_prefetch(block + PREFETCH_BYTES + 448);
        {
            const vb c0 = vb_load(codes + 0);
            const vb c1 = vb_load(codes + 64);
            const vb c2 = vb_load(codes + 128);
            const vb c3 = vb_load(codes + 192);
            const vb c4 = vb_load(codes + 256);
            const vb c5 = vb_load(codes + 320);
            const vb c6 = vb_load(codes + 384);
            const vb c7 = vb_load(codes + 448);
            {
                vi s = vi_zero();
                s = vi_mac_ss(s, c0, vb_splat4(x0 + b * TERN_BLOCK + 0));
                s = vi_mac_ss(s, c1, vb_splat4(x0 + b * TERN_BLOCK + 4));
                s = vi_mac_ss(s, c2, vb_splat4(x0 + b * TERN_BLOCK + 8));
                s = vi_mac_ss(s, c3, vb_splat4(x0 + b * TERN_BLOCK + 12));
                s = vi_mac_ss(s, c4, vb_splat4(x0 + b * TERN_BLOCK + 16));
                s = vi_mac_ss(s, c5, vb_splat4(x0 + b * TERN_BLOCK + 20));
                s = vi_mac_ss(s, c6, vb_splat4(x0 + b * TERN_BLOCK + 24));
                s = vi_mac_ss(s, c7, vb_splat4(x0 + b * TERN_BLOCK + 28));
                const vf sum = vi_to_f(vi_sub(s, vi_set1(TERN_SS_BIAS * n0[b])));
                y0_0 = vf_add(y0_0, vf_mul(sum, vf_set1(d0[b])));
            }
        }
    }
    const size_t count0 = tail_lanes(rows, 0, 16);
    const float *scale_at0 = m->row_scale ? m->row_scale + r + 0 : NULL;
    const vf scale0 = scale_at0 ? vf_load_fill(scale_at0, count0, 0.0f) : vf_set1(m->scale);
    vf_store_n(y + 0 * y_stride + 0, vf_mul(y0_0, scale0), count0);
}

enum {
    GROUPS = 2,
    /* Their sums are 4 KB, their activations of 64 columns 2 KB. */
    BLOCK_TOKENS = 32,
    LANES = 16
};

_Static_assert((int)LANES == (int)TERN_ROW_GROUP, "a group is a vector");

/* Two groups from row r, `group_bytes` apart, x tokens [t0, t0 + n), n <= BLOCK_TOKENS. */
static void pair(const tern_matrix *m, const uint8_t *w, size_t blocks, size_t group_bytes,
                 const tern_activations *x, size_t r, size_t rows, size_t t0, size_t n, float *y,
                 size_t y_stride) {
    _Alignas(TERN_ALIGN) float sums[BLOCK_TOKENS * GROUPS * LANES];
    memset(sums, 0, n * GROUPS * LANES * sizeof *sums);
    for (size_t b = 0; b < blocks; b++) {
        const uint8_t *codes0 = w + 0 * group_bytes + b * BLOCK_BYTES;
        const vb c0_0 = vb_load(codes0 + 0);
        __builtin_prefetch(codes0 + GROUPS * group_bytes + 0);
        const vb c0_1 = vb_load(codes0 + 64);
        __builtin_prefetch(codes0 + GROUPS * group_bytes + 64);
        const vb c0_2 = vb_load(codes0 + 128);
        __builtin_prefetch(codes0 + GROUPS * group_bytes + 128);
        const vb c0_3 = vb_load(codes0 + 192);
        __builtin_prefetch(codes0 + GROUPS * group_bytes + 192);
        const vb c0_4 = vb_load(codes0 + 256);
        __builtin_prefetch(codes0 + GROUPS * group_bytes + 256);
        const vb c0_5 = vb_load(codes0 + 320);
        __builtin_prefetch(codes0 + GROUPS * group_bytes + 320);
        const vb c0_6 = vb_load(codes0 + 384);
        __builtin_prefetch(codes0 + GROUPS * group_bytes + 384);
        const vb c0_7 = vb_load(codes0 + 448);
        __builtin_prefetch(codes0 + GROUPS * group_bytes + 448);
        const uint8_t *codes1 = w + 1 * group_bytes + b * BLOCK_BYTES;
        const vb c1_0 = vb_load(codes1 + 0);
        __builtin_prefetch(codes1 + GROUPS * group_bytes + 0);
        const vb c1_1 = vb_load(codes1 + 64);
        __builtin_prefetch(codes1 + GROUPS * group_bytes + 64);
        const vb c1_2 = vb_load(codes1 + 128);
        __builtin_prefetch(codes1 + GROUPS * group_bytes + 128);
        const vb c1_3 = vb_load(codes1 + 192);
        __builtin_prefetch(codes1 + GROUPS * group_bytes + 192);
        const vb c1_4 = vb_load(codes1 + 256);
        __builtin_prefetch(codes1 + GROUPS * group_bytes + 256);
        const vb c1_5 = vb_load(codes1 + 320);
        __builtin_prefetch(codes1 + GROUPS * group_bytes + 320);
        const vb c1_6 = vb_load(codes1 + 384);
        __builtin_prefetch(codes1 + GROUPS * group_bytes + 384);
        const vb c1_7 = vb_load(codes1 + 448);
        __builtin_prefetch(codes1 + GROUPS * group_bytes + 448);
        const int8_t *q = x->q + t0 * x->q_stride + b * TERN_BLOCK;
        const float *d = x->d + t0 * x->d_stride + b;
        const int32_t *sum = x->block_sum + t0 * x->d_stride + b;
        float *to = sums;
        for (size_t t = 0; t < n; t++) {
            const vi bias = vi_set1(TERN_SS_BIAS * *sum);
            const vf scale = vf_set1(*d);
            vi s0_0 = vi_zero();
            vi s0_1 = vi_zero();
            vi s1_0 = vi_zero();
            vi s1_1 = vi_zero();
            const vb x0 = vb_splat4(q + 0);
            s0_0 = vi_mac_ss(s0_0, c0_0, x0);
            s1_0 = vi_mac_ss(s1_0, c1_0, x0);
            const vb x1 = vb_splat4(q + 4);
            s0_1 = vi_mac_ss(s0_1, c0_1, x1);
            s1_1 = vi_mac_ss(s1_1, c1_1, x1);
            const vb x2 = vb_splat4(q + 8);
            s0_0 = vi_mac_ss(s0_0, c0_2, x2);
            s1_0 = vi_mac_ss(s1_0, c1_2, x2);
            const vb x3 = vb_splat4(q + 12);
            s0_1 = vi_mac_ss(s0_1, c0_3, x3);
            s1_1 = vi_mac_ss(s1_1, c1_3, x3);
            const vb x4 = vb_splat4(q + 16);
            s0_0 = vi_mac_ss(s0_0, c0_4, x4);
            s1_0 = vi_mac_ss(s1_0, c1_4, x4);
            const vb x5 = vb_splat4(q + 20);
            s0_1 = vi_mac_ss(s0_1, c0_5, x5);
            s1_1 = vi_mac_ss(s1_1, c1_5, x5);
            const vb x6 = vb_splat4(q + 24);
            s0_0 = vi_mac_ss(s0_0, c0_6, x6);
            s1_0 = vi_mac_ss(s1_0, c1_6, x6);
            const vb x7 = vb_splat4(q + 28);
            s0_1 = vi_mac_ss(s0_1, c0_7, x7);
            s1_1 = vi_mac_ss(s1_1, c1_7, x7);
            const vf sum0 = vi_to_f(vi_sub(vi_add(s0_0, s0_1), bias));
            vf_store(to + 0 * LANES, vf_add(vf_load(to + 0 * LANES), vf_mul(sum0, scale)));
            const vf sum1 = vi_to_f(vi_sub(vi_add(s1_0, s1_1), bias));
            vf_store(to + 1 * LANES, vf_add(vf_load(to + 1 * LANES), vf_mul(sum1, scale)));
            q += x->q_stride;
            d += x->d_stride;
            sum += x->d_stride;
            to += GROUPS * LANES;
        }
    }
    const size_t n0 = tail_lanes(rows, 0 * LANES, LANES);
    const float *scale_at0 = m->row_scale ? m->row_scale + r + 0 * LANES : NULL;
    const vf scale0 = scale_at0 ? vf_load_fill(scale_at0, n0, 0.0f) : vf_set1(m->scale);
    const size_t n1 = tail_lanes(rows, 1 * LANES, LANES);
    const float *scale_at1 = m->row_scale ? m->row_scale + r + 1 * LANES : NULL;
    const vf scale1 = scale_at1 ? vf_load_fill(scale_at1, n1, 0.0f) : vf_set1(m->scale);
    for (size_t t = 0; t < n; t++) {
        vf_store_n(y + (t0 + t) * y_stride + r + 0 * LANES,
            vf_mul(vf_load(sums + (GROUPS * t + 0) * LANES), scale0), n0);
        vf_store_n(y + (t0 + t) * y_stride + r + 1 * LANES,
            vf_mul(vf_load(sums + (GROUPS * t + 1) * LANES), scale1), n1);
    }
}

/* One group from row r, or the tokens that are too few for pairs. */
static void single(const tern_matrix *m, const uint8_t *group, size_t blocks,
    const tern_activations *x,
                   const tern_tile *tile, size_t r, size_t rows, float *y, size_t y_stride) {
    size_t t = tile->t0;
    for (; t + 8 <= tile->t1; t += 8)
        tile_8(m, group, blocks, x, r, rows, t, y + t * y_stride + r, y_stride);
    for (; t + 4 <= tile->t1; t += 4)
        tile_4(m, group, blocks, x, r, rows, t, y + t * y_stride + r, y_stride);
    for (; t + 2 <= tile->t1; t += 2)
        tile_2(m, group, blocks, x, r, rows, t, y + t * y_stride + r, y_stride);
    for (; t + 1 <= tile->t1; t += 1)
        tile_1(m, group, blocks, x, r, rows, t, y + t * y_stride + r, y_stride);
}

void tern_gemm_int8_16x8_avx512vnni(const tern_matrix *w, const tern_activations *x,
    const tern_tile *tile, float *y,
    size_t y_stride) {
    const size_t blocks = (w->cols + TERN_BLOCK - 1) / TERN_BLOCK;
    const size_t group_bytes = blocks * BLOCK_BYTES;
    const bool few = tile->t1 - tile->t0 < 4;
    for (size_t r = tile->r0; r < tile->r1;) {
        const uint8_t *group = (const uint8_t *)w->data + r / TERN_ROW_GROUP * group_bytes;
        const size_t rows = tile->r1 - r;
        if (few || rows <= TERN_ROW_GROUP) {
            single(w, group, blocks, x, tile, r, rows < TERN_ROW_GROUP ? rows : TERN_ROW_GROUP, y,
                y_stride);
            r += TERN_ROW_GROUP;
            continue;
        }
        for (size_t t = tile->t0; t < tile->t1; t += BLOCK_TOKENS)
            pair(w, group, blocks, group_bytes, x, r, rows, t,
                tile->t1 - t < BLOCK_TOKENS ? tile->t1 - t : BLOCK_TOKENS, y, y_stride);
        r += GROUPS * TERN_ROW_GROUP;
    }
}
