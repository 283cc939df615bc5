/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_gemm_q6_k_16x16_amx of kernels/kernels.toml
 * and template kernels/matmul_block_tiles.c.j2. Do not edit.
 */

#include "tern/kernels.h"

tern_matmul_fn tern_gemm_q6_k_16x16_amx;

/*
 * Matrix product over Q6_K in its R16 layout: lanes are rows. A super-block of 256 columns has 16
 * f16 d, then 8 blocks of 32 columns: two int8 scales a row, one for each half of the columns, four
 * chunks of nibbles and two of upper bits.
 *
 * Codes 0..63 are multiplied unsigned; 32 times the activations, which is the same for all rows, is
 * taken back from the partial sums. On sets whose partial sums have 16 bits these wrap on the way:
 * four products of codes up to 63 exceed 2^15, but (code - 32) * q is at most 8 * 32 * 127 = 32512
 * a lane, so the difference is right modulo 2^16 and fits.
 */
#include "kernels/isa/amx.h"

#include "kernels/isa/vmath.h"

enum {
    CHUNK_BYTES = 64,
    BLOCK_BYTES = 32 + 6 * CHUNK_BYTES,
    SUPER_BYTES = 32 + 8 * BLOCK_BYTES,
    PREFETCH_BYTES = 4096 /* ahead in the one stream that a thread reads */
};

/* What codes of 32 add up to with 16 activations. */
static inline vp offset_of(const int8_t *x) {
    const vb offset = vb_set1(32);
    vp s = vp_mac(vp_zero(), offset, vb_splat4(x));
    s = vp_mac(s, offset, vb_splat4(x + 4));
    s = vp_mac(s, offset, vb_splat4(x + 8));
    return vp_mac(s, offset, vb_splat4(x + 12));
}

