/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_store_q8_0_avx2 of kernels/kernels.toml
 * and template kernels/store_block.c.j2. Do not edit.
 */

#include "tern/kernels.h"

tern_store_fn tern_store_q8_0_avx2;

/* One row of floats to the key/value cache in Q8_0: a half and 32 codes a block. */
#include "kernels/isa/avx2.h"

#include "kernels/half.h"
#include "kernels/isa/vmath.h"

/* A NaN product becomes -127 because vf_max keeps its second operand. */
static inline vi quantize(vf x, vf id) {
    return vi_round(vf_min(vf_max(vf_mul(x, id), vf_set1(-127.0f)), vf_set1(127.0f)));
}

/* n <= 32 floats to one block of 34 bytes; codes that have no float are 0. */
static inline void store_block(const float *x, size_t n, uint8_t *block) {
    vf m = vf_zero();
    const vf x0 = vf_load_fill(x + 0, tail_lanes(n, 0, 8), 0.0f);
    m = vf_max(vf_abs(x0), m);
    const vf x8 = vf_load_fill(x + 8, tail_lanes(n, 8, 8), 0.0f);
    m = vf_max(vf_abs(x8), m);
    const vf x16 = vf_load_fill(x + 16, tail_lanes(n, 16, 8), 0.0f);
    m = vf_max(vf_abs(x16), m);
    const vf x24 = vf_load_fill(x + 24, tail_lanes(n, 24, 8), 0.0f);
    m = vf_max(vf_abs(x24), m);
    const uint16_t half = tern_f32_to_f16(vf_hmax(m) / 127.0f);
    const float d = tern_f16_to_f32(half);
    const vf id = vf_set1(d > 0.0f ? 1.0f / d : 0.0f);
    memcpy(block, &half, sizeof half);
    vi_store_i8((int8_t *)block + 2 + 0, quantize(x0, id));
    vi_store_i8((int8_t *)block + 2 + 8, quantize(x8, id));
    vi_store_i8((int8_t *)block + 2 + 16, quantize(x16, id));
    vi_store_i8((int8_t *)block + 2 + 24, quantize(x24, id));
}

void tern_store_q8_0_avx2(const float *x, size_t n, void *out) {
    uint8_t *block = out;
    for (size_t first = 0; first < n; first += TERN_BLOCK, block += 34) {
        const size_t rest = n - first < TERN_BLOCK ? n - first : TERN_BLOCK;
        store_block(x + first, rest, block);
    }
}
