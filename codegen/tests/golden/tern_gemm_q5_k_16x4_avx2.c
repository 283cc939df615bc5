/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_gemm_q5_k_16x4_avx2 of kernels/kernels.toml
 * and template kernels/matmul_block_gemm.c.j2. Do not edit.
 */

#include "tern/kernels.h"

tern_matmul_fn tern_gemm_q5_k_16x4_avx2;

/*
 * Matrix product over block formats in the R16 layouts: lanes are rows. Each 32-column block has
 * 16 scales (and minima), then chunks of 64 bytes: 16 rows x 4 bytes; the fifth bits of 5-bit
 * codes come last. Eight blocks of a K-quant share 16 f16 d and dmin, which lie before them; two or
 * four blocks with codes of one or two bits share 16 f16 d.
 */
#include "kernels/isa/avx2.h"

#include "kernels/isa/vmath.h"

enum {
    HEADER_BYTES = 32,
    CHUNK_BYTES = 64,
    BLOCK_BYTES = HEADER_BYTES + 5 * CHUNK_BYTES,
    SUPER_BYTES = 64 + 8 * BLOCK_BYTES,
    PREFETCH_BYTES = 4096 /* ahead in the one stream that a thread reads */
};

/* What each stored code exceeds its weight by: taken back as CODE_BIAS * sum of the block's q. */
static const int32_t code_bias = 0;

enum { TERMS = 8 }; /* blocks whose terms are computed at once */

/*
 * The factor of the minima in the next n blocks of a token: for several blocks at once, in vectors,
 * so that each row's use of it is a load.
 */
static inline void terms(const float *d, const int32_t *sum, size_t n, float *out) {
    if (n >= TERMS) {
        for (size_t i = 0; i < TERMS; i++)
            out[i] = d[i] * (float)sum[i];
    } else {
        for (size_t i = 0; i < n; i++)
            out[i] = d[i] * (float)sum[i];
    }
}

