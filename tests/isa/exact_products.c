/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/isa/exact_products.h"

#include TERN_TEST_VERBS

void TERN_TEST_NAME(const float *x, const float *half, const float *sum, size_t n, float *rounded,
                    float *out) {
    for (size_t i = 0; i < n; i += sizeof(vf) / sizeof(float)) {
        const vf factor = vf_round13(vf_load(x + i));
        vf_store(rounded + i, factor);
        vf_store(out + i, vf_mac_exact(vf_load(sum + i), factor, vf_load(half + i)));
    }
}
