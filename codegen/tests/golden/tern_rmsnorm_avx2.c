/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from kernel tern_rmsnorm_avx2 of kernels/kernels.toml
 * and template kernels/rmsnorm.c.j2. Do not edit.
 */

#include "tern/kernels.h"

tern_rmsnorm_fn tern_rmsnorm_avx2;

/* Root mean square normalization of one row. */
#include <math.h>

#include "kernels/isa/avx2.h"

#include "kernels/isa/vmath.h"

static float sum_of_squares(const float *x, size_t n) {
    vf s0 = vf_zero();
    vf s1 = vf_zero();
    size_t i = 0;
    for (; i + TERN_LANES <= n; i += TERN_LANES) {
        const vf x0 = vf_load(x + i + 0);
        s0 = vf_add(s0, vf_mul(x0, x0));
        const vf x1 = vf_load(x + i + 8);
        s1 = vf_add(s1, vf_mul(x1, x1));
    }
    if (i < n) {
        const vf x0 = vf_load_fill(x + i + 0, tail_lanes(n - i, 0, 8), 0.0f);
        s0 = vf_add(s0, vf_mul(x0, x0));
        const vf x1 = vf_load_fill(x + i + 8, tail_lanes(n - i, 8, 8), 0.0f);
        s1 = vf_add(s1, vf_mul(x1, x1));
    }
    return vf_sum16(s0, s1);
}

void tern_rmsnorm_avx2(const float *x, const float *g, size_t n, float eps, float *y) {
    const vf r = vf_set1(1.0f / sqrtf(sum_of_squares(x, n) / (float)n + eps));
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        vf_store(y + i, vf_mul(vf_mul(vf_load(x + i), r), vf_load(g + i)));
    if (i < n) {
        const size_t rest = n - i;
        const vf scaled = vf_mul(vf_load_fill(x + i, rest, 0.0f), r);
        vf_store_n(y + i, vf_mul(scaled, vf_load_fill(g + i, rest, 0.0f)), rest);
    }
}
