/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_KERNELS_CODES_H
#define TERN_KERNELS_CODES_H

/*
 * Codes of 5 and 6 bits and scales of 6 bits, put together from where the file keeps their parts:
 * for embedding rows, dequantization and packing. Products read packed layouts instead.
 */

#include <stddef.h>
#include <stdint.h>

#include "kernels/inline.h"
#include "kernels/quads.h"

/* The 32 codes of a block of five bits each, less their bias: a high bit a column, then nibbles. */
TERN_INLINE void tern_fives(const uint8_t *high, int bias, int8_t codes[32]) {
    const uint8_t *nibbles = high + 4;

    for (int j = 0; j < 16; j++) {
        const int low_bit = high[j / 8] >> j % 8 & 1;
        const int high_bit = high[2 + j / 8] >> j % 8 & 1;
        codes[j] = (int8_t)((nibbles[j] & 15) + 16 * low_bit - bias);
        codes[j + 16] = (int8_t)((nibbles[j] >> 4) + 16 * high_bit - bias);
    }
}

/* The 32 codes of a block of nibbles that stand for levels. */
TERN_INLINE void tern_levels(const uint8_t *nibbles, const int8_t levels[16], int8_t codes[32]) {
    for (int j = 0; j < 16; j++) {
        codes[j] = levels[nibbles[j] & 15];
        codes[j + 16] = levels[nibbles[j] >> 4];
    }
}

/* ---- NVFP4: four scales, then four runs of 16 columns in eight bytes ---------------------------
 */

enum { TERN_NVFP4_RUN = 16, TERN_NVFP4_NIBBLES = 4 };

/* The bits of the scale of run r: 0x7f, not a number, means 0, and the sign counts for nothing. */
TERN_INLINE uint8_t tern_nvfp4_scale(const uint8_t *block, size_t r) {
    return block[r] == 0x7f ? 0 : block[r] & 0x7f;
}

/* The codes of runs 2s and 2s + 1. */
TERN_INLINE void tern_nvfp4_codes(const uint8_t *block, const int8_t levels[16], size_t s,
                                  int8_t codes[32]) {
    const uint8_t *nibbles = block + TERN_NVFP4_NIBBLES + 16 * s;
    for (size_t k = 0; k < 32; k++)
        codes[k] = levels[nibbles[k / 16 * 8 + k % 8] >> 4 * (k / 8 % 2) & 15];
}

/* ---- groups of 64 to 256 columns with one scale: blocks s of 32 in them ------------------------
 */

enum {
    TERN_PTQ1_0_D = 26,     /* 24 bytes of five codes, 2 of four, then f16 d */
    TERN_STQ1_0_SIGNS = 32, /* slots precede, f16 d follows; the other formats begin with d */
    TERN_STQ1_0_D = 40
};

/* Q1_0: bit k of 128, set for +1, clear for -1. */
TERN_INLINE void tern_q1_0_codes(const uint8_t *block, size_t s, int8_t codes[32]) {
    const uint8_t *bits = block + 2 + 4 * s;

    for (int k = 0; k < 32; k++)
        codes[k] = (int8_t)(2 * (bits[k / 8] >> k % 8 & 1) - 1);
}

/* Q2_0: four codes a byte, the first in the lowest bits; code 3 is +2. */
TERN_INLINE void tern_q2_0_codes(const uint8_t *block, size_t s, int8_t codes[32]) {
    const uint8_t *fours = block + 2 + 8 * s;

    for (int k = 0; k < 32; k++)
        codes[k] = (int8_t)((fours[k / 4] >> 2 * (k % 4) & 3) - 1);
}

TERN_INLINE void tern_pq2_0_codes(const uint8_t *block, size_t s, int8_t codes[32]) {
    tern_q2_0_codes(block, s, codes);
}

/* The byte of a PTQ1_0 block that holds column k, and which of its base-3 digits k is. */
TERN_INLINE size_t tern_ptq1_0_place(size_t k, size_t *digit) {
    const size_t first = k < 80 ? 0 : k < 120 ? 80 : 120;
    const size_t stride = k < 80 ? 16 : k < 120 ? 8 : 2;

    *digit = (k - first) / stride;
    return first / 5 + (k - first) % stride;
}

/* PTQ1_0: byte / 256 is a fraction in base 3, rounded up; what three times it carries is a code. */
TERN_INLINE void tern_ptq1_0_codes(const uint8_t *block, size_t s, int8_t codes[32]) {
    static const uint8_t powers[] = {1, 3, 9, 27, 81};

    for (size_t k = 0; k < 32; k++) {
        size_t digit;
        const uint8_t byte = block[tern_ptq1_0_place(32 * s + k, &digit)];
        const uint8_t left = (uint8_t)(byte * powers[digit]);
        codes[k] = (int8_t)((left * 3 >> 8) - 1);
    }
}

