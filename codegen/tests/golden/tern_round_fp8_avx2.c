/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_round_fp8_avx2 of kernels/kernels.toml
 * and template kernels/round.c.j2. Do not edit.
 */

#include "tern/kernels.h"

tern_tanh_fn tern_round_fp8_avx2;

/* A row of activations, each element rounded to what another precision holds (docs/numerics.md). */
#include "kernels/isa/avx2.h"

#include "kernels/fp8.h"
#include "kernels/isa/vmath.h"
enum { EXPONENT = 8 }; /* of the largest value */

/*
 * Adding 1.5 * 2^23 times the spacing of the values around v leaves v rounded to nearest even. A
 * NaN stays one: both vf_min and the sum keep it.
 */
static inline vf rounded(vf x, vf scale, vf inverse) {
    const vf v = vf_min(vf_set1(0x1.cp8f), vf_mul(vf_abs(x), inverse));
    const vf binade = vf_max(vf_set1(0x1p-6f), vf_binade(v));
    const vf magic = vf_mul(binade, vf_set1(0x1.8p20f));
    return vf_copysign(vf_mul(vf_sub(vf_add(v, magic), magic), scale), x);
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

void tern_round_fp8_avx2(const float *x, size_t n, float *y) {
    const tern_fp8_scales s = tern_fp8_scales_of(largest_magnitude(x, n), EXPONENT);
    const vf scale = vf_set1(s.scale), inverse = vf_set1(s.inverse);
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        vf_store(y + i, rounded(vf_load(x + i), scale, inverse));
    if (i < n)
        vf_store_n(y + i, rounded(vf_load_fill(x + i, n - i, 0.0f), scale, inverse), n - i);
}
