/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_gemm_q8_0_16x4_neoni8mm of kernels/kernels.toml
 * and template kernels/matmul_block_pairs.c.j2. Do not edit.
 */

#include "tern/kernels.h"

tern_matmul_fn tern_gemm_q8_0_16x4_neoni8mm;

/*
 * Matrix product over block formats in the R16 layouts: lanes are rows. Each 32-column block has
 * 16 scales (and minima), then chunks of 64 bytes: 16 rows x 4 bytes; the fifth bits of 5-bit
 * codes come last. Eight blocks of a K-quant share 16 f16 d and dmin, which lie before them; two or
 * four blocks with codes of one or two bits share 16 f16 d.
 */
#include "kernels/isa/neoni8mm.h"

#include "kernels/isa/vmath.h"

enum {
    HEADER_BYTES = 32,
    CHUNK_BYTES = 64,
    BLOCK_BYTES = HEADER_BYTES + 8 * CHUNK_BYTES,
    PREFETCH_BYTES = 4096 /* ahead in the one stream that a thread reads */
};

/* What each stored code exceeds its weight by: taken back as CODE_BIAS * sum of the block's q. */
static const int32_t code_bias = TERN_SS_BIAS;

/* 16 rows x 4 token(s) from token t; first row is row `lane` of the group at w. */
static void tile_4(const uint8_t *w, size_t lane, size_t blocks, const tern_activations *x,
    size_t t,
                   float *y, size_t y_stride, size_t rows) {
    const int8_t *x0 = x->q + (t + 0) * x->q_stride;
    const float *d0 = x->d + (t + 0) * x->d_stride;
    const int32_t *n0 = x->block_sum + (t + 0) * x->d_stride;
    const int8_t *x1 = x->q + (t + 1) * x->q_stride;
    const float *d1 = x->d + (t + 1) * x->d_stride;
    const int32_t *n1 = x->block_sum + (t + 1) * x->d_stride;
    const int8_t *x2 = x->q + (t + 2) * x->q_stride;
    const float *d2 = x->d + (t + 2) * x->d_stride;
    const int32_t *n2 = x->block_sum + (t + 2) * x->d_stride;
    const int8_t *x3 = x->q + (t + 3) * x->q_stride;
    const float *d3 = x->d + (t + 3) * x->d_stride;
    const int32_t *n3 = x->block_sum + (t + 3) * x->d_stride;
    vf y0_0 = vf_zero();
    vf y0_1 = vf_zero();
    vf y0_2 = vf_zero();
    vf y0_3 = vf_zero();
    vf y1_0 = vf_zero();
    vf y1_1 = vf_zero();
    vf y1_2 = vf_zero();
    vf y1_3 = vf_zero();
    vf y2_0 = vf_zero();
    vf y2_1 = vf_zero();
    vf y2_2 = vf_zero();
    vf y2_3 = vf_zero();
    vf y3_0 = vf_zero();
    vf y3_1 = vf_zero();
    vf y3_2 = vf_zero();
    vf y3_3 = vf_zero();
    for (size_t b = 0; b < blocks; b++) {
        const uint8_t *block = w + b * BLOCK_BYTES;
        const uint8_t *codes = block + HEADER_BYTES + 4 * lane;
        ask_ahead(block + PREFETCH_BYTES);
        ask_ahead(block + PREFETCH_BYTES + 64);
        ask_ahead(block + PREFETCH_BYTES + 128);
        ask_ahead(block + PREFETCH_BYTES + 192);
        ask_ahead(block + PREFETCH_BYTES + 256);
        ask_ahead(block + PREFETCH_BYTES + 320);
        ask_ahead(block + PREFETCH_BYTES + 384);
        ask_ahead(block + PREFETCH_BYTES + 448);
        {
            vi s0_01 = vi_zero();
            vi s0_23 = vi_zero();
            vi s1_01 = vi_zero();
            vi s1_23 = vi_zero();
            const vb even0_0 = vb_load(x0 + b * TERN_BLOCK + 0);
            const vb odd0_0 = vb_load(x1 + b * TERN_BLOCK + 0);
            const vb even0_1 = vb_load(x2 + b * TERN_BLOCK + 0);
            const vb odd0_1 = vb_load(x3 + b * TERN_BLOCK + 0);
            const vb left0 = vb_load(codes + 0);
            const vb right0 = vb_load(codes + 64);
            const vb w0_01 = vb_rows01(left0, right0);
            const vb w0_23 = vb_rows23(left0, right0);
            const vb x0_0 = vb_tokens_lo(even0_0, odd0_0);
            s0_01 = vi_mmla(s0_01, w0_01, x0_0);
            s0_23 = vi_mmla(s0_23, w0_23, x0_0);
            const vb x0_1 = vb_tokens_lo(even0_1, odd0_1);
            s1_01 = vi_mmla(s1_01, w0_01, x0_1);
            s1_23 = vi_mmla(s1_23, w0_23, x0_1);
            const vb left1 = vb_load(codes + 128);
            const vb right1 = vb_load(codes + 192);
            const vb w1_01 = vb_rows01(left1, right1);
            const vb w1_23 = vb_rows23(left1, right1);
            const vb x1_0 = vb_tokens_hi(even0_0, odd0_0);
            s0_01 = vi_mmla(s0_01, w1_01, x1_0);
            s0_23 = vi_mmla(s0_23, w1_23, x1_0);
            const vb x1_1 = vb_tokens_hi(even0_1, odd0_1);
            s1_01 = vi_mmla(s1_01, w1_01, x1_1);
            s1_23 = vi_mmla(s1_23, w1_23, x1_1);
            const vb even1_0 = vb_load(x0 + b * TERN_BLOCK + 16);
            const vb odd1_0 = vb_load(x1 + b * TERN_BLOCK + 16);
            const vb even1_1 = vb_load(x2 + b * TERN_BLOCK + 16);
            const vb odd1_1 = vb_load(x3 + b * TERN_BLOCK + 16);
            const vb left2 = vb_load(codes + 256);
            const vb right2 = vb_load(codes + 320);
            const vb w2_01 = vb_rows01(left2, right2);
            const vb w2_23 = vb_rows23(left2, right2);
            const vb x2_0 = vb_tokens_lo(even1_0, odd1_0);
            s0_01 = vi_mmla(s0_01, w2_01, x2_0);
            s0_23 = vi_mmla(s0_23, w2_23, x2_0);
            const vb x2_1 = vb_tokens_lo(even1_1, odd1_1);
            s1_01 = vi_mmla(s1_01, w2_01, x2_1);
            s1_23 = vi_mmla(s1_23, w2_23, x2_1);
            const vb left3 = vb_load(codes + 384);
            const vb right3 = vb_load(codes + 448);
            const vb w3_01 = vb_rows01(left3, right3);
            const vb w3_23 = vb_rows23(left3, right3);
            const vb x3_0 = vb_tokens_hi(even1_0, odd1_0);
            s0_01 = vi_mmla(s0_01, w3_01, x3_0);
            s0_23 = vi_mmla(s0_23, w3_23, x3_0);
            const vb x3_1 = vb_tokens_hi(even1_1, odd1_1);
            s1_01 = vi_mmla(s1_01, w3_01, x3_1);
            s1_23 = vi_mmla(s1_23, w3_23, x3_1);
            const vi s0 = vi_first_token(s0_01, s0_23);
            const vi s1 = vi_second_token(s0_01, s0_23);
            const vi s2 = vi_first_token(s1_01, s1_23);
            const vi s3 = vi_second_token(s1_01, s1_23);
            const vf d = vf_load_f16(block + 0 + 2 * (lane + 0));
            const vi q0 = vi_sub(s0, vi_set1(code_bias * n0[b]));
            y0_0 = vf_add(y0_0, vf_mul(vi_to_f(q0), vf_mul(d, vf_set1(d0[b]))));
            const vi q1 = vi_sub(s1, vi_set1(code_bias * n1[b]));
            y1_0 = vf_add(y1_0, vf_mul(vi_to_f(q1), vf_mul(d, vf_set1(d1[b]))));
            const vi q2 = vi_sub(s2, vi_set1(code_bias * n2[b]));
            y2_0 = vf_add(y2_0, vf_mul(vi_to_f(q2), vf_mul(d, vf_set1(d2[b]))));
            const vi q3 = vi_sub(s3, vi_set1(code_bias * n3[b]));
            y3_0 = vf_add(y3_0, vf_mul(vi_to_f(q3), vf_mul(d, vf_set1(d3[b]))));
        }
        {
            vi s0_01 = vi_zero();
            vi s0_23 = vi_zero();
            vi s1_01 = vi_zero();
            vi s1_23 = vi_zero();
            const vb even0_0 = vb_load(x0 + b * TERN_BLOCK + 0);
            const vb odd0_0 = vb_load(x1 + b * TERN_BLOCK + 0);
            const vb even0_1 = vb_load(x2 + b * TERN_BLOCK + 0);
            const vb odd0_1 = vb_load(x3 + b * TERN_BLOCK + 0);
            const vb left0 = vb_load(codes + 16);
            const vb right0 = vb_load(codes + 80);
            const vb w0_01 = vb_rows01(left0, right0);
            const vb w0_23 = vb_rows23(left0, right0);
            const vb x0_0 = vb_tokens_lo(even0_0, odd0_0);
            s0_01 = vi_mmla(s0_01, w0_01, x0_0);
            s0_23 = vi_mmla(s0_23, w0_23, x0_0);
            const vb x0_1 = vb_tokens_lo(even0_1, odd0_1);
            s1_01 = vi_mmla(s1_01, w0_01, x0_1);
            s1_23 = vi_mmla(s1_23, w0_23, x0_1);
            const vb left1 = vb_load(codes + 144);
            const vb right1 = vb_load(codes + 208);
            const vb w1_01 = vb_rows01(left1, right1);
            const vb w1_23 = vb_rows23(left1, right1);
            const vb x1_0 = vb_tokens_hi(even0_0, odd0_0);
            s0_01 = vi_mmla(s0_01, w1_01, x1_0);
            s0_23 = vi_mmla(s0_23, w1_23, x1_0);
            const vb x1_1 = vb_tokens_hi(even0_1, odd0_1);
            s1_01 = vi_mmla(s1_01, w1_01, x1_1);
            s1_23 = vi_mmla(s1_23, w1_23, x1_1);
            const vb even1_0 = vb_load(x0 + b * TERN_BLOCK + 16);
            const vb odd1_0 = vb_load(x1 + b * TERN_BLOCK + 16);
            const vb even1_1 = vb_load(x2 + b * TERN_BLOCK + 16);
            const vb odd1_1 = vb_load(x3 + b * TERN_BLOCK + 16);
            const vb left2 = vb_load(codes + 272);
            const vb right2 = vb_load(codes + 336);
            const vb w2_01 = vb_rows01(left2, right2);
            const vb w2_23 = vb_rows23(left2, right2);
            const vb x2_0 = vb_tokens_lo(even1_0, odd1_0);
            s0_01 = vi_mmla(s0_01, w2_01, x2_0);
            s0_23 = vi_mmla(s0_23, w2_23, x2_0);
            const vb x2_1 = vb_tokens_lo(even1_1, odd1_1);
            s1_01 = vi_mmla(s1_01, w2_01, x2_1);
            s1_23 = vi_mmla(s1_23, w2_23, x2_1);
            const vb left3 = vb_load(codes + 400);
            const vb right3 = vb_load(codes + 464);
            const vb w3_01 = vb_rows01(left3, right3);
            const vb w3_23 = vb_rows23(left3, right3);
            const vb x3_0 = vb_tokens_hi(even1_0, odd1_0);
            s0_01 = vi_mmla(s0_01, w3_01, x3_0);
            s0_23 = vi_mmla(s0_23, w3_23, x3_0);
            const vb x3_1 = vb_tokens_hi(even1_1, odd1_1);
            s1_01 = vi_mmla(s1_01, w3_01, x3_1);
            s1_23 = vi_mmla(s1_23, w3_23, x3_1);
            const vi s0 = vi_first_token(s0_01, s0_23);
            const vi s1 = vi_second_token(s0_01, s0_23);
            const vi s2 = vi_first_token(s1_01, s1_23);
            const vi s3 = vi_second_token(s1_01, s1_23);
            const vf d = vf_load_f16(block + 0 + 2 * (lane + 4));
            const vi q0 = vi_sub(s0, vi_set1(code_bias * n0[b]));
            y0_1 = vf_add(y0_1, vf_mul(vi_to_f(q0), vf_mul(d, vf_set1(d0[b]))));
            const vi q1 = vi_sub(s1, vi_set1(code_bias * n1[b]));
            y1_1 = vf_add(y1_1, vf_mul(vi_to_f(q1), vf_mul(d, vf_set1(d1[b]))));
            const vi q2 = vi_sub(s2, vi_set1(code_bias * n2[b]));
            y2_1 = vf_add(y2_1, vf_mul(vi_to_f(q2), vf_mul(d, vf_set1(d2[b]))));
            const vi q3 = vi_sub(s3, vi_set1(code_bias * n3[b]));
            y3_1 = vf_add(y3_1, vf_mul(vi_to_f(q3), vf_mul(d, vf_set1(d3[b]))));
        }
        {
            vi s0_01 = vi_zero();
            vi s0_23 = vi_zero();
            vi s1_01 = vi_zero();
            vi s1_23 = vi_zero();
            const vb even0_0 = vb_load(x0 + b * TERN_BLOCK + 0);
            const vb odd0_0 = vb_load(x1 + b * TERN_BLOCK + 0);
            const vb even0_1 = vb_load(x2 + b * TERN_BLOCK + 0);
            const vb odd0_1 = vb_load(x3 + b * TERN_BLOCK + 0);
            const vb left0 = vb_load(codes + 32);
            const vb right0 = vb_load(codes + 96);
            const vb w0_01 = vb_rows01(left0, right0);
            const vb w0_23 = vb_rows23(left0, right0);
            const vb x0_0 = vb_tokens_lo(even0_0, odd0_0);
            s0_01 = vi_mmla(s0_01, w0_01, x0_0);
            s0_23 = vi_mmla(s0_23, w0_23, x0_0);
            const vb x0_1 = vb_tokens_lo(even0_1, odd0_1);
            s1_01 = vi_mmla(s1_01, w0_01, x0_1);
            s1_23 = vi_mmla(s1_23, w0_23, x0_1);
            const vb left1 = vb_load(codes + 160);
            const vb right1 = vb_load(codes + 224);
            const vb w1_01 = vb_rows01(left1, right1);
            const vb w1_23 = vb_rows23(left1, right1);
            const vb x1_0 = vb_tokens_hi(even0_0, odd0_0);
            s0_01 = vi_mmla(s0_01, w1_01, x1_0);
            s0_23 = vi_mmla(s0_23, w1_23, x1_0);
            const vb x1_1 = vb_tokens_hi(even0_1, odd0_1);
            s1_01 = vi_mmla(s1_01, w1_01, x1_1);
            s1_23 = vi_mmla(s1_23, w1_23, x1_1);
            const vb even1_0 = vb_load(x0 + b * TERN_BLOCK + 16);
            const vb odd1_0 = vb_load(x1 + b * TERN_BLOCK + 16);
            const vb even1_1 = vb_load(x2 + b * TERN_BLOCK + 16);
            const vb odd1_1 = vb_load(x3 + b * TERN_BLOCK + 16);
            const vb left2 = vb_load(codes + 288);
            const vb right2 = vb_load(codes + 352);
            const vb w2_01 = vb_rows01(left2, right2);
            const vb w2_23 = vb_rows23(left2, right2);
            const vb x2_0 = vb_tokens_lo(even1_0, odd1_0);
            s0_01 = vi_mmla(s0_01, w2_01, x2_0);
            s0_23 = vi_mmla(s0_23, w2_23, x2_0);
            const vb x2_1 = vb_tokens_lo(even1_1, odd1_1);
            s1_01 = vi_mmla(s1_01, w2_01, x2_1);
            s1_23 = vi_mmla(s1_23, w2_23, x2_1);
            const vb left3 = vb_load(codes + 416);
            const vb right3 = vb_load(codes + 480);
            const vb w3_01 = vb_rows01(left3, right3);
            const vb w3_23 = vb_rows23(left3, right3);
            const vb x3_0 = vb_tokens_hi(even1_0, odd1_0);
            s0_01 = vi_mmla(s0_01, w3_01, x3_0);
            s0_23 = vi_mmla(s0_23, w3_23, x3_0);
            const vb x3_1 = vb_tokens_hi(even1_1, odd1_1);
            s1_01 = vi_mmla(s1_01, w3_01, x3_1);
            s1_23 = vi_mmla(s1_23, w3_23, x3_1);
            const vi s0 = vi_first_token(s0_01, s0_23);
            const vi s1 = vi_second_token(s0_01, s0_23);
            const vi s2 = vi_first_token(s1_01, s1_23);
            const vi s3 = vi_second_token(s1_01, s1_23);
            const vf d = vf_load_f16(block + 0 + 2 * (lane + 8));
            const vi q0 = vi_sub(s0, vi_set1(code_bias * n0[b]));
            y0_2 = vf_add(y0_2, vf_mul(vi_to_f(q0), vf_mul(d, vf_set1(d0[b]))));
            const vi q1 = vi_sub(s1, vi_set1(code_bias * n1[b]));
            y1_2 = vf_add(y1_2, vf_mul(vi_to_f(q1), vf_mul(d, vf_set1(d1[b]))));
            const vi q2 = vi_sub(s2, vi_set1(code_bias * n2[b]));
            y2_2 = vf_add(y2_2, vf_mul(vi_to_f(q2), vf_mul(d, vf_set1(d2[b]))));
            const vi q3 = vi_sub(s3, vi_set1(code_bias * n3[b]));
            y3_2 = vf_add(y3_2, vf_mul(vi_to_f(q3), vf_mul(d, vf_set1(d3[b]))));
        }
        {
            vi s0_01 = vi_zero();
            vi s0_23 = vi_zero();
            vi s1_01 = vi_zero();
            vi s1_23 = vi_zero();
            const vb even0_0 = vb_load(x0 + b * TERN_BLOCK + 0);
            const vb odd0_0 = vb_load(x1 + b * TERN_BLOCK + 0);
            const vb even0_1 = vb_load(x2 + b * TERN_BLOCK + 0);
            const vb odd0_1 = vb_load(x3 + b * TERN_BLOCK + 0);
            const vb left0 = vb_load(codes + 48);
            const vb right0 = vb_load(codes + 112);
            const vb w0_01 = vb_rows01(left0, right0);
            const vb w0_23 = vb_rows23(left0, right0);
            const vb x0_0 = vb_tokens_lo(even0_0, odd0_0);
            s0_01 = vi_mmla(s0_01, w0_01, x0_0);
            s0_23 = vi_mmla(s0_23, w0_23, x0_0);
            const vb x0_1 = vb_tokens_lo(even0_1, odd0_1);
            s1_01 = vi_mmla(s1_01, w0_01, x0_1);
            s1_23 = vi_mmla(s1_23, w0_23, x0_1);
            const vb left1 = vb_load(codes + 176);
            const vb right1 = vb_load(codes + 240);
            const vb w1_01 = vb_rows01(left1, right1);
            const vb w1_23 = vb_rows23(left1, right1);
            const vb x1_0 = vb_tokens_hi(even0_0, odd0_0);
            s0_01 = vi_mmla(s0_01, w1_01, x1_0);
            s0_23 = vi_mmla(s0_23, w1_23, x1_0);
            const vb x1_1 = vb_tokens_hi(even0_1, odd0_1);
            s1_01 = vi_mmla(s1_01, w1_01, x1_1);
            s1_23 = vi_mmla(s1_23, w1_23, x1_1);
            const vb even1_0 = vb_load(x0 + b * TERN_BLOCK + 16);
            const vb odd1_0 = vb_load(x1 + b * TERN_BLOCK + 16);
            const vb even1_1 = vb_load(x2 + b * TERN_BLOCK + 16);
            const vb odd1_1 = vb_load(x3 + b * TERN_BLOCK + 16);
            const vb left2 = vb_load(codes + 304);
            const vb right2 = vb_load(codes + 368);
            const vb w2_01 = vb_rows01(left2, right2);
            const vb w2_23 = vb_rows23(left2, right2);
            const vb x2_0 = vb_tokens_lo(even1_0, odd1_0);
            s0_01 = vi_mmla(s0_01, w2_01, x2_0);
            s0_23 = vi_mmla(s0_23, w2_23, x2_0);
            const vb x2_1 = vb_tokens_lo(even1_1, odd1_1);
            s1_01 = vi_mmla(s1_01, w2_01, x2_1);
            s1_23 = vi_mmla(s1_23, w2_23, x2_1);
            const vb left3 = vb_load(codes + 432);
            const vb right3 = vb_load(codes + 496);
            const vb w3_01 = vb_rows01(left3, right3);
            const vb w3_23 = vb_rows23(left3, right3);
            const vb x3_0 = vb_tokens_hi(even1_0, odd1_0);
            s0_01 = vi_mmla(s0_01, w3_01, x3_0);
            s0_23 = vi_mmla(s0_23, w3_23, x3_0);
            const vb x3_1 = vb_tokens_hi(even1_1, odd1_1);
            s1_01 = vi_mmla(s1_01, w3_01, x3_1);
            s1_23 = vi_mmla(s1_23, w3_23, x3_1);
            const vi s0 = vi_first_token(s0_01, s0_23);
            const vi s1 = vi_second_token(s0_01, s0_23);
            const vi s2 = vi_first_token(s1_01, s1_23);
            const vi s3 = vi_second_token(s1_01, s1_23);
            const vf d = vf_load_f16(block + 0 + 2 * (lane + 12));
            const vi q0 = vi_sub(s0, vi_set1(code_bias * n0[b]));
            y0_3 = vf_add(y0_3, vf_mul(vi_to_f(q0), vf_mul(d, vf_set1(d0[b]))));
            const vi q1 = vi_sub(s1, vi_set1(code_bias * n1[b]));
            y1_3 = vf_add(y1_3, vf_mul(vi_to_f(q1), vf_mul(d, vf_set1(d1[b]))));
            const vi q2 = vi_sub(s2, vi_set1(code_bias * n2[b]));
            y2_3 = vf_add(y2_3, vf_mul(vi_to_f(q2), vf_mul(d, vf_set1(d2[b]))));
            const vi q3 = vi_sub(s3, vi_set1(code_bias * n3[b]));
            y3_3 = vf_add(y3_3, vf_mul(vi_to_f(q3), vf_mul(d, vf_set1(d3[b]))));
        }
    }
    vf_store_n(y + 0 * y_stride + 0, y0_0,
               tail_lanes(rows, 0, 4));
    vf_store_n(y + 0 * y_stride + 4, y0_1,
               tail_lanes(rows, 4, 4));
    vf_store_n(y + 0 * y_stride + 8, y0_2,
               tail_lanes(rows, 8, 4));
    vf_store_n(y + 0 * y_stride + 12, y0_3,
               tail_lanes(rows, 12, 4));
    vf_store_n(y + 1 * y_stride + 0, y1_0,
               tail_lanes(rows, 0, 4));
    vf_store_n(y + 1 * y_stride + 4, y1_1,
               tail_lanes(rows, 4, 4));
    vf_store_n(y + 1 * y_stride + 8, y1_2,
               tail_lanes(rows, 8, 4));
    vf_store_n(y + 1 * y_stride + 12, y1_3,
               tail_lanes(rows, 12, 4));
    vf_store_n(y + 2 * y_stride + 0, y2_0,
               tail_lanes(rows, 0, 4));
    vf_store_n(y + 2 * y_stride + 4, y2_1,
               tail_lanes(rows, 4, 4));
    vf_store_n(y + 2 * y_stride + 8, y2_2,
               tail_lanes(rows, 8, 4));
    vf_store_n(y + 2 * y_stride + 12, y2_3,
               tail_lanes(rows, 12, 4));
    vf_store_n(y + 3 * y_stride + 0, y3_0,
               tail_lanes(rows, 0, 4));
    vf_store_n(y + 3 * y_stride + 4, y3_1,
               tail_lanes(rows, 4, 4));
    vf_store_n(y + 3 * y_stride + 8, y3_2,
               tail_lanes(rows, 8, 4));
    vf_store_n(y + 3 * y_stride + 12, y3_3,
               tail_lanes(rows, 12, 4));
}