/* 16 rows x 8 token(s) from token t; first row is row `lane` of the group at w. */
static void tile_8(const uint8_t *w, size_t lane, size_t blocks, const tern_activations *x,
    size_t t,
                   float *y, size_t y_stride, size_t rows) {
    const int8_t *x0 = x->q + (t + 0) * x->q_stride;
    const float *d0 = x->d + (t + 0) * x->d_stride;
    const int8_t *x1 = x->q + (t + 1) * x->q_stride;
    const float *d1 = x->d + (t + 1) * x->d_stride;
    const int8_t *x2 = x->q + (t + 2) * x->q_stride;
    const float *d2 = x->d + (t + 2) * x->d_stride;
    const int8_t *x3 = x->q + (t + 3) * x->q_stride;
    const float *d3 = x->d + (t + 3) * x->d_stride;
    const int8_t *x4 = x->q + (t + 4) * x->q_stride;
    const float *d4 = x->d + (t + 4) * x->d_stride;
    const int8_t *x5 = x->q + (t + 5) * x->q_stride;
    const float *d5 = x->d + (t + 5) * x->d_stride;
    const int8_t *x6 = x->q + (t + 6) * x->q_stride;
    const float *d6 = x->d + (t + 6) * x->d_stride;
    const int8_t *x7 = x->q + (t + 7) * x->q_stride;
    const float *d7 = x->d + (t + 7) * x->d_stride;
    vf y0_0 = vf_zero();
    vf y1_0 = vf_zero();
    vf y2_0 = vf_zero();
    vf y3_0 = vf_zero();
    vf y4_0 = vf_zero();
    vf y5_0 = vf_zero();
    vf y6_0 = vf_zero();
    vf y7_0 = vf_zero();
    for (size_t b = 0; b < blocks; b++) {
        const uint8_t *head = w + b / 8 * SUPER_BYTES;
        const uint8_t *block = head + 32 + b % 8 * BLOCK_BYTES;
        const uint8_t *codes = block + 32 + 4 * lane;
        __builtin_prefetch(block + PREFETCH_BYTES + 0);
        __builtin_prefetch(block + PREFETCH_BYTES + 64);
        __builtin_prefetch(block + PREFETCH_BYTES + 128);
        __builtin_prefetch(block + PREFETCH_BYTES + 192);
        __builtin_prefetch(block + PREFETCH_BYTES + 256);
        __builtin_prefetch(block + PREFETCH_BYTES + 320);
        const vp offset0_0 = offset_of(x0 + b * TERN_BLOCK + 0);
        const vp offset0_1 = offset_of(x0 + b * TERN_BLOCK + 16);
        const vp offset1_0 = offset_of(x1 + b * TERN_BLOCK + 0);
        const vp offset1_1 = offset_of(x1 + b * TERN_BLOCK + 16);
        const vp offset2_0 = offset_of(x2 + b * TERN_BLOCK + 0);
        const vp offset2_1 = offset_of(x2 + b * TERN_BLOCK + 16);
        const vp offset3_0 = offset_of(x3 + b * TERN_BLOCK + 0);
        const vp offset3_1 = offset_of(x3 + b * TERN_BLOCK + 16);
        const vp offset4_0 = offset_of(x4 + b * TERN_BLOCK + 0);
        const vp offset4_1 = offset_of(x4 + b * TERN_BLOCK + 16);
        const vp offset5_0 = offset_of(x5 + b * TERN_BLOCK + 0);
        const vp offset5_1 = offset_of(x5 + b * TERN_BLOCK + 16);
        const vp offset6_0 = offset_of(x6 + b * TERN_BLOCK + 0);
        const vp offset6_1 = offset_of(x6 + b * TERN_BLOCK + 16);
        const vp offset7_0 = offset_of(x7 + b * TERN_BLOCK + 0);
        const vp offset7_1 = offset_of(x7 + b * TERN_BLOCK + 16);
        {
            vi s0 = vi_zero();
            vi s1 = vi_zero();
            vi s2 = vi_zero();
            vi s3 = vi_zero();
            vi s4 = vi_zero();
            vi s5 = vi_zero();
            vi s6 = vi_zero();
            vi s7 = vi_zero();
            const vb upper0 = vb_load(codes + 256);
            const vp scale0 = vp_load_i8((const int8_t *)block + 0 + lane);
            vp p0_0 = vp_zero();
            vp p1_0 = vp_zero();
            vp p2_0 = vp_zero();
            vp p3_0 = vp_zero();
            vp p4_0 = vp_zero();
            vp p5_0 = vp_zero();
            vp p6_0 = vp_zero();
            vp p7_0 = vp_zero();
            const vb c0_0 = vb_load(codes + 0);
            const vb w0_0 = vb_join2(vb_nibble_lo(c0_0), upper0, 0);
            p0_0 = vp_mac(p0_0, w0_0, vb_splat4(x0 + b * TERN_BLOCK + 0));
            p1_0 = vp_mac(p1_0, w0_0, vb_splat4(x1 + b * TERN_BLOCK + 0));
            p2_0 = vp_mac(p2_0, w0_0, vb_splat4(x2 + b * TERN_BLOCK + 0));
            p3_0 = vp_mac(p3_0, w0_0, vb_splat4(x3 + b * TERN_BLOCK + 0));
            p4_0 = vp_mac(p4_0, w0_0, vb_splat4(x4 + b * TERN_BLOCK + 0));
            p5_0 = vp_mac(p5_0, w0_0, vb_splat4(x5 + b * TERN_BLOCK + 0));
            p6_0 = vp_mac(p6_0, w0_0, vb_splat4(x6 + b * TERN_BLOCK + 0));
            p7_0 = vp_mac(p7_0, w0_0, vb_splat4(x7 + b * TERN_BLOCK + 0));
            const vb w0_1 = vb_join2(vb_nibble_hi(c0_0), upper0, 1);
            p0_0 = vp_mac(p0_0, w0_1, vb_splat4(x0 + b * TERN_BLOCK + 4));
            p1_0 = vp_mac(p1_0, w0_1, vb_splat4(x1 + b * TERN_BLOCK + 4));
            p2_0 = vp_mac(p2_0, w0_1, vb_splat4(x2 + b * TERN_BLOCK + 4));
            p3_0 = vp_mac(p3_0, w0_1, vb_splat4(x3 + b * TERN_BLOCK + 4));
            p4_0 = vp_mac(p4_0, w0_1, vb_splat4(x4 + b * TERN_BLOCK + 4));
            p5_0 = vp_mac(p5_0, w0_1, vb_splat4(x5 + b * TERN_BLOCK + 4));
            p6_0 = vp_mac(p6_0, w0_1, vb_splat4(x6 + b * TERN_BLOCK + 4));
            p7_0 = vp_mac(p7_0, w0_1, vb_splat4(x7 + b * TERN_BLOCK + 4));
            const vb c0_1 = vb_load(codes + 64);
            const vb w0_2 = vb_join2(vb_nibble_lo(c0_1), upper0, 2);
            p0_0 = vp_mac(p0_0, w0_2, vb_splat4(x0 + b * TERN_BLOCK + 8));
            p1_0 = vp_mac(p1_0, w0_2, vb_splat4(x1 + b * TERN_BLOCK + 8));
            p2_0 = vp_mac(p2_0, w0_2, vb_splat4(x2 + b * TERN_BLOCK + 8));
            p3_0 = vp_mac(p3_0, w0_2, vb_splat4(x3 + b * TERN_BLOCK + 8));
            p4_0 = vp_mac(p4_0, w0_2, vb_splat4(x4 + b * TERN_BLOCK + 8));
            p5_0 = vp_mac(p5_0, w0_2, vb_splat4(x5 + b * TERN_BLOCK + 8));
            p6_0 = vp_mac(p6_0, w0_2, vb_splat4(x6 + b * TERN_BLOCK + 8));
            p7_0 = vp_mac(p7_0, w0_2, vb_splat4(x7 + b * TERN_BLOCK + 8));
            const vb w0_3 = vb_join2(vb_nibble_hi(c0_1), upper0, 3);
            p0_0 = vp_mac(p0_0, w0_3, vb_splat4(x0 + b * TERN_BLOCK + 12));
            p1_0 = vp_mac(p1_0, w0_3, vb_splat4(x1 + b * TERN_BLOCK + 12));
            p2_0 = vp_mac(p2_0, w0_3, vb_splat4(x2 + b * TERN_BLOCK + 12));
            p3_0 = vp_mac(p3_0, w0_3, vb_splat4(x3 + b * TERN_BLOCK + 12));
            p4_0 = vp_mac(p4_0, w0_3, vb_splat4(x4 + b * TERN_BLOCK + 12));
            p5_0 = vp_mac(p5_0, w0_3, vb_splat4(x5 + b * TERN_BLOCK + 12));
            p6_0 = vp_mac(p6_0, w0_3, vb_splat4(x6 + b * TERN_BLOCK + 12));
            p7_0 = vp_mac(p7_0, w0_3, vb_splat4(x7 + b * TERN_BLOCK + 12));
            s0 = vi_flush_by(s0, vp_sub(p0_0, offset0_0), scale0);
            s1 = vi_flush_by(s1, vp_sub(p1_0, offset1_0), scale0);
            s2 = vi_flush_by(s2, vp_sub(p2_0, offset2_0), scale0);
            s3 = vi_flush_by(s3, vp_sub(p3_0, offset3_0), scale0);
            s4 = vi_flush_by(s4, vp_sub(p4_0, offset4_0), scale0);
            s5 = vi_flush_by(s5, vp_sub(p5_0, offset5_0), scale0);
            s6 = vi_flush_by(s6, vp_sub(p6_0, offset6_0), scale0);
            s7 = vi_flush_by(s7, vp_sub(p7_0, offset7_0), scale0);
            const vb upper1 = vb_load(codes + 320);
            const vp scale1 = vp_load_i8((const int8_t *)block + 16 + lane);
            vp p0_1 = vp_zero();
            vp p1_1 = vp_zero();
            vp p2_1 = vp_zero();
            vp p3_1 = vp_zero();
            vp p4_1 = vp_zero();
            vp p5_1 = vp_zero();
            vp p6_1 = vp_zero();
            vp p7_1 = vp_zero();
            const vb c1_0 = vb_load(codes + 128);
            const vb w1_0 = vb_join2(vb_nibble_lo(c1_0), upper1, 0);
            p0_1 = vp_mac(p0_1, w1_0, vb_splat4(x0 + b * TERN_BLOCK + 16));
            p1_1 = vp_mac(p1_1, w1_0, vb_splat4(x1 + b * TERN_BLOCK + 16));
            p2_1 = vp_mac(p2_1, w1_0, vb_splat4(x2 + b * TERN_BLOCK + 16));
            p3_1 = vp_mac(p3_1, w1_0, vb_splat4(x3 + b * TERN_BLOCK + 16));
            p4_1 = vp_mac(p4_1, w1_0, vb_splat4(x4 + b * TERN_BLOCK + 16));
            p5_1 = vp_mac(p5_1, w1_0, vb_splat4(x5 + b * TERN_BLOCK + 16));
            p6_1 = vp_mac(p6_1, w1_0, vb_splat4(x6 + b * TERN_BLOCK + 16));
            p7_1 = vp_mac(p7_1, w1_0, vb_splat4(x7 + b * TERN_BLOCK + 16));
            const vb w1_1 = vb_join2(vb_nibble_hi(c1_0), upper1, 1);
            p0_1 = vp_mac(p0_1, w1_1, vb_splat4(x0 + b * TERN_BLOCK + 20));
            p1_1 = vp_mac(p1_1, w1_1, vb_splat4(x1 + b * TERN_BLOCK + 20));
            p2_1 = vp_mac(p2_1, w1_1, vb_splat4(x2 + b * TERN_BLOCK + 20));
            p3_1 = vp_mac(p3_1, w1_1, vb_splat4(x3 + b * TERN_BLOCK + 20));
            p4_1 = vp_mac(p4_1, w1_1, vb_splat4(x4 + b * TERN_BLOCK + 20));
            p5_1 = vp_mac(p5_1, w1_1, vb_splat4(x5 + b * TERN_BLOCK + 20));
            p6_1 = vp_mac(p6_1, w1_1, vb_splat4(x6 + b * TERN_BLOCK + 20));
            p7_1 = vp_mac(p7_1, w1_1, vb_splat4(x7 + b * TERN_BLOCK + 20));
            const vb c1_1 = vb_load(codes + 192);
            const vb w1_2 = vb_join2(vb_nibble_lo(c1_1), upper1, 2);
            p0_1 = vp_mac(p0_1, w1_2, vb_splat4(x0 + b * TERN_BLOCK + 24));
            p1_1 = vp_mac(p1_1, w1_2, vb_splat4(x1 + b * TERN_BLOCK + 24));
            p2_1 = vp_mac(p2_1, w1_2, vb_splat4(x2 + b * TERN_BLOCK + 24));
            p3_1 = vp_mac(p3_1, w1_2, vb_splat4(x3 + b * TERN_BLOCK + 24));
            p4_1 = vp_mac(p4_1, w1_2, vb_splat4(x4 + b * TERN_BLOCK + 24));
            p5_1 = vp_mac(p5_1, w1_2, vb_splat4(x5 + b * TERN_BLOCK + 24));
            p6_1 = vp_mac(p6_1, w1_2, vb_splat4(x6 + b * TERN_BLOCK + 24));
            p7_1 = vp_mac(p7_1, w1_2, vb_splat4(x7 + b * TERN_BLOCK + 24));
            const vb w1_3 = vb_join2(vb_nibble_hi(c1_1), upper1, 3);
            p0_1 = vp_mac(p0_1, w1_3, vb_splat4(x0 + b * TERN_BLOCK + 28));
            p1_1 = vp_mac(p1_1, w1_3, vb_splat4(x1 + b * TERN_BLOCK + 28));
            p2_1 = vp_mac(p2_1, w1_3, vb_splat4(x2 + b * TERN_BLOCK + 28));
            p3_1 = vp_mac(p3_1, w1_3, vb_splat4(x3 + b * TERN_BLOCK + 28));
            p4_1 = vp_mac(p4_1, w1_3, vb_splat4(x4 + b * TERN_BLOCK + 28));
            p5_1 = vp_mac(p5_1, w1_3, vb_splat4(x5 + b * TERN_BLOCK + 28));
            p6_1 = vp_mac(p6_1, w1_3, vb_splat4(x6 + b * TERN_BLOCK + 28));
            p7_1 = vp_mac(p7_1, w1_3, vb_splat4(x7 + b * TERN_BLOCK + 28));
            s0 = vi_flush_by(s0, vp_sub(p0_1, offset0_1), scale1);
            s1 = vi_flush_by(s1, vp_sub(p1_1, offset1_1), scale1);
            s2 = vi_flush_by(s2, vp_sub(p2_1, offset2_1), scale1);
            s3 = vi_flush_by(s3, vp_sub(p3_1, offset3_1), scale1);
            s4 = vi_flush_by(s4, vp_sub(p4_1, offset4_1), scale1);
            s5 = vi_flush_by(s5, vp_sub(p5_1, offset5_1), scale1);
            s6 = vi_flush_by(s6, vp_sub(p6_1, offset6_1), scale1);
            s7 = vi_flush_by(s7, vp_sub(p7_1, offset7_1), scale1);
            const vf d = vf_load_f16(head + 2 * (lane + 0));
            y0_0 = vf_add(y0_0, vf_mul(vi_to_f(s0), vf_mul(d, vf_set1(d0[b]))));
            y1_0 = vf_add(y1_0, vf_mul(vi_to_f(s1), vf_mul(d, vf_set1(d1[b]))));
            y2_0 = vf_add(y2_0, vf_mul(vi_to_f(s2), vf_mul(d, vf_set1(d2[b]))));
            y3_0 = vf_add(y3_0, vf_mul(vi_to_f(s3), vf_mul(d, vf_set1(d3[b]))));
            y4_0 = vf_add(y4_0, vf_mul(vi_to_f(s4), vf_mul(d, vf_set1(d4[b]))));
            y5_0 = vf_add(y5_0, vf_mul(vi_to_f(s5), vf_mul(d, vf_set1(d5[b]))));
            y6_0 = vf_add(y6_0, vf_mul(vi_to_f(s6), vf_mul(d, vf_set1(d6[b]))));
            y7_0 = vf_add(y7_0, vf_mul(vi_to_f(s7), vf_mul(d, vf_set1(d7[b]))));
        }
    }
    vf_store_n(y + 0 * y_stride + 0, y0_0,
               tail_lanes(rows, 0, 16));
    vf_store_n(y + 1 * y_stride + 0, y1_0,
               tail_lanes(rows, 0, 16));
    vf_store_n(y + 2 * y_stride + 0, y2_0,
               tail_lanes(rows, 0, 16));
    vf_store_n(y + 3 * y_stride + 0, y3_0,
               tail_lanes(rows, 0, 16));
    vf_store_n(y + 4 * y_stride + 0, y4_0,
               tail_lanes(rows, 0, 16));
    vf_store_n(y + 5 * y_stride + 0, y5_0,
               tail_lanes(rows, 0, 16));
    vf_store_n(y + 6 * y_stride + 0, y6_0,
               tail_lanes(rows, 0, 16));
    vf_store_n(y + 7 * y_stride + 0, y7_0,
               tail_lanes(rows, 0, 16));
}

