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
    GROUPS = 2,
    LANES = 16,
    PARTS = 2, /* of a block, whose sums are kept apart */
    PART_COLS = TERN_BLOCK / PARTS,
    BLOCK_TOKENS = 128, /* whose sums are 16 KB */
    LEAST_TOKENS = TILE_ROWS
};

_Static_assert((int)LANES == (int)TERN_ROW_GROUP, "a group is a vector");
_Static_assert((int)LEAST_TOKENS <= (int)TERN_MANY_TOKENS, "tests of many tokens miss the tiles");

typedef struct scratch {
    _Alignas(TERN_ALIGN) uint8_t codes[GROUPS][8 * TILE_ROW_BYTES];
    _Alignas(TERN_ALIGN) int32_t products[PARTS][GROUPS][TILE_ROWS * LANES];
    _Alignas(TERN_ALIGN) float sums[BLOCK_TOKENS][GROUPS][LANES];
    _Alignas(TERN_ALIGN) int8_t rest[TILE_ROWS * TERN_BLOCK]; /* of tokens after the last sixteen */
} scratch;
static inline void keep(uint8_t *codes, vb w) {
    memcpy(codes, &w, sizeof w);
}

/* The weights of a block, as signed bytes: a chunk for each four columns. */
static void unpack(const uint8_t *chunks, uint8_t *codes) {
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

/* The sums of products of 16 tokens, `stride` apart, with a block of both groups. */
static void multiply(scratch *part, const uint8_t *w0, const uint8_t *w1, const int8_t *q,
    size_t stride) {
    tile_load(4, q + 0 * PART_COLS, stride);
    tile_load(6, w0 + 0 * PART_COLS / 4 * TILE_ROW_BYTES, TILE_ROW_BYTES);
    tile_zero(0);
    tile_multiply(0, 4, 6);
    tile_load(7, w1 + 0 * PART_COLS / 4 * TILE_ROW_BYTES, TILE_ROW_BYTES);
    tile_zero(1);
    tile_multiply(1, 4, 7);
    tile_load(5, q + 1 * PART_COLS, stride);
    tile_load(6, w0 + 1 * PART_COLS / 4 * TILE_ROW_BYTES, TILE_ROW_BYTES);
    tile_zero(2);
    tile_multiply(2, 5, 6);
    tile_load(7, w1 + 1 * PART_COLS / 4 * TILE_ROW_BYTES, TILE_ROW_BYTES);
    tile_zero(3);
    tile_multiply(3, 5, 7);
    tile_store(0, part->products[0][0], LANES * sizeof(int32_t));
    tile_store(1, part->products[0][1], LANES * sizeof(int32_t));
    tile_store(2, part->products[1][0], LANES * sizeof(int32_t));
    tile_store(3, part->products[1][1], LANES * sizeof(int32_t));
}

static inline vi load_products(const int32_t *p) {
    vi v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* Adds the block of n tokens from t, which are at `first` in the scratch,
    to the sums of group g. */
static void add_block(scratch *part, size_t g, const uint8_t *head, const uint8_t *block,
    const tern_activations *x,
                      size_t t, size_t first, size_t n, size_t b) {
    const float *dx = x->d + t * x->d_stride + b;
    const vf d = vf_load_f16(head);
    const vi low = vi_load_i8((const int8_t *)block);
    const vi high = vi_load_i8((const int8_t *)block + 16);
    for (size_t i = 0; i < n; i++, dx += x->d_stride) {
        float *to = part->sums[first + i][g];
        const vi s0 = load_products(part->products[0][g] + i * LANES);
        const vi s1 = load_products(part->products[1][g] + i * LANES);
        const vf s = vi_to_f(vi_add(vi_mul(s0, low), vi_mul(s1, high)));
        const vf y = vf_add(vf_load(to), vf_mul(s, vf_mul(d, vf_set1(*dx))));
        vf_store(to, y);
    }
}

/* Block b of two groups, whose super-blocks are at w0 and w1, x n tokens from t. */
static void add_blocks(scratch *part, const uint8_t *w0, const uint8_t *w1,
    const tern_activations *x,
                       size_t t, size_t n, size_t b) {
    const uint8_t *block0 = w0 + 32 + b % 8 * BLOCK_BYTES;
    const uint8_t *codes0 = part->codes[0];
    unpack(block0 + 32, part->codes[0]);
    for (size_t ahead = 0; ahead < BLOCK_BYTES; ahead += CHUNK_BYTES)
        __builtin_prefetch(block0 + PREFETCH_BYTES + ahead);
    const uint8_t *block1 = w1 + 32 + b % 8 * BLOCK_BYTES;
    const uint8_t *codes1 = part->codes[1];
    unpack(block1 + 32, part->codes[1]);
    for (size_t ahead = 0; ahead < BLOCK_BYTES; ahead += CHUNK_BYTES)
        __builtin_prefetch(block1 + PREFETCH_BYTES + ahead);
    for (size_t i = 0; i < n; i += TILE_ROWS) {
        const size_t some = n - i < TILE_ROWS ? n - i : TILE_ROWS;
        const int8_t *q = x->q + (t + i) * x->q_stride + b * TERN_BLOCK;
        if (some == TILE_ROWS) {
            multiply(part, codes0, codes1, q, x->q_stride);
        } else { /* a tile is read whole */
            for (size_t k = 0; k < some; k++)
                memcpy(part->rest + k * TERN_BLOCK, q + k * x->q_stride, TERN_BLOCK);
            multiply(part, codes0, codes1, part->rest, TERN_BLOCK);
        }
        add_block(part, 0, w0, block0, x, t + i, i, some, b);
        add_block(part, 1, w1, block1, x, t + i, i, some, b);
    }
}

/* Two groups from row r, `group_bytes` apart, x tokens [t, t + n), n <= BLOCK_TOKENS. */
static void pair(const tern_matrix *m, const uint8_t *w, size_t group_bytes,
    const tern_activations *x,
                 size_t r, size_t rows, size_t t, size_t n, float *y, size_t y_stride) {
    const size_t blocks = (m->cols + TERN_BLOCK - 1) / TERN_BLOCK;
    scratch part;
    memset(part.sums, 0, n * sizeof *part.sums);
    memset(part.rest, 0, sizeof part.rest);
    for (size_t b = 0; b < blocks; b++) {
        const uint8_t *first = w + b / 8 * SUPER_BYTES;
        add_blocks(&part, first, first + group_bytes, x, t, n, b);
    }
    for (size_t g = 0; g < GROUPS; g++) {
        const size_t lanes = tail_lanes(rows, g * LANES, LANES);
        float *to = y + t * y_stride + r + g * LANES;
        for (size_t i = 0; i < n; i++)
            vf_store_n(to + i * y_stride, vf_load(part.sums[i][g]), lanes);
    }
}

/* One group from row r, or tokens that are too few for tiles. */
static void single(const tern_matrix *m, const uint8_t *group, const tern_activations *x,
    const tern_tile *tile,
                   size_t r, size_t rows, float *y, size_t y_stride) {
    const size_t blocks = (m->cols + TERN_BLOCK - 1) / TERN_BLOCK;
    size_t t = tile->t0;
    for (; t + 8 <= tile->t1; t += 8)
        tile_8(group, 0, blocks, x, t, y + t * y_stride + r, y_stride, rows);
    for (; t + 4 <= tile->t1; t += 4)
        tile_4(group, 0, blocks, x, t, y + t * y_stride + r, y_stride, rows);
    for (; t + 2 <= tile->t1; t += 2)
        tile_2(group, 0, blocks, x, t, y + t * y_stride + r, y_stride, rows);
    for (; t + 1 <= tile->t1; t += 1)
        tile_1(group, 0, blocks, x, t, y + t * y_stride + r, y_stride, rows);
}

void tern_gemm_q6_k_16x16_amx(const tern_matrix *w, const tern_activations *x,
    const tern_tile *tile, float *y,
    size_t y_stride) {
    const size_t blocks = (w->cols + TERN_BLOCK - 1) / TERN_BLOCK;
    const size_t group_bytes = blocks / 8 * SUPER_BYTES;
    const bool tiles = tile->t1 - tile->t0 >= LEAST_TOKENS;
    if (tiles)
        tiles_open(PART_COLS);
    for (size_t r = tile->r0; r < tile->r1;) {
        const uint8_t *group = (const uint8_t *)w->data + r / TERN_ROW_GROUP * group_bytes;
        const size_t rows = tile->r1 - r;
        if (!tiles || rows <= TERN_ROW_GROUP) {
            single(w, group, x, tile, r, rows < TERN_ROW_GROUP ? rows : TERN_ROW_GROUP, y,
                y_stride);
            r += TERN_ROW_GROUP;
            continue;
        }
        for (size_t t = tile->t0; t < tile->t1; t += BLOCK_TOKENS)
            pair(w, group, group_bytes, x, r, rows, t,
                tile->t1 - t < BLOCK_TOKENS ? tile->t1 - t : BLOCK_TOKENS, y, y_stride);
        r += GROUPS * TERN_ROW_GROUP;
    }
    if (tiles)
        tiles_close();
}
