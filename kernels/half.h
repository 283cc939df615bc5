/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_KERNELS_HALF_H
#define TERN_KERNELS_HALF_H

/*
 * binary16 and bfloat16 to and from binary32, powers of two and E4M3 to it, in portable C.
 * Narrowing rounds to nearest even, overflows to infinity and keeps denormals; widening is exact. A
 * NaN stays a NaN, becomes quiet and keeps its sign and the payload bits that fit, as F16C and NEON
 * do.
 */

#include <stdint.h>
#include <string.h>

#include "kernels/inline.h"

TERN_INLINE float tern_f32_from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

TERN_INLINE uint32_t tern_f32_to_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

TERN_INLINE float tern_f16_to_f32(uint16_t half) {
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    const uint32_t exponent = (half >> 10) & 31u;
    const uint32_t fraction = half & 0x3ffu;

    if (exponent == 31)
        return tern_f32_from_bits(sign | 0x7f800000u | fraction << 13 |
                                  (fraction != 0 ? 0x400000u : 0));
    if (exponent == 0) /* a multiple of 2^-24 with at most 10 bits: exact, and normal as a float */
        return tern_f32_from_bits(sign | tern_f32_to_bits((float)fraction * 0x1p-24f));
    return tern_f32_from_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

TERN_INLINE uint16_t tern_f32_to_f16(float value) {
    const uint32_t bits = tern_f32_to_bits(value);
    const uint32_t sign = (bits >> 16) & 0x8000u;
    uint32_t magnitude = bits & 0x7fffffffu;

    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
    if (magnitude >= 0x477ff000u) /* 65520 is halfway between 65504 and 65536, and 65504 is odd */
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude < 0x38800000u) { /* below 2^-14: floats in [0.5, 1) are 2^-24 apart */
        const float shifted = tern_f32_from_bits(magnitude) + 0.5f;
        return (uint16_t)(sign | (tern_f32_to_bits(shifted) - 0x3f000000u));
    }
    magnitude +=
        0xfffu + ((magnitude >> 13) & 1u); /* a carry out of the fraction is what we want */
    return (uint16_t)(sign | ((magnitude - (112u << 23)) >> 13));
}

TERN_INLINE float tern_bf16_to_f32(uint16_t brain) {
    return tern_f32_from_bits((uint32_t)brain << 16);
}

TERN_INLINE uint16_t tern_f32_to_bf16(float value) {
    const uint32_t bits = tern_f32_to_bits(value);

    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

/* The binary16 stored at `p` (any alignment), widened. */
TERN_INLINE float tern_f16_load(const void *p) {
    uint16_t half;
    memcpy(&half, p, sizeof half);
    return tern_f16_to_f32(half);
}

/* `value`, narrowed, to `p` (any alignment). */
TERN_INLINE void tern_f16_store(void *p, float value) {
    const uint16_t half = tern_f32_to_f16(value);
    memcpy(p, &half, sizeof half);
}

/* The greatest e of a weight's scale: levels up to 12 times as large are finite floats. */
enum { TERN_POWER_MAX = 252 };

/* 2^(e - 128). Its fraction is 0 but for 2^-127 and 2^-128, which are denormal. */
TERN_INLINE float tern_power(uint8_t e) {
    const uint32_t normal = (uint32_t)e << 23, denormal = ((uint32_t)e + 1) << 21;
    return tern_f32_from_bits(e > 1 ? normal - (1u << 23) : denormal);
}

/* Half of the E4M3 whose bits these are, of 0 .. 127: four of exponent, three of fraction. */
TERN_INLINE float tern_e4m3(uint8_t bits) {
    return tern_f32_from_bits((uint32_t)bits << 20) * 0x1p119f;
}

/* The bfloat16 stored at `p` (any alignment), widened. */
TERN_INLINE float tern_bf16_load(const void *p) {
    uint16_t brain;
    memcpy(&brain, p, sizeof brain);
    return tern_bf16_to_f32(brain);
}

#endif