/* 16 rows x 4 token(s) from token t; first row is row `lane` of the group at w. */
static void tile_4(const uint8_t *w, size_t lane, size_t blocks, const tern_activations *x,
    size_t t,
                   float *y, size_t y_stride, size_t rows) {
    const int8_t *x0 = x->q + (t + 0) * x->q_stride;
    const float *d0 = x->d + (t + 0) * x->d_stride;
    const int8_t *x1 = x->q + (t + 1) * x->q_stride;
    const float *d1 = x->d + (t + 1) * x->d_stride;
    const int8_t *x2 = x->q + (t + 2) * x->q_stride;
    const float *d2 = x->d + (t + 2) * x->d_stride;
    const int8_t *x3 = x->q + (t + 3) * x->q_stride;
    const float *d3 = x->d + (t + 3) * x->d_stride;
    vf y0_0 = vf_zero();
    vf y1_0 = vf_zero();
    vf y2_0 = vf_zero();
    vf y3_0 = vf_zero();
    for (size_t b = 0; b < blocks; b++) {
        const uint8_t *head = w + b / 8 * SUPER_BYTES;
        const uint8_t *block = head + 32 + b % 8 * BLOCK_BYTES;
        const uint8_t *codes = block + 32 + 4 * lane;
        __builtin_prefetch(block + PREFETCH_BYTES + 0);
        __builtin_prefetch(block + PREFETCH_BYTES + 64);
        __builtin_prefetch(block + PREFETCH_BYTES + 128);
        __builtin_prefetch(block + PREFETCH_BYTES + 192);
        __builtin_prefetch(block + PREFETCH_BYTES + 256);
        __builtin_prefetch(block + PREFETCH_BYTES + 320);
        const vp offset0_0 = offset_of(x0 + b * TERN_BLOCK + 0);
        const vp offset0_1 = offset_of(x0 + b * TERN_BLOCK + 16);
        const vp offset1_0 = offset_of(x1 + b * TERN_BLOCK + 0);
        const vp offset1_1 = offset_of(x1 + b * TERN_BLOCK + 16);
        const vp offset2_0 = offset_of(x2 + b * TERN_BLOCK + 0);
        const vp offset2_1 = offset_of(x2 + b * TERN_BLOCK + 16);
        const vp offset3_0 = offset_of(x3 + b * TERN_BLOCK + 0);
        const vp offset3_1 = offset_of(x3 + b * TERN_BLOCK + 16);
        {
            vi s0 = vi_zero();
            vi s1 = vi_zero();
            vi s2 = vi_zero();
            vi s3 = vi_zero();
            const vb upper0 = vb_load(codes + 256);
            const vp scale0 = vp_load_i8((const int8_t *)block + 0 + lane);
            vp p0_0 = vp_zero();
            vp p1_0 = vp_zero();
            vp p2_0 = vp_zero();
            vp p3_0 = vp_zero();
            const vb c0_0 = vb_load(codes + 0);
            const vb w0_0 = vb_join2(vb_nibble_lo(c0_0), upper0, 0);
            p0_0 = vp_mac(p0_0, w0_0, vb_splat4(x0 + b * TERN_BLOCK + 0));
            p1_0 = vp_mac(p1_0, w0_0, vb_splat4(x1 + b * TERN_BLOCK + 0));
            p2_0 = vp_mac(p2_0, w0_0, vb_splat4(x2 + b * TERN_BLOCK + 0));
            p3_0 = vp_mac(p3_0, w0_0, vb_splat4(x3 + b * TERN_BLOCK + 0));
            const vb w0_1 = vb_join2(vb_nibble_hi(c0_0), upper0, 1);
            p0_0 = vp_mac(p0_0, w0_1, vb_splat4(x0 + b * TERN_BLOCK + 4));
            p1_0 = vp_mac(p1_0, w0_1, vb_splat4(x1 + b * TERN_BLOCK + 4));
            p2_0 = vp_mac(p2_0, w0_1, vb_splat4(x2 + b * TERN_BLOCK + 4));
            p3_0 = vp_mac(p3_0, w0_1, vb_splat4(x3 + b * TERN_BLOCK + 4));
            const vb c0_1 = vb_load(codes + 64);
            const vb w0_2 = vb_join2(vb_nibble_lo(c0_1), upper0, 2);
            p0_0 = vp_mac(p0_0, w0_2, vb_splat4(x0 + b * TERN_BLOCK + 8));
            p1_0 = vp_mac(p1_0, w0_2, vb_splat4(x1 + b * TERN_BLOCK + 8));
            p2_0 = vp_mac(p2_0, w0_2, vb_splat4(x2 + b * TERN_BLOCK + 8));
            p3_0 = vp_mac(p3_0, w0_2, vb_splat4(x3 + b * TERN_BLOCK + 8));
            const vb w0_3 = vb_join2(vb_nibble_hi(c0_1), upper0, 3);
            p0_0 = vp_mac(p0_0, w0_3, vb_splat4(x0 + b * TERN_BLOCK + 12));
            p1_0 = vp_mac(p1_0, w0_3, vb_splat4(x1 + b * TERN_BLOCK + 12));
            p2_0 = vp_mac(p2_0, w0_3, vb_splat4(x2 + b * TERN_BLOCK + 12));
            p3_0 = vp_mac(p3_0, w0_3, vb_splat4(x3 + b * TERN_BLOCK + 12));
            s0 = vi_flush_by(s0, vp_sub(p0_0, offset0_0), scale0);
            s1 = vi_flush_by(s1, vp_sub(p1_0, offset1_0), scale0);
            s2 = vi_flush_by(s2, vp_sub(p2_0, offset2_0), scale0);
            s3 = vi_flush_by(s3, vp_sub(p3_0, offset3_0), scale0);
            const vb upper1 = vb_load(codes + 320);
            const vp scale1 = vp_load_i8((const int8_t *)block + 16 + lane);
            vp p0_1 = vp_zero();
            vp p1_1 = vp_zero();
            vp p2_1 = vp_zero();
            vp p3_1 = vp_zero();
            const vb c1_0 = vb_load(codes + 128);
            const vb w1_0 = vb_join2(vb_nibble_lo(c1_0), upper1, 0);
            p0_1 = vp_mac(p0_1, w1_0, vb_splat4(x0 + b * TERN_BLOCK + 16));
            p1_1 = vp_mac(p1_1, w1_0, vb_splat4(x1 + b * TERN_BLOCK + 16));
            p2_1 = vp_mac(p2_1, w1_0, vb_splat4(x2 + b * TERN_BLOCK + 16));
            p3_1 = vp_mac(p3_1, w1_0, vb_splat4(x3 + b * TERN_BLOCK + 16));
            const vb w1_1 = vb_join2(vb_nibble_hi(c1_0), upper1, 1);
            p0_1 = vp_mac(p0_1, w1_1, vb_splat4(x0 + b * TERN_BLOCK + 20));
            p1_1 = vp_mac(p1_1, w1_1, vb_splat4(x1 + b * TERN_BLOCK + 20));
            p2_1 = vp_mac(p2_1, w1_1, vb_splat4(x2 + b * TERN_BLOCK + 20));
            p3_1 = vp_mac(p3_1, w1_1, vb_splat4(x3 + b * TERN_BLOCK + 20));
            const vb c1_1 = vb_load(codes + 192);
            const vb w1_2 = vb_join2(vb_nibble_lo(c1_1), upper1, 2);
            p0_1 = vp_mac(p0_1, w1_2, vb_splat4(x0 + b * TERN_BLOCK + 24));
            p1_1 = vp_mac(p1_1, w1_2, vb_splat4(x1 + b * TERN_BLOCK + 24));
            p2_1 = vp_mac(p2_1, w1_2, vb_splat4(x2 + b * TERN_BLOCK + 24));
            p3_1 = vp_mac(p3_1, w1_2, vb_splat4(x3 + b * TERN_BLOCK + 24));
            const vb w1_3 = vb_join2(vb_nibble_hi(c1_1), upper1, 3);
            p0_1 = vp_mac(p0_1, w1_3, vb_splat4(x0 + b * TERN_BLOCK + 28));
            p1_1 = vp_mac(p1_1, w1_3, vb_splat4(x1 + b * TERN_BLOCK + 28));
            p2_1 = vp_mac(p2_1, w1_3, vb_splat4(x2 + b * TERN_BLOCK + 28));
            p3_1 = vp_mac(p3_1, w1_3, vb_splat4(x3 + b * TERN_BLOCK + 28));
            s0 = vi_flush_by(s0, vp_sub(p0_1, offset0_1), scale1);
            s1 = vi_flush_by(s1, vp_sub(p1_1, offset1_1), scale1);
            s2 = vi_flush_by(s2, vp_sub(p2_1, offset2_1), scale1);
            s3 = vi_flush_by(s3, vp_sub(p3_1, offset3_1), scale1);
            const vf d = vf_load_f16(head + 2 * (lane + 0));
            y0_0 = vf_add(y0_0, vf_mul(vi_to_f(s0), vf_mul(d, vf_set1(d0[b]))));
            y1_0 = vf_add(y1_0, vf_mul(vi_to_f(s1), vf_mul(d, vf_set1(d1[b]))));
            y2_0 = vf_add(y2_0, vf_mul(vi_to_f(s2), vf_mul(d, vf_set1(d2[b]))));
            y3_0 = vf_add(y3_0, vf_mul(vi_to_f(s3), vf_mul(d, vf_set1(d3[b]))));
        }
    }
    vf_store_n(y + 0 * y_stride + 0, y0_0,
               tail_lanes(rows, 0, 16));
    vf_store_n(y + 1 * y_stride + 0, y1_0,
               tail_lanes(rows, 0, 16));
    vf_store_n(y + 2 * y_stride + 0, y2_0,
               tail_lanes(rows, 0, 16));
    vf_store_n(y + 3 * y_stride + 0, y3_0,
               tail_lanes(rows, 0, 16));
}

