/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_rope_neox_avx2 of kernels/kernels.toml
 * and template kernels/rope.c.j2. Do not edit.
 */

#include "tern/kernels.h"

tern_rope_fn tern_rope_neox_avx2;

/* Rotary position embedding of one head, in place. */
#include "kernels/isa/avx2.h"

#include "kernels/isa/vmath.h"
void tern_rope_neox_avx2(float *x, const float *c, const float *s, size_t half) {
    for (size_t i = 0; i < half; i += 8) {
        const size_t n = tail_lanes(half, i, 8);
        const vf x0 = vf_load_fill(x + i, n, 0.0f);
        const vf x1 = vf_load_fill(x + half + i, n, 0.0f);
        const vf cosine = vf_load_fill(c + i, n, 0.0f);
        const vf sine = vf_load_fill(s + i, n, 0.0f);
        vf_store_n(x + i, vf_sub(vf_mul(x0, cosine), vf_mul(x1, sine)), n);
        vf_store_n(x + half + i, vf_add(vf_mul(x0, sine), vf_mul(x1, cosine)), n);
    }
}