/* 16 rows x 2 token(s) from token t; first row is row `lane` of the group at w. */
static void tile_2(const uint8_t *w, size_t lane, size_t blocks, const tern_activations *x,
    size_t t,
                   float *y, size_t y_stride, size_t rows) {
    const int8_t *x0 = x->q + (t + 0) * x->q_stride;
    const float *d0 = x->d + (t + 0) * x->d_stride;
    const int32_t *n0 = x->block_sum + (t + 0) * x->d_stride;
    const int8_t *x1 = x->q + (t + 1) * x->q_stride;
    const float *d1 = x->d + (t + 1) * x->d_stride;
    const int32_t *n1 = x->block_sum + (t + 1) * x->d_stride;
    vf y0_0 = vf_zero();
    vf y0_1 = vf_zero();
    vf y0_2 = vf_zero();
    vf y0_3 = vf_zero();
    vf y1_0 = vf_zero();
    vf y1_1 = vf_zero();
    vf y1_2 = vf_zero();
    vf y1_3 = vf_zero();
    for (size_t b = 0; b < blocks; b++) {
        const uint8_t *block = w + b * BLOCK_BYTES;
        const uint8_t *codes = block + HEADER_BYTES + 4 * lane;
        ask_ahead(block + PREFETCH_BYTES);
        ask_ahead(block + PREFETCH_BYTES + 64);
        ask_ahead(block + PREFETCH_BYTES + 128);
        ask_ahead(block + PREFETCH_BYTES + 192);
        ask_ahead(block + PREFETCH_BYTES + 256);
        ask_ahead(block + PREFETCH_BYTES + 320);
        ask_ahead(block + PREFETCH_BYTES + 384);
        ask_ahead(block + PREFETCH_BYTES + 448);
        {
            vi s0_01 = vi_zero();
            vi s0_23 = vi_zero();
            const vb even0_0 = vb_load(x0 + b * TERN_BLOCK + 0);
            const vb odd0_0 = vb_load(x1 + b * TERN_BLOCK + 0);
            const vb left0 = vb_load(codes + 0);
            const vb right0 = vb_load(codes + 64);
            const vb w0_01 = vb_rows01(left0, right0);
            const vb w0_23 = vb_rows23(left0, right0);
            const vb x0_0 = vb_tokens_lo(even0_0, odd0_0);
            s0_01 = vi_mmla(s0_01, w0_01, x0_0);
            s0_23 = vi_mmla(s0_23, w0_23, x0_0);
            const vb left1 = vb_load(codes + 128);
            const vb right1 = vb_load(codes + 192);
            const vb w1_01 = vb_rows01(left1, right1);
            const vb w1_23 = vb_rows23(left1, right1);
            const vb x1_0 = vb_tokens_hi(even0_0, odd0_0);
            s0_01 = vi_mmla(s0_01, w1_01, x1_0);
            s0_23 = vi_mmla(s0_23, w1_23, x1_0);
            const vb even1_0 = vb_load(x0 + b * TERN_BLOCK + 16);
            const vb odd1_0 = vb_load(x1 + b * TERN_BLOCK + 16);
            const vb left2 = vb_load(codes + 256);
            const vb right2 = vb_load(codes + 320);
            const vb w2_01 = vb_rows01(left2, right2);
            const vb w2_23 = vb_rows23(left2, right2);
            const vb x2_0 = vb_tokens_lo(even1_0, odd1_0);
            s0_01 = vi_mmla(s0_01, w2_01, x2_0);
            s0_23 = vi_mmla(s0_23, w2_23, x2_0);
            const vb left3 = vb_load(codes + 384);
            const vb right3 = vb_load(codes + 448);
            const vb w3_01 = vb_rows01(left3, right3);
            const vb w3_23 = vb_rows23(left3, right3);
            const vb x3_0 = vb_tokens_hi(even1_0, odd1_0);
            s0_01 = vi_mmla(s0_01, w3_01, x3_0);
            s0_23 = vi_mmla(s0_23, w3_23, x3_0);
            const vi s0 = vi_first_token(s0_01, s0_23);
            const vi s1 = vi_second_token(s0_01, s0_23);
            const vf d = vf_load_f16(block + 0 + 2 * (lane + 0));
            const vi q0 = vi_sub(s0, vi_set1(code_bias * n0[b]));
            y0_0 = vf_add(y0_0, vf_mul(vi_to_f(q0), vf_mul(d, vf_set1(d0[b]))));
            const vi q1 = vi_sub(s1, vi_set1(code_bias * n1[b]));
            y1_0 = vf_add(y1_0, vf_mul(vi_to_f(q1), vf_mul(d, vf_set1(d1[b]))));
        }
        {
            vi s0_01 = vi_zero();
            vi s0_23 = vi_zero();
            const vb even0_0 = vb_load(x0 + b * TERN_BLOCK + 0);
            const vb odd0_0 = vb_load(x1 + b * TERN_BLOCK + 0);
            const vb left0 = vb_load(codes + 16);
            const vb right0 = vb_load(codes + 80);
            const vb w0_01 = vb_rows01(left0, right0);
            const vb w0_23 = vb_rows23(left0, right0);
            const vb x0_0 = vb_tokens_lo(even0_0, odd0_0);
            s0_01 = vi_mmla(s0_01, w0_01, x0_0);
            s0_23 = vi_mmla(s0_23, w0_23, x0_0);
            const vb left1 = vb_load(codes + 144);
            const vb right1 = vb_load(codes + 208);
            const vb w1_01 = vb_rows01(left1, right1);
            const vb w1_23 = vb_rows23(left1, right1);
            const vb x1_0 = vb_tokens_hi(even0_0, odd0_0);
            s0_01 = vi_mmla(s0_01, w1_01, x1_0);
            s0_23 = vi_mmla(s0_23, w1_23, x1_0);
            const vb even1_0 = vb_load(x0 + b * TERN_BLOCK + 16);
            const vb odd1_0 = vb_load(x1 + b * TERN_BLOCK + 16);
            const vb left2 = vb_load(codes + 272);
            const vb right2 = vb_load(codes + 336);
            const vb w2_01 = vb_rows01(left2, right2);
            const vb w2_23 = vb_rows23(left2, right2);
            const vb x2_0 = vb_tokens_lo(even1_0, odd1_0);
            s0_01 = vi_mmla(s0_01, w2_01, x2_0);
            s0_23 = vi_mmla(s0_23, w2_23, x2_0);
            const vb left3 = vb_load(codes + 400);
            const vb right3 = vb_load(codes + 464);
            const vb w3_01 = vb_rows01(left3, right3);
            const vb w3_23 = vb_rows23(left3, right3);
            const vb x3_0 = vb_tokens_hi(even1_0, odd1_0);
            s0_01 = vi_mmla(s0_01, w3_01, x3_0);
            s0_23 = vi_mmla(s0_23, w3_23, x3_0);
            const vi s0 = vi_first_token(s0_01, s0_23);
            const vi s1 = vi_second_token(s0_01, s0_23);
            const vf d = vf_load_f16(block + 0 + 2 * (lane + 4));
            const vi q0 = vi_sub(s0, vi_set1(code_bias * n0[b]));
            y0_1 = vf_add(y0_1, vf_mul(vi_to_f(q0), vf_mul(d, vf_set1(d0[b]))));
            const vi q1 = vi_sub(s1, vi_set1(code_bias * n1[b]));
            y1_1 = vf_add(y1_1, vf_mul(vi_to_f(q1), vf_mul(d, vf_set1(d1[b]))));
        }
        {
            vi s0_01 = vi_zero();
            vi s0_23 = vi_zero();
            const vb even0_0 = vb_load(x0 + b * TERN_BLOCK + 0);
            const vb odd0_0 = vb_load(x1 + b * TERN_BLOCK + 0);
            const vb left0 = vb_load(codes + 32);
            const vb right0 = vb_load(codes + 96);
            const vb w0_01 = vb_rows01(left0, right0);
            const vb w0_23 = vb_rows23(left0, right0);
            const vb x0_0 = vb_tokens_lo(even0_0, odd0_0);
            s0_01 = vi_mmla(s0_01, w0_01, x0_0);
            s0_23 = vi_mmla(s0_23, w0_23, x0_0);
            const vb left1 = vb_load(codes + 160);
            const vb right1 = vb_load(codes + 224);
            const vb w1_01 = vb_rows01(left1, right1);
            const vb w1_23 = vb_rows23(left1, right1);
            const vb x1_0 = vb_tokens_hi(even0_0, odd0_0);
            s0_01 = vi_mmla(s0_01, w1_01, x1_0);
            s0_23 = vi_mmla(s0_23, w1_23, x1_0);
            const vb even1_0 = vb_load(x0 + b * TERN_BLOCK + 16);
            const vb odd1_0 = vb_load(x1 + b * TERN_BLOCK + 16);
            const vb left2 = vb_load(codes + 288);
            const vb right2 = vb_load(codes + 352);
            const vb w2_01 = vb_rows01(left2, right2);
            const vb w2_23 = vb_rows23(left2, right2);
            const vb x2_0 = vb_tokens_lo(even1_0, odd1_0);
            s0_01 = vi_mmla(s0_01, w2_01, x2_0);
            s0_23 = vi_mmla(s0_23, w2_23, x2_0);
            const vb left3 = vb_load(codes + 416);
            const vb right3 = vb_load(codes + 480);
            const vb w3_01 = vb_rows01(left3, right3);
            const vb w3_23 = vb_rows23(left3, right3);
            const vb x3_0 = vb_tokens_hi(even1_0, odd1_0);
            s0_01 = vi_mmla(s0_01, w3_01, x3_0);
            s0_23 = vi_mmla(s0_23, w3_23, x3_0);
            const vi s0 = vi_first_token(s0_01, s0_23);
            const vi s1 = vi_second_token(s0_01, s0_23);
            const vf d = vf_load_f16(block + 0 + 2 * (lane + 8));
            const vi q0 = vi_sub(s0, vi_set1(code_bias * n0[b]));
            y0_2 = vf_add(y0_2, vf_mul(vi_to_f(q0), vf_mul(d, vf_set1(d0[b]))));
            const vi q1 = vi_sub(s1, vi_set1(code_bias * n1[b]));
            y1_2 = vf_add(y1_2, vf_mul(vi_to_f(q1), vf_mul(d, vf_set1(d1[b]))));
        }
        {
            vi s0_01 = vi_zero();
            vi s0_23 = vi_zero();
            const vb even0_0 = vb_load(x0 + b * TERN_BLOCK + 0);
            const vb odd0_0 = vb_load(x1 + b * TERN_BLOCK + 0);
            const vb left0 = vb_load(codes + 48);
            const vb right0 = vb_load(codes + 112);
            const vb w0_01 = vb_rows01(left0, right0);
            const vb w0_23 = vb_rows23(left0, right0);
            const vb x0_0 = vb_tokens_lo(even0_0, odd0_0);
            s0_01 = vi_mmla(s0_01, w0_01, x0_0);
            s0_23 = vi_mmla(s0_23, w0_23, x0_0);
            const vb left1 = vb_load(codes + 176);
            const vb right1 = vb_load(codes + 240);
            const vb w1_01 = vb_rows01(left1, right1);
            const vb w1_23 = vb_rows23(left1, right1);
            const vb x1_0 = vb_tokens_hi(even0_0, odd0_0);
            s0_01 = vi_mmla(s0_01, w1_01, x1_0);
            s0_23 = vi_mmla(s0_23, w1_23, x1_0);
            const vb even1_0 = vb_load(x0 + b * TERN_BLOCK + 16);
            const vb odd1_0 = vb_load(x1 + b * TERN_BLOCK + 16);
            const vb left2 = vb_load(codes + 304);
            const vb right2 = vb_load(codes + 368);
            const vb w2_01 = vb_rows01(left2, right2);
            const vb w2_23 = vb_rows23(left2, right2);
            const vb x2_0 = vb_tokens_lo(even1_0, odd1_0);
            s0_01 = vi_mmla(s0_01, w2_01, x2_0);
            s0_23 = vi_mmla(s0_23, w2_23, x2_0);
            const vb left3 = vb_load(codes + 432);
            const vb right3 = vb_load(codes + 496);
            const vb w3_01 = vb_rows01(left3, right3);
            const vb w3_23 = vb_rows23(left3, right3);
            const vb x3_0 = vb_tokens_hi(even1_0, odd1_0);
            s0_01 = vi_mmla(s0_01, w3_01, x3_0);
            s0_23 = vi_mmla(s0_23, w3_23, x3_0);
            const vi s0 = vi_first_token(s0_01, s0_23);
            const vi s1 = vi_second_token(s0_01, s0_23);
            const vf d = vf_load_f16(block + 0 + 2 * (lane + 12));
            const vi q0 = vi_sub(s0, vi_set1(code_bias * n0[b]));
            y0_3 = vf_add(y0_3, vf_mul(vi_to_f(q0), vf_mul(d, vf_set1(d0[b]))));
            const vi q1 = vi_sub(s1, vi_set1(code_bias * n1[b]));
            y1_3 = vf_add(y1_3, vf_mul(vi_to_f(q1), vf_mul(d, vf_set1(d1[b]))));
        }
    }
    vf_store_n(y + 0 * y_stride + 0, y0_0,
               tail_lanes(rows, 0, 4));
    vf_store_n(y + 0 * y_stride + 4, y0_1,
               tail_lanes(rows, 4, 4));
    vf_store_n(y + 0 * y_stride + 8, y0_2,
               tail_lanes(rows, 8, 4));
    vf_store_n(y + 0 * y_stride + 12, y0_3,
               tail_lanes(rows, 12, 4));
    vf_store_n(y + 1 * y_stride + 0, y1_0,
               tail_lanes(rows, 0, 4));
    vf_store_n(y + 1 * y_stride + 4, y1_1,
               tail_lanes(rows, 4, 4));
    vf_store_n(y + 1 * y_stride + 8, y1_2,
               tail_lanes(rows, 8, 4));
    vf_store_n(y + 1 * y_stride + 12, y1_3,
               tail_lanes(rows, 12, 4));
}