/* 16 rows x 2 token(s) from token t; first row is row `lane` of the group at w. */
static void tile_2(const uint8_t *w, size_t lane, size_t blocks, const tern_activations *x,
    size_t t,
                   float *y, size_t y_stride, size_t rows) {
    const int8_t *x0 = x->q + (t + 0) * x->q_stride;
    const float *d0 = x->d + (t + 0) * x->d_stride;
    const int8_t *x1 = x->q + (t + 1) * x->q_stride;
    const float *d1 = x->d + (t + 1) * x->d_stride;
    vf y0_0 = vf_zero();
    vf y1_0 = vf_zero();
    for (size_t b = 0; b < blocks; b++) {
        const uint8_t *head = w + b / 8 * SUPER_BYTES;
        const uint8_t *block = head + 32 + b % 8 * BLOCK_BYTES;
        const uint8_t *codes = block + 32 + 4 * lane;
        __builtin_prefetch(block + PREFETCH_BYTES + 0);
        __builtin_prefetch(block + PREFETCH_BYTES + 64);
        __builtin_prefetch(block + PREFETCH_BYTES + 128);
        __builtin_prefetch(block + PREFETCH_BYTES + 192);
        __builtin_prefetch(block + PREFETCH_BYTES + 256);
        __builtin_prefetch(block + PREFETCH_BYTES + 320);
        const vp offset0_0 = offset_of(x0 + b * TERN_BLOCK + 0);
        const vp offset0_1 = offset_of(x0 + b * TERN_BLOCK + 16);
        const vp offset1_0 = offset_of(x1 + b * TERN_BLOCK + 0);
        const vp offset1_1 = offset_of(x1 + b * TERN_BLOCK + 16);
        {
            vi s0 = vi_zero();
            vi s1 = vi_zero();
            const vb upper0 = vb_load(codes + 256);
            const vp scale0 = vp_load_i8((const int8_t *)block + 0 + lane);
            vp p0_0 = vp_zero();
            vp p1_0 = vp_zero();
            const vb c0_0 = vb_load(codes + 0);
            const vb w0_0 = vb_join2(vb_nibble_lo(c0_0), upper0, 0);
            p0_0 = vp_mac(p0_0, w0_0, vb_splat4(x0 + b * TERN_BLOCK + 0));
            p1_0 = vp_mac(p1_0, w0_0, vb_splat4(x1 + b * TERN_BLOCK + 0));
            const vb w0_1 = vb_join2(vb_nibble_hi(c0_0), upper0, 1);
            p0_0 = vp_mac(p0_0, w0_1, vb_splat4(x0 + b * TERN_BLOCK + 4));
            p1_0 = vp_mac(p1_0, w0_1, vb_splat4(x1 + b * TERN_BLOCK + 4));
            const vb c0_1 = vb_load(codes + 64);
            const vb w0_2 = vb_join2(vb_nibble_lo(c0_1), upper0, 2);
            p0_0 = vp_mac(p0_0, w0_2, vb_splat4(x0 + b * TERN_BLOCK + 8));
            p1_0 = vp_mac(p1_0, w0_2, vb_splat4(x1 + b * TERN_BLOCK + 8));
            const vb w0_3 = vb_join2(vb_nibble_hi(c0_1), upper0, 3);
            p0_0 = vp_mac(p0_0, w0_3, vb_splat4(x0 + b * TERN_BLOCK + 12));
            p1_0 = vp_mac(p1_0, w0_3, vb_splat4(x1 + b * TERN_BLOCK + 12));
            s0 = vi_flush_by(s0, vp_sub(p0_0, offset0_0), scale0);
            s1 = vi_flush_by(s1, vp_sub(p1_0, offset1_0), scale0);
            const vb upper1 = vb_load(codes + 320);
            const vp scale1 = vp_load_i8((const int8_t *)block + 16 + lane);
            vp p0_1 = vp_zero();
            vp p1_1 = vp_zero();
            const vb c1_0 = vb_load(codes + 128);
            const vb w1_0 = vb_join2(vb_nibble_lo(c1_0), upper1, 0);
            p0_1 = vp_mac(p0_1, w1_0, vb_splat4(x0 + b * TERN_BLOCK + 16));
            p1_1 = vp_mac(p1_1, w1_0, vb_splat4(x1 + b * TERN_BLOCK + 16));
            const vb w1_1 = vb_join2(vb_nibble_hi(c1_0), upper1, 1);
            p0_1 = vp_mac(p0_1, w1_1, vb_splat4(x0 + b * TERN_BLOCK + 20));
            p1_1 = vp_mac(p1_1, w1_1, vb_splat4(x1 + b * TERN_BLOCK + 20));
            const vb c1_1 = vb_load(codes + 192);
            const vb w1_2 = vb_join2(vb_nibble_lo(c1_1), upper1, 2);
            p0_1 = vp_mac(p0_1, w1_2, vb_splat4(x0 + b * TERN_BLOCK + 24));
            p1_1 = vp_mac(p1_1, w1_2, vb_splat4(x1 + b * TERN_BLOCK + 24));
            const vb w1_3 = vb_join2(vb_nibble_hi(c1_1), upper1, 3);
            p0_1 = vp_mac(p0_1, w1_3, vb_splat4(x0 + b * TERN_BLOCK + 28));
            p1_1 = vp_mac(p1_1, w1_3, vb_splat4(x1 + b * TERN_BLOCK + 28));
            s0 = vi_flush_by(s0, vp_sub(p0_1, offset0_1), scale1);
            s1 = vi_flush_by(s1, vp_sub(p1_1, offset1_1), scale1);
            const vf d = vf_load_f16(head + 2 * (lane + 0));
            y0_0 = vf_add(y0_0, vf_mul(vi_to_f(s0), vf_mul(d, vf_set1(d0[b]))));
            y1_0 = vf_add(y1_0, vf_mul(vi_to_f(s1), vf_mul(d, vf_set1(d1[b]))));
        }
    }
    vf_store_n(y + 0 * y_stride + 0, y0_0,
               tail_lanes(rows, 0, 16));
    vf_store_n(y + 1 * y_stride + 0, y1_0,
               tail_lanes(rows, 0, 16));
}

