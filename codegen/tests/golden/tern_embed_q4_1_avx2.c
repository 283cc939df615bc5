/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_embed_q4_1_avx2 of kernels/kernels.toml
 * and template kernels/embed.c.j2. Do not edit.
 */

#include "tern/kernels.h"

tern_embed_fn tern_embed_q4_1_avx2;

/* One row of an embedding matrix, from the file's own layout to floats. */
#include "kernels/isa/avx2.h"

#include "kernels/half.h"
#include "kernels/isa/vmath.h"

static inline void block_floats(const void *row, size_t n, float *y) {
    const uint8_t *block = row;
    for (size_t first = 0; first < n; first += TERN_BLOCK, block += 20) {
        const vf d = vf_set1(tern_f16_load(block));
        const vf m = vf_set1(tern_f16_load(block + 2));
        const uint8_t *codes = block + 4;
        for (size_t i = 0; i < 16; i += 8) {
            const vi both = vi_load_u8(codes + i);
            const vf q0 = vf_mul(vi_to_f(vi_and(both, vi_set1(15))), d);
            vf_store(y + first + i + 0, vf_add(q0, m));
            const vf q16 = vf_mul(vi_to_f(vi_srl4(both)), d);
            vf_store(y + first + i + 16, vf_add(q16, m));
        }
    }
}

void tern_embed_q4_1_avx2(const void *row, size_t n, float *y) { block_floats(row, n, y); }
