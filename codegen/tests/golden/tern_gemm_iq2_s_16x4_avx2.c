/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_gemm_iq2_s_16x4_avx2 of kernels/kernels.toml
 * and template kernels/matmul_int.c.j2. Do not edit.
 */

#include "tern/kernels.h"

tern_matmul_fn tern_gemm_iq2_s_16x4_avx2;

/*
 * Matrix product over iq2_s in its R16 layout: lanes are rows,
     integers times the int8 blocks of the
 * activations. Each 16 columns have an odd factor, each 256 a scale a row.
 */
#include "kernels/isa/avx2.h"

#include "kernels/isa/vmath.h"

enum {
    HEADER_BYTES = 32,
    CHUNK_BYTES = 64,
    BLOCK_BYTES = HEADER_BYTES + 8 * CHUNK_BYTES,
    SUPER_BLOCKS = 8,                                /* blocks of 32 that share a scale */
    SUPER_BYTES = CHUNK_BYTES + SUPER_BLOCKS * BLOCK_BYTES,
    PREFETCH_BYTES = 4096 /* ahead in the one stream that a thread reads */
};

static const int8_t none[4]; /* weights 0: a product with them is what TERN_SS_BIAS adds */

/* 16 rows from r, in the group at w, x 4 token(s) from t. */
static void tile_4(const tern_matrix *m, const uint8_t *w, size_t blocks,
    const tern_activations *x, size_t r,
                   size_t rows, size_t t, float *y, size_t y_stride) {
    const size_t lane = r % TERN_ROW_GROUP;
    const int8_t *x0 = x->q + (t + 0) * x->q_stride;
    const float *d0 = x->d + (t + 0) * x->d_stride;
    const int32_t *n0 = x->block_sum + (t + 0) * x->d_stride;
    vf y0_0 = vf_zero();
    vf y0_1 = vf_zero();
    const int8_t *x1 = x->q + (t + 1) * x->q_stride;
    const float *d1 = x->d + (t + 1) * x->d_stride;
    const int32_t *n1 = x->block_sum + (t + 1) * x->d_stride;
    vf y1_0 = vf_zero();
    vf y1_1 = vf_zero();
    const int8_t *x2 = x->q + (t + 2) * x->q_stride;
    const float *d2 = x->d + (t + 2) * x->d_stride;
    const int32_t *n2 = x->block_sum + (t + 2) * x->d_stride;
    vf y2_0 = vf_zero();
    vf y2_1 = vf_zero();
    const int8_t *x3 = x->q + (t + 3) * x->q_stride;
    const float *d3 = x->d + (t + 3) * x->d_stride;
    const int32_t *n3 = x->block_sum + (t + 3) * x->d_stride;
    vf y3_0 = vf_zero();
    vf y3_1 = vf_zero();
    for (size_t b = 0; b < blocks; b++) {
        const uint8_t *super = w + b / SUPER_BLOCKS * SUPER_BYTES;
        const uint8_t *block = super + CHUNK_BYTES + b % SUPER_BLOCKS * BLOCK_BYTES;
        const uint8_t *codes = block + HEADER_BYTES + 4 * lane;
        ask_ahead(block + PREFETCH_BYTES + 0);
        ask_ahead(block + PREFETCH_BYTES + 64);
        ask_ahead(block + PREFETCH_BYTES + 128);
        ask_ahead(block + PREFETCH_BYTES + 192);
        ask_ahead(block + PREFETCH_BYTES + 256);
        ask_ahead(block + PREFETCH_BYTES + 320);
        ask_ahead(block + PREFETCH_BYTES + 384);
        ask_ahead(block + PREFETCH_BYTES + 448);
        {
            const vb c0 = vb_load(codes + 0);
            const vb c1 = vb_load(codes + 64);
            const vb c2 = vb_load(codes + 128);
            const vb c3 = vb_load(codes + 192);
            const vb c4 = vb_load(codes + 256);
            const vb c5 = vb_load(codes + 320);
            const vb c6 = vb_load(codes + 384);
            const vb c7 = vb_load(codes + 448);
            const vf d = vf_mul(vf_load_f16(super + 2 * (lane + 0)), vf_set1(0.125f));
            const vf low = vi_to_f(vi_load_u8(block + lane + 0));
            const vf high = vi_to_f(vi_load_u8(block + 16 + lane + 0));
            {
                (void)n0;
                vi sa = vi_zero();
                vi ea = vi_zero(); /* what TERN_SS_BIAS adds */
                sa = vi_mac_ss(sa, c0, vb_splat4(x0 + b * TERN_BLOCK + 0));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 0));
                sa = vi_mac_ss(sa, c1, vb_splat4(x0 + b * TERN_BLOCK + 4));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 4));
                sa = vi_mac_ss(sa, c2, vb_splat4(x0 + b * TERN_BLOCK + 8));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 8));
                sa = vi_mac_ss(sa, c3, vb_splat4(x0 + b * TERN_BLOCK + 12));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 12));
                vi sb = vi_zero();
                vi eb = vi_zero(); /* what TERN_SS_BIAS adds */
                sb = vi_mac_ss(sb, c4, vb_splat4(x0 + b * TERN_BLOCK + 16));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 16));
                sb = vi_mac_ss(sb, c5, vb_splat4(x0 + b * TERN_BLOCK + 20));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 20));
                sb = vi_mac_ss(sb, c6, vb_splat4(x0 + b * TERN_BLOCK + 24));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 24));
                sb = vi_mac_ss(sb, c7, vb_splat4(x0 + b * TERN_BLOCK + 28));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 28));
                const vf sum = vf_add(vf_mul(vi_to_f(vi_sub(sa, ea)), low),
                    vf_mul(vi_to_f(vi_sub(sb, eb)), high));
                y0_0 = vf_add(y0_0, vf_mul(sum, vf_mul(d, vf_set1(d0[b]))));
            }
            {
                (void)n1;
                vi sa = vi_zero();
                vi ea = vi_zero(); /* what TERN_SS_BIAS adds */
                sa = vi_mac_ss(sa, c0, vb_splat4(x1 + b * TERN_BLOCK + 0));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x1 + b * TERN_BLOCK + 0));
                sa = vi_mac_ss(sa, c1, vb_splat4(x1 + b * TERN_BLOCK + 4));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x1 + b * TERN_BLOCK + 4));
                sa = vi_mac_ss(sa, c2, vb_splat4(x1 + b * TERN_BLOCK + 8));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x1 + b * TERN_BLOCK + 8));
                sa = vi_mac_ss(sa, c3, vb_splat4(x1 + b * TERN_BLOCK + 12));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x1 + b * TERN_BLOCK + 12));
                vi sb = vi_zero();
                vi eb = vi_zero(); /* what TERN_SS_BIAS adds */
                sb = vi_mac_ss(sb, c4, vb_splat4(x1 + b * TERN_BLOCK + 16));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x1 + b * TERN_BLOCK + 16));
                sb = vi_mac_ss(sb, c5, vb_splat4(x1 + b * TERN_BLOCK + 20));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x1 + b * TERN_BLOCK + 20));
                sb = vi_mac_ss(sb, c6, vb_splat4(x1 + b * TERN_BLOCK + 24));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x1 + b * TERN_BLOCK + 24));
                sb = vi_mac_ss(sb, c7, vb_splat4(x1 + b * TERN_BLOCK + 28));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x1 + b * TERN_BLOCK + 28));
                const vf sum = vf_add(vf_mul(vi_to_f(vi_sub(sa, ea)), low),
                    vf_mul(vi_to_f(vi_sub(sb, eb)), high));
                y1_0 = vf_add(y1_0, vf_mul(sum, vf_mul(d, vf_set1(d1[b]))));
            }
            {
                (void)n2;
                vi sa = vi_zero();
                vi ea = vi_zero(); /* what TERN_SS_BIAS adds */
                sa = vi_mac_ss(sa, c0, vb_splat4(x2 + b * TERN_BLOCK + 0));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x2 + b * TERN_BLOCK + 0));
                sa = vi_mac_ss(sa, c1, vb_splat4(x2 + b * TERN_BLOCK + 4));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x2 + b * TERN_BLOCK + 4));
                sa = vi_mac_ss(sa, c2, vb_splat4(x2 + b * TERN_BLOCK + 8));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x2 + b * TERN_BLOCK + 8));
                sa = vi_mac_ss(sa, c3, vb_splat4(x2 + b * TERN_BLOCK + 12));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x2 + b * TERN_BLOCK + 12));
                vi sb = vi_zero();
                vi eb = vi_zero(); /* what TERN_SS_BIAS adds */
                sb = vi_mac_ss(sb, c4, vb_splat4(x2 + b * TERN_BLOCK + 16));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x2 + b * TERN_BLOCK + 16));
                sb = vi_mac_ss(sb, c5, vb_splat4(x2 + b * TERN_BLOCK + 20));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x2 + b * TERN_BLOCK + 20));
                sb = vi_mac_ss(sb, c6, vb_splat4(x2 + b * TERN_BLOCK + 24));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x2 + b * TERN_BLOCK + 24));
                sb = vi_mac_ss(sb, c7, vb_splat4(x2 + b * TERN_BLOCK + 28));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x2 + b * TERN_BLOCK + 28));
                const vf sum = vf_add(vf_mul(vi_to_f(vi_sub(sa, ea)), low),
                    vf_mul(vi_to_f(vi_sub(sb, eb)), high));
                y2_0 = vf_add(y2_0, vf_mul(sum, vf_mul(d, vf_set1(d2[b]))));
            }
            {
                (void)n3;
                vi sa = vi_zero();
                vi ea = vi_zero(); /* what TERN_SS_BIAS adds */
                sa = vi_mac_ss(sa, c0, vb_splat4(x3 + b * TERN_BLOCK + 0));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x3 + b * TERN_BLOCK + 0));
                sa = vi_mac_ss(sa, c1, vb_splat4(x3 + b * TERN_BLOCK + 4));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x3 + b * TERN_BLOCK + 4));
                sa = vi_mac_ss(sa, c2, vb_splat4(x3 + b * TERN_BLOCK + 8));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x3 + b * TERN_BLOCK + 8));
                sa = vi_mac_ss(sa, c3, vb_splat4(x3 + b * TERN_BLOCK + 12));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x3 + b * TERN_BLOCK + 12));
                vi sb = vi_zero();
                vi eb = vi_zero(); /* what TERN_SS_BIAS adds */
                sb = vi_mac_ss(sb, c4, vb_splat4(x3 + b * TERN_BLOCK + 16));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x3 + b * TERN_BLOCK + 16));
                sb = vi_mac_ss(sb, c5, vb_splat4(x3 + b * TERN_BLOCK + 20));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x3 + b * TERN_BLOCK + 20));
                sb = vi_mac_ss(sb, c6, vb_splat4(x3 + b * TERN_BLOCK + 24));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x3 + b * TERN_BLOCK + 24));
                sb = vi_mac_ss(sb, c7, vb_splat4(x3 + b * TERN_BLOCK + 28));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x3 + b * TERN_BLOCK + 28));
                const vf sum = vf_add(vf_mul(vi_to_f(vi_sub(sa, ea)), low),
                    vf_mul(vi_to_f(vi_sub(sb, eb)), high));
                y3_0 = vf_add(y3_0, vf_mul(sum, vf_mul(d, vf_set1(d3[b]))));
            }
        }
        {
            const vb c0 = vb_load(codes + 32);
            const vb c1 = vb_load(codes + 96);
            const vb c2 = vb_load(codes + 160);
            const vb c3 = vb_load(codes + 224);
            const vb c4 = vb_load(codes + 288);
            const vb c5 = vb_load(codes + 352);
            const vb c6 = vb_load(codes + 416);
            const vb c7 = vb_load(codes + 480);
            const vf d = vf_mul(vf_load_f16(super + 2 * (lane + 8)), vf_set1(0.125f));
            const vf low = vi_to_f(vi_load_u8(block + lane + 8));
            const vf high = vi_to_f(vi_load_u8(block + 16 + lane + 8));
            {
                (void)n0;
                vi sa = vi_zero();
                vi ea = vi_zero(); /* what TERN_SS_BIAS adds */
                sa = vi_mac_ss(sa, c0, vb_splat4(x0 + b * TERN_BLOCK + 0));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 0));
                sa = vi_mac_ss(sa, c1, vb_splat4(x0 + b * TERN_BLOCK + 4));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 4));
                sa = vi_mac_ss(sa, c2, vb_splat4(x0 + b * TERN_BLOCK + 8));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 8));
                sa = vi_mac_ss(sa, c3, vb_splat4(x0 + b * TERN_BLOCK + 12));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 12));
                vi sb = vi_zero();
                vi eb = vi_zero(); /* what TERN_SS_BIAS adds */
                sb = vi_mac_ss(sb, c4, vb_splat4(x0 + b * TERN_BLOCK + 16));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 16));
                sb = vi_mac_ss(sb, c5, vb_splat4(x0 + b * TERN_BLOCK + 20));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 20));
                sb = vi_mac_ss(sb, c6, vb_splat4(x0 + b * TERN_BLOCK + 24));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 24));
                sb = vi_mac_ss(sb, c7, vb_splat4(x0 + b * TERN_BLOCK + 28));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 28));
                const vf sum = vf_add(vf_mul(vi_to_f(vi_sub(sa, ea)), low),
                    vf_mul(vi_to_f(vi_sub(sb, eb)), high));
                y0_1 = vf_add(y0_1, vf_mul(sum, vf_mul(d, vf_set1(d0[b]))));
            }
            {
                (void)n1;
                vi sa = vi_zero();
                vi ea = vi_zero(); /* what TERN_SS_BIAS adds */
                sa = vi_mac_ss(sa, c0, vb_splat4(x1 + b * TERN_BLOCK + 0));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x1 + b * TERN_BLOCK + 0));
                sa = vi_mac_ss(sa, c1, vb_splat4(x1 + b * TERN_BLOCK + 4));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x1 + b * TERN_BLOCK + 4));
                sa = vi_mac_ss(sa, c2, vb_splat4(x1 + b * TERN_BLOCK + 8));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x1 + b * TERN_BLOCK + 8));
                sa = vi_mac_ss(sa, c3, vb_splat4(x1 + b * TERN_BLOCK + 12));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x1 + b * TERN_BLOCK + 12));
                vi sb = vi_zero();
                vi eb = vi_zero(); /* what TERN_SS_BIAS adds */
                sb = vi_mac_ss(sb, c4, vb_splat4(x1 + b * TERN_BLOCK + 16));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x1 + b * TERN_BLOCK + 16));
                sb = vi_mac_ss(sb, c5, vb_splat4(x1 + b * TERN_BLOCK + 20));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x1 + b * TERN_BLOCK + 20));
                sb = vi_mac_ss(sb, c6, vb_splat4(x1 + b * TERN_BLOCK + 24));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x1 + b * TERN_BLOCK + 24));
                sb = vi_mac_ss(sb, c7, vb_splat4(x1 + b * TERN_BLOCK + 28));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x1 + b * TERN_BLOCK + 28));
                const vf sum = vf_add(vf_mul(vi_to_f(vi_sub(sa, ea)), low),
                    vf_mul(vi_to_f(vi_sub(sb, eb)), high));
                y1_1 = vf_add(y1_1, vf_mul(sum, vf_mul(d, vf_set1(d1[b]))));
            }
            {
                (void)n2;
                vi sa = vi_zero();
                vi ea = vi_zero(); /* what TERN_SS_BIAS adds */
                sa = vi_mac_ss(sa, c0, vb_splat4(x2 + b * TERN_BLOCK + 0));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x2 + b * TERN_BLOCK + 0));
                sa = vi_mac_ss(sa, c1, vb_splat4(x2 + b * TERN_BLOCK + 4));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x2 + b * TERN_BLOCK + 4));
                sa = vi_mac_ss(sa, c2, vb_splat4(x2 + b * TERN_BLOCK + 8));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x2 + b * TERN_BLOCK + 8));
                sa = vi_mac_ss(sa, c3, vb_splat4(x2 + b * TERN_BLOCK + 12));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x2 + b * TERN_BLOCK + 12));
                vi sb = vi_zero();
                vi eb = vi_zero(); /* what TERN_SS_BIAS adds */
                sb = vi_mac_ss(sb, c4, vb_splat4(x2 + b * TERN_BLOCK + 16));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x2 + b * TERN_BLOCK + 16));
                sb = vi_mac_ss(sb, c5, vb_splat4(x2 + b * TERN_BLOCK + 20));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x2 + b * TERN_BLOCK + 20));
                sb = vi_mac_ss(sb, c6, vb_splat4(x2 + b * TERN_BLOCK + 24));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x2 + b * TERN_BLOCK + 24));
                sb = vi_mac_ss(sb, c7, vb_splat4(x2 + b * TERN_BLOCK + 28));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x2 + b * TERN_BLOCK + 28));
                const vf sum = vf_add(vf_mul(vi_to_f(vi_sub(sa, ea)), low),
                    vf_mul(vi_to_f(vi_sub(sb, eb)), high));
                y2_1 = vf_add(y2_1, vf_mul(sum, vf_mul(d, vf_set1(d2[b]))));
            }
            {
                (void)n3;
                vi sa = vi_zero();
                vi ea = vi_zero(); /* what TERN_SS_BIAS adds */
                sa = vi_mac_ss(sa, c0, vb_splat4(x3 + b * TERN_BLOCK + 0));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x3 + b * TERN_BLOCK + 0));
                sa = vi_mac_ss(sa, c1, vb_splat4(x3 + b * TERN_BLOCK + 4));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x3 + b * TERN_BLOCK + 4));
                sa = vi_mac_ss(sa, c2, vb_splat4(x3 + b * TERN_BLOCK + 8));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x3 + b * TERN_BLOCK + 8));
                sa = vi_mac_ss(sa, c3, vb_splat4(x3 + b * TERN_BLOCK + 12));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x3 + b * TERN_BLOCK + 12));
                vi sb = vi_zero();
                vi eb = vi_zero(); /* what TERN_SS_BIAS adds */
                sb = vi_mac_ss(sb, c4, vb_splat4(x3 + b * TERN_BLOCK + 16));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x3 + b * TERN_BLOCK + 16));
                sb = vi_mac_ss(sb, c5, vb_splat4(x3 + b * TERN_BLOCK + 20));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x3 + b * TERN_BLOCK + 20));
                sb = vi_mac_ss(sb, c6, vb_splat4(x3 + b * TERN_BLOCK + 24));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x3 + b * TERN_BLOCK + 24));
                sb = vi_mac_ss(sb, c7, vb_splat4(x3 + b * TERN_BLOCK + 28));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x3 + b * TERN_BLOCK + 28));
                const vf sum = vf_add(vf_mul(vi_to_f(vi_sub(sa, ea)), low),
                    vf_mul(vi_to_f(vi_sub(sb, eb)), high));
                y3_1 = vf_add(y3_1, vf_mul(sum, vf_mul(d, vf_set1(d3[b]))));
            }
        }
    }
    const size_t count0 = tail_lanes(rows, 0, 8);
    vf_store_n(y + 0 * y_stride + 0, y0_0, count0);
    vf_store_n(y + 1 * y_stride + 0, y1_0, count0);
    vf_store_n(y + 2 * y_stride + 0, y2_0, count0);
    vf_store_n(y + 3 * y_stride + 0, y3_0, count0);
    const size_t count1 = tail_lanes(rows, 8, 8);
    vf_store_n(y + 0 * y_stride + 8, y0_1, count1);
    vf_store_n(y + 1 * y_stride + 8, y1_1, count1);
    vf_store_n(y + 2 * y_stride + 8, y2_1, count1);
    vf_store_n(y + 3 * y_stride + 8, y3_1, count1);
    (void)m;
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
    vf y0_1 = vf_zero();
    const int8_t *x1 = x->q + (t + 1) * x->q_stride;
    const float *d1 = x->d + (t + 1) * x->d_stride;
    const int32_t *n1 = x->block_sum + (t + 1) * x->d_stride;
    vf y1_0 = vf_zero();
    vf y1_1 = vf_zero();
    for (size_t b = 0; b < blocks; b++) {
        const uint8_t *super = w + b / SUPER_BLOCKS * SUPER_BYTES;
        const uint8_t *block = super + CHUNK_BYTES + b % SUPER_BLOCKS * BLOCK_BYTES;
        const uint8_t *codes = block + HEADER_BYTES + 4 * lane;
        ask_ahead(block + PREFETCH_BYTES + 0);
        ask_ahead(block + PREFETCH_BYTES + 64);
        ask_ahead(block + PREFETCH_BYTES + 128);
        ask_ahead(block + PREFETCH_BYTES + 192);
        ask_ahead(block + PREFETCH_BYTES + 256);
        ask_ahead(block + PREFETCH_BYTES + 320);
        ask_ahead(block + PREFETCH_BYTES + 384);
        ask_ahead(block + PREFETCH_BYTES + 448);
        {
            const vb c0 = vb_load(codes + 0);
            const vb c1 = vb_load(codes + 64);
            const vb c2 = vb_load(codes + 128);
            const vb c3 = vb_load(codes + 192);
            const vb c4 = vb_load(codes + 256);
            const vb c5 = vb_load(codes + 320);
            const vb c6 = vb_load(codes + 384);
            const vb c7 = vb_load(codes + 448);
            const vf d = vf_mul(vf_load_f16(super + 2 * (lane + 0)), vf_set1(0.125f));
            const vf low = vi_to_f(vi_load_u8(block + lane + 0));
            const vf high = vi_to_f(vi_load_u8(block + 16 + lane + 0));
            {
                (void)n0;
                vi sa = vi_zero();
                vi ea = vi_zero(); /* what TERN_SS_BIAS adds */
                sa = vi_mac_ss(sa, c0, vb_splat4(x0 + b * TERN_BLOCK + 0));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 0));
                sa = vi_mac_ss(sa, c1, vb_splat4(x0 + b * TERN_BLOCK + 4));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 4));
                sa = vi_mac_ss(sa, c2, vb_splat4(x0 + b * TERN_BLOCK + 8));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 8));
                sa = vi_mac_ss(sa, c3, vb_splat4(x0 + b * TERN_BLOCK + 12));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 12));
                vi sb = vi_zero();
                vi eb = vi_zero(); /* what TERN_SS_BIAS adds */
                sb = vi_mac_ss(sb, c4, vb_splat4(x0 + b * TERN_BLOCK + 16));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 16));
                sb = vi_mac_ss(sb, c5, vb_splat4(x0 + b * TERN_BLOCK + 20));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 20));
                sb = vi_mac_ss(sb, c6, vb_splat4(x0 + b * TERN_BLOCK + 24));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 24));
                sb = vi_mac_ss(sb, c7, vb_splat4(x0 + b * TERN_BLOCK + 28));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 28));
                const vf sum = vf_add(vf_mul(vi_to_f(vi_sub(sa, ea)), low),
                    vf_mul(vi_to_f(vi_sub(sb, eb)), high));
                y0_0 = vf_add(y0_0, vf_mul(sum, vf_mul(d, vf_set1(d0[b]))));
            }
            {
                (void)n1;
                vi sa = vi_zero();
                vi ea = vi_zero(); /* what TERN_SS_BIAS adds */
                sa = vi_mac_ss(sa, c0, vb_splat4(x1 + b * TERN_BLOCK + 0));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x1 + b * TERN_BLOCK + 0));
                sa = vi_mac_ss(sa, c1, vb_splat4(x1 + b * TERN_BLOCK + 4));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x1 + b * TERN_BLOCK + 4));
                sa = vi_mac_ss(sa, c2, vb_splat4(x1 + b * TERN_BLOCK + 8));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x1 + b * TERN_BLOCK + 8));
                sa = vi_mac_ss(sa, c3, vb_splat4(x1 + b * TERN_BLOCK + 12));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x1 + b * TERN_BLOCK + 12));
                vi sb = vi_zero();
                vi eb = vi_zero(); /* what TERN_SS_BIAS adds */
                sb = vi_mac_ss(sb, c4, vb_splat4(x1 + b * TERN_BLOCK + 16));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x1 + b * TERN_BLOCK + 16));
                sb = vi_mac_ss(sb, c5, vb_splat4(x1 + b * TERN_BLOCK + 20));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x1 + b * TERN_BLOCK + 20));
                sb = vi_mac_ss(sb, c6, vb_splat4(x1 + b * TERN_BLOCK + 24));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x1 + b * TERN_BLOCK + 24));
                sb = vi_mac_ss(sb, c7, vb_splat4(x1 + b * TERN_BLOCK + 28));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x1 + b * TERN_BLOCK + 28));
                const vf sum = vf_add(vf_mul(vi_to_f(vi_sub(sa, ea)), low),
                    vf_mul(vi_to_f(vi_sub(sb, eb)), high));
                y1_0 = vf_add(y1_0, vf_mul(sum, vf_mul(d, vf_set1(d1[b]))));
            }
        }
        {
            const vb c0 = vb_load(codes + 32);
            const vb c1 = vb_load(codes + 96);
            const vb c2 = vb_load(codes + 160);
            const vb c3 = vb_load(codes + 224);
            const vb c4 = vb_load(codes + 288);
            const vb c5 = vb_load(codes + 352);
            const vb c6 = vb_load(codes + 416);
            const vb c7 = vb_load(codes + 480);
            const vf d = vf_mul(vf_load_f16(super + 2 * (lane + 8)), vf_set1(0.125f));
            const vf low = vi_to_f(vi_load_u8(block + lane + 8));
            const vf high = vi_to_f(vi_load_u8(block + 16 + lane + 8));
            {
                (void)n0;
                vi sa = vi_zero();
                vi ea = vi_zero(); /* what TERN_SS_BIAS adds */
                sa = vi_mac_ss(sa, c0, vb_splat4(x0 + b * TERN_BLOCK + 0));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 0));
                sa = vi_mac_ss(sa, c1, vb_splat4(x0 + b * TERN_BLOCK + 4));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 4));
                sa = vi_mac_ss(sa, c2, vb_splat4(x0 + b * TERN_BLOCK + 8));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 8));
                sa = vi_mac_ss(sa, c3, vb_splat4(x0 + b * TERN_BLOCK + 12));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 12));
                vi sb = vi_zero();
                vi eb = vi_zero(); /* what TERN_SS_BIAS adds */
                sb = vi_mac_ss(sb, c4, vb_splat4(x0 + b * TERN_BLOCK + 16));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 16));
                sb = vi_mac_ss(sb, c5, vb_splat4(x0 + b * TERN_BLOCK + 20));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 20));
                sb = vi_mac_ss(sb, c6, vb_splat4(x0 + b * TERN_BLOCK + 24));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 24));
                sb = vi_mac_ss(sb, c7, vb_splat4(x0 + b * TERN_BLOCK + 28));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 28));
                const vf sum = vf_add(vf_mul(vi_to_f(vi_sub(sa, ea)), low),
                    vf_mul(vi_to_f(vi_sub(sb, eb)), high));
                y0_1 = vf_add(y0_1, vf_mul(sum, vf_mul(d, vf_set1(d0[b]))));
            }
            {
                (void)n1;
                vi sa = vi_zero();
                vi ea = vi_zero(); /* what TERN_SS_BIAS adds */
                sa = vi_mac_ss(sa, c0, vb_splat4(x1 + b * TERN_BLOCK + 0));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x1 + b * TERN_BLOCK + 0));
                sa = vi_mac_ss(sa, c1, vb_splat4(x1 + b * TERN_BLOCK + 4));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x1 + b * TERN_BLOCK + 4));
                sa = vi_mac_ss(sa, c2, vb_splat4(x1 + b * TERN_BLOCK + 8));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x1 + b * TERN_BLOCK + 8));
                sa = vi_mac_ss(sa, c3, vb_splat4(x1 + b * TERN_BLOCK + 12));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x1 + b * TERN_BLOCK + 12));
                vi sb = vi_zero();
                vi eb = vi_zero(); /* what TERN_SS_BIAS adds */
                sb = vi_mac_ss(sb, c4, vb_splat4(x1 + b * TERN_BLOCK + 16));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x1 + b * TERN_BLOCK + 16));
                sb = vi_mac_ss(sb, c5, vb_splat4(x1 + b * TERN_BLOCK + 20));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x1 + b * TERN_BLOCK + 20));
                sb = vi_mac_ss(sb, c6, vb_splat4(x1 + b * TERN_BLOCK + 24));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x1 + b * TERN_BLOCK + 24));
                sb = vi_mac_ss(sb, c7, vb_splat4(x1 + b * TERN_BLOCK + 28));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x1 + b * TERN_BLOCK + 28));
                const vf sum = vf_add(vf_mul(vi_to_f(vi_sub(sa, ea)), low),
                    vf_mul(vi_to_f(vi_sub(sb, eb)), high));
                y1_1 = vf_add(y1_1, vf_mul(sum, vf_mul(d, vf_set1(d1[b]))));
            }
        }
    }
    const size_t count0 = tail_lanes(rows, 0, 8);
    vf_store_n(y + 0 * y_stride + 0, y0_0, count0);
    vf_store_n(y + 1 * y_stride + 0, y1_0, count0);
    const size_t count1 = tail_lanes(rows, 8, 8);
    vf_store_n(y + 0 * y_stride + 8, y0_1, count1);
    vf_store_n(y + 1 * y_stride + 8, y1_1, count1);
    (void)m;
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
    vf y0_1 = vf_zero();
    for (size_t b = 0; b < blocks; b++) {
        const uint8_t *super = w + b / SUPER_BLOCKS * SUPER_BYTES;
        const uint8_t *block = super + CHUNK_BYTES + b % SUPER_BLOCKS * BLOCK_BYTES;
        const uint8_t *codes = block + HEADER_BYTES + 4 * lane;
        ask_ahead(block + PREFETCH_BYTES + 0);
        ask_ahead(block + PREFETCH_BYTES + 64);
        ask_ahead(block + PREFETCH_BYTES + 128);
        ask_ahead(block + PREFETCH_BYTES + 192);
        ask_ahead(block + PREFETCH_BYTES + 256);
        ask_ahead(block + PREFETCH_BYTES + 320);
        ask_ahead(block + PREFETCH_BYTES + 384);
        ask_ahead(block + PREFETCH_BYTES + 448);
        {
            const vb c0 = vb_load(codes + 0);
            const vb c1 = vb_load(codes + 64);
            const vb c2 = vb_load(codes + 128);
            const vb c3 = vb_load(codes + 192);
            const vb c4 = vb_load(codes + 256);
            const vb c5 = vb_load(codes + 320);
            const vb c6 = vb_load(codes + 384);
            const vb c7 = vb_load(codes + 448);
            const vf d = vf_mul(vf_load_f16(super + 2 * (lane + 0)), vf_set1(0.125f));
            const vf low = vi_to_f(vi_load_u8(block + lane + 0));
            const vf high = vi_to_f(vi_load_u8(block + 16 + lane + 0));
            {
                (void)n0;
                vi sa = vi_zero();
                vi ea = vi_zero(); /* what TERN_SS_BIAS adds */
                sa = vi_mac_ss(sa, c0, vb_splat4(x0 + b * TERN_BLOCK + 0));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 0));
                sa = vi_mac_ss(sa, c1, vb_splat4(x0 + b * TERN_BLOCK + 4));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 4));
                sa = vi_mac_ss(sa, c2, vb_splat4(x0 + b * TERN_BLOCK + 8));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 8));
                sa = vi_mac_ss(sa, c3, vb_splat4(x0 + b * TERN_BLOCK + 12));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 12));
                vi sb = vi_zero();
                vi eb = vi_zero(); /* what TERN_SS_BIAS adds */
                sb = vi_mac_ss(sb, c4, vb_splat4(x0 + b * TERN_BLOCK + 16));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 16));
                sb = vi_mac_ss(sb, c5, vb_splat4(x0 + b * TERN_BLOCK + 20));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 20));
                sb = vi_mac_ss(sb, c6, vb_splat4(x0 + b * TERN_BLOCK + 24));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 24));
                sb = vi_mac_ss(sb, c7, vb_splat4(x0 + b * TERN_BLOCK + 28));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 28));
                const vf sum = vf_add(vf_mul(vi_to_f(vi_sub(sa, ea)), low),
                    vf_mul(vi_to_f(vi_sub(sb, eb)), high));
                y0_0 = vf_add(y0_0, vf_mul(sum, vf_mul(d, vf_set1(d0[b]))));
            }
        }
        {
            const vb c0 = vb_load(codes + 32);
            const vb c1 = vb_load(codes + 96);
            const vb c2 = vb_load(codes + 160);
            const vb c3 = vb_load(codes + 224);
            const vb c4 = vb_load(codes + 288);
            const vb c5 = vb_load(codes + 352);
            const vb c6 = vb_load(codes + 416);
            const vb c7 = vb_load(codes + 480);
            const vf d = vf_mul(vf_load_f16(super + 2 * (lane + 8)), vf_set1(0.125f));
            const vf low = vi_to_f(vi_load_u8(block + lane + 8));
            const vf high = vi_to_f(vi_load_u8(block + 16 + lane + 8));
            {
                (void)n0;
                vi sa = vi_zero();
                vi ea = vi_zero(); /* what TERN_SS_BIAS adds */
                sa = vi_mac_ss(sa, c0, vb_splat4(x0 + b * TERN_BLOCK + 0));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 0));
                sa = vi_mac_ss(sa, c1, vb_splat4(x0 + b * TERN_BLOCK + 4));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 4));
                sa = vi_mac_ss(sa, c2, vb_splat4(x0 + b * TERN_BLOCK + 8));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 8));
                sa = vi_mac_ss(sa, c3, vb_splat4(x0 + b * TERN_BLOCK + 12));
                if (TERN_SS_BIAS != 0)
                    ea = vi_mac_ss(ea, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 12));
                vi sb = vi_zero();
                vi eb = vi_zero(); /* what TERN_SS_BIAS adds */
                sb = vi_mac_ss(sb, c4, vb_splat4(x0 + b * TERN_BLOCK + 16));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 16));
                sb = vi_mac_ss(sb, c5, vb_splat4(x0 + b * TERN_BLOCK + 20));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 20));
                sb = vi_mac_ss(sb, c6, vb_splat4(x0 + b * TERN_BLOCK + 24));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 24));
                sb = vi_mac_ss(sb, c7, vb_splat4(x0 + b * TERN_BLOCK + 28));
                if (TERN_SS_BIAS != 0)
                    eb = vi_mac_ss(eb, vb_splat4(none), vb_splat4(x0 + b * TERN_BLOCK + 28));
                const vf sum = vf_add(vf_mul(vi_to_f(vi_sub(sa, ea)), low),
                    vf_mul(vi_to_f(vi_sub(sb, eb)), high));
                y0_1 = vf_add(y0_1, vf_mul(sum, vf_mul(d, vf_set1(d0[b]))));
            }
        }
    }
    const size_t count0 = tail_lanes(rows, 0, 8);
    vf_store_n(y + 0 * y_stride + 0, y0_0, count0);
    const size_t count1 = tail_lanes(rows, 8, 8);
    vf_store_n(y + 0 * y_stride + 8, y0_1, count1);
    (void)m;
}

