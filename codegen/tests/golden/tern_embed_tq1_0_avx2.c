/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_embed_tq1_0_avx2 of kernels/kernels.toml
 * and template kernels/embed_tq.c.j2. Do not edit.
 */

#include "tern/kernels.h"

tern_embed_fn tern_embed_tq1_0_avx2;

/* One row of an embedding matrix in a ternary format with a scale for every 256 columns. */
#include "kernels/isa/avx2.h"

#include "kernels/half.h"
#include "kernels/isa/vmath.h"
/*
 * `count` bytes of base-3 fractions: what three times a byte carries out of 8 bits is its next
 * digit. Digit k of byte i is element k * count + i.
 */
static void digits(const uint8_t *bytes, size_t count, vf d, float *y) {
    const vi one = vi_set1(1), low = vi_set1(255);
    for (size_t i = 0; i < count; i += 8) {
        vi v = vi_load_u8(bytes + i);
        v = vi_add(vi_add(v, v), v);
        vf_store(y + 0 * count + i, vf_mul(vi_to_f(vi_sub(vi_srl4(vi_srl4(v)), one)), d));
        v = vi_and(v, low);
        v = vi_add(vi_add(v, v), v);
        vf_store(y + 1 * count + i, vf_mul(vi_to_f(vi_sub(vi_srl4(vi_srl4(v)), one)), d));
        v = vi_and(v, low);
        v = vi_add(vi_add(v, v), v);
        vf_store(y + 2 * count + i, vf_mul(vi_to_f(vi_sub(vi_srl4(vi_srl4(v)), one)), d));
        v = vi_and(v, low);
        v = vi_add(vi_add(v, v), v);
        vf_store(y + 3 * count + i, vf_mul(vi_to_f(vi_sub(vi_srl4(vi_srl4(v)), one)), d));
        v = vi_and(v, low);
        v = vi_add(vi_add(v, v), v);
        vf_store(y + 4 * count + i, vf_mul(vi_to_f(vi_sub(vi_srl4(vi_srl4(v)), one)), d));
    }
}

void tern_embed_tq1_0_avx2(const void *row, size_t n, float *y) {
    const uint8_t *block = row;
    for (size_t first = 0; first < n; first += 256, block += 54, y += 256) {
        const float d = tern_f16_load(block + 52);
        digits(block, 32, vf_set1(d), y);
        digits(block + 32, 16, vf_set1(d), y + 160);
        for (size_t m = 0; m < 4; m++) { /* four bytes of four digits */
            unsigned v = block[48 + m];
            for (size_t k = 0; k < 4; k++) {
                v = 3 * (v & 255u);
                y[240 + 4 * k + m] = (float)((int)(v >> 8) - 1) * d;
            }
        }
    }
}
