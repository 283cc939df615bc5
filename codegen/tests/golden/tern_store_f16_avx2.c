/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from kernel tern_store_f16_avx2 of kernels/kernels.toml
 * and template kernels/store.c.j2. Do not edit.
 */

#include "tern/kernels.h"

tern_store_fn tern_store_f16_avx2;

/* One row of floats to the format of the key/value cache. */
#include "kernels/isa/avx2.h"

#include "kernels/isa/vmath.h"
void tern_store_f16_avx2(const float *x, size_t n, void *out) {
    uint16_t *y = out;
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        vf_store_f16(y + i, vf_load(x + i));
    if (i < n)
        vf_store_f16_n(y + i, vf_load_fill(x + i, n - i, 0.0f), n - i);
}