/* 16 rows x 4 token(s) from token t; first row is row `lane` of the group at w. */
static void tile_4(const uint8_t *w, size_t lane, size_t blocks, const tern_activations *x,
    size_t t,
                   float *y, size_t y_stride, size_t rows) {
    const int8_t *x0 = x->q + (t + 0) * x->q_stride;
    const float *d0 = x->d + (t + 0) * x->d_stride;
    const int32_t *n0 = x->block_sum + (t + 0) * x->d_stride;
    float e0[TERMS];
    const int8_t *x1 = x->q + (t + 1) * x->q_stride;
    const float *d1 = x->d + (t + 1) * x->d_stride;
    const int32_t *n1 = x->block_sum + (t + 1) * x->d_stride;
    float e1[TERMS];
    const int8_t *x2 = x->q + (t + 2) * x->q_stride;
    const float *d2 = x->d + (t + 2) * x->d_stride;
    const int32_t *n2 = x->block_sum + (t + 2) * x->d_stride;
    float e2[TERMS];
    const int8_t *x3 = x->q + (t + 3) * x->q_stride;
    const float *d3 = x->d + (t + 3) * x->d_stride;
    const int32_t *n3 = x->block_sum + (t + 3) * x->d_stride;
    float e3[TERMS];
    _Alignas(TERN_ALIGN) float totals[64] = {0.0f};
    for (size_t b = 0; b < blocks; b++) {
        const size_t at = b % TERMS;
        if (at == 0) {
            terms(d0 + b, n0 + b, blocks - b, e0);
            terms(d1 + b, n1 + b, blocks - b, e1);
            terms(d2 + b, n2 + b, blocks - b, e2);
            terms(d3 + b, n3 + b, blocks - b, e3);
        }
        const uint8_t *head = w + b / 8 * SUPER_BYTES;
        const uint8_t *block = head + 64 + b % 8 * BLOCK_BYTES;
        const uint8_t *codes = block + HEADER_BYTES + 4 * lane;
        ask_ahead(block + PREFETCH_BYTES);
        ask_ahead(block + PREFETCH_BYTES + 64);
        ask_ahead(block + PREFETCH_BYTES + 128);
        ask_ahead(block + PREFETCH_BYTES + 192);
        ask_ahead(block + PREFETCH_BYTES + 256);
        const vb bits0 = vb_load(codes + 256);
        vp p0_0 = vp_zero();
        vp p1_0 = vp_zero();
        vp p2_0 = vp_zero();
        vp p3_0 = vp_zero();
        const vb bits1 = vb_load(codes + 288);
        vp p0_1 = vp_zero();
        vp p1_1 = vp_zero();
        vp p2_1 = vp_zero();
        vp p3_1 = vp_zero();
        const vb c0_0 = vb_load(codes + 0);
        const vb c0_1 = vb_load(codes + 32);
        const vb w0_0 = vb_join1(vb_nibble_lo(c0_0), bits0, 0);
        const vb w0_1 = vb_join1(vb_nibble_lo(c0_1), bits1, 0);
        const vb x0_0 = vb_splat4(x0 + b * TERN_BLOCK + 0);
        p0_0 = vp_mac(p0_0, w0_0, x0_0);
        p0_1 = vp_mac(p0_1, w0_1, x0_0);
        const vb x1_0 = vb_splat4(x1 + b * TERN_BLOCK + 0);
        p1_0 = vp_mac(p1_0, w0_0, x1_0);
        p1_1 = vp_mac(p1_1, w0_1, x1_0);
        const vb x2_0 = vb_splat4(x2 + b * TERN_BLOCK + 0);
        p2_0 = vp_mac(p2_0, w0_0, x2_0);
        p2_1 = vp_mac(p2_1, w0_1, x2_0);
        const vb x3_0 = vb_splat4(x3 + b * TERN_BLOCK + 0);
        p3_0 = vp_mac(p3_0, w0_0, x3_0);
        p3_1 = vp_mac(p3_1, w0_1, x3_0);

        const vb w1_0 = vb_join1(vb_nibble_hi(c0_0), bits0, 1);
        const vb w1_1 = vb_join1(vb_nibble_hi(c0_1), bits1, 1);
        const vb x0_4 = vb_splat4(x0 + b * TERN_BLOCK + 4);
        p0_0 = vp_mac(p0_0, w1_0, x0_4);
        p0_1 = vp_mac(p0_1, w1_1, x0_4);
        const vb x1_4 = vb_splat4(x1 + b * TERN_BLOCK + 4);
        p1_0 = vp_mac(p1_0, w1_0, x1_4);
        p1_1 = vp_mac(p1_1, w1_1, x1_4);
        const vb x2_4 = vb_splat4(x2 + b * TERN_BLOCK + 4);
        p2_0 = vp_mac(p2_0, w1_0, x2_4);
        p2_1 = vp_mac(p2_1, w1_1, x2_4);
        const vb x3_4 = vb_splat4(x3 + b * TERN_BLOCK + 4);
        p3_0 = vp_mac(p3_0, w1_0, x3_4);
        p3_1 = vp_mac(p3_1, w1_1, x3_4);

        const vb c1_0 = vb_load(codes + 64);
        const vb c1_1 = vb_load(codes + 96);
        const vb w2_0 = vb_join1(vb_nibble_lo(c1_0), bits0, 2);
        const vb w2_1 = vb_join1(vb_nibble_lo(c1_1), bits1, 2);
        const vb x0_8 = vb_splat4(x0 + b * TERN_BLOCK + 8);
        p0_0 = vp_mac(p0_0, w2_0, x0_8);
        p0_1 = vp_mac(p0_1, w2_1, x0_8);
        const vb x1_8 = vb_splat4(x1 + b * TERN_BLOCK + 8);
        p1_0 = vp_mac(p1_0, w2_0, x1_8);
        p1_1 = vp_mac(p1_1, w2_1, x1_8);
        const vb x2_8 = vb_splat4(x2 + b * TERN_BLOCK + 8);
        p2_0 = vp_mac(p2_0, w2_0, x2_8);
        p2_1 = vp_mac(p2_1, w2_1, x2_8);
        const vb x3_8 = vb_splat4(x3 + b * TERN_BLOCK + 8);
        p3_0 = vp_mac(p3_0, w2_0, x3_8);
        p3_1 = vp_mac(p3_1, w2_1, x3_8);

        const vb w3_0 = vb_join1(vb_nibble_hi(c1_0), bits0, 3);
        const vb w3_1 = vb_join1(vb_nibble_hi(c1_1), bits1, 3);
        const vb x0_12 = vb_splat4(x0 + b * TERN_BLOCK + 12);
        p0_0 = vp_mac(p0_0, w3_0, x0_12);
        p0_1 = vp_mac(p0_1, w3_1, x0_12);
        const vb x1_12 = vb_splat4(x1 + b * TERN_BLOCK + 12);
        p1_0 = vp_mac(p1_0, w3_0, x1_12);
        p1_1 = vp_mac(p1_1, w3_1, x1_12);
        const vb x2_12 = vb_splat4(x2 + b * TERN_BLOCK + 12);
        p2_0 = vp_mac(p2_0, w3_0, x2_12);
        p2_1 = vp_mac(p2_1, w3_1, x2_12);
        const vb x3_12 = vb_splat4(x3 + b * TERN_BLOCK + 12);
        p3_0 = vp_mac(p3_0, w3_0, x3_12);
        p3_1 = vp_mac(p3_1, w3_1, x3_12);

        const vi first0_0 = vi_flush(vi_zero(), p0_0); /* 4 vp_mac are the budget */
        p0_0 = vp_zero();
        const vi first0_1 = vi_flush(vi_zero(), p0_1); /* 4 vp_mac are the budget */
        p0_1 = vp_zero();
        const vi first1_0 = vi_flush(vi_zero(), p1_0); /* 4 vp_mac are the budget */
        p1_0 = vp_zero();
        const vi first1_1 = vi_flush(vi_zero(), p1_1); /* 4 vp_mac are the budget */
        p1_1 = vp_zero();
        const vi first2_0 = vi_flush(vi_zero(), p2_0); /* 4 vp_mac are the budget */
        p2_0 = vp_zero();
        const vi first2_1 = vi_flush(vi_zero(), p2_1); /* 4 vp_mac are the budget */
        p2_1 = vp_zero();
        const vi first3_0 = vi_flush(vi_zero(), p3_0); /* 4 vp_mac are the budget */
        p3_0 = vp_zero();
        const vi first3_1 = vi_flush(vi_zero(), p3_1); /* 4 vp_mac are the budget */
        p3_1 = vp_zero();
        const vb c2_0 = vb_load(codes + 128);
        const vb c2_1 = vb_load(codes + 160);
        const vb w4_0 = vb_join1(vb_nibble_lo(c2_0), bits0, 4);
        const vb w4_1 = vb_join1(vb_nibble_lo(c2_1), bits1, 4);
        const vb x0_16 = vb_splat4(x0 + b * TERN_BLOCK + 16);
        p0_0 = vp_mac(p0_0, w4_0, x0_16);
        p0_1 = vp_mac(p0_1, w4_1, x0_16);
        const vb x1_16 = vb_splat4(x1 + b * TERN_BLOCK + 16);
        p1_0 = vp_mac(p1_0, w4_0, x1_16);
        p1_1 = vp_mac(p1_1, w4_1, x1_16);
        const vb x2_16 = vb_splat4(x2 + b * TERN_BLOCK + 16);
        p2_0 = vp_mac(p2_0, w4_0, x2_16);
        p2_1 = vp_mac(p2_1, w4_1, x2_16);
        const vb x3_16 = vb_splat4(x3 + b * TERN_BLOCK + 16);
        p3_0 = vp_mac(p3_0, w4_0, x3_16);
        p3_1 = vp_mac(p3_1, w4_1, x3_16);

        const vb w5_0 = vb_join1(vb_nibble_hi(c2_0), bits0, 5);
        const vb w5_1 = vb_join1(vb_nibble_hi(c2_1), bits1, 5);
        const vb x0_20 = vb_splat4(x0 + b * TERN_BLOCK + 20);
        p0_0 = vp_mac(p0_0, w5_0, x0_20);
        p0_1 = vp_mac(p0_1, w5_1, x0_20);
        const vb x1_20 = vb_splat4(x1 + b * TERN_BLOCK + 20);
        p1_0 = vp_mac(p1_0, w5_0, x1_20);
        p1_1 = vp_mac(p1_1, w5_1, x1_20);
        const vb x2_20 = vb_splat4(x2 + b * TERN_BLOCK + 20);
        p2_0 = vp_mac(p2_0, w5_0, x2_20);
        p2_1 = vp_mac(p2_1, w5_1, x2_20);
        const vb x3_20 = vb_splat4(x3 + b * TERN_BLOCK + 20);
        p3_0 = vp_mac(p3_0, w5_0, x3_20);
        p3_1 = vp_mac(p3_1, w5_1, x3_20);

        const vb c3_0 = vb_load(codes + 192);
        const vb c3_1 = vb_load(codes + 224);
        const vb w6_0 = vb_join1(vb_nibble_lo(c3_0), bits0, 6);
        const vb w6_1 = vb_join1(vb_nibble_lo(c3_1), bits1, 6);
        const vb x0_24 = vb_splat4(x0 + b * TERN_BLOCK + 24);
        p0_0 = vp_mac(p0_0, w6_0, x0_24);
        p0_1 = vp_mac(p0_1, w6_1, x0_24);
        const vb x1_24 = vb_splat4(x1 + b * TERN_BLOCK + 24);
        p1_0 = vp_mac(p1_0, w6_0, x1_24);
        p1_1 = vp_mac(p1_1, w6_1, x1_24);
        const vb x2_24 = vb_splat4(x2 + b * TERN_BLOCK + 24);
        p2_0 = vp_mac(p2_0, w6_0, x2_24);
        p2_1 = vp_mac(p2_1, w6_1, x2_24);
        const vb x3_24 = vb_splat4(x3 + b * TERN_BLOCK + 24);
        p3_0 = vp_mac(p3_0, w6_0, x3_24);
        p3_1 = vp_mac(p3_1, w6_1, x3_24);

        const vb w7_0 = vb_join1(vb_nibble_hi(c3_0), bits0, 7);
        const vb w7_1 = vb_join1(vb_nibble_hi(c3_1), bits1, 7);
        const vb x0_28 = vb_splat4(x0 + b * TERN_BLOCK + 28);
        p0_0 = vp_mac(p0_0, w7_0, x0_28);
        p0_1 = vp_mac(p0_1, w7_1, x0_28);
        const vb x1_28 = vb_splat4(x1 + b * TERN_BLOCK + 28);
        p1_0 = vp_mac(p1_0, w7_0, x1_28);
        p1_1 = vp_mac(p1_1, w7_1, x1_28);
        const vb x2_28 = vb_splat4(x2 + b * TERN_BLOCK + 28);
        p2_0 = vp_mac(p2_0, w7_0, x2_28);
        p2_1 = vp_mac(p2_1, w7_1, x2_28);
        const vb x3_28 = vb_splat4(x3 + b * TERN_BLOCK + 28);
        p3_0 = vp_mac(p3_0, w7_0, x3_28);
        p3_1 = vp_mac(p3_1, w7_1, x3_28);

        {
            const vi s0 = vi_flush(first0_0, p0_0);
            const vi s1 = vi_flush(first1_0, p1_0);
            const vi s2 = vi_flush(first2_0, p2_0);
            const vi s3 = vi_flush(first3_0, p3_0);
            const vf d = vf_mul(vf_load_f16(head + 0 + 2 * (lane + 0)),
                                vi_to_f(vi_load_u8(block + 0 + lane + 0)));
            const vf m = vf_mul(vf_load_f16(head + 32 + 2 * (lane + 0)),
                                vi_to_f(vi_load_u8(block + 16 + lane + 0)));
            const vi q0 = vi_sub(s0, vi_set1(code_bias * n0[b]));
            vf y0_0 = vf_load(totals + 0);
            y0_0 = vf_add(y0_0, vf_mul(vi_to_f(q0), vf_mul(d, vf_set1(d0[b]))));
            y0_0 = vf_sub(y0_0, vf_mul(m, vf_set1(e0[at])));
            vf_store(totals + 0, y0_0);
            const vi q1 = vi_sub(s1, vi_set1(code_bias * n1[b]));
            vf y1_0 = vf_load(totals + 16);
            y1_0 = vf_add(y1_0, vf_mul(vi_to_f(q1), vf_mul(d, vf_set1(d1[b]))));
            y1_0 = vf_sub(y1_0, vf_mul(m, vf_set1(e1[at])));
            vf_store(totals + 16, y1_0);
            const vi q2 = vi_sub(s2, vi_set1(code_bias * n2[b]));
            vf y2_0 = vf_load(totals + 32);
            y2_0 = vf_add(y2_0, vf_mul(vi_to_f(q2), vf_mul(d, vf_set1(d2[b]))));
            y2_0 = vf_sub(y2_0, vf_mul(m, vf_set1(e2[at])));
            vf_store(totals + 32, y2_0);
            const vi q3 = vi_sub(s3, vi_set1(code_bias * n3[b]));
            vf y3_0 = vf_load(totals + 48);
            y3_0 = vf_add(y3_0, vf_mul(vi_to_f(q3), vf_mul(d, vf_set1(d3[b]))));
            y3_0 = vf_sub(y3_0, vf_mul(m, vf_set1(e3[at])));
            vf_store(totals + 48, y3_0);
        }
        {
            const vi s0 = vi_flush(first0_1, p0_1);
            const vi s1 = vi_flush(first1_1, p1_1);
            const vi s2 = vi_flush(first2_1, p2_1);
            const vi s3 = vi_flush(first3_1, p3_1);
            const vf d = vf_mul(vf_load_f16(head + 0 + 2 * (lane + 8)),
                                vi_to_f(vi_load_u8(block + 0 + lane + 8)));
            const vf m = vf_mul(vf_load_f16(head + 32 + 2 * (lane + 8)),
                                vi_to_f(vi_load_u8(block + 16 + lane + 8)));
            const vi q0 = vi_sub(s0, vi_set1(code_bias * n0[b]));
            vf y0_1 = vf_load(totals + 8);
            y0_1 = vf_add(y0_1, vf_mul(vi_to_f(q0), vf_mul(d, vf_set1(d0[b]))));
            y0_1 = vf_sub(y0_1, vf_mul(m, vf_set1(e0[at])));
            vf_store(totals + 8, y0_1);
            const vi q1 = vi_sub(s1, vi_set1(code_bias * n1[b]));
            vf y1_1 = vf_load(totals + 24);
            y1_1 = vf_add(y1_1, vf_mul(vi_to_f(q1), vf_mul(d, vf_set1(d1[b]))));
            y1_1 = vf_sub(y1_1, vf_mul(m, vf_set1(e1[at])));
            vf_store(totals + 24, y1_1);
            const vi q2 = vi_sub(s2, vi_set1(code_bias * n2[b]));
            vf y2_1 = vf_load(totals + 40);
            y2_1 = vf_add(y2_1, vf_mul(vi_to_f(q2), vf_mul(d, vf_set1(d2[b]))));
            y2_1 = vf_sub(y2_1, vf_mul(m, vf_set1(e2[at])));
            vf_store(totals + 40, y2_1);
            const vi q3 = vi_sub(s3, vi_set1(code_bias * n3[b]));
            vf y3_1 = vf_load(totals + 56);
            y3_1 = vf_add(y3_1, vf_mul(vi_to_f(q3), vf_mul(d, vf_set1(d3[b]))));
            y3_1 = vf_sub(y3_1, vf_mul(m, vf_set1(e3[at])));
            vf_store(totals + 56, y3_1);
        }
    }
    vf_store_n(y + 0 * y_stride + 0, vf_load(totals + 0),
               tail_lanes(rows, 0, 8));
    vf_store_n(y + 0 * y_stride + 8, vf_load(totals + 8),
               tail_lanes(rows, 8, 8));
    vf_store_n(y + 1 * y_stride + 0, vf_load(totals + 16),
               tail_lanes(rows, 0, 8));
    vf_store_n(y + 1 * y_stride + 8, vf_load(totals + 24),
               tail_lanes(rows, 8, 8));
    vf_store_n(y + 2 * y_stride + 0, vf_load(totals + 32),
               tail_lanes(rows, 0, 8));
    vf_store_n(y + 2 * y_stride + 8, vf_load(totals + 40),
               tail_lanes(rows, 8, 8));
    vf_store_n(y + 3 * y_stride + 0, vf_load(totals + 48),
               tail_lanes(rows, 0, 8));
    vf_store_n(y + 3 * y_stride + 8, vf_load(totals + 56),
               tail_lanes(rows, 8, 8));
}

