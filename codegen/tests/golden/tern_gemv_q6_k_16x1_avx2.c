/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_gemv_q6_k_16x1_avx2 of kernels/kernels.toml
 * and template kernels/matmul_q6_k.c.j2. Do not edit.
 */

#include "tern/kernels.h"

tern_matmul_fn tern_gemv_q6_k_16x1_avx2;

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
#include "kernels/isa/avx2.h"

#include "kernels/isa/vmath.h"

enum {
    CHUNK_BYTES = 64,
    BLOCK_BYTES = 32 + 6 * CHUNK_BYTES,
    SUPER_BYTES = 32 + 8 * BLOCK_BYTES,
    PREFETCH_BYTES = 4096 /* ahead in the one stream that a thread reads */
};

/* What codes of 32 add up to with each 16 of 32 activations, four times, to[0..3] and to[4..7]. */
static inline void offsets_of(const int8_t *x, int32_t *to) {
    const vp s = vp_spread4(vp_mac(vp_zero(), vb_set1(32), vb_load(x)));
    memcpy(to, &s, sizeof s);
}

/* 16 rows x 1 token(s) from token t; first row is row `lane` of the group at w. */
static void tile_1(const uint8_t *w, size_t lane, size_t blocks, const tern_activations *x,
    size_t t,
                   float *y, size_t y_stride, size_t rows) {
    const int8_t *x0 = x->q + (t + 0) * x->q_stride;
    const float *d0 = x->d + (t + 0) * x->d_stride;
    vf y0_0 = vf_zero();
    vf y0_1 = vf_zero();
    for (size_t b = 0; b < blocks; b++) {
        const uint8_t *head = w + b / 8 * SUPER_BYTES;
        const uint8_t *block = head + 32 + b % 8 * BLOCK_BYTES;
        const uint8_t *codes = block + 32 + 4 * lane;
        ask_ahead(block + PREFETCH_BYTES + 0);
        ask_ahead(block + PREFETCH_BYTES + 64);
        ask_ahead(block + PREFETCH_BYTES + 128);
        ask_ahead(block + PREFETCH_BYTES + 192);
        ask_ahead(block + PREFETCH_BYTES + 256);
        ask_ahead(block + PREFETCH_BYTES + 320);
        int32_t offsets0[8];
        offsets_of(x0 + b * TERN_BLOCK, offsets0);
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
            s0 = vi_flush_by(s0, vp_sub(p0_0, (vp)vb_splat4(offsets0 + 0)), scale0);
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
            s0 = vi_flush_by(s0, vp_sub(p0_1, (vp)vb_splat4(offsets0 + 4)), scale1);
            const vf d = vf_load_f16(head + 2 * (lane + 0));
            y0_0 = vf_add(y0_0, vf_mul(vi_to_f(s0), vf_mul(d, vf_set1(d0[b]))));
        }
        {
            vi s0 = vi_zero();
            const vb upper0 = vb_load(codes + 288);
            const vp scale0 = vp_load_i8((const int8_t *)block + 8 + lane);
            vp p0_0 = vp_zero();
            const vb c0_0 = vb_load(codes + 32);
            const vb w0_0 = vb_join2(vb_nibble_lo(c0_0), upper0, 0);
            p0_0 = vp_mac(p0_0, w0_0, vb_splat4(x0 + b * TERN_BLOCK + 0));
            const vb w0_1 = vb_join2(vb_nibble_hi(c0_0), upper0, 1);
            p0_0 = vp_mac(p0_0, w0_1, vb_splat4(x0 + b * TERN_BLOCK + 4));
            const vb c0_1 = vb_load(codes + 96);
            const vb w0_2 = vb_join2(vb_nibble_lo(c0_1), upper0, 2);
            p0_0 = vp_mac(p0_0, w0_2, vb_splat4(x0 + b * TERN_BLOCK + 8));
            const vb w0_3 = vb_join2(vb_nibble_hi(c0_1), upper0, 3);
            p0_0 = vp_mac(p0_0, w0_3, vb_splat4(x0 + b * TERN_BLOCK + 12));
            s0 = vi_flush_by(s0, vp_sub(p0_0, (vp)vb_splat4(offsets0 + 0)), scale0);
            const vb upper1 = vb_load(codes + 352);
            const vp scale1 = vp_load_i8((const int8_t *)block + 24 + lane);
            vp p0_1 = vp_zero();
            const vb c1_0 = vb_load(codes + 160);
            const vb w1_0 = vb_join2(vb_nibble_lo(c1_0), upper1, 0);
            p0_1 = vp_mac(p0_1, w1_0, vb_splat4(x0 + b * TERN_BLOCK + 16));
            const vb w1_1 = vb_join2(vb_nibble_hi(c1_0), upper1, 1);
            p0_1 = vp_mac(p0_1, w1_1, vb_splat4(x0 + b * TERN_BLOCK + 20));
            const vb c1_1 = vb_load(codes + 224);
            const vb w1_2 = vb_join2(vb_nibble_lo(c1_1), upper1, 2);
            p0_1 = vp_mac(p0_1, w1_2, vb_splat4(x0 + b * TERN_BLOCK + 24));
            const vb w1_3 = vb_join2(vb_nibble_hi(c1_1), upper1, 3);
            p0_1 = vp_mac(p0_1, w1_3, vb_splat4(x0 + b * TERN_BLOCK + 28));
            s0 = vi_flush_by(s0, vp_sub(p0_1, (vp)vb_splat4(offsets0 + 4)), scale1);
            const vf d = vf_load_f16(head + 2 * (lane + 8));
            y0_1 = vf_add(y0_1, vf_mul(vi_to_f(s0), vf_mul(d, vf_set1(d0[b]))));
        }
    }
    vf_store_n(y + 0 * y_stride + 0, y0_0,
               tail_lanes(rows, 0, 8));
    vf_store_n(y + 0 * y_stride + 8, y0_1,
               tail_lanes(rows, 8, 8));
}

void tern_gemv_q6_k_16x1_avx2(const tern_matrix *w, const tern_activations *x,
    const tern_tile *tile, float *y,
    size_t y_stride) {
    const size_t blocks = w->cols / TERN_BLOCK;
    for (size_t r = tile->r0; r < tile->r1; r += 16) {
        const uint8_t *group =
            (const uint8_t *)w->data + r / TERN_ROW_GROUP * (blocks / 8) * SUPER_BYTES;
        const size_t rows = tile->r1 - r < 16 ? tile->r1 - r : 16;
        size_t t = tile->t0;
        for (; t + 1 <= tile->t1; t += 1)
            tile_1(group, r % TERN_ROW_GROUP, blocks, x, t, y + t * y_stride + r, y_stride, rows);
    }
}
