/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/isa/avx512.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "kernels/isa/avx512.h"

#include "kernels/isa/vmath.h"

void isa_quotient(const float a[16], float b, float out[16]) {
    vf_store(out, vf_quotient(vf_load(a), b));
}