/* 16 rows x 2 token(s) from token t; first row is row `lane` of the group at w. */
static void tile_2(const uint8_t *w, size_t lane, size_t blocks, const tern_activations *x,
    size_t t,
                   float *y, size_t y_stride, size_t rows) {
    const int8_t *x0 = x->q + (t + 0) * x->q_stride;
    const float *d0 = x->d + (t + 0) * x->d_stride;
    const int32_t *n0 = x->block_sum + (t + 0) * x->d_stride;
    float e0[TERMS];
    const int8_t *x1 = x->q + (t + 1) * x->q_stride;
    const float *d1 = x->d + (t + 1) * x->d_stride;
    const int32_t *n1 = x->block_sum + (t + 1) * x->d_stride;
    float e1[TERMS];
    vf y0_0 = vf_zero();
    vf y0_1 = vf_zero();
    vf y1_0 = vf_zero();
    vf y1_1 = vf_zero();
    for (size_t b = 0; b < blocks; b++) {
        const size_t at = b % TERMS;
        if (at == 0) {
            terms(d0 + b, n0 + b, blocks - b, e0);
            terms(d1 + b, n1 + b, blocks - b, e1);
        }
        const uint8_t *head = w + b / 8 * SUPER_BYTES;
        const uint8_t *block = head + 64 + b % 8 * BLOCK_BYTES;
        const uint8_t *codes = block + HEADER_BYTES + 4 * lane;
        ask_ahead(block + PREFETCH_BYTES);
        ask_ahead(block + PREFETCH_BYTES + 64);
        ask_ahead(block + PREFETCH_BYTES + 128);
        ask_ahead(block + PREFETCH_BYTES + 192);
        ask_ahead(block + PREFETCH_BYTES + 256);
        {
            const vb bits = vb_load(codes + 256);
            vp p0 = vp_zero();
            vp p1 = vp_zero();
            const vb c0 = vb_load(codes + 0);
            const vb lo0 = vb_join1(vb_nibble_lo(c0), bits, 0);
            const vb hi0 = vb_join1(vb_nibble_hi(c0), bits, 1);
            p0 = vp_mac(p0, lo0, vb_splat4(x0 + b * TERN_BLOCK + 0));
            p0 = vp_mac(p0, hi0, vb_splat4(x0 + b * TERN_BLOCK + 4));
            p1 = vp_mac(p1, lo0, vb_splat4(x1 + b * TERN_BLOCK + 0));
            p1 = vp_mac(p1, hi0, vb_splat4(x1 + b * TERN_BLOCK + 4));
            const vb c1 = vb_load(codes + 64);
            const vb lo1 = vb_join1(vb_nibble_lo(c1), bits, 2);
            const vb hi1 = vb_join1(vb_nibble_hi(c1), bits, 3);
            p0 = vp_mac(p0, lo1, vb_splat4(x0 + b * TERN_BLOCK + 8));
            p0 = vp_mac(p0, hi1, vb_splat4(x0 + b * TERN_BLOCK + 12));
            p1 = vp_mac(p1, lo1, vb_splat4(x1 + b * TERN_BLOCK + 8));
            p1 = vp_mac(p1, hi1, vb_splat4(x1 + b * TERN_BLOCK + 12));
            const vi first0 = vi_flush(vi_zero(), p0); /* 4 vp_mac are the budget */
            p0 = vp_zero();
            const vi first1 = vi_flush(vi_zero(), p1); /* 4 vp_mac are the budget */
            p1 = vp_zero();
            const vb c2 = vb_load(codes + 128);
            const vb lo2 = vb_join1(vb_nibble_lo(c2), bits, 4);
            const vb hi2 = vb_join1(vb_nibble_hi(c2), bits, 5);
            p0 = vp_mac(p0, lo2, vb_splat4(x0 + b * TERN_BLOCK + 16));
            p0 = vp_mac(p0, hi2, vb_splat4(x0 + b * TERN_BLOCK + 20));
            p1 = vp_mac(p1, lo2, vb_splat4(x1 + b * TERN_BLOCK + 16));
            p1 = vp_mac(p1, hi2, vb_splat4(x1 + b * TERN_BLOCK + 20));
            const vb c3 = vb_load(codes + 192);
            const vb lo3 = vb_join1(vb_nibble_lo(c3), bits, 6);
            const vb hi3 = vb_join1(vb_nibble_hi(c3), bits, 7);
            p0 = vp_mac(p0, lo3, vb_splat4(x0 + b * TERN_BLOCK + 24));
            p0 = vp_mac(p0, hi3, vb_splat4(x0 + b * TERN_BLOCK + 28));
            p1 = vp_mac(p1, lo3, vb_splat4(x1 + b * TERN_BLOCK + 24));
            p1 = vp_mac(p1, hi3, vb_splat4(x1 + b * TERN_BLOCK + 28));
            const vi s0 = vi_flush(first0, p0);
            const vi s1 = vi_flush(first1, p1);
            const vf d = vf_mul(vf_load_f16(head + 0 + 2 * (lane + 0)),
                                vi_to_f(vi_load_u8(block + 0 + lane + 0)));
            const vf m = vf_mul(vf_load_f16(head + 32 + 2 * (lane + 0)),
                                vi_to_f(vi_load_u8(block + 16 + lane + 0)));
            const vi q0 = vi_sub(s0, vi_set1(code_bias * n0[b]));
            y0_0 = vf_add(y0_0, vf_mul(vi_to_f(q0), vf_mul(d, vf_set1(d0[b]))));
            y0_0 = vf_sub(y0_0, vf_mul(m, vf_set1(e0[at])));
            const vi q1 = vi_sub(s1, vi_set1(code_bias * n1[b]));
            y1_0 = vf_add(y1_0, vf_mul(vi_to_f(q1), vf_mul(d, vf_set1(d1[b]))));
            y1_0 = vf_sub(y1_0, vf_mul(m, vf_set1(e1[at])));
        }
        {
            const vb bits = vb_load(codes + 288);
            vp p0 = vp_zero();
            vp p1 = vp_zero();
            const vb c0 = vb_load(codes + 32);
            const vb lo0 = vb_join1(vb_nibble_lo(c0), bits, 0);
            const vb hi0 = vb_join1(vb_nibble_hi(c0), bits, 1);
            p0 = vp_mac(p0, lo0, vb_splat4(x0 + b * TERN_BLOCK + 0));
            p0 = vp_mac(p0, hi0, vb_splat4(x0 + b * TERN_BLOCK + 4));
            p1 = vp_mac(p1, lo0, vb_splat4(x1 + b * TERN_BLOCK + 0));
            p1 = vp_mac(p1, hi0, vb_splat4(x1 + b * TERN_BLOCK + 4));
            const vb c1 = vb_load(codes + 96);
            const vb lo1 = vb_join1(vb_nibble_lo(c1), bits, 2);
            const vb hi1 = vb_join1(vb_nibble_hi(c1), bits, 3);
            p0 = vp_mac(p0, lo1, vb_splat4(x0 + b * TERN_BLOCK + 8));
            p0 = vp_mac(p0, hi1, vb_splat4(x0 + b * TERN_BLOCK + 12));
            p1 = vp_mac(p1, lo1, vb_splat4(x1 + b * TERN_BLOCK + 8));
            p1 = vp_mac(p1, hi1, vb_splat4(x1 + b * TERN_BLOCK + 12));
            const vi first0 = vi_flush(vi_zero(), p0); /* 4 vp_mac are the budget */
            p0 = vp_zero();
            const vi first1 = vi_flush(vi_zero(), p1); /* 4 vp_mac are the budget */
            p1 = vp_zero();
            const vb c2 = vb_load(codes + 160);
            const vb lo2 = vb_join1(vb_nibble_lo(c2), bits, 4);
            const vb hi2 = vb_join1(vb_nibble_hi(c2), bits, 5);
            p0 = vp_mac(p0, lo2, vb_splat4(x0 + b * TERN_BLOCK + 16));
            p0 = vp_mac(p0, hi2, vb_splat4(x0 + b * TERN_BLOCK + 20));
            p1 = vp_mac(p1, lo2, vb_splat4(x1 + b * TERN_BLOCK + 16));
            p1 = vp_mac(p1, hi2, vb_splat4(x1 + b * TERN_BLOCK + 20));
            const vb c3 = vb_load(codes + 224);
            const vb lo3 = vb_join1(vb_nibble_lo(c3), bits, 6);
            const vb hi3 = vb_join1(vb_nibble_hi(c3), bits, 7);
            p0 = vp_mac(p0, lo3, vb_splat4(x0 + b * TERN_BLOCK + 24));
            p0 = vp_mac(p0, hi3, vb_splat4(x0 + b * TERN_BLOCK + 28));
            p1 = vp_mac(p1, lo3, vb_splat4(x1 + b * TERN_BLOCK + 24));
            p1 = vp_mac(p1, hi3, vb_splat4(x1 + b * TERN_BLOCK + 28));
            const vi s0 = vi_flush(first0, p0);
            const vi s1 = vi_flush(first1, p1);
            const vf d = vf_mul(vf_load_f16(head + 0 + 2 * (lane + 8)),
                                vi_to_f(vi_load_u8(block + 0 + lane + 8)));
            const vf m = vf_mul(vf_load_f16(head + 32 + 2 * (lane + 8)),
                                vi_to_f(vi_load_u8(block + 16 + lane + 8)));
            const vi q0 = vi_sub(s0, vi_set1(code_bias * n0[b]));
            y0_1 = vf_add(y0_1, vf_mul(vi_to_f(q0), vf_mul(d, vf_set1(d0[b]))));
            y0_1 = vf_sub(y0_1, vf_mul(m, vf_set1(e0[at])));
            const vi q1 = vi_sub(s1, vi_set1(code_bias * n1[b]));
            y1_1 = vf_add(y1_1, vf_mul(vi_to_f(q1), vf_mul(d, vf_set1(d1[b]))));
            y1_1 = vf_sub(y1_1, vf_mul(m, vf_set1(e1[at])));
        }
    }
    vf_store_n(y + 0 * y_stride + 0, y0_0,
               tail_lanes(rows, 0, 8));
    vf_store_n(y + 0 * y_stride + 8, y0_1,
               tail_lanes(rows, 8, 8));
    vf_store_n(y + 1 * y_stride + 0, y1_0,
               tail_lanes(rows, 0, 8));
    vf_store_n(y + 1 * y_stride + 8, y1_1,
               tail_lanes(rows, 8, 8));
}