/* 16 rows x 1 token(s) from token t; first row is row `lane` of the group at w. */
static void tile_1(const uint8_t *w, size_t lane, size_t blocks, const tern_activations *x,
    size_t t,
                   float *y, size_t y_stride, size_t rows) {
    const int8_t *x0 = x->q + (t + 0) * x->q_stride;
    const float *d0 = x->d + (t + 0) * x->d_stride;
    vf y0_0 = vf_zero();
    for (size_t b = 0; b < blocks; b++) {
        const uint8_t *head = w + b / 8 * SUPER_BYTES;
        const uint8_t *block = head + 32 + b % 8 * BLOCK_BYTES;
        const uint8_t *codes = block + 32 + 4 * lane;
        __builtin_prefetch(block + PREFETCH_BYTES + 0);
        __builtin_prefetch(block + PREFETCH_BYTES + 64);
        __builtin_prefetch(block + PREFETCH_BYTES + 128);
        __builtin_prefetch(block + PREFETCH_BYTES + 192);
        __builtin_prefetch(block + PREFETCH_BYTES + 256);
        __builtin_prefetch(block + PREFETCH_BYTES + 320);
        const vp offset0_0 = offset_of(x0 + b * TERN_BLOCK + 0);
        const vp offset0_1 = offset_of(x0 + b * TERN_BLOCK + 16);
        {
            vi s0 = vi_zero();
            const vb upper0 = vb_load(codes + 256);
            const vp scale0 = vp_load_i8((const int8_t *)block + 0 + lane);
            vp p0_0 = vp_zero();
            const vb c0_0 = vb_load(codes + 0);
            const vb w0_0 = vb_join2(vb_nibble_lo(c0_0), upper0, 0);
            p0_0 = vp_mac(p0_0, w0_0, vb_splat4(x0 + b * TERN_BLOCK + 0));
            const vb w0_1 = vb_join2(vb_nibble_hi(c0_0), upper0, 1);
            p0_0 = vp_mac(p0_0, w0_1, vb_splat4(x0 + b * TERN_BLOCK + 4));
            const vb c0_1 = vb_load(codes + 64);
            const vb w0_2 = vb_join2(vb_nibble_lo(c0_1), upper0, 2);
            p0_0 = vp_mac(p0_0, w0_2, vb_splat4(x0 + b * TERN_BLOCK + 8));
            const vb w0_3 = vb_join2(vb_nibble_hi(c0_1), upper0, 3);
            p0_0 = vp_mac(p0_0, w0_3, vb_splat4(x0 + b * TERN_BLOCK + 12));
            s0 = vi_flush_by(s0, vp_sub(p0_0, offset0_0), scale0);
            const vb upper1 = vb_load(codes + 320);
            const vp scale1 = vp_load_i8((const int8_t *)block + 16 + lane);
            vp p0_1 = vp_zero();
            const vb c1_0 = vb_load(codes + 128);
            const vb w1_0 = vb_join2(vb_nibble_lo(c1_0), upper1, 0);
            p0_1 = vp_mac(p0_1, w1_0, vb_splat4(x0 + b * TERN_BLOCK + 16));
            const vb w1_1 = vb_join2(vb_nibble_hi(c1_0), upper1, 1);
            p0_1 = vp_mac(p0_1, w1_1, vb_splat4(x0 + b * TERN_BLOCK + 20));
            const vb c1_1 = vb_load(codes + 192);
            const vb w1_2 = vb_join2(vb_nibble_lo(c1_1), upper1, 2);
            p0_1 = vp_mac(p0_1, w1_2, vb_splat4(x0 + b * TERN_BLOCK + 24));
            const vb w1_3 = vb_join2(vb_nibble_hi(c1_1), upper1, 3);
            p0_1 = vp_mac(p0_1, w1_3, vb_splat4(x0 + b * TERN_BLOCK + 28));
            s0 = vi_flush_by(s0, vp_sub(p0_1, offset0_1), scale1);
            const vf d = vf_load_f16(head + 2 * (lane + 0));
            y0_0 = vf_add(y0_0, vf_mul(vi_to_f(s0), vf_mul(d, vf_set1(d0[b]))));
        }
    }
    vf_store_n(y + 0 * y_stride + 0, y0_0,
               tail_lanes(rows, 0, 16));
}