void tern_gemm_iq2_s_16x4_avx2(const tern_matrix *w, const tern_activations *x,
    const tern_tile *tile, float *y,
    size_t y_stride) {
    const size_t blocks = (w->cols + TERN_BLOCK - 1) / TERN_BLOCK;
    const size_t group_bytes = blocks / SUPER_BLOCKS * SUPER_BYTES;
    for (size_t r = tile->r0; r < tile->r1; r += TERN_ROW_GROUP) {
        const uint8_t *group = (const uint8_t *)w->data + r / TERN_ROW_GROUP * group_bytes;
        const size_t rows = tile->r1 - r < TERN_ROW_GROUP ? tile->r1 - r : TERN_ROW_GROUP;
        size_t t = tile->t0;
        for (; t + 4 <= tile->t1; t += 4)
            for (size_t i = 0; i < rows; i += 16)
                tile_4(w, group, blocks, x, r + i, rows - i, t, y + t * y_stride + r + i, y_stride);
        for (; t + 2 <= tile->t1; t += 2)
            for (size_t i = 0; i < rows; i += 16)
                tile_2(w, group, blocks, x, r + i, rows - i, t, y + t * y_stride + r + i, y_stride);
        for (; t + 1 <= tile->t1; t += 1)
            for (size_t i = 0; i < rows; i += 16)
                tile_1(w, group, blocks, x, r + i, rows - i, t, y + t * y_stride + r + i, y_stride);
    }
}
