/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_gemv_stq1_0_16x1_avx2 of kernels/kernels.toml
 * and template kernels/matmul_quads.c.j2. Do not edit.
 */

#include "tern/kernels.h"

tern_matmul_fn tern_gemv_stq1_0_16x1_avx2;

/*
 * Matrix product over STQ1_0 in its R16 layout: lanes are rows. 256 columns share 16 f16 d. 128 of
 * them have a chunk of signs and four chunks of slots, of 64 bytes: 16 rows x 4 bytes. A sign and
 * a slot choose the pattern of four weights that lie 16 columns apart, so those of 64 columns are
 * looked up for both of their blocks.
 */
#include "kernels/isa/avx2.h"

#include "kernels/isa/vmath.h"
#include "kernels/isa/vquad.h"
#include "kernels/quads.h"

enum {
    CHUNK_BYTES = 64,
    HALF_BLOCKS = 4, /* 128 columns */
    HALF_BYTES = 5 * CHUNK_BYTES,
    SUPER_BYTES = 2 * TERN_ROW_GROUP + 2 * HALF_BYTES,
    PREFETCH_BYTES = 4096 /* ahead in the one stream that a thread reads */
};

/* 16 rows x 1 token(s) from token t; first row is row `lane` of the group at w. */
static void tile_1(const uint8_t *w, size_t lane, size_t blocks, const tern_activations *x,
    size_t t,
                   float *y, size_t y_stride, size_t rows) {
    const int8_t *x0 = x->q + (t + 0) * x->q_stride;
    const float *d0 = x->d + (t + 0) * x->d_stride;
    const int32_t *n0 = x->block_sum + (t + 0) * x->d_stride;
    vf y0_0 = vf_zero();
    vf y0_1 = vf_zero();
    for (size_t b = 0; b < blocks; b += HALF_BLOCKS) {
        const uint8_t *head = w + b / 8 * SUPER_BYTES;
        const uint8_t *half = head + 2 * TERN_ROW_GROUP + b / HALF_BLOCKS % 2 * HALF_BYTES;
        ask_ahead(half + PREFETCH_BYTES);
        ask_ahead(half + PREFETCH_BYTES + 64);
        ask_ahead(half + PREFETCH_BYTES + 128);
        ask_ahead(half + PREFETCH_BYTES + 192);
        ask_ahead(half + PREFETCH_BYTES + 256);
        {
            const uint8_t *at = half + 4 * (lane + 0);
            const vf d = vf_load_f16(head + 2 * (lane + 0));
            const vb signs = vb_load(at);
            {
                const vb slots0 = vb_load(at + 64);
                const vb quad0 = vb_quad(slots0, 0, signs, 0);
                const vb quad1 = vb_quad(slots0, 1, signs, 1);
                const vb slots1 = vb_load(at + 128);
                const vb quad2 = vb_quad(slots1, 0, signs, 2);
                const vb quad3 = vb_quad(slots1, 1, signs, 3);
                {
                    vp p0_0 = vp_zero();
                    const vb w0 = vb_lookup32(tern_quad_weights(0), quad0);
                    p0_0 = vp_mac(p0_0, w0, vb_splat4(x0 + b * TERN_BLOCK + 0));
                    const vb w1 = vb_lookup32(tern_quad_weights(0), quad1);
                    p0_0 = vp_mac(p0_0, w1, vb_splat4(x0 + b * TERN_BLOCK + 4));
                    const vb w2 = vb_lookup32(tern_quad_weights(0), quad2);
                    p0_0 = vp_mac(p0_0, w2, vb_splat4(x0 + b * TERN_BLOCK + 8));
                    const vb w3 = vb_lookup32(tern_quad_weights(0), quad3);
                    p0_0 = vp_mac(p0_0, w3, vb_splat4(x0 + b * TERN_BLOCK + 12));
                    const vb w4 = vb_lookup32(tern_quad_weights(1), quad0);
                    p0_0 = vp_mac(p0_0, w4, vb_splat4(x0 + b * TERN_BLOCK + 16));
                    const vb w5 = vb_lookup32(tern_quad_weights(1), quad1);
                    p0_0 = vp_mac(p0_0, w5, vb_splat4(x0 + b * TERN_BLOCK + 20));
                    const vb w6 = vb_lookup32(tern_quad_weights(1), quad2);
                    p0_0 = vp_mac(p0_0, w6, vb_splat4(x0 + b * TERN_BLOCK + 24));
                    const vb w7 = vb_lookup32(tern_quad_weights(1), quad3);
                    p0_0 = vp_mac(p0_0, w7, vb_splat4(x0 + b * TERN_BLOCK + 28));
                    const vi q0 = vi_sub(vi_flush(vi_zero(), p0_0), vi_set1(n0[b + 0]));
                    y0_0 = vf_add(y0_0, vf_mul(vi_to_f(q0), vf_mul(d, vf_set1(d0[b + 0]))));
                }
                {
                    vp p0_0 = vp_zero();
                    const vb w0 = vb_lookup32(tern_quad_weights(2), quad0);
                    p0_0 = vp_mac(p0_0, w0, vb_splat4(x0 + b * TERN_BLOCK + 32));
                    const vb w1 = vb_lookup32(tern_quad_weights(2), quad1);
                    p0_0 = vp_mac(p0_0, w1, vb_splat4(x0 + b * TERN_BLOCK + 36));
                    const vb w2 = vb_lookup32(tern_quad_weights(2), quad2);
                    p0_0 = vp_mac(p0_0, w2, vb_splat4(x0 + b * TERN_BLOCK + 40));
                    const vb w3 = vb_lookup32(tern_quad_weights(2), quad3);
                    p0_0 = vp_mac(p0_0, w3, vb_splat4(x0 + b * TERN_BLOCK + 44));
                    const vb w4 = vb_lookup32(tern_quad_weights(3), quad0);
                    p0_0 = vp_mac(p0_0, w4, vb_splat4(x0 + b * TERN_BLOCK + 48));
                    const vb w5 = vb_lookup32(tern_quad_weights(3), quad1);
                    p0_0 = vp_mac(p0_0, w5, vb_splat4(x0 + b * TERN_BLOCK + 52));
                    const vb w6 = vb_lookup32(tern_quad_weights(3), quad2);
                    p0_0 = vp_mac(p0_0, w6, vb_splat4(x0 + b * TERN_BLOCK + 56));
                    const vb w7 = vb_lookup32(tern_quad_weights(3), quad3);
                    p0_0 = vp_mac(p0_0, w7, vb_splat4(x0 + b * TERN_BLOCK + 60));
                    const vi q0 = vi_sub(vi_flush(vi_zero(), p0_0), vi_set1(n0[b + 1]));
                    y0_0 = vf_add(y0_0, vf_mul(vi_to_f(q0), vf_mul(d, vf_set1(d0[b + 1]))));
                }
            }
            {
                const vb slots0 = vb_load(at + 192);
                const vb quad0 = vb_quad(slots0, 0, signs, 4);
                const vb quad1 = vb_quad(slots0, 1, signs, 5);
                const vb slots1 = vb_load(at + 256);
                const vb quad2 = vb_quad(slots1, 0, signs, 6);
                const vb quad3 = vb_quad(slots1, 1, signs, 7);
                {
                    vp p0_0 = vp_zero();
                    const vb w0 = vb_lookup32(tern_quad_weights(0), quad0);
                    p0_0 = vp_mac(p0_0, w0, vb_splat4(x0 + b * TERN_BLOCK + 64));
                    const vb w1 = vb_lookup32(tern_quad_weights(0), quad1);
                    p0_0 = vp_mac(p0_0, w1, vb_splat4(x0 + b * TERN_BLOCK + 68));
                    const vb w2 = vb_lookup32(tern_quad_weights(0), quad2);
                    p0_0 = vp_mac(p0_0, w2, vb_splat4(x0 + b * TERN_BLOCK + 72));
                    const vb w3 = vb_lookup32(tern_quad_weights(0), quad3);
                    p0_0 = vp_mac(p0_0, w3, vb_splat4(x0 + b * TERN_BLOCK + 76));
                    const vb w4 = vb_lookup32(tern_quad_weights(1), quad0);
                    p0_0 = vp_mac(p0_0, w4, vb_splat4(x0 + b * TERN_BLOCK + 80));
                    const vb w5 = vb_lookup32(tern_quad_weights(1), quad1);
                    p0_0 = vp_mac(p0_0, w5, vb_splat4(x0 + b * TERN_BLOCK + 84));
                    const vb w6 = vb_lookup32(tern_quad_weights(1), quad2);
                    p0_0 = vp_mac(p0_0, w6, vb_splat4(x0 + b * TERN_BLOCK + 88));
                    const vb w7 = vb_lookup32(tern_quad_weights(1), quad3);
                    p0_0 = vp_mac(p0_0, w7, vb_splat4(x0 + b * TERN_BLOCK + 92));
                    const vi q0 = vi_sub(vi_flush(vi_zero(), p0_0), vi_set1(n0[b + 2]));
                    y0_0 = vf_add(y0_0, vf_mul(vi_to_f(q0), vf_mul(d, vf_set1(d0[b + 2]))));
                }
                {
                    vp p0_0 = vp_zero();
                    const vb w0 = vb_lookup32(tern_quad_weights(2), quad0);
                    p0_0 = vp_mac(p0_0, w0, vb_splat4(x0 + b * TERN_BLOCK + 96));
                    const vb w1 = vb_lookup32(tern_quad_weights(2), quad1);
                    p0_0 = vp_mac(p0_0, w1, vb_splat4(x0 + b * TERN_BLOCK + 100));
                    const vb w2 = vb_lookup32(tern_quad_weights(2), quad2);
                    p0_0 = vp_mac(p0_0, w2, vb_splat4(x0 + b * TERN_BLOCK + 104));
                    const vb w3 = vb_lookup32(tern_quad_weights(2), quad3);
                    p0_0 = vp_mac(p0_0, w3, vb_splat4(x0 + b * TERN_BLOCK + 108));
                    const vb w4 = vb_lookup32(tern_quad_weights(3), quad0);
                    p0_0 = vp_mac(p0_0, w4, vb_splat4(x0 + b * TERN_BLOCK + 112));
                    const vb w5 = vb_lookup32(tern_quad_weights(3), quad1);
                    p0_0 = vp_mac(p0_0, w5, vb_splat4(x0 + b * TERN_BLOCK + 116));
                    const vb w6 = vb_lookup32(tern_quad_weights(3), quad2);
                    p0_0 = vp_mac(p0_0, w6, vb_splat4(x0 + b * TERN_BLOCK + 120));
                    const vb w7 = vb_lookup32(tern_quad_weights(3), quad3);
                    p0_0 = vp_mac(p0_0, w7, vb_splat4(x0 + b * TERN_BLOCK + 124));
                    const vi q0 = vi_sub(vi_flush(vi_zero(), p0_0), vi_set1(n0[b + 3]));
                    y0_0 = vf_add(y0_0, vf_mul(vi_to_f(q0), vf_mul(d, vf_set1(d0[b + 3]))));
                }
            }
        }
        {
            const uint8_t *at = half + 4 * (lane + 8);
            const vf d = vf_load_f16(head + 2 * (lane + 8));
            const vb signs = vb_load(at);
            {
                const vb slots0 = vb_load(at + 64);
                const vb quad0 = vb_quad(slots0, 0, signs, 0);
                const vb quad1 = vb_quad(slots0, 1, signs, 1);
                const vb slots1 = vb_load(at + 128);
                const vb quad2 = vb_quad(slots1, 0, signs, 2);
                const vb quad3 = vb_quad(slots1, 1, signs, 3);
                {
                    vp p0_0 = vp_zero();
                    const vb w0 = vb_lookup32(tern_quad_weights(0), quad0);
                    p0_0 = vp_mac(p0_0, w0, vb_splat4(x0 + b * TERN_BLOCK + 0));
                    const vb w1 = vb_lookup32(tern_quad_weights(0), quad1);
                    p0_0 = vp_mac(p0_0, w1, vb_splat4(x0 + b * TERN_BLOCK + 4));
                    const vb w2 = vb_lookup32(tern_quad_weights(0), quad2);
                    p0_0 = vp_mac(p0_0, w2, vb_splat4(x0 + b * TERN_BLOCK + 8));
                    const vb w3 = vb_lookup32(tern_quad_weights(0), quad3);
                    p0_0 = vp_mac(p0_0, w3, vb_splat4(x0 + b * TERN_BLOCK + 12));
                    const vb w4 = vb_lookup32(tern_quad_weights(1), quad0);
                    p0_0 = vp_mac(p0_0, w4, vb_splat4(x0 + b * TERN_BLOCK + 16));
                    const vb w5 = vb_lookup32(tern_quad_weights(1), quad1);
                    p0_0 = vp_mac(p0_0, w5, vb_splat4(x0 + b * TERN_BLOCK + 20));
                    const vb w6 = vb_lookup32(tern_quad_weights(1), quad2);
                    p0_0 = vp_mac(p0_0, w6, vb_splat4(x0 + b * TERN_BLOCK + 24));
                    const vb w7 = vb_lookup32(tern_quad_weights(1), quad3);
                    p0_0 = vp_mac(p0_0, w7, vb_splat4(x0 + b * TERN_BLOCK + 28));
                    const vi q0 = vi_sub(vi_flush(vi_zero(), p0_0), vi_set1(n0[b + 0]));
                    y0_1 = vf_add(y0_1, vf_mul(vi_to_f(q0), vf_mul(d, vf_set1(d0[b + 0]))));
                }
                {
                    vp p0_0 = vp_zero();
                    const vb w0 = vb_lookup32(tern_quad_weights(2), quad0);
                    p0_0 = vp_mac(p0_0, w0, vb_splat4(x0 + b * TERN_BLOCK + 32));
                    const vb w1 = vb_lookup32(tern_quad_weights(2), quad1);
                    p0_0 = vp_mac(p0_0, w1, vb_splat4(x0 + b * TERN_BLOCK + 36));
                    const vb w2 = vb_lookup32(tern_quad_weights(2), quad2);
                    p0_0 = vp_mac(p0_0, w2, vb_splat4(x0 + b * TERN_BLOCK + 40));
                    const vb w3 = vb_lookup32(tern_quad_weights(2), quad3);
                    p0_0 = vp_mac(p0_0, w3, vb_splat4(x0 + b * TERN_BLOCK + 44));
                    const vb w4 = vb_lookup32(tern_quad_weights(3), quad0);
                    p0_0 = vp_mac(p0_0, w4, vb_splat4(x0 + b * TERN_BLOCK + 48));
                    const vb w5 = vb_lookup32(tern_quad_weights(3), quad1);
                    p0_0 = vp_mac(p0_0, w5, vb_splat4(x0 + b * TERN_BLOCK + 52));
                    const vb w6 = vb_lookup32(tern_quad_weights(3), quad2);
                    p0_0 = vp_mac(p0_0, w6, vb_splat4(x0 + b * TERN_BLOCK + 56));
                    const vb w7 = vb_lookup32(tern_quad_weights(3), quad3);
                    p0_0 = vp_mac(p0_0, w7, vb_splat4(x0 + b * TERN_BLOCK + 60));
                    const vi q0 = vi_sub(vi_flush(vi_zero(), p0_0), vi_set1(n0[b + 1]));
                    y0_1 = vf_add(y0_1, vf_mul(vi_to_f(q0), vf_mul(d, vf_set1(d0[b + 1]))));
                }
            }
            {
                const vb slots0 = vb_load(at + 192);
                const vb quad0 = vb_quad(slots0, 0, signs, 4);
                const vb quad1 = vb_quad(slots0, 1, signs, 5);
                const vb slots1 = vb_load(at + 256);
                const vb quad2 = vb_quad(slots1, 0, signs, 6);
                const vb quad3 = vb_quad(slots1, 1, signs, 7);
                {
                    vp p0_0 = vp_zero();
                    const vb w0 = vb_lookup32(tern_quad_weights(0), quad0);
                    p0_0 = vp_mac(p0_0, w0, vb_splat4(x0 + b * TERN_BLOCK + 64));
                    const vb w1 = vb_lookup32(tern_quad_weights(0), quad1);
                    p0_0 = vp_mac(p0_0, w1, vb_splat4(x0 + b * TERN_BLOCK + 68));
                    const vb w2 = vb_lookup32(tern_quad_weights(0), quad2);
                    p0_0 = vp_mac(p0_0, w2, vb_splat4(x0 + b * TERN_BLOCK + 72));
                    const vb w3 = vb_lookup32(tern_quad_weights(0), quad3);
                    p0_0 = vp_mac(p0_0, w3, vb_splat4(x0 + b * TERN_BLOCK + 76));
                    const vb w4 = vb_lookup32(tern_quad_weights(1), quad0);
                    p0_0 = vp_mac(p0_0, w4, vb_splat4(x0 + b * TERN_BLOCK + 80));
                    const vb w5 = vb_lookup32(tern_quad_weights(1), quad1);
                    p0_0 = vp_mac(p0_0, w5, vb_splat4(x0 + b * TERN_BLOCK + 84));
                    const vb w6 = vb_lookup32(tern_quad_weights(1), quad2);
                    p0_0 = vp_mac(p0_0, w6, vb_splat4(x0 + b * TERN_BLOCK + 88));
                    const vb w7 = vb_lookup32(tern_quad_weights(1), quad3);
                    p0_0 = vp_mac(p0_0, w7, vb_splat4(x0 + b * TERN_BLOCK + 92));
                    const vi q0 = vi_sub(vi_flush(vi_zero(), p0_0), vi_set1(n0[b + 2]));
                    y0_1 = vf_add(y0_1, vf_mul(vi_to_f(q0), vf_mul(d, vf_set1(d0[b + 2]))));
                }
                {
                    vp p0_0 = vp_zero();
                    const vb w0 = vb_lookup32(tern_quad_weights(2), quad0);
                    p0_0 = vp_mac(p0_0, w0, vb_splat4(x0 + b * TERN_BLOCK + 96));
                    const vb w1 = vb_lookup32(tern_quad_weights(2), quad1);
                    p0_0 = vp_mac(p0_0, w1, vb_splat4(x0 + b * TERN_BLOCK + 100));
                    const vb w2 = vb_lookup32(tern_quad_weights(2), quad2);
                    p0_0 = vp_mac(p0_0, w2, vb_splat4(x0 + b * TERN_BLOCK + 104));
                    const vb w3 = vb_lookup32(tern_quad_weights(2), quad3);
                    p0_0 = vp_mac(p0_0, w3, vb_splat4(x0 + b * TERN_BLOCK + 108));
                    const vb w4 = vb_lookup32(tern_quad_weights(3), quad0);
                    p0_0 = vp_mac(p0_0, w4, vb_splat4(x0 + b * TERN_BLOCK + 112));
                    const vb w5 = vb_lookup32(tern_quad_weights(3), quad1);
                    p0_0 = vp_mac(p0_0, w5, vb_splat4(x0 + b * TERN_BLOCK + 116));
                    const vb w6 = vb_lookup32(tern_quad_weights(3), quad2);
                    p0_0 = vp_mac(p0_0, w6, vb_splat4(x0 + b * TERN_BLOCK + 120));
                    const vb w7 = vb_lookup32(tern_quad_weights(3), quad3);
                    p0_0 = vp_mac(p0_0, w7, vb_splat4(x0 + b * TERN_BLOCK + 124));
                    const vi q0 = vi_sub(vi_flush(vi_zero(), p0_0), vi_set1(n0[b + 3]));
                    y0_1 = vf_add(y0_1, vf_mul(vi_to_f(q0), vf_mul(d, vf_set1(d0[b + 3]))));
                }
            }
        }
    }
    vf_store_n(y + 0 * y_stride + 0, y0_0,
               tail_lanes(rows, 0, 8));
    vf_store_n(y + 0 * y_stride + 8, y0_1,
               tail_lanes(rows, 8, 8));
}

void tern_gemv_stq1_0_16x1_avx2(const tern_matrix *w, const tern_activations *x,
    const tern_tile *tile, float *y,
    size_t y_stride) {
    const size_t blocks = w->cols / TERN_BLOCK;
    for (size_t r = tile->r0; r < tile->r1; r += TERN_ROW_GROUP) {
        const uint8_t *group =
            (const uint8_t *)w->data + r / TERN_ROW_GROUP * (blocks / 8 * SUPER_BYTES);
        const size_t rows = tile->r1 - r < TERN_ROW_GROUP ? tile->r1 - r : TERN_ROW_GROUP;
        size_t t = tile->t0;
        for (; t + 1 <= tile->t1; t += 1)
            for (size_t i = 0; i < rows; i += 16)
                tile_1(group, i, blocks, x, t, y + t * y_stride + r + i, y_stride, rows - i);
    }
}
