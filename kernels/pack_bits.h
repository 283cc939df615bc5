/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_KERNELS_PACK_BITS_H
#define TERN_KERNELS_PACK_BITS_H

/*
 * Moving codes in words of 32 bits: four columns of a row, or one bit of 32 columns. Every R16
 * chunk holds a word of each of its 16 rows, so packing transposes words; the vectors below are
 * what a compiler makes of them on any processor.
 */

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

/* Four words: of one row in the file, of one chunk when packed. */
typedef uint32_t tern_words __attribute__((vector_size(16)));

/* The same bytes as halves of words. */
typedef uint16_t tern_halves __attribute__((vector_size(16)));

static inline tern_words tern_load_words(const uint8_t *p) {
    tern_words words;
    memcpy(&words, p, sizeof words);
    return words;
}

static inline void tern_store_words(uint8_t *p, tern_words words) {
    memcpy(p, &words, sizeof words);
}

/* Words i, j, k, l of a (0 .. 3) followed by b (4 .. 7); the two compilers spell it differently. */
#if defined(__clang__)
#define TERN_PICK(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
#define TERN_PICK(a, b, i, j, k, l) __builtin_shuffle(a, b, (tern_words){i, j, k, l})
#endif

/* The words of four rows in each of four consecutive chunks. */
typedef struct tern_square {
    tern_words c0, c1, c2, c3;
} tern_square;

/* From 16 bytes of each of four rows, `row_bytes` apart in the file. */
static inline tern_square tern_load_square(const uint8_t *rows, size_t row_bytes) {
    const tern_words r0 = tern_load_words(rows);
    const tern_words r1 = tern_load_words(rows + row_bytes);
    const tern_words r2 = tern_load_words(rows + 2 * row_bytes);
    const tern_words r3 = tern_load_words(rows + 3 * row_bytes);
    const tern_words low01 = TERN_PICK(r0, r1, 0, 4, 1, 5);
    const tern_words low23 = TERN_PICK(r2, r3, 0, 4, 1, 5);
    const tern_words high01 = TERN_PICK(r0, r1, 2, 6, 3, 7);
    const tern_words high23 = TERN_PICK(r2, r3, 2, 6, 3, 7);

    return (tern_square){TERN_PICK(low01, low23, 0, 1, 4, 5), TERN_PICK(low01, low23, 2, 3, 6, 7),
                         TERN_PICK(high01, high23, 0, 1, 4, 5),
                         TERN_PICK(high01, high23, 2, 3, 6, 7)};
}

/* To the rows' places in four chunks, `step` bytes apart. */
static inline void tern_store_square(uint8_t *chunk, ptrdiff_t step, tern_square s) {
    tern_store_words(chunk, s.c0);
    tern_store_words(chunk + step, s.c1);
    tern_store_words(chunk + 2 * step, s.c2);
    tern_store_words(chunk + 3 * step, s.c3);
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
