/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_softmax_avx2 of kernels/kernels.toml
 * and template kernels/softmax.c.j2. Do not edit.
 */

#include "tern/kernels.h"

tern_softmax_fn tern_softmax_avx2;

/* Softmax of one row, in place. */
#include "kernels/isa/avx2.h"

#include "kernels/isa/vmath.h"

static float largest(const float *x, size_t n) {
    vf m = vf_set1(x[0]);
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        m = vf_max(vf_load(x + i), m);
    if (i < n)
        m = vf_max(vf_load_fill(x + i, n - i, x[0]), m);
    return vf_hmax(m);
}

/* x = exp(x - m); returns the sum. */
static float exponentials(float *x, size_t n, vf m) {
    vf s0 = vf_zero();
    vf s1 = vf_zero();
    size_t i = 0;
    for (; i + TERN_LANES <= n; i += TERN_LANES) {
        const vf e0 = vf_exp(vf_sub(vf_load(x + i + 0), m));
        vf_store(x + i + 0, e0);
        s0 = vf_add(s0, e0);
        const vf e1 = vf_exp(vf_sub(vf_load(x + i + 8), m));
        vf_store(x + i + 8, e1);
        s1 = vf_add(s1, e1);
    }
    if (i < n) {
        const size_t n0 = tail_lanes(n - i, 0, 8);
        const vf e0 = vf_exp(vf_sub(vf_load_fill(x + i + 0, n0, 0.0f), m));
        vf_store_n(x + i + 0, e0, n0);
        s0 = vf_add(s0, vf_first_n(e0, n0));
        const size_t n1 = tail_lanes(n - i, 8, 8);
        const vf e1 = vf_exp(vf_sub(vf_load_fill(x + i + 8, n1, 0.0f), m));
        vf_store_n(x + i + 8, e1, n1);
        s1 = vf_add(s1, vf_first_n(e1, n1));
    }
    return vf_sum16(s0, s1);
}

void tern_softmax_avx2(float *x, size_t n) {
    const vf sum = vf_set1(exponentials(x, n, vf_set1(largest(x, n))));
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        vf_store(x + i, vf_div(vf_load(x + i), sum));
    if (i < n)
        vf_store_n(x + i, vf_div(vf_load_fill(x + i, n - i, 0.0f), sum), n - i);
}
