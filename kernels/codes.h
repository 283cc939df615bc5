/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_KERNELS_CODES_H
#define TERN_KERNELS_CODES_H

/*
 * Codes of 5 and 6 bits, put together from the file's nibbles and high bits: for embedding rows and
 * dequantization. Products read packed layouts instead.
 */

#include <stdint.h>

/* The 32 signed codes of a Q5_0 block: f16 d, one high bit a column, nibbles. */
static inline void tern_q5_0_codes(const uint8_t *block, int8_t codes[32]) {
    const uint8_t *high = block + 2;
    const uint8_t *nibbles = block + 6;

    for (int j = 0; j < 16; j++) {
        const int low_bit = high[j / 8] >> j % 8 & 1;
        const int high_bit = high[2 + j / 8] >> j % 8 & 1;
        codes[j] = (int8_t)((nibbles[j] & 15) + 16 * low_bit - 16);
        codes[j + 16] = (int8_t)((nibbles[j] >> 4) + 16 * high_bit - 16);
    }
}

#endif