/* 16 rows x 1 token(s) from token t; first row is row `lane` of the group at w. */
static void tile_1(const uint8_t *w, size_t lane, size_t blocks, const tern_activations *x,
    size_t t,
                   float *y, size_t y_stride, size_t rows) {
    const int8_t *x0 = x->q + (t + 0) * x->q_stride;
    const float *d0 = x->d + (t + 0) * x->d_stride;
    const int32_t *n0 = x->block_sum + (t + 0) * x->d_stride;
    float e0[TERMS];
    vf y0_0 = vf_zero();
    vf y0_1 = vf_zero();
    for (size_t b = 0; b < blocks; b++) {
        const size_t at = b % TERMS;
        if (at == 0) {
            terms(d0 + b, n0 + b, blocks - b, e0);
        }
        const uint8_t *head = w + b / 8 * SUPER_BYTES;
        const uint8_t *block = head + 64 + b % 8 * BLOCK_BYTES;
        const uint8_t *codes = block + HEADER_BYTES + 4 * lane;
        ask_ahead(block + PREFETCH_BYTES);
        ask_ahead(block + PREFETCH_BYTES + 64);
        ask_ahead(block + PREFETCH_BYTES + 128);
        ask_ahead(block + PREFETCH_BYTES + 192);
        ask_ahead(block + PREFETCH_BYTES + 256);
        {
            const vb bits = vb_load(codes + 256);
            vp p0 = vp_zero();
            const vb c0 = vb_load(codes + 0);
            const vb lo0 = vb_join1(vb_nibble_lo(c0), bits, 0);
            const vb hi0 = vb_join1(vb_nibble_hi(c0), bits, 1);
            p0 = vp_mac(p0, lo0, vb_splat4(x0 + b * TERN_BLOCK + 0));
            p0 = vp_mac(p0, hi0, vb_splat4(x0 + b * TERN_BLOCK + 4));
            const vb c1 = vb_load(codes + 64);
            const vb lo1 = vb_join1(vb_nibble_lo(c1), bits, 2);
            const vb hi1 = vb_join1(vb_nibble_hi(c1), bits, 3);
            p0 = vp_mac(p0, lo1, vb_splat4(x0 + b * TERN_BLOCK + 8));
            p0 = vp_mac(p0, hi1, vb_splat4(x0 + b * TERN_BLOCK + 12));
            const vi first0 = vi_flush(vi_zero(), p0); /* 4 vp_mac are the budget */
            p0 = vp_zero();
            const vb c2 = vb_load(codes + 128);
            const vb lo2 = vb_join1(vb_nibble_lo(c2), bits, 4);
            const vb hi2 = vb_join1(vb_nibble_hi(c2), bits, 5);
            p0 = vp_mac(p0, lo2, vb_splat4(x0 + b * TERN_BLOCK + 16));
            p0 = vp_mac(p0, hi2, vb_splat4(x0 + b * TERN_BLOCK + 20));
            const vb c3 = vb_load(codes + 192);
            const vb lo3 = vb_join1(vb_nibble_lo(c3), bits, 6);
            const vb hi3 = vb_join1(vb_nibble_hi(c3), bits, 7);
            p0 = vp_mac(p0, lo3, vb_splat4(x0 + b * TERN_BLOCK + 24));
            p0 = vp_mac(p0, hi3, vb_splat4(x0 + b * TERN_BLOCK + 28));
            const vi s0 = vi_flush(first0, p0);
            const vf d = vf_mul(vf_load_f16(head + 0 + 2 * (lane + 0)),
                                vi_to_f(vi_load_u8(block + 0 + lane + 0)));
            const vf m = vf_mul(vf_load_f16(head + 32 + 2 * (lane + 0)),
                                vi_to_f(vi_load_u8(block + 16 + lane + 0)));
            const vi q0 = vi_sub(s0, vi_set1(code_bias * n0[b]));
            y0_0 = vf_add(y0_0, vf_mul(vi_to_f(q0), vf_mul(d, vf_set1(d0[b]))));
            y0_0 = vf_sub(y0_0, vf_mul(m, vf_set1(e0[at])));
        }
        {
            const vb bits = vb_load(codes + 288);
            vp p0 = vp_zero();
            const vb c0 = vb_load(codes + 32);
            const vb lo0 = vb_join1(vb_nibble_lo(c0), bits, 0);
            const vb hi0 = vb_join1(vb_nibble_hi(c0), bits, 1);
            p0 = vp_mac(p0, lo0, vb_splat4(x0 + b * TERN_BLOCK + 0));
            p0 = vp_mac(p0, hi0, vb_splat4(x0 + b * TERN_BLOCK + 4));
            const vb c1 = vb_load(codes + 96);
            const vb lo1 = vb_join1(vb_nibble_lo(c1), bits, 2);
            const vb hi1 = vb_join1(vb_nibble_hi(c1), bits, 3);
            p0 = vp_mac(p0, lo1, vb_splat4(x0 + b * TERN_BLOCK + 8));
            p0 = vp_mac(p0, hi1, vb_splat4(x0 + b * TERN_BLOCK + 12));
            const vi first0 = vi_flush(vi_zero(), p0); /* 4 vp_mac are the budget */
            p0 = vp_zero();
            const vb c2 = vb_load(codes + 160);
            const vb lo2 = vb_join1(vb_nibble_lo(c2), bits, 4);
            const vb hi2 = vb_join1(vb_nibble_hi(c2), bits, 5);
            p0 = vp_mac(p0, lo2, vb_splat4(x0 + b * TERN_BLOCK + 16));
            p0 = vp_mac(p0, hi2, vb_splat4(x0 + b * TERN_BLOCK + 20));
            const vb c3 = vb_load(codes + 224);
            const vb lo3 = vb_join1(vb_nibble_lo(c3), bits, 6);
            const vb hi3 = vb_join1(vb_nibble_hi(c3), bits, 7);
            p0 = vp_mac(p0, lo3, vb_splat4(x0 + b * TERN_BLOCK + 24));
            p0 = vp_mac(p0, hi3, vb_splat4(x0 + b * TERN_BLOCK + 28));
            const vi s0 = vi_flush(first0, p0);
            const vf d = vf_mul(vf_load_f16(head + 0 + 2 * (lane + 8)),
                                vi_to_f(vi_load_u8(block + 0 + lane + 8)));
            const vf m = vf_mul(vf_load_f16(head + 32 + 2 * (lane + 8)),
                                vi_to_f(vi_load_u8(block + 16 + lane + 8)));
            const vi q0 = vi_sub(s0, vi_set1(code_bias * n0[b]));
            y0_1 = vf_add(y0_1, vf_mul(vi_to_f(q0), vf_mul(d, vf_set1(d0[b]))));
            y0_1 = vf_sub(y0_1, vf_mul(m, vf_set1(e0[at])));
        }
    }
    vf_store_n(y + 0 * y_stride + 0, y0_0,
               tail_lanes(rows, 0, 8));
    vf_store_n(y + 0 * y_stride + 8, y0_1,
               tail_lanes(rows, 8, 8));
}

