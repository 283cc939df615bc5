/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from kernel tern_quantize_token_avx2 of kernels/kernels.toml
 * and template kernels/quantize_token.c.j2. Do not edit.
 */

#include "tern/kernels.h"

tern_quantize_token_fn tern_quantize_token_avx2;

/* Activations of one token to int8 with one scale, as ternary products read them. */
#include "kernels/isa/avx2.h"

#include "kernels/isa/vmath.h"

/* q of one vector; a NaN product becomes -128 because vf_max keeps its second operand. */
static inline vi quantize(vf x, vf s) {
    const vf clamped = vf_min(vf_max(vf_mul(x, s), vf_set1(-128.0f)), vf_set1(127.0f));
    return vi_round(clamped);
}

static float largest_magnitude(const float *x, size_t n) {
    vf m = vf_zero();
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        m = vf_max(vf_abs(vf_load(x + i)), m);
    if (i < n)
        m = vf_max(vf_abs(vf_load_fill(x + i, n - i, 0.0f)), m);
    return vf_hmax(m);
}

void tern_quantize_token_avx2(const float *x, size_t n, int8_t *q, float *s, int32_t *sum) {
    const double amax = largest_magnitude(x, n);
    const float scale = (float)(127.0 / (amax > 1e-5 ? amax : 1e-5));
    const vf vscale = vf_set1(scale);
    vi total = vi_zero();
    size_t i = 0;
    for (; i < n; i += 8) { /* the padding holds a whole last vector */
        const vf v = n - i < 8 ? vf_load_fill(x + i, n - i, 0.0f) : vf_load(x + i);
        const vi rounded = quantize(v, vscale);
        vi_store_i8(q + i, rounded);
        total = vi_add(total, rounded);
    }
    const size_t end = (n + TERN_Q_PAD - 1) / TERN_Q_PAD * TERN_Q_PAD;
    if (i < end)
        memset(q + i, 0, end - i);
    *s = scale;
    *sum = vi_hsum(total);
}
