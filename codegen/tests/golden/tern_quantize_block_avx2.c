/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_quantize_block_avx2 of kernels/kernels.toml
 * and template kernels/quantize_block.c.j2. Do not edit.
 */

#include "tern/kernels.h"

tern_quantize_block_fn tern_quantize_block_avx2;

/* Activations of one token to int8 with one scale per 32 columns, as block products read them. */
#include "kernels/isa/avx2.h"

#include "kernels/isa/vmath.h"

/* A NaN product becomes -127 because vf_max keeps its second operand. */
static inline vi quantize(vf x, vf id) {
    return vi_round(vf_min(vf_max(vf_mul(x, id), vf_set1(-127.0f)), vf_set1(127.0f)));
}

/* n <= 32 columns; q has room for 32. */
static inline void quantize_block(const float *x, size_t n, int8_t *q, float *d, int32_t *sum) {
    vf m = vf_set1(1e-30f);
    const vf x0 = vf_load_fill(x + 0, tail_lanes(n, 0, 8), 0.0f);
    m = vf_max(vf_abs(x0), m);
    const vf x8 = vf_load_fill(x + 8, tail_lanes(n, 8, 8), 0.0f);
    m = vf_max(vf_abs(x8), m);
    const vf x16 = vf_load_fill(x + 16, tail_lanes(n, 16, 8), 0.0f);
    m = vf_max(vf_abs(x16), m);
    const vf x24 = vf_load_fill(x + 24, tail_lanes(n, 24, 8), 0.0f);
    m = vf_max(vf_abs(x24), m);
    const float amax = vf_hmax(m);
    const vf id = vf_set1(127.0f / amax);
    vi total = vi_zero();
    const vi q0 = quantize(x0, id);
    vi_store_i8(q + 0, q0);
    total = vi_add(total, q0);
    const vi q8 = quantize(x8, id);
    vi_store_i8(q + 8, q8);
    total = vi_add(total, q8);
    const vi q16 = quantize(x16, id);
    vi_store_i8(q + 16, q16);
    total = vi_add(total, q16);
    const vi q24 = quantize(x24, id);
    vi_store_i8(q + 24, q24);
    total = vi_add(total, q24);
    *d = amax / 127.0f;
    *sum = vi_hsum(total);
}

void tern_quantize_block_avx2(const float *x, size_t n, int8_t *q, float *d, int32_t *block_sum) {
    const size_t blocks = (n + TERN_BLOCK - 1) / TERN_BLOCK;
    for (size_t b = 0; b < blocks; b++) {
        const size_t first = b * TERN_BLOCK;
        const size_t rest = n - first < TERN_BLOCK ? n - first : TERN_BLOCK;
        quantize_block(x + first, rest, q + first, d + b, block_sum + b);
    }
    const size_t end = (n + TERN_Q_PAD - 1) / TERN_Q_PAD * TERN_Q_PAD;
    if (blocks * TERN_BLOCK < end)
        memset(q + blocks * TERN_BLOCK, 0, end - blocks * TERN_BLOCK);
}