enum {
    ROWS = 16,
    FOURS = TERN_BLOCK / 4, /* of columns */
    PART_BLOCKS = 8,        /* whose codes are 4 KB */
    PASS_TOKENS = 128,      /* whose sums are 8 KB */
    LEAST_TOKENS = 16       /* for which unpacking once is faster */
};

_Static_assert((int)ROWS == (int)TERN_ROW_GROUP, "a part is of one group");
_Static_assert((int)LEAST_TOKENS <= (int)TERN_MANY_TOKENS, "tests of many tokens miss the parts");
_Static_assert((int)PART_BLOCKS == (int)TERMS, "terms are those of a part");
/* A part of a row group, and the sums of a pass. */
typedef struct scratch {
    _Alignas(TERN_ALIGN) uint8_t codes[PART_BLOCKS][FOURS][4 * ROWS];
    float d[PART_BLOCKS][ROWS];
    float m[PART_BLOCKS][ROWS];
    float sums[PASS_TOKENS][ROWS];
} scratch;

static inline void keep(uint8_t *to, vb codes) {
    memcpy(to, &codes, sizeof codes);
}

/* Block b of the row group at w becomes block i of the part. */
static inline void unpack(const uint8_t *w, size_t b, scratch *part, size_t i) {
    const uint8_t *head = w + b / 8 * SUPER_BYTES;
    const uint8_t *block = head + 64 + b % 8 * BLOCK_BYTES;
    const uint8_t *codes = block + HEADER_BYTES;
    for (size_t ahead = 0; ahead < BLOCK_BYTES; ahead += CHUNK_BYTES)
        ask_ahead(block + PREFETCH_BYTES + ahead);
    const vb bits0 = vb_load(codes + 4 * CHUNK_BYTES + 0);
    const vb c0_0 = vb_load(codes + 0 * CHUNK_BYTES + 0);
    keep(part->codes[i][0] + 0, vb_join1(vb_nibble_lo(c0_0), bits0, 0));
    keep(part->codes[i][1] + 0, vb_join1(vb_nibble_hi(c0_0), bits0, 1));
    const vb c1_0 = vb_load(codes + 1 * CHUNK_BYTES + 0);
    keep(part->codes[i][2] + 0, vb_join1(vb_nibble_lo(c1_0), bits0, 2));
    keep(part->codes[i][3] + 0, vb_join1(vb_nibble_hi(c1_0), bits0, 3));
    const vb c2_0 = vb_load(codes + 2 * CHUNK_BYTES + 0);
    keep(part->codes[i][4] + 0, vb_join1(vb_nibble_lo(c2_0), bits0, 4));
    keep(part->codes[i][5] + 0, vb_join1(vb_nibble_hi(c2_0), bits0, 5));
    const vb c3_0 = vb_load(codes + 3 * CHUNK_BYTES + 0);
    keep(part->codes[i][6] + 0, vb_join1(vb_nibble_lo(c3_0), bits0, 6));
    keep(part->codes[i][7] + 0, vb_join1(vb_nibble_hi(c3_0), bits0, 7));
    vf_store(part->d[i] + 0, vf_mul(vf_load_f16(head + 0), vi_to_f(vi_load_u8(block + 0))));
    vf_store(part->m[i] + 0, vf_mul(vf_load_f16(head + 32), vi_to_f(vi_load_u8(block + 16))));
    const vb bits1 = vb_load(codes + 4 * CHUNK_BYTES + 32);
    const vb c0_1 = vb_load(codes + 0 * CHUNK_BYTES + 32);
    keep(part->codes[i][0] + 32, vb_join1(vb_nibble_lo(c0_1), bits1, 0));
    keep(part->codes[i][1] + 32, vb_join1(vb_nibble_hi(c0_1), bits1, 1));
    const vb c1_1 = vb_load(codes + 1 * CHUNK_BYTES + 32);
    keep(part->codes[i][2] + 32, vb_join1(vb_nibble_lo(c1_1), bits1, 2));
    keep(part->codes[i][3] + 32, vb_join1(vb_nibble_hi(c1_1), bits1, 3));
    const vb c2_1 = vb_load(codes + 2 * CHUNK_BYTES + 32);
    keep(part->codes[i][4] + 32, vb_join1(vb_nibble_lo(c2_1), bits1, 4));
    keep(part->codes[i][5] + 32, vb_join1(vb_nibble_hi(c2_1), bits1, 5));
    const vb c3_1 = vb_load(codes + 3 * CHUNK_BYTES + 32);
    keep(part->codes[i][6] + 32, vb_join1(vb_nibble_lo(c3_1), bits1, 6));
    keep(part->codes[i][7] + 32, vb_join1(vb_nibble_hi(c3_1), bits1, 7));
    vf_store(part->d[i] + 8, vf_mul(vf_load_f16(head + 16), vi_to_f(vi_load_u8(block + 8))));
    vf_store(part->m[i] + 8, vf_mul(vf_load_f16(head + 48), vi_to_f(vi_load_u8(block + 24))));
}

