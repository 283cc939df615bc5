/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from kernel tern_gate_silu_avx2 of kernels/kernels.toml
 * and template kernels/elementwise.c.j2. Do not edit.
 */

#include "tern/kernels.h"

tern_gate_fn tern_gate_silu_avx2;

/* One result per element of a row, or of two. */
#include "kernels/isa/avx2.h"

#include "kernels/isa/vmath.h"
static inline vf activate(vf x) {
    return vf_div(x, vf_add(vf_set1(1.0f), vf_exp(vf_sub(vf_zero(), x))));
}

static inline vf combine(vf a, vf b) {
    return vf_mul(activate(a), b);
}

void tern_gate_silu_avx2(const float *g, const float *u, size_t n, float *y) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        vf_store(y + i, combine(vf_load(g + i), vf_load(u + i)));
    if (i < n) {
        const size_t rest = n - i;
        const vf last = combine(vf_load_fill(g + i, rest, 0.0f), vf_load_fill(u + i, rest, 0.0f));
        vf_store_n(y + i, last, rest);
    }
}