enum {
    LANES = 16,
    PARTS = 2, /* of a block, whose sums are kept apart */
    PART_COLS = TERN_BLOCK / PARTS,
    PANEL_BLOCKS = 16, /* blocks of a group whose codes are unpacked at once: 8 KB,
        since stacks may be small */
    CODE_BYTES = TERN_BLOCK / 4 * TILE_ROW_BYTES,
    LEAST_TOKENS = TILE_ROWS / 2
};

_Static_assert((int)LANES == (int)TERN_ROW_GROUP, "a group is a vector");
_Static_assert((int)LANES == (int)TILE_ROWS, "a tile of sums has as many tokens as rows");
_Static_assert((int)LEAST_TOKENS <= (int)TERN_MANY_TOKENS, "tests of many tokens miss the tiles");

typedef int32_t block_products[PARTS][TILE_ROWS][LANES];

/* Sixteen tokens, of blocks [first,
    first + n) of their columns: rows of codes and what belongs to each block. */
typedef struct sixteen_tokens {
    const int8_t *q;
    const float *d;
    const int32_t *sum;
    size_t q_stride, d_stride;
} sixteen_tokens;

typedef struct scratch {
    _Alignas(TERN_ALIGN) uint8_t codes[PANEL_BLOCKS * CODE_BYTES];
    _Alignas(TERN_ALIGN) block_products products[2]; /* of a block and of the next one */
    /* The tokens after the last sixteen, filled up with zeros, since a tile is read whole. */
    _Alignas(TERN_ALIGN) int8_t q[TILE_ROWS * PANEL_BLOCKS * TERN_BLOCK];
    float d[TILE_ROWS * PANEL_BLOCKS];
    int32_t sum[TILE_ROWS * PANEL_BLOCKS];
} scratch;

/* What stands before block b of a group, and the block. */
static inline const uint8_t *block_at(const uint8_t *group, size_t b) {
    return group + b / 8 * SUPER_BYTES + 32 + b % 8 * BLOCK_BYTES;
}

static inline void keep(uint8_t *codes, vb w) {
    memcpy(codes, &w, sizeof w);
}

/* The weights of a block, as signed bytes: a chunk for each four columns. */
static inline void unpack(const uint8_t *chunks, uint8_t *codes) {
    const vb upper0 = vb_load(chunks + 4 * CHUNK_BYTES);
    const vb upper1 = vb_load(chunks + 5 * CHUNK_BYTES);
    const vb c0 = vb_load(chunks + 0 * CHUNK_BYTES);
    keep(codes + 0 * TILE_ROW_BYTES, vb_sub(vb_join2(vb_nibble_lo(c0), upper0, 0), vb_set1(32)));
    keep(codes + 1 * TILE_ROW_BYTES, vb_sub(vb_join2(vb_nibble_hi(c0), upper0, 1), vb_set1(32)));
    const vb c1 = vb_load(chunks + 1 * CHUNK_BYTES);
    keep(codes + 2 * TILE_ROW_BYTES, vb_sub(vb_join2(vb_nibble_lo(c1), upper0, 2), vb_set1(32)));
    keep(codes + 3 * TILE_ROW_BYTES, vb_sub(vb_join2(vb_nibble_hi(c1), upper0, 3), vb_set1(32)));
    const vb c2 = vb_load(chunks + 2 * CHUNK_BYTES);
    keep(codes + 4 * TILE_ROW_BYTES, vb_sub(vb_join2(vb_nibble_lo(c2), upper1, 0), vb_set1(32)));
    keep(codes + 5 * TILE_ROW_BYTES, vb_sub(vb_join2(vb_nibble_hi(c2), upper1, 1), vb_set1(32)));
    const vb c3 = vb_load(chunks + 3 * CHUNK_BYTES);
    keep(codes + 6 * TILE_ROW_BYTES, vb_sub(vb_join2(vb_nibble_lo(c3), upper1, 2), vb_set1(32)));
    keep(codes + 7 * TILE_ROW_BYTES, vb_sub(vb_join2(vb_nibble_hi(c3), upper1, 3), vb_set1(32)));
}

/* The sums of products of sixteen tokens with the codes of a block. */
static inline void multiply(const uint8_t *codes, const int8_t *q, size_t q_stride,
    block_products to) {
    tile_load(4, q + 0 * PART_COLS, q_stride);
    tile_load(6, codes + 0 * PART_COLS / 4 * TILE_ROW_BYTES, TILE_ROW_BYTES);
    tile_zero(0);
    tile_multiply(0, 4, 6);
    tile_load(5, q + 1 * PART_COLS, q_stride);
    tile_load(7, codes + 1 * PART_COLS / 4 * TILE_ROW_BYTES, TILE_ROW_BYTES);
    tile_zero(1);
    tile_multiply(1, 5, 7);
    tile_store(0, to[0], LANES * sizeof(int32_t));
    tile_store(1, to[1], LANES * sizeof(int32_t));
}

static inline vi load_products(const int32_t *p) {
    vi v;
    memcpy(&v, p, sizeof v);
    return v;
}

/*
 * Adds n blocks from b0 of a group, whose unpacked codes are at `codes`, to the outputs of 16
 * tokens, `some` of which are written. The tiles multiply a block while vectors add the one before.
 */