/* The inverse, code by code: bytes are 0 before, then sums of code * 3^(4 - digit), then fractions.
 */
TERN_INLINE void tern_ptq1_0_add(uint8_t *block, size_t k, unsigned code) {
    static const uint8_t weights[] = {81, 27, 9, 3, 1};
    size_t digit;
    uint8_t *sum = &block[tern_ptq1_0_place(k, &digit)];

    *sum = (uint8_t)(*sum + weights[digit] * code);
}

TERN_INLINE void tern_ptq1_0_round(uint8_t *block) {
    for (size_t i = 0; i < TERN_PTQ1_0_D; i++)
        block[i] = (uint8_t)((256u * block[i] + 242) / 243);
}

/* STQ1_0: quad q of 64 is columns 64 * (q / 16) + q % 16, + 16, + 32, + 48. */
TERN_INLINE void tern_stq1_0_codes(const uint8_t *block, size_t s, int8_t codes[32]) {
    for (size_t k = 0; k < 32; k++) {
        const size_t quad = 16 * (s / 2) + k % 16;
        const unsigned slot = block[quad / 2] >> 4 * (quad % 2) & 15u;
        const unsigned sign = block[TERN_STQ1_0_SIGNS + quad / 8] >> quad % 8 & 1u;
        codes[k] = (int8_t)(tern_quad_weights(2 * (s % 2) + k / 16)[16 * sign + slot] - 1);
    }
}

/* ---- super-blocks: 256 columns in eight sub-blocks s of 32 ---------------------------------- */

enum {
    TERN_SUPER = 256,       /* columns */
    TERN_K_SCALES = 4,      /* Q4_K, Q5_K: where 12 bytes of scales and minima begin */
    TERN_Q4_K_NIBBLES = 16, /* pairs of sub-blocks share 32 bytes */
    TERN_Q5_K_HIGH = 16,    /* bit s of byte l: fifth bit of column l of sub-block s */
    TERN_Q5_K_NIBBLES = 48, /* as Q4_K */
    TERN_Q6_K_HIGH = 128,   /* nibbles precede */
    TERN_Q6_K_SCALES = 192, /* int8, two a sub-block */
    TERN_Q6_K_D = 208
};

/* The 6-bit scale of a sub-block; the last four keep their upper bits with the first four. */
TERN_INLINE uint8_t tern_k_scale(const uint8_t scales[12], size_t s) {
    if (s < 4)
        return scales[s] & 63;
    return (uint8_t)((scales[s + 4] & 15) | scales[s - 4] >> 6 << 4);
}

/* The 6-bit minimum of a sub-block. */
TERN_INLINE uint8_t tern_k_min(const uint8_t scales[12], size_t s) {
    if (s < 4)
        return scales[s + 4] & 63;
    return (uint8_t)(scales[s + 4] >> 4 | scales[s] >> 6 << 4);
}

/* The inverse: eight scales and eight minima below 64 to 12 bytes. */
TERN_INLINE void tern_k_put_scales(const uint8_t scale[8], const uint8_t min[8],
                                   uint8_t scales[12]) {
    for (size_t s = 0; s < 4; s++) {
        scales[s] = (uint8_t)(scale[s] | scale[s + 4] >> 4 << 6);
        scales[s + 4] = (uint8_t)(min[s] | min[s + 4] >> 4 << 6);
        scales[s + 8] = (uint8_t)((scale[s + 4] & 15) | (min[s + 4] & 15) << 4);
    }
}

/* ---- IQ4_XS: f16 d, upper bits of scales, lower ones, then 16 bytes of nibbles a sub-block -----
 */

enum { TERN_IQ4_XS_UPPER = 2, TERN_IQ4_XS_LOWER = 4, TERN_IQ4_XS_NIBBLES = 8 };

TERN_INLINE int tern_iq4_xs_scale(const uint8_t *block, size_t s) {
    const int low = block[TERN_IQ4_XS_LOWER + s / 2] >> 4 * (s % 2) & 15;
    return (low | (block[TERN_IQ4_XS_UPPER + s / 4] >> 2 * (s % 4) & 3) << 4) - 32;
}

/* The inverse, where the bits are 0; -32 .. 31. */
TERN_INLINE void tern_iq4_xs_put_scale(uint8_t *block, size_t s, int scale) {
    uint8_t *low = block + TERN_IQ4_XS_LOWER + s / 2, *high = block + TERN_IQ4_XS_UPPER + s / 4;
    const unsigned six = (unsigned)(scale + 32);
    *low = (uint8_t)(*low | (six & 15u) << 4 * (s % 2));
    *high = (uint8_t)(*high | six >> 4 << 2 * (s % 4));
}