/*
 * Adds the part's products, which begin at block `first`, with 4 tokens from t to their sums.
 * Four vp_mac are the budget of codes of five bits: a block has two sums.
 */
static void part_4(const scratch *part, size_t first, size_t blocks,
                   const tern_activations *x, size_t t, float (*sums)[ROWS]) {
    const float *d0 = x->d + (t + 0) * x->d_stride + first;
    const int8_t *x0 = x->q + (t + 0) * x->q_stride + first * TERN_BLOCK;
    float e0[PART_BLOCKS];
    terms(d0, x->block_sum + (t + 0) * x->d_stride + first, blocks, e0);
    const float *d1 = x->d + (t + 1) * x->d_stride + first;
    const int8_t *x1 = x->q + (t + 1) * x->q_stride + first * TERN_BLOCK;
    float e1[PART_BLOCKS];
    terms(d1, x->block_sum + (t + 1) * x->d_stride + first, blocks, e1);
    const float *d2 = x->d + (t + 2) * x->d_stride + first;
    const int8_t *x2 = x->q + (t + 2) * x->q_stride + first * TERN_BLOCK;
    float e2[PART_BLOCKS];
    terms(d2, x->block_sum + (t + 2) * x->d_stride + first, blocks, e2);
    const float *d3 = x->d + (t + 3) * x->d_stride + first;
    const int8_t *x3 = x->q + (t + 3) * x->q_stride + first * TERN_BLOCK;
    float e3[PART_BLOCKS];
    terms(d3, x->block_sum + (t + 3) * x->d_stride + first, blocks, e3);
    for (size_t b = 0; b < blocks; b++) {
        vp p0_0_0 = vp_zero();
        vp p0_0_1 = vp_zero();
        vp p0_1_0 = vp_zero();
        vp p0_1_1 = vp_zero();
        vp p0_2_0 = vp_zero();
        vp p0_2_1 = vp_zero();
        vp p0_3_0 = vp_zero();
        vp p0_3_1 = vp_zero();
        const vb w0_0 = vb_load(part->codes[b][0] + 0);
        const vb w0_1 = vb_load(part->codes[b][0] + 32);
        const vb x0_0 = vb_splat4(x0 + b * TERN_BLOCK + 0);
        p0_0_0 = vp_mac(p0_0_0, w0_0, x0_0);
        p0_0_1 = vp_mac(p0_0_1, w0_1, x0_0);
        const vb x1_0 = vb_splat4(x1 + b * TERN_BLOCK + 0);
        p0_1_0 = vp_mac(p0_1_0, w0_0, x1_0);
        p0_1_1 = vp_mac(p0_1_1, w0_1, x1_0);
        const vb x2_0 = vb_splat4(x2 + b * TERN_BLOCK + 0);
        p0_2_0 = vp_mac(p0_2_0, w0_0, x2_0);
        p0_2_1 = vp_mac(p0_2_1, w0_1, x2_0);
        const vb x3_0 = vb_splat4(x3 + b * TERN_BLOCK + 0);
        p0_3_0 = vp_mac(p0_3_0, w0_0, x3_0);
        p0_3_1 = vp_mac(p0_3_1, w0_1, x3_0);

        const vb w1_0 = vb_load(part->codes[b][1] + 0);
        const vb w1_1 = vb_load(part->codes[b][1] + 32);
        const vb x0_4 = vb_splat4(x0 + b * TERN_BLOCK + 4);
        p0_0_0 = vp_mac(p0_0_0, w1_0, x0_4);
        p0_0_1 = vp_mac(p0_0_1, w1_1, x0_4);
        const vb x1_4 = vb_splat4(x1 + b * TERN_BLOCK + 4);
        p0_1_0 = vp_mac(p0_1_0, w1_0, x1_4);
        p0_1_1 = vp_mac(p0_1_1, w1_1, x1_4);
        const vb x2_4 = vb_splat4(x2 + b * TERN_BLOCK + 4);
        p0_2_0 = vp_mac(p0_2_0, w1_0, x2_4);
        p0_2_1 = vp_mac(p0_2_1, w1_1, x2_4);
        const vb x3_4 = vb_splat4(x3 + b * TERN_BLOCK + 4);
        p0_3_0 = vp_mac(p0_3_0, w1_0, x3_4);
        p0_3_1 = vp_mac(p0_3_1, w1_1, x3_4);

        const vb w2_0 = vb_load(part->codes[b][2] + 0);
        const vb w2_1 = vb_load(part->codes[b][2] + 32);
        const vb x0_8 = vb_splat4(x0 + b * TERN_BLOCK + 8);
        p0_0_0 = vp_mac(p0_0_0, w2_0, x0_8);
        p0_0_1 = vp_mac(p0_0_1, w2_1, x0_8);
        const vb x1_8 = vb_splat4(x1 + b * TERN_BLOCK + 8);
        p0_1_0 = vp_mac(p0_1_0, w2_0, x1_8);
        p0_1_1 = vp_mac(p0_1_1, w2_1, x1_8);
        const vb x2_8 = vb_splat4(x2 + b * TERN_BLOCK + 8);
        p0_2_0 = vp_mac(p0_2_0, w2_0, x2_8);
        p0_2_1 = vp_mac(p0_2_1, w2_1, x2_8);
        const vb x3_8 = vb_splat4(x3 + b * TERN_BLOCK + 8);
        p0_3_0 = vp_mac(p0_3_0, w2_0, x3_8);
        p0_3_1 = vp_mac(p0_3_1, w2_1, x3_8);

        const vb w3_0 = vb_load(part->codes[b][3] + 0);
        const vb w3_1 = vb_load(part->codes[b][3] + 32);
        const vb x0_12 = vb_splat4(x0 + b * TERN_BLOCK + 12);
        p0_0_0 = vp_mac(p0_0_0, w3_0, x0_12);
        p0_0_1 = vp_mac(p0_0_1, w3_1, x0_12);
        const vb x1_12 = vb_splat4(x1 + b * TERN_BLOCK + 12);
        p0_1_0 = vp_mac(p0_1_0, w3_0, x1_12);
        p0_1_1 = vp_mac(p0_1_1, w3_1, x1_12);
        const vb x2_12 = vb_splat4(x2 + b * TERN_BLOCK + 12);
        p0_2_0 = vp_mac(p0_2_0, w3_0, x2_12);
        p0_2_1 = vp_mac(p0_2_1, w3_1, x2_12);
        const vb x3_12 = vb_splat4(x3 + b * TERN_BLOCK + 12);
        p0_3_0 = vp_mac(p0_3_0, w3_0, x3_12);
        p0_3_1 = vp_mac(p0_3_1, w3_1, x3_12);

        const vi s0_0_0 = vi_flush(vi_zero(), p0_0_0);
        const vi s0_0_1 = vi_flush(vi_zero(), p0_0_1);
        const vi s0_1_0 = vi_flush(vi_zero(), p0_1_0);
        const vi s0_1_1 = vi_flush(vi_zero(), p0_1_1);
        const vi s0_2_0 = vi_flush(vi_zero(), p0_2_0);
        const vi s0_2_1 = vi_flush(vi_zero(), p0_2_1);
        const vi s0_3_0 = vi_flush(vi_zero(), p0_3_0);
        const vi s0_3_1 = vi_flush(vi_zero(), p0_3_1);
        vp p1_0_0 = vp_zero();
        vp p1_0_1 = vp_zero();
        vp p1_1_0 = vp_zero();
        vp p1_1_1 = vp_zero();
        vp p1_2_0 = vp_zero();
        vp p1_2_1 = vp_zero();
        vp p1_3_0 = vp_zero();
        vp p1_3_1 = vp_zero();
        const vb w4_0 = vb_load(part->codes[b][4] + 0);
        const vb w4_1 = vb_load(part->codes[b][4] + 32);
        const vb x0_16 = vb_splat4(x0 + b * TERN_BLOCK + 16);
        p1_0_0 = vp_mac(p1_0_0, w4_0, x0_16);
        p1_0_1 = vp_mac(p1_0_1, w4_1, x0_16);
        const vb x1_16 = vb_splat4(x1 + b * TERN_BLOCK + 16);
        p1_1_0 = vp_mac(p1_1_0, w4_0, x1_16);
        p1_1_1 = vp_mac(p1_1_1, w4_1, x1_16);
        const vb x2_16 = vb_splat4(x2 + b * TERN_BLOCK + 16);
        p1_2_0 = vp_mac(p1_2_0, w4_0, x2_16);
        p1_2_1 = vp_mac(p1_2_1, w4_1, x2_16);
        const vb x3_16 = vb_splat4(x3 + b * TERN_BLOCK + 16);
        p1_3_0 = vp_mac(p1_3_0, w4_0, x3_16);
        p1_3_1 = vp_mac(p1_3_1, w4_1, x3_16);

        const vb w5_0 = vb_load(part->codes[b][5] + 0);
        const vb w5_1 = vb_load(part->codes[b][5] + 32);
        const vb x0_20 = vb_splat4(x0 + b * TERN_BLOCK + 20);
        p1_0_0 = vp_mac(p1_0_0, w5_0, x0_20);
        p1_0_1 = vp_mac(p1_0_1, w5_1, x0_20);
        const vb x1_20 = vb_splat4(x1 + b * TERN_BLOCK + 20);
        p1_1_0 = vp_mac(p1_1_0, w5_0, x1_20);
        p1_1_1 = vp_mac(p1_1_1, w5_1, x1_20);
        const vb x2_20 = vb_splat4(x2 + b * TERN_BLOCK + 20);
        p1_2_0 = vp_mac(p1_2_0, w5_0, x2_20);
        p1_2_1 = vp_mac(p1_2_1, w5_1, x2_20);
        const vb x3_20 = vb_splat4(x3 + b * TERN_BLOCK + 20);
        p1_3_0 = vp_mac(p1_3_0, w5_0, x3_20);
        p1_3_1 = vp_mac(p1_3_1, w5_1, x3_20);

        const vb w6_0 = vb_load(part->codes[b][6] + 0);
        const vb w6_1 = vb_load(part->codes[b][6] + 32);
        const vb x0_24 = vb_splat4(x0 + b * TERN_BLOCK + 24);
        p1_0_0 = vp_mac(p1_0_0, w6_0, x0_24);
        p1_0_1 = vp_mac(p1_0_1, w6_1, x0_24);
        const vb x1_24 = vb_splat4(x1 + b * TERN_BLOCK + 24);
        p1_1_0 = vp_mac(p1_1_0, w6_0, x1_24);
        p1_1_1 = vp_mac(p1_1_1, w6_1, x1_24);
        const vb x2_24 = vb_splat4(x2 + b * TERN_BLOCK + 24);
        p1_2_0 = vp_mac(p1_2_0, w6_0, x2_24);
        p1_2_1 = vp_mac(p1_2_1, w6_1, x2_24);
        const vb x3_24 = vb_splat4(x3 + b * TERN_BLOCK + 24);
        p1_3_0 = vp_mac(p1_3_0, w6_0, x3_24);
        p1_3_1 = vp_mac(p1_3_1, w6_1, x3_24);

        const vb w7_0 = vb_load(part->codes[b][7] + 0);
        const vb w7_1 = vb_load(part->codes[b][7] + 32);
        const vb x0_28 = vb_splat4(x0 + b * TERN_BLOCK + 28);
        p1_0_0 = vp_mac(p1_0_0, w7_0, x0_28);
        p1_0_1 = vp_mac(p1_0_1, w7_1, x0_28);
        const vb x1_28 = vb_splat4(x1 + b * TERN_BLOCK + 28);
        p1_1_0 = vp_mac(p1_1_0, w7_0, x1_28);
        p1_1_1 = vp_mac(p1_1_1, w7_1, x1_28);
        const vb x2_28 = vb_splat4(x2 + b * TERN_BLOCK + 28);
        p1_2_0 = vp_mac(p1_2_0, w7_0, x2_28);
        p1_2_1 = vp_mac(p1_2_1, w7_1, x2_28);
        const vb x3_28 = vb_splat4(x3 + b * TERN_BLOCK + 28);
        p1_3_0 = vp_mac(p1_3_0, w7_0, x3_28);
        p1_3_1 = vp_mac(p1_3_1, w7_1, x3_28);

        const vi s1_0_0 = vi_flush(s0_0_0, p1_0_0);
        const vi s1_0_1 = vi_flush(s0_0_1, p1_0_1);
        const vi s1_1_0 = vi_flush(s0_1_0, p1_1_0);
        const vi s1_1_1 = vi_flush(s0_1_1, p1_1_1);
        const vi s1_2_0 = vi_flush(s0_2_0, p1_2_0);
        const vi s1_2_1 = vi_flush(s0_2_1, p1_2_1);
        const vi s1_3_0 = vi_flush(s0_3_0, p1_3_0);
        const vi s1_3_1 = vi_flush(s0_3_1, p1_3_1);
        const vf d_0 = vf_load(part->d[b] + 0);
        const vf m_0 = vf_load(part->m[b] + 0);
        const vf d_1 = vf_load(part->d[b] + 8);
        const vf m_1 = vf_load(part->m[b] + 8);
        const vf scale0 = vf_set1(d0[b]);
        const vf term0 = vf_set1(e0[b]);
        const vf y0_0 = vf_add(vf_load(sums[0] + 0), vf_mul(vi_to_f(s1_0_0), vf_mul(d_0, scale0)));
        vf_store(sums[0] + 0, vf_sub(y0_0, vf_mul(m_0, term0)));
        const vf y0_1 = vf_add(vf_load(sums[0] + 8), vf_mul(vi_to_f(s1_0_1), vf_mul(d_1, scale0)));
        vf_store(sums[0] + 8, vf_sub(y0_1, vf_mul(m_1, term0)));
        const vf scale1 = vf_set1(d1[b]);
        const vf term1 = vf_set1(e1[b]);
        const vf y1_0 = vf_add(vf_load(sums[1] + 0), vf_mul(vi_to_f(s1_1_0), vf_mul(d_0, scale1)));
        vf_store(sums[1] + 0, vf_sub(y1_0, vf_mul(m_0, term1)));
        const vf y1_1 = vf_add(vf_load(sums[1] + 8), vf_mul(vi_to_f(s1_1_1), vf_mul(d_1, scale1)));
        vf_store(sums[1] + 8, vf_sub(y1_1, vf_mul(m_1, term1)));
        const vf scale2 = vf_set1(d2[b]);
        const vf term2 = vf_set1(e2[b]);
        const vf y2_0 = vf_add(vf_load(sums[2] + 0), vf_mul(vi_to_f(s1_2_0), vf_mul(d_0, scale2)));
        vf_store(sums[2] + 0, vf_sub(y2_0, vf_mul(m_0, term2)));
        const vf y2_1 = vf_add(vf_load(sums[2] + 8), vf_mul(vi_to_f(s1_2_1), vf_mul(d_1, scale2)));
        vf_store(sums[2] + 8, vf_sub(y2_1, vf_mul(m_1, term2)));
        const vf scale3 = vf_set1(d3[b]);
        const vf term3 = vf_set1(e3[b]);
        const vf y3_0 = vf_add(vf_load(sums[3] + 0), vf_mul(vi_to_f(s1_3_0), vf_mul(d_0, scale3)));
        vf_store(sums[3] + 0, vf_sub(y3_0, vf_mul(m_0, term3)));
        const vf y3_1 = vf_add(vf_load(sums[3] + 8), vf_mul(vi_to_f(s1_3_1), vf_mul(d_1, scale3)));
        vf_store(sums[3] + 8, vf_sub(y3_1, vf_mul(m_1, term3)));
    }
}