static void sixteen(scratch *part, const uint8_t *group, size_t b0, size_t n,
    const sixteen_tokens *x,
                    size_t some, float *y, size_t y_stride, size_t lanes) {
    const size_t d_stride = x->d_stride;
    vf y0 = vf_zero();
    vf y1 = vf_zero();
    vf y2 = vf_zero();
    vf y3 = vf_zero();
    vf y4 = vf_zero();
    vf y5 = vf_zero();
    vf y6 = vf_zero();
    vf y7 = vf_zero();
    vf y8 = vf_zero();
    vf y9 = vf_zero();
    vf y10 = vf_zero();
    vf y11 = vf_zero();
    vf y12 = vf_zero();
    vf y13 = vf_zero();
    vf y14 = vf_zero();
    vf y15 = vf_zero();
    if (b0 > 0) {
        if (0 < some)
            y0 = vf_load_fill(y + 0 * y_stride, lanes, 0.0f);
        if (1 < some)
            y1 = vf_load_fill(y + 1 * y_stride, lanes, 0.0f);
        if (2 < some)
            y2 = vf_load_fill(y + 2 * y_stride, lanes, 0.0f);
        if (3 < some)
            y3 = vf_load_fill(y + 3 * y_stride, lanes, 0.0f);
        if (4 < some)
            y4 = vf_load_fill(y + 4 * y_stride, lanes, 0.0f);
        if (5 < some)
            y5 = vf_load_fill(y + 5 * y_stride, lanes, 0.0f);
        if (6 < some)
            y6 = vf_load_fill(y + 6 * y_stride, lanes, 0.0f);
        if (7 < some)
            y7 = vf_load_fill(y + 7 * y_stride, lanes, 0.0f);
        if (8 < some)
            y8 = vf_load_fill(y + 8 * y_stride, lanes, 0.0f);
        if (9 < some)
            y9 = vf_load_fill(y + 9 * y_stride, lanes, 0.0f);
        if (10 < some)
            y10 = vf_load_fill(y + 10 * y_stride, lanes, 0.0f);
        if (11 < some)
            y11 = vf_load_fill(y + 11 * y_stride, lanes, 0.0f);
        if (12 < some)
            y12 = vf_load_fill(y + 12 * y_stride, lanes, 0.0f);
        if (13 < some)
            y13 = vf_load_fill(y + 13 * y_stride, lanes, 0.0f);
        if (14 < some)
            y14 = vf_load_fill(y + 14 * y_stride, lanes, 0.0f);
        if (15 < some)
            y15 = vf_load_fill(y + 15 * y_stride, lanes, 0.0f);
    }
    multiply(part->codes, x->q, x->q_stride, part->products[0]);
    for (size_t i = 0; i < n; i++) {
        const float *d = x->d + i;
        int32_t(*const products)[TILE_ROWS][LANES] = part->products[i % 2];
        if (i + 1 < n)
            multiply(part->codes + (i + 1) * CODE_BYTES, x->q + (i + 1) * TERN_BLOCK, x->q_stride,
                     part->products[(i + 1) % 2]);
        const uint8_t *block = block_at(group, b0 + i);
        const uint8_t *super = group + (b0 + i) / 8 * SUPER_BYTES;
        const vf dw = vf_load_f16(super);
        /* At most 16 * 32 * 127 * 128 each: as floats these products and their sum are exact. */
        const vf low = vi_to_f(vi_load_i8((const int8_t *)block));
        const vf high = vi_to_f(vi_load_i8((const int8_t *)block + 16));
        {
            const vi s0 = load_products(products[0][0]);
            const vi s1 = load_products(products[1][0]);
            const vf s = vf_add(vf_mul(vi_to_f(s0), low), vf_mul(vi_to_f(s1), high));
            y0 = vf_add(y0, vf_mul(s, vf_mul(dw, vf_set1(d[0 * d_stride]))));
        }
        {
            const vi s0 = load_products(products[0][1]);
            const vi s1 = load_products(products[1][1]);
            const vf s = vf_add(vf_mul(vi_to_f(s0), low), vf_mul(vi_to_f(s1), high));
            y1 = vf_add(y1, vf_mul(s, vf_mul(dw, vf_set1(d[1 * d_stride]))));
        }
        {
            const vi s0 = load_products(products[0][2]);
            const vi s1 = load_products(products[1][2]);
            const vf s = vf_add(vf_mul(vi_to_f(s0), low), vf_mul(vi_to_f(s1), high));
            y2 = vf_add(y2, vf_mul(s, vf_mul(dw, vf_set1(d[2 * d_stride]))));
        }
        {
            const vi s0 = load_products(products[0][3]);
            const vi s1 = load_products(products[1][3]);
            const vf s = vf_add(vf_mul(vi_to_f(s0), low), vf_mul(vi_to_f(s1), high));
            y3 = vf_add(y3, vf_mul(s, vf_mul(dw, vf_set1(d[3 * d_stride]))));
        }
        {
            const vi s0 = load_products(products[0][4]);
            const vi s1 = load_products(products[1][4]);
            const vf s = vf_add(vf_mul(vi_to_f(s0), low), vf_mul(vi_to_f(s1), high));
            y4 = vf_add(y4, vf_mul(s, vf_mul(dw, vf_set1(d[4 * d_stride]))));
        }
        {
            const vi s0 = load_products(products[0][5]);
            const vi s1 = load_products(products[1][5]);
            const vf s = vf_add(vf_mul(vi_to_f(s0), low), vf_mul(vi_to_f(s1), high));
            y5 = vf_add(y5, vf_mul(s, vf_mul(dw, vf_set1(d[5 * d_stride]))));
        }
        {
            const vi s0 = load_products(products[0][6]);
            const vi s1 = load_products(products[1][6]);
            const vf s = vf_add(vf_mul(vi_to_f(s0), low), vf_mul(vi_to_f(s1), high));
            y6 = vf_add(y6, vf_mul(s, vf_mul(dw, vf_set1(d[6 * d_stride]))));
        }
        {
            const vi s0 = load_products(products[0][7]);
            const vi s1 = load_products(products[1][7]);
            const vf s = vf_add(vf_mul(vi_to_f(s0), low), vf_mul(vi_to_f(s1), high));
            y7 = vf_add(y7, vf_mul(s, vf_mul(dw, vf_set1(d[7 * d_stride]))));
        }
        {
            const vi s0 = load_products(products[0][8]);
            const vi s1 = load_products(products[1][8]);
            const vf s = vf_add(vf_mul(vi_to_f(s0), low), vf_mul(vi_to_f(s1), high));
            y8 = vf_add(y8, vf_mul(s, vf_mul(dw, vf_set1(d[8 * d_stride]))));
        }
        {
            const vi s0 = load_products(products[0][9]);
            const vi s1 = load_products(products[1][9]);
            const vf s = vf_add(vf_mul(vi_to_f(s0), low), vf_mul(vi_to_f(s1), high));
            y9 = vf_add(y9, vf_mul(s, vf_mul(dw, vf_set1(d[9 * d_stride]))));
        }
        {
            const vi s0 = load_products(products[0][10]);
            const vi s1 = load_products(products[1][10]);
            const vf s = vf_add(vf_mul(vi_to_f(s0), low), vf_mul(vi_to_f(s1), high));
            y10 = vf_add(y10, vf_mul(s, vf_mul(dw, vf_set1(d[10 * d_stride]))));
        }
        {
            const vi s0 = load_products(products[0][11]);
            const vi s1 = load_products(products[1][11]);
            const vf s = vf_add(vf_mul(vi_to_f(s0), low), vf_mul(vi_to_f(s1), high));
            y11 = vf_add(y11, vf_mul(s, vf_mul(dw, vf_set1(d[11 * d_stride]))));
        }
        {
            const vi s0 = load_products(products[0][12]);
            const vi s1 = load_products(products[1][12]);
            const vf s = vf_add(vf_mul(vi_to_f(s0), low), vf_mul(vi_to_f(s1), high));
            y12 = vf_add(y12, vf_mul(s, vf_mul(dw, vf_set1(d[12 * d_stride]))));
        }
        {
            const vi s0 = load_products(products[0][13]);
            const vi s1 = load_products(products[1][13]);
            const vf s = vf_add(vf_mul(vi_to_f(s0), low), vf_mul(vi_to_f(s1), high));
            y13 = vf_add(y13, vf_mul(s, vf_mul(dw, vf_set1(d[13 * d_stride]))));
        }
        {
            const vi s0 = load_products(products[0][14]);
            const vi s1 = load_products(products[1][14]);
            const vf s = vf_add(vf_mul(vi_to_f(s0), low), vf_mul(vi_to_f(s1), high));
            y14 = vf_add(y14, vf_mul(s, vf_mul(dw, vf_set1(d[14 * d_stride]))));
        }
        {
            const vi s0 = load_products(products[0][15]);
            const vi s1 = load_products(products[1][15]);
            const vf s = vf_add(vf_mul(vi_to_f(s0), low), vf_mul(vi_to_f(s1), high));
            y15 = vf_add(y15, vf_mul(s, vf_mul(dw, vf_set1(d[15 * d_stride]))));
        }
    }
    if (0 < some)
        vf_store_n(y + 0 * y_stride, y0, lanes);
    if (1 < some)
        vf_store_n(y + 1 * y_stride, y1, lanes);
    if (2 < some)
        vf_store_n(y + 2 * y_stride, y2, lanes);
    if (3 < some)
        vf_store_n(y + 3 * y_stride, y3, lanes);
    if (4 < some)
        vf_store_n(y + 4 * y_stride, y4, lanes);
    if (5 < some)
        vf_store_n(y + 5 * y_stride, y5, lanes);
    if (6 < some)
        vf_store_n(y + 6 * y_stride, y6, lanes);
    if (7 < some)
        vf_store_n(y + 7 * y_stride, y7, lanes);
    if (8 < some)
        vf_store_n(y + 8 * y_stride, y8, lanes);
    if (9 < some)
        vf_store_n(y + 9 * y_stride, y9, lanes);
    if (10 < some)
        vf_store_n(y + 10 * y_stride, y10, lanes);
    if (11 < some)
        vf_store_n(y + 11 * y_stride, y11, lanes);
    if (12 < some)
        vf_store_n(y + 12 * y_stride, y12, lanes);
    if (13 < some)
        vf_store_n(y + 13 * y_stride, y13, lanes);
    if (14 < some)
        vf_store_n(y + 14 * y_stride, y14, lanes);
    if (15 < some)
        vf_store_n(y + 15 * y_stride, y15, lanes);
}

