/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_KERNELS_FP8_H
#define TERN_KERNELS_FP8_H

/*
 * The scale of a row of 8-bit floats (docs/numerics.md, activation precision): the least power of
 * two with which amax is not beyond 1.75 * 2^exponent, the largest value of E4M3 (8) and E5M2 (15).
 */

#include <float.h>

#include "kernels/half.h"

typedef struct tern_fp8_scales {
    float scale, inverse; /* both normal powers of two */
} tern_fp8_scales;

/* amax is not negative and no NaN; it counts as at least 2^-100, and at most as the largest float.
 */
static inline tern_fp8_scales tern_fp8_scales_of(float amax, int exponent) {
    amax = amax > 0x1p-100f ? amax : 0x1p-100f;
    amax = amax < FLT_MAX ? amax : FLT_MAX;
    /* A fraction above 0.75 carries into the exponent. */
    const uint32_t biased = (tern_f32_to_bits(amax) + 0x1fffffu) >> 23;
    const uint32_t s = biased - (uint32_t)exponent;
    return (tern_fp8_scales){tern_f32_from_bits(s << 23), tern_f32_from_bits((254 - s) << 23)};
}

#endif