/* ---- Q3_K and Q2_K: sixteen runs r of 16 columns ------------------------------------------------
 */

enum {
    TERN_Q3_K_HIGH = 0, /* bit s of byte l: third bit of column l of sub-block s */
    TERN_Q3_K_TWOS = 32,
    TERN_Q3_K_SCALES = 96, /* 12 bytes: 16 low nibbles, then 16 fields of two bits */
    TERN_Q3_K_D = 108,
    TERN_Q2_K_TWOS = 16, /* a byte a run precedes: scale low, minimum high */
    TERN_Q2_K_D = 80
};

TERN_INLINE int tern_q3_k_scale(const uint8_t *block, size_t r) {
    const uint8_t *scales = block + TERN_Q3_K_SCALES;
    const int low = scales[r % 8] >> 4 * (r / 8) & 15;
    return (low | (scales[8 + r % 4] >> 2 * (r / 4) & 3) << 4) - 32;
}

/* The inverse, where the bits are 0; -32 .. 31. */
TERN_INLINE void tern_q3_k_put_scale(uint8_t *block, size_t r, int scale) {
    uint8_t *low = block + TERN_Q3_K_SCALES + r % 8, *high = block + TERN_Q3_K_SCALES + 8 + r % 4;
    const unsigned six = (unsigned)(scale + 32);
    *low = (uint8_t)(*low | (six & 15u) << 4 * (r / 8));
    *high = (uint8_t)(*high | six >> 4 << 2 * (r / 4));
}

TERN_INLINE int tern_q2_k_scale(const uint8_t *block, size_t r) {
    return block[r] & 15;
}

TERN_INLINE int tern_q2_k_min(const uint8_t *block, size_t r) {
    return block[r] >> 4;
}

/* Four sub-blocks share 32 bytes, each with two bits of them. */
TERN_INLINE void tern_k_twos(const uint8_t *twos, size_t s, int8_t codes[32]) {
    for (int l = 0; l < 32; l++)
        codes[l] = (int8_t)(twos[32 * (s / 4) + (size_t)l] >> 2 * (s % 4) & 3);
}

TERN_INLINE void tern_q2_k_codes(const uint8_t *block, size_t s, int8_t codes[32]) {
    tern_k_twos(block + TERN_Q2_K_TWOS, s, codes);
}

/* Signed. */
TERN_INLINE void tern_q3_k_codes(const uint8_t *block, size_t s, int8_t codes[32]) {
    tern_k_twos(block + TERN_Q3_K_TWOS, s, codes);
    for (int l = 0; l < 32; l++)
        codes[l] = (int8_t)((codes[l] | (block[TERN_Q3_K_HIGH + l] >> s & 1) << 2) - 4);
}

/* Signed. */
TERN_INLINE int tern_q6_k_scale(const uint8_t *block, size_t r) {
    return (int8_t)block[TERN_Q6_K_SCALES + r];
}

TERN_INLINE void tern_q4_k_codes(const uint8_t *block, size_t s, int8_t codes[32]) {
    const uint8_t *nibbles = block + TERN_Q4_K_NIBBLES + 32 * (s / 2);

    for (int l = 0; l < 32; l++)
        codes[l] = (int8_t)(nibbles[l] >> 4 * (s % 2) & 15);
}

TERN_INLINE void tern_q5_k_codes(const uint8_t *block, size_t s, int8_t codes[32]) {
    const uint8_t *high = block + TERN_Q5_K_HIGH;
    const uint8_t *nibbles = block + TERN_Q5_K_NIBBLES + 32 * (s / 2);

    for (int l = 0; l < 32; l++)
        codes[l] = (int8_t)((nibbles[l] >> 4 * (s % 2) & 15) | (high[l] >> s & 1) << 4);
}

/* Signed. In each half of 128 columns sub-blocks 0 and 2, 1 and 3 share 32 bytes of nibbles. */
TERN_INLINE void tern_q6_k_codes(const uint8_t *block, size_t s, int8_t codes[32]) {
    const uint8_t *nibbles = block + 64 * (s / 4) + 32 * (s % 2);
    const uint8_t *high = block + TERN_Q6_K_HIGH + 32 * (s / 4);

    for (int l = 0; l < 32; l++) {
        const int low = nibbles[l] >> 4 * (s / 2 % 2) & 15;
        codes[l] = (int8_t)((low | (high[l] >> 2 * (s % 4) & 3) << 4) - 32);
    }
}

#endif
