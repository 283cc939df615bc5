/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_gemv_q4_1_16x1_avx2 of kernels/kernels.toml
 * and template kernels/matmul_block.c.j2. Do not edit.
 */

#include "tern/kernels.h"

tern_matmul_fn tern_gemv_q4_1_16x1_avx2;

/*
 * Matrix product over block formats in the R16 layouts: lanes are rows. Each 32-column block has
 * 16 scales (and minima), then chunks of 64 bytes: 16 rows x 4 bytes; the fifth bits of 5-bit
 * codes come last. Eight blocks of a K-quant share 16 f16 d and dmin, which lie before them; two or
 * four blocks with codes of one or two bits share 16 f16 d.
 */
#include "kernels/isa/avx2.h"

#include "kernels/isa/vmath.h"

enum {
    HEADER_BYTES = 64,
    CHUNK_BYTES = 64,
    BLOCK_BYTES = HEADER_BYTES + 4 * CHUNK_BYTES,
    PREFETCH_BYTES = 2048 /* ahead in the one stream that a thread reads */
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
        const uint8_t *block = w + b * BLOCK_BYTES;
        const uint8_t *codes = block + HEADER_BYTES + 4 * lane;
        ask_ahead(block + PREFETCH_BYTES);
        ask_ahead(block + PREFETCH_BYTES + 64);
        ask_ahead(block + PREFETCH_BYTES + 128);
        ask_ahead(block + PREFETCH_BYTES + 192);
        {
            vp p0 = vp_zero();
            const vb c0 = vb_load(codes + 0);
            const vb lo0 = vb_nibble_lo(c0);
            const vb hi0 = vb_nibble_hi(c0);
            p0 = vp_mac(p0, lo0, vb_splat4(x0 + b * TERN_BLOCK + 0));
            p0 = vp_mac(p0, hi0, vb_splat4(x0 + b * TERN_BLOCK + 4));
            const vb c1 = vb_load(codes + 64);
            const vb lo1 = vb_nibble_lo(c1);
            const vb hi1 = vb_nibble_hi(c1);
            p0 = vp_mac(p0, lo1, vb_splat4(x0 + b * TERN_BLOCK + 8));
            p0 = vp_mac(p0, hi1, vb_splat4(x0 + b * TERN_BLOCK + 12));
            const vb c2 = vb_load(codes + 128);
            const vb lo2 = vb_nibble_lo(c2);
            const vb hi2 = vb_nibble_hi(c2);
            p0 = vp_mac(p0, lo2, vb_splat4(x0 + b * TERN_BLOCK + 16));
            p0 = vp_mac(p0, hi2, vb_splat4(x0 + b * TERN_BLOCK + 20));
            const vb c3 = vb_load(codes + 192);
            const vb lo3 = vb_nibble_lo(c3);
            const vb hi3 = vb_nibble_hi(c3);
            p0 = vp_mac(p0, lo3, vb_splat4(x0 + b * TERN_BLOCK + 24));
            p0 = vp_mac(p0, hi3, vb_splat4(x0 + b * TERN_BLOCK + 28));
            const vi s0 = vi_flush(vi_zero(), p0);
            const vf d = vf_load_f16(block + 0 + 2 * (lane + 0));
            const vf m = vf_load_f16(block + 32 + 2 * (lane + 0));
            const vi q0 = vi_sub(s0, vi_set1(code_bias * n0[b]));
            y0_0 = vf_add(y0_0, vf_mul(vi_to_f(q0), vf_mul(d, vf_set1(d0[b]))));
            y0_0 = vf_add(y0_0, vf_mul(m, vf_set1(e0[at])));
        }
        {
            vp p0 = vp_zero();
            const vb c0 = vb_load(codes + 32);
            const vb lo0 = vb_nibble_lo(c0);
            const vb hi0 = vb_nibble_hi(c0);
            p0 = vp_mac(p0, lo0, vb_splat4(x0 + b * TERN_BLOCK + 0));
            p0 = vp_mac(p0, hi0, vb_splat4(x0 + b * TERN_BLOCK + 4));
            const vb c1 = vb_load(codes + 96);
            const vb lo1 = vb_nibble_lo(c1);
            const vb hi1 = vb_nibble_hi(c1);
            p0 = vp_mac(p0, lo1, vb_splat4(x0 + b * TERN_BLOCK + 8));
            p0 = vp_mac(p0, hi1, vb_splat4(x0 + b * TERN_BLOCK + 12));
            const vb c2 = vb_load(codes + 160);
            const vb lo2 = vb_nibble_lo(c2);
            const vb hi2 = vb_nibble_hi(c2);
            p0 = vp_mac(p0, lo2, vb_splat4(x0 + b * TERN_BLOCK + 16));
            p0 = vp_mac(p0, hi2, vb_splat4(x0 + b * TERN_BLOCK + 20));
            const vb c3 = vb_load(codes + 224);
            const vb lo3 = vb_nibble_lo(c3);
            const vb hi3 = vb_nibble_hi(c3);
            p0 = vp_mac(p0, lo3, vb_splat4(x0 + b * TERN_BLOCK + 24));
            p0 = vp_mac(p0, hi3, vb_splat4(x0 + b * TERN_BLOCK + 28));
            const vi s0 = vi_flush(vi_zero(), p0);
            const vf d = vf_load_f16(block + 0 + 2 * (lane + 8));
            const vf m = vf_load_f16(block + 32 + 2 * (lane + 8));
            const vi q0 = vi_sub(s0, vi_set1(code_bias * n0[b]));
            y0_1 = vf_add(y0_1, vf_mul(vi_to_f(q0), vf_mul(d, vf_set1(d0[b]))));
            y0_1 = vf_add(y0_1, vf_mul(m, vf_set1(e0[at])));
        }
    }
    vf_store_n(y + 0 * y_stride + 0, y0_0,
               tail_lanes(rows, 0, 8));
    vf_store_n(y + 0 * y_stride + 8, y0_1,
               tail_lanes(rows, 8, 8));
}

void tern_gemv_q4_1_16x1_avx2(const tern_matrix *w, const tern_activations *x,
    const tern_tile *tile, float *y,
    size_t y_stride) {
    const size_t blocks = (w->cols + TERN_BLOCK - 1) / TERN_BLOCK;
    for (size_t r = tile->r0; r < tile->r1; r += TERN_ROW_GROUP) {
        const uint8_t *group = (const uint8_t *)w->data + r / TERN_ROW_GROUP * blocks * BLOCK_BYTES;
        const size_t rows = tile->r1 - r < TERN_ROW_GROUP ? tile->r1 - r : TERN_ROW_GROUP;
        size_t t = tile->t0;
        for (; t + 1 <= tile->t1; t += 1)
            for (size_t i = 0; i < rows; i += 16)
                tile_1(group, i, blocks, x, t, y + t * y_stride + r + i, y_stride, rows - i);
    }
}
