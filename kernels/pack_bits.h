/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_KERNELS_PACK_BITS_H
#define TERN_KERNELS_PACK_BITS_H

/* Moving codes in words of 32 bits: four columns of a row, or one bit of 32 columns. */

#include <string.h>

#include "kernels/pack.h"

#define TERN_LOW_NIBBLES UINT32_C(0x0f0f0f0f)

static inline uint32_t tern_load32(const uint8_t *p) {
    uint32_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

static inline void tern_store32(uint8_t *p, uint32_t word) {
    memcpy(p, &word, sizeof word);
}

/*
 * One bit of 32 columns, from the file's order (column k in bit k) to a chunk's (column 4i + j in
 * bit i of byte j). A column's number is i2 i1 i0 j1 j0 in binary; its new place is j1 j0 i2 i1 i0.
 */
static inline uint32_t tern_columns_to_bytes(uint32_t columns) {
    uint32_t bytes = 0;

    for (unsigned j = 0; j < 4; j++) {
        uint32_t x = columns >> j & 0x11111111u; /* bit i at 4i: gather pairs, fours, eight */
        x = (x | x >> 3) & 0x03030303u;
        x = (x | x >> 6) & 0x000f000fu;
        x = (x | x >> 12) & 0xffu;
        bytes |= x << (8 * j);
    }
    return bytes;
}

static inline uint32_t tern_bytes_to_columns(uint32_t bytes) {
    uint32_t columns = 0;

    for (unsigned j = 0; j < 4; j++) {
        uint32_t x = bytes >> (8 * j) & 0xffu;
        x = (x | x << 12) & 0x000f000fu;
        x = (x | x << 6) & 0x03030303u;
        x = (x | x << 3) & 0x11111111u;
        columns |= x << j;
    }
    return columns;
}

#endif