/* The row group at w x tokens [t, t + n), n <= PASS_TOKENS and a multiple of 4. */
static void pass(const uint8_t *w, size_t blocks, const tern_activations *x, size_t t, size_t n,
                 float *y, size_t y_stride, size_t rows) {
    scratch part;
    memset(part.sums, 0, n * sizeof *part.sums);
    for (size_t b = 0; b < blocks; b += PART_BLOCKS) {
        const size_t count = blocks - b < PART_BLOCKS ? blocks - b : PART_BLOCKS;
        for (size_t i = 0; i < count; i++)
            unpack(w, b + i, &part, i);
        for (size_t i = 0; i < n; i += 4)
            part_4(&part, b, count, x, t + i, part.sums + i);
    }
    for (size_t i = 0; i < n; i++) {
        vf_store_n(y + i * y_stride + 0, vf_load(part.sums[i] + 0), tail_lanes(rows, 0, 8));
        vf_store_n(y + i * y_stride + 8, vf_load(part.sums[i] + 8), tail_lanes(rows, 8, 8));
    }
}

void tern_gemm_q5_k_16x4_avx2(const tern_matrix *w, const tern_activations *x,
    const tern_tile *tile, float *y,
    size_t y_stride) {
    const size_t blocks = (w->cols + TERN_BLOCK - 1) / TERN_BLOCK;
    const size_t group_bytes = blocks / 8 * SUPER_BYTES;
    for (size_t r = tile->r0; r < tile->r1; r += ROWS) {
        const uint8_t *group = (const uint8_t *)w->data + r / ROWS * group_bytes;
        const size_t rows = tile->r1 - r < ROWS ? tile->r1 - r : ROWS;
        size_t t = tile->t0;
        while (tile->t1 - t >= LEAST_TOKENS) {
            const size_t left = (tile->t1 - t) / 4 * 4;
            const size_t n = left < PASS_TOKENS ? left : PASS_TOKENS;
            pass(group, blocks, x, t, n, y + t * y_stride + r, y_stride, rows);
            t += n;
        }
        for (; t + 4 <= tile->t1; t += 4)
            tile_4(group, 0, blocks, x, t, y + t * y_stride + r, y_stride, rows);
        for (; t + 2 <= tile->t1; t += 2)
            tile_2(group, 0, blocks, x, t, y + t * y_stride + r, y_stride, rows);
        for (; t + 1 <= tile->t1; t += 1)
            tile_1(group, 0, blocks, x, t, y + t * y_stride + r, y_stride, rows);
    }
}