/* 16 rows x 1 token(s) from token t; first row is row `lane` of the group at w. */
static void tile_1(const uint8_t *w, size_t lane, size_t blocks, const tern_activations *x,
    size_t t,
                   float *y, size_t y_stride, size_t rows) {
    const int8_t *x0 = x->q + (t + 0) * x->q_stride;
    const float *d0 = x->d + (t + 0) * x->d_stride;
    const int32_t *n0 = x->block_sum + (t + 0) * x->d_stride;
    vf y0_0 = vf_zero();
    vf y0_1 = vf_zero();
    vf y0_2 = vf_zero();
    vf y0_3 = vf_zero();
    for (size_t b = 0; b < blocks; b++) {
        const uint8_t *block = w + b * BLOCK_BYTES;
        const uint8_t *codes = block + HEADER_BYTES + 4 * lane;
        ask_ahead(block + PREFETCH_BYTES);
        ask_ahead(block + PREFETCH_BYTES + 64);
        ask_ahead(block + PREFETCH_BYTES + 128);
        ask_ahead(block + PREFETCH_BYTES + 192);
        ask_ahead(block + PREFETCH_BYTES + 256);
        ask_ahead(block + PREFETCH_BYTES + 320);
        ask_ahead(block + PREFETCH_BYTES + 384);
        ask_ahead(block + PREFETCH_BYTES + 448);
        {
            vi s0_01 = vi_zero();
            vi s0_23 = vi_zero();
            const vb even0_0 = vb_load(x0 + b * TERN_BLOCK + 0);
            const vb odd0_0 = vb_load(x0 + b * TERN_BLOCK + 0);
            const vb left0 = vb_load(codes + 0);
            const vb right0 = vb_load(codes + 64);
            const vb w0_01 = vb_rows01(left0, right0);
            const vb w0_23 = vb_rows23(left0, right0);
            const vb x0_0 = vb_tokens_lo(even0_0, odd0_0);
            s0_01 = vi_mmla(s0_01, w0_01, x0_0);
            s0_23 = vi_mmla(s0_23, w0_23, x0_0);
            const vb left1 = vb_load(codes + 128);
            const vb right1 = vb_load(codes + 192);
            const vb w1_01 = vb_rows01(left1, right1);
            const vb w1_23 = vb_rows23(left1, right1);
            const vb x1_0 = vb_tokens_hi(even0_0, odd0_0);
            s0_01 = vi_mmla(s0_01, w1_01, x1_0);
            s0_23 = vi_mmla(s0_23, w1_23, x1_0);
            const vb even1_0 = vb_load(x0 + b * TERN_BLOCK + 16);
            const vb odd1_0 = vb_load(x0 + b * TERN_BLOCK + 16);
            const vb left2 = vb_load(codes + 256);
            const vb right2 = vb_load(codes + 320);
            const vb w2_01 = vb_rows01(left2, right2);
            const vb w2_23 = vb_rows23(left2, right2);
            const vb x2_0 = vb_tokens_lo(even1_0, odd1_0);
            s0_01 = vi_mmla(s0_01, w2_01, x2_0);
            s0_23 = vi_mmla(s0_23, w2_23, x2_0);
            const vb left3 = vb_load(codes + 384);
            const vb right3 = vb_load(codes + 448);
            const vb w3_01 = vb_rows01(left3, right3);
            const vb w3_23 = vb_rows23(left3, right3);
            const vb x3_0 = vb_tokens_hi(even1_0, odd1_0);
            s0_01 = vi_mmla(s0_01, w3_01, x3_0);
            s0_23 = vi_mmla(s0_23, w3_23, x3_0);
            const vi s0 = vi_first_token(s0_01, s0_23);
            const vf d = vf_load_f16(block + 0 + 2 * (lane + 0));
            const vi q0 = vi_sub(s0, vi_set1(code_bias * n0[b]));
            y0_0 = vf_add(y0_0, vf_mul(vi_to_f(q0), vf_mul(d, vf_set1(d0[b]))));
        }
        {
            vi s0_01 = vi_zero();
            vi s0_23 = vi_zero();
            const vb even0_0 = vb_load(x0 + b * TERN_BLOCK + 0);
            const vb odd0_0 = vb_load(x0 + b * TERN_BLOCK + 0);
            const vb left0 = vb_load(codes + 16);
            const vb right0 = vb_load(codes + 80);
            const vb w0_01 = vb_rows01(left0, right0);
            const vb w0_23 = vb_rows23(left0, right0);
            const vb x0_0 = vb_tokens_lo(even0_0, odd0_0);
            s0_01 = vi_mmla(s0_01, w0_01, x0_0);
            s0_23 = vi_mmla(s0_23, w0_23, x0_0);
            const vb left1 = vb_load(codes + 144);
            const vb right1 = vb_load(codes + 208);
            const vb w1_01 = vb_rows01(left1, right1);
            const vb w1_23 = vb_rows23(left1, right1);
            const vb x1_0 = vb_tokens_hi(even0_0, odd0_0);
            s0_01 = vi_mmla(s0_01, w1_01, x1_0);
            s0_23 = vi_mmla(s0_23, w1_23, x1_0);
            const vb even1_0 = vb_load(x0 + b * TERN_BLOCK + 16);
            const vb odd1_0 = vb_load(x0 + b * TERN_BLOCK + 16);
            const vb left2 = vb_load(codes + 272);
            const vb right2 = vb_load(codes + 336);
            const vb w2_01 = vb_rows01(left2, right2);
            const vb w2_23 = vb_rows23(left2, right2);
            const vb x2_0 = vb_tokens_lo(even1_0, odd1_0);
            s0_01 = vi_mmla(s0_01, w2_01, x2_0);
            s0_23 = vi_mmla(s0_23, w2_23, x2_0);
            const vb left3 = vb_load(codes + 400);
            const vb right3 = vb_load(codes + 464);
            const vb w3_01 = vb_rows01(left3, right3);
            const vb w3_23 = vb_rows23(left3, right3);
            const vb x3_0 = vb_tokens_hi(even1_0, odd1_0);
            s0_01 = vi_mmla(s0_01, w3_01, x3_0);
            s0_23 = vi_mmla(s0_23, w3_23, x3_0);
            const vi s0 = vi_first_token(s0_01, s0_23);
            const vf d = vf_load_f16(block + 0 + 2 * (lane + 4));
            const vi q0 = vi_sub(s0, vi_set1(code_bias * n0[b]));
            y0_1 = vf_add(y0_1, vf_mul(vi_to_f(q0), vf_mul(d, vf_set1(d0[b]))));
        }
        {
            vi s0_01 = vi_zero();
            vi s0_23 = vi_zero();
            const vb even0_0 = vb_load(x0 + b * TERN_BLOCK + 0);
            const vb odd0_0 = vb_load(x0 + b * TERN_BLOCK + 0);
            const vb left0 = vb_load(codes + 32);
            const vb right0 = vb_load(codes + 96);
            const vb w0_01 = vb_rows01(left0, right0);
            const vb w0_23 = vb_rows23(left0, right0);
            const vb x0_0 = vb_tokens_lo(even0_0, odd0_0);
            s0_01 = vi_mmla(s0_01, w0_01, x0_0);
            s0_23 = vi_mmla(s0_23, w0_23, x0_0);
            const vb left1 = vb_load(codes + 160);
            const vb right1 = vb_load(codes + 224);
            const vb w1_01 = vb_rows01(left1, right1);
            const vb w1_23 = vb_rows23(left1, right1);
            const vb x1_0 = vb_tokens_hi(even0_0, odd0_0);
            s0_01 = vi_mmla(s0_01, w1_01, x1_0);
            s0_23 = vi_mmla(s0_23, w1_23, x1_0);
            const vb even1_0 = vb_load(x0 + b * TERN_BLOCK + 16);
            const vb odd1_0 = vb_load(x0 + b * TERN_BLOCK + 16);
            const vb left2 = vb_load(codes + 288);
            const vb right2 = vb_load(codes + 352);
            const vb w2_01 = vb_rows01(left2, right2);
            const vb w2_23 = vb_rows23(left2, right2);
            const vb x2_0 = vb_tokens_lo(even1_0, odd1_0);
            s0_01 = vi_mmla(s0_01, w2_01, x2_0);
            s0_23 = vi_mmla(s0_23, w2_23, x2_0);
            const vb left3 = vb_load(codes + 416);
            const vb right3 = vb_load(codes + 480);
            const vb w3_01 = vb_rows01(left3, right3);
            const vb w3_23 = vb_rows23(left3, right3);
            const vb x3_0 = vb_tokens_hi(even1_0, odd1_0);
            s0_01 = vi_mmla(s0_01, w3_01, x3_0);
            s0_23 = vi_mmla(s0_23, w3_23, x3_0);
            const vi s0 = vi_first_token(s0_01, s0_23);
            const vf d = vf_load_f16(block + 0 + 2 * (lane + 8));
            const vi q0 = vi_sub(s0, vi_set1(code_bias * n0[b]));
            y0_2 = vf_add(y0_2, vf_mul(vi_to_f(q0), vf_mul(d, vf_set1(d0[b]))));
        }
        {
            vi s0_01 = vi_zero();
            vi s0_23 = vi_zero();
            const vb even0_0 = vb_load(x0 + b * TERN_BLOCK + 0);
            const vb odd0_0 = vb_load(x0 + b * TERN_BLOCK + 0);
            const vb left0 = vb_load(codes + 48);
            const vb right0 = vb_load(codes + 112);
            const vb w0_01 = vb_rows01(left0, right0);
            const vb w0_23 = vb_rows23(left0, right0);
            const vb x0_0 = vb_tokens_lo(even0_0, odd0_0);
            s0_01 = vi_mmla(s0_01, w0_01, x0_0);
            s0_23 = vi_mmla(s0_23, w0_23, x0_0);
            const vb left1 = vb_load(codes + 176);
            const vb right1 = vb_load(codes + 240);
            const vb w1_01 = vb_rows01(left1, right1);
            const vb w1_23 = vb_rows23(left1, right1);
            const vb x1_0 = vb_tokens_hi(even0_0, odd0_0);
            s0_01 = vi_mmla(s0_01, w1_01, x1_0);
            s0_23 = vi_mmla(s0_23, w1_23, x1_0);
            const vb even1_0 = vb_load(x0 + b * TERN_BLOCK + 16);
            const vb odd1_0 = vb_load(x0 + b * TERN_BLOCK + 16);
            const vb left2 = vb_load(codes + 304);
            const vb right2 = vb_load(codes + 368);
            const vb w2_01 = vb_rows01(left2, right2);
            const vb w2_23 = vb_rows23(left2, right2);
            const vb x2_0 = vb_tokens_lo(even1_0, odd1_0);
            s0_01 = vi_mmla(s0_01, w2_01, x2_0);
            s0_23 = vi_mmla(s0_23, w2_23, x2_0);
            const vb left3 = vb_load(codes + 432);
            const vb right3 = vb_load(codes + 496);
            const vb w3_01 = vb_rows01(left3, right3);
            const vb w3_23 = vb_rows23(left3, right3);
            const vb x3_0 = vb_tokens_hi(even1_0, odd1_0);
            s0_01 = vi_mmla(s0_01, w3_01, x3_0);
            s0_23 = vi_mmla(s0_23, w3_23, x3_0);
            const vi s0 = vi_first_token(s0_01, s0_23);
            const vf d = vf_load_f16(block + 0 + 2 * (lane + 12));
            const vi q0 = vi_sub(s0, vi_set1(code_bias * n0[b]));
            y0_3 = vf_add(y0_3, vf_mul(vi_to_f(q0), vf_mul(d, vf_set1(d0[b]))));
        }
    }
    vf_store_n(y + 0 * y_stride + 0, y0_0,
               tail_lanes(rows, 0, 4));
    vf_store_n(y + 0 * y_stride + 4, y0_1,
               tail_lanes(rows, 4, 4));
    vf_store_n(y + 0 * y_stride + 8, y0_2,
               tail_lanes(rows, 8, 4));
    vf_store_n(y + 0 * y_stride + 12, y0_3,
               tail_lanes(rows, 12, 4));
}