/* The last n tokens from t, filled up to sixteen, for `blocks` blocks from b0. */
static sixteen_tokens fill_up(scratch *part, const tern_activations *x, size_t t, size_t n,
    size_t b0, size_t blocks) {
    memset(part->q, 0, sizeof part->q);
    memset(part->d, 0, sizeof part->d);
    memset(part->sum, 0, sizeof part->sum);
    for (size_t i = 0; i < n; i++) {
        const size_t d_at = (t + i) * x->d_stride + b0;
        memcpy(part->q + i * PANEL_BLOCKS * TERN_BLOCK,
            x->q + (t + i) * x->q_stride + b0 * TERN_BLOCK, blocks * TERN_BLOCK);
        memcpy(part->d + i * PANEL_BLOCKS, x->d + d_at, blocks * sizeof *x->d);
        memcpy(part->sum + i * PANEL_BLOCKS, x->block_sum + d_at, blocks * sizeof *x->block_sum);
    }
    return (sixteen_tokens){part->q, part->d, part->sum, PANEL_BLOCKS * TERN_BLOCK, PANEL_BLOCKS};
}

/* Asks for n blocks from b0 of the group that follows, and unpacks those of this one. */
static void open_panel(scratch *part, const uint8_t *group, size_t group_bytes, size_t b0,
    size_t n) {
    for (size_t i = 0; i < n; i++) {
        const uint8_t *block = block_at(group, b0 + i);
        for (size_t line = 0; line < BLOCK_BYTES; line += CHUNK_BYTES)
            __builtin_prefetch(block + group_bytes + line);
        unpack(block + 32, part->codes + i * CODE_BYTES);
    }
}

/* All rows of the tile x tokens [t0, t1), at least LEAST_TOKENS of them in the last sixteen. */
static void tiles(const tern_matrix *m, const tern_activations *x, const tern_tile *tile,
    size_t t1, size_t group_bytes,
                  float *y, size_t y_stride) {
    const size_t blocks = (m->cols + TERN_BLOCK - 1) / TERN_BLOCK;
    scratch part;
    for (size_t b0 = 0; b0 < blocks; b0 += PANEL_BLOCKS) {
        const size_t n = blocks - b0 < PANEL_BLOCKS ? blocks - b0 : PANEL_BLOCKS;
        const size_t over = (t1 - tile->t0) % TILE_ROWS;
        const sixteen_tokens rest = over > 0 ? fill_up(&part, x, t1 - over, over, b0,
            n) : (sixteen_tokens){0};
        for (size_t r = tile->r0; r < tile->r1; r += TERN_ROW_GROUP) {
            const uint8_t *group = (const uint8_t *)m->data + r / TERN_ROW_GROUP * group_bytes;
            const size_t lanes = tail_lanes(tile->r1 - r, 0, LANES);
            open_panel(&part, group, group_bytes, b0, n);
            for (size_t t = tile->t0; t < t1; t += TILE_ROWS) {
                const size_t d_at = t * x->d_stride + b0;
                const size_t some = t1 - t < TILE_ROWS ? t1 - t : TILE_ROWS;
                const sixteen_tokens whole = {x->q + t * x->q_stride + b0 * TERN_BLOCK,
                    x->d + d_at, x->block_sum + d_at,
                                              x->q_stride, x->d_stride};
                sixteen(&part, group, b0, n, some < TILE_ROWS ? &rest : &whole, some,
                    y + t * y_stride + r, y_stride,
                        lanes);
            }
        }
    }
}

/* One group from row r x tokens that are too few for tiles. */
static void single(const tern_matrix *m, const uint8_t *group, const tern_activations *x,
    size_t t, size_t t1,
                   size_t r, size_t rows, float *y, size_t y_stride) {
    const size_t blocks = (m->cols + TERN_BLOCK - 1) / TERN_BLOCK;
    for (; t + 8 <= t1; t += 8)
        tile_8(group, 0, blocks, x, t, y + t * y_stride + r, y_stride, rows);
    for (; t + 4 <= t1; t += 4)
        tile_4(group, 0, blocks, x, t, y + t * y_stride + r, y_stride, rows);
    for (; t + 2 <= t1; t += 2)
        tile_2(group, 0, blocks, x, t, y + t * y_stride + r, y_stride, rows);
    for (; t + 1 <= t1; t += 1)
        tile_1(group, 0, blocks, x, t, y + t * y_stride + r, y_stride, rows);
}

void tern_gemm_q6_k_16x16_amx(const tern_matrix *w, const tern_activations *x,
    const tern_tile *tile, float *y,
    size_t y_stride) {
    const size_t blocks = (w->cols + TERN_BLOCK - 1) / TERN_BLOCK;
    const size_t group_bytes = blocks / 8 * SUPER_BYTES;
    const size_t over = (tile->t1 - tile->t0) % TILE_ROWS;
    const size_t t1 = over < LEAST_TOKENS ? tile->t1 - over : tile->t1;
    if (t1 > tile->t0) {
        tiles_open(PART_COLS);
        tiles(w, x, tile, t1, group_bytes, y, y_stride);
        tiles_close();
    }
    for (size_t r = tile->r0; r < tile->r1 && t1 < tile->t1; r += TERN_ROW_GROUP) {
        const uint8_t *group = (const uint8_t *)w->data + r / TERN_ROW_GROUP * group_bytes;
        const size_t rows = tile->r1 - r < TERN_ROW_GROUP ? tile->r1 - r : TERN_ROW_GROUP;
        single(w, group, x, t1, tile->t1, r, rows, y, y_stride);
    }
}
