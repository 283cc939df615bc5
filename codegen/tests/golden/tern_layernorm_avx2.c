/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_layernorm_avx2 of kernels/kernels.toml
 * and template kernels/layernorm.c.j2. Do not edit.
 */

#include "tern/kernels.h"

tern_layernorm_fn tern_layernorm_avx2;

/* Normalization of one row to mean 0 and variance 1, then scale and shift by column. */
#include <math.h>

#include "kernels/isa/avx2.h"

#include "kernels/isa/vmath.h"
static float sum_of_row(const float *x, size_t n) {
    vf s0 = vf_zero();
    vf s1 = vf_zero();
    size_t i = 0;
    for (; i + TERN_LANES <= n; i += TERN_LANES) {
        const vf x0 = vf_load(x + i + 0);
        s0 = vf_add(s0, x0);
        const vf x1 = vf_load(x + i + 8);
        s1 = vf_add(s1, x1);
    }
    if (i < n) {
        const size_t n0 = tail_lanes(n - i, 0, 8);
        const vf x0 = vf_load_fill(x + i + 0, n0, 0.0f);
        s0 = vf_add(s0, x0);
        const size_t n1 = tail_lanes(n - i, 8, 8);
        const vf x1 = vf_load_fill(x + i + 8, n1, 0.0f);
        s1 = vf_add(s1, x1);
    }
    return vf_sum16(s0, s1);
}

static float sum_of_squares(const float *x, size_t n, float mean) {
    const vf center = vf_set1(mean);
    vf s0 = vf_zero();
    vf s1 = vf_zero();
    size_t i = 0;
    for (; i + TERN_LANES <= n; i += TERN_LANES) {
        const vf x0 = vf_sub(vf_load(x + i + 0), center);
        s0 = vf_add(s0, vf_mul(x0, x0));
        const vf x1 = vf_sub(vf_load(x + i + 8), center);
        s1 = vf_add(s1, vf_mul(x1, x1));
    }
    if (i < n) {
        const size_t n0 = tail_lanes(n - i, 0, 8);
        const vf x0 = vf_first_n(vf_sub(vf_load_fill(x + i + 0, n0, 0.0f), center), n0);
        s0 = vf_add(s0, vf_mul(x0, x0));
        const size_t n1 = tail_lanes(n - i, 8, 8);
        const vf x1 = vf_first_n(vf_sub(vf_load_fill(x + i + 8, n1, 0.0f), center), n1);
        s1 = vf_add(s1, vf_mul(x1, x1));
    }
    return vf_sum16(s0, s1);
}

static inline vf scaled(vf x, vf mean, vf r, vf g) {
    return vf_mul(vf_mul(vf_sub(x, mean), r), g);
}

void tern_layernorm_avx2(const float *x, const float *g, const float *b, size_t n, float eps,
    float *y) {
    const float mean = sum_of_row(x, n) / (float)n;
    const float variance = sum_of_squares(x, n, mean) / (float)n;
    const vf r = vf_set1(1.0f / sqrtf(variance + eps));
    const vf center = vf_set1(mean);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const vf z = scaled(vf_load(x + i), center, r, vf_load(g + i));
        vf_store(y + i, b ? vf_add(z, vf_load(b + i)) : z);
    }
    if (i < n) {
        const size_t rest = n - i;
        const vf z = scaled(vf_load_fill(x + i, rest, 0.0f), center, r, vf_load_fill(g + i, rest,
            0.0f));
        vf_store_n(y + i, b ? vf_add(z, vf_load_fill(b + i, rest, 0.0f)) : z, rest);
    }
}