void tern_gemm_q8_0_16x4_neoni8mm(const tern_matrix *w, const tern_activations *x,
    const tern_tile *tile, float *y,
    size_t y_stride) {
    const size_t blocks = (w->cols + TERN_BLOCK - 1) / TERN_BLOCK;
    for (size_t r = tile->r0; r < tile->r1; r += TERN_ROW_GROUP) {
        const uint8_t *group = (const uint8_t *)w->data + r / TERN_ROW_GROUP * blocks * BLOCK_BYTES;
        const size_t rows = tile->r1 - r < TERN_ROW_GROUP ? tile->r1 - r : TERN_ROW_GROUP;
        size_t t = tile->t0;
        for (; t + 4 <= tile->t1; t += 4)
            for (size_t i = 0; i < rows; i += 16)
                tile_4(group, i, blocks, x, t, y + t * y_stride + r + i, y_stride, rows - i);
        for (; t + 2 <= tile->t1; t += 2)
            for (size_t i = 0; i < rows; i += 16)
                tile_2(group, i, blocks, x, t, y + t * y_stride + r + i, y_stride, rows - i);
        for (; t + 1 <= tile->t1; t += 1)
            for (size_t i = 0; i < rows; i += 16)
                tile_1(group, i, blocks, x, t, y + t * y_stride + r + i, y_stride, rows - i);
    }
}
