/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_embed_q4_k_avx2 of kernels/kernels.toml
 * and template kernels/embed_super.c.j2. Do not edit.
 */

#include "tern/kernels.h"

tern_embed_fn tern_embed_q4_k_avx2;

/* One row of an embedding matrix of super-blocks: of 256 columns in K-quants,
    of 64 or 128 in Bonsai's formats, of 256 in STQ1_0. */
#include "kernels/isa/avx2.h"

#include "kernels/codes.h"
#include "kernels/half.h"
#include "kernels/isa/vmath.h"

static inline void block_floats(const void *row, size_t n, float *y) {
    for (size_t first = 0; first < n; first += TERN_BLOCK) {
        const uint8_t *block = (const uint8_t *)row + first / TERN_SUPER * 144;
        const size_t s = first % TERN_SUPER / TERN_BLOCK;
        int8_t codes[TERN_BLOCK];
        tern_q4_k_codes(block, s, codes);
        const uint8_t *scales = block + TERN_K_SCALES;
        const vf d0 = vf_set1(tern_f16_load(block) * (float)tern_k_scale(scales, s));
        const vf m = vf_set1(tern_f16_load(block + 2) * (float)tern_k_min(scales, s));
        for (size_t i = 0; i < 32; i += 8) {
            const vf product = vf_mul(vi_to_f(vi_load_i8(codes + i)), d0);
            vf_store(y + first + i, vf_sub(product, m));
        }
    }
}

void tern_embed_q4_k_avx2(const void *row, size_t n, float *y) { block_floats(row, n, y); }
