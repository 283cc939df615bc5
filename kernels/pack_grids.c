/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats with grids to their R16 layouts and back: for 256 columns 16 f16 d, then for each 32 of
 * them a byte of factors a row, and codes of two, three or four bits. Entries of grids are taken
 * apart when a matrix is packed, so that products look up levels in sixteen bytes, or, where 32
 * columns are moved together, find them by arithmetic.
 */

#include <stdlib.h>

#include "kernels/grids.h"
#include "kernels/pack_bits.h"
#include "kernels/packer.h"

enum {
    D_BYTES = 2 * TERN_ROW_GROUP,
    SUBS = TERN_GRID_BLOCK / TERN_BLOCK,
    FOURS = TERN_BLOCK / 4 /* words of codes of a row and sub-block */
};

/* How a layout holds its formats. */
typedef struct grid_shape {
    size_t bits; /* of a code, 2, 3 or 4: as many chunks */
    enum {
        ODD,    /* 32 columns have a factor, a byte */
        HALVES, /* 16 columns have one: two nibbles */
        MOVED   /* 32 have one, negative where their levels are moved down; codes are digits */
    } factors;
} grid_shape;

static const grid_shape iq1_s = {2, MOVED}, iq2_xxs = {3, ODD};
static const grid_shape iq1_m = {3, HALVES}, iq2_xs = {3, HALVES}, iq2_s = {3, HALVES};
static const grid_shape iq3_xxs = {4, ODD}, iq3_s = {4, ODD};

static size_t sub_bytes(const grid_shape *shape) {
    return TERN_ROW_GROUP + shape->bits * TERN_CHUNK_BYTES;
}

static size_t packed_bytes(const grid_shape *shape) {
    return D_BYTES + SUBS * sub_bytes(shape);
}

/* ---- 32 columns of a row: word i has the codes of columns 4i .. 4i + 3 -------------------------
 */

static void pack_planes(const uint32_t words[FOURS], uint8_t *out) {
    for (size_t c = 0; c < 2; c++) {
        uint32_t planes = 0;
        for (size_t p = 0; p < 4; p++)
            planes |= (words[4 * c + p] & 0x03030303u) << 2 * p;
        tern_store32(out + c * TERN_CHUNK_BYTES, planes);
    }
}

static void unpack_planes(const uint8_t *packed, uint32_t words[FOURS]) {
    for (size_t i = 0; i < FOURS; i++)
        words[i] = tern_load32(packed + i / 4 * TERN_CHUNK_BYTES) >> 2 * (i % 4) & 0x03030303u;
}

static void pack_threes(const uint32_t words[FOURS], uint8_t *out) {
    uint32_t third = 0;

    for (size_t i = 0; i < FOURS; i++)
        third |= (words[i] >> 2 & 0x01010101u) << i;
    pack_planes(words, out);
    tern_store32(out + 2 * TERN_CHUNK_BYTES, third);
}

static void unpack_threes(const uint8_t *packed, uint32_t words[FOURS]) {
    const uint32_t third = tern_load32(packed + 2 * TERN_CHUNK_BYTES);

    unpack_planes(packed, words);
    for (size_t i = 0; i < FOURS; i++)
        words[i] |= (third >> i & 0x01010101u) << 2;
}

static void pack_nibbles(const uint32_t words[FOURS], uint8_t *out) {
    for (size_t c = 0; c < 4; c++)
        tern_store32(out + c * TERN_CHUNK_BYTES, words[2 * c] | words[2 * c + 1] << 4);
}

static void unpack_nibbles(const uint8_t *packed, uint32_t words[FOURS]) {
    for (size_t i = 0; i < FOURS; i++)
        words[i] = tern_load32(packed + i / 2 * TERN_CHUNK_BYTES) >> 4 * (i % 2) & TERN_LOW_NIBBLES;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Codes 2 * digit + 1, or without the 1 where levels are moved down, to digits, and back. */
static void digits_of(uint32_t words[FOURS]) {
    for (size_t i = 0; i < FOURS; i++)
        words[i] = words[i] >> 1 & 0x03030303u;
}

static void codes_of_digits(uint32_t words[FOURS], bool down) {
    for (size_t i = 0; i < FOURS; i++)
        words[i] = words[i] << 1 | (down ? 0 : 0x01010101u);
}

/* The byte of a row and 32 columns, whose halves have these factors. */
static uint8_t factor_byte(const grid_shape *shape, unsigned low, unsigned high, bool down) {
    if (shape->factors == HALVES)
        return (uint8_t)(low / 2 | high / 2 << 4);
    return (uint8_t)(shape->factors == MOVED && down ? -(int)low : (int)low);
}

/* The factor of a half of them. */
static uint8_t factor_of(const grid_shape *shape, uint8_t byte, size_t half) {
    if (shape->factors == HALVES)
        return (uint8_t)(2 * (byte >> 4 * half & 15) + 1);
    return (uint8_t)(shape->factors == MOVED ? abs((int8_t)byte) : byte);
}

static void pack_words(const grid_shape *shape, uint32_t words[FOURS], uint8_t *out) {
    if (shape->factors == MOVED)
        digits_of(words);
    (shape->bits == 2 ? pack_planes : shape->bits == 3 ? pack_threes : pack_nibbles)(words, out);
}

static void unpack_words(const grid_shape *shape, const uint8_t *packed, bool down,
                         uint32_t words[FOURS]) {
    (shape->bits == 2   ? unpack_planes
     : shape->bits == 3 ? unpack_threes
                        : unpack_nibbles)(packed, words);
    if (shape->factors == MOVED)
        codes_of_digits(words, down);
}

/* Row r of a group; `super` is where its block's packed form begins. */
static void pack_row(const grid_shape *shape, tern_format format, const uint8_t *src, size_t r,
                     uint8_t *super) {
    const tern_grid *grid = tern_grid_of(format);
    const uint16_t d = tern_grid_d(format, src);
    uint32_t words[FOURS];
    uint8_t *sub = super + D_BYTES;

    memcpy(super + 2 * r, &d, sizeof d);
    for (size_t s = 0; s < SUBS; s++, sub += sub_bytes(shape)) {
        const unsigned low = tern_grid_factor(grid, src, 2 * s);
        const unsigned high = tern_grid_factor(grid, src, 2 * s + 1);
        const size_t runs = TERN_BLOCK / grid->run;
        uint8_t codes[TERN_BLOCK];
        for (size_t run = 0; run < runs; run++)
            tern_grid_codes(grid, src, s * runs + run, codes + run * grid->run);
        memcpy(words, codes, sizeof words);
        sub[r] = factor_byte(shape, low, high, codes[0] % 2 == 0);
        pack_words(shape, words, sub + TERN_ROW_GROUP + 4 * r);
    }
}

static void unpack_row(const grid_shape *shape, tern_format format, const uint8_t *super, size_t r,
                       uint8_t *dst) {
    uint8_t factors[TERN_GRID_HALVES], codes[TERN_GRID_BLOCK];
    const uint8_t *sub = super + D_BYTES;
    uint32_t words[FOURS];

    for (size_t s = 0; s < SUBS; s++, sub += sub_bytes(shape)) {
        factors[2 * s] = factor_of(shape, sub[r], 0);
        factors[2 * s + 1] = factor_of(shape, sub[r], 1);
        unpack_words(shape, sub + TERN_ROW_GROUP + 4 * r, sub[r] >> 7, words);
        memcpy(codes + s * TERN_BLOCK, words, sizeof words);
    }
    memset(dst, 0, tern_format_describe(format)->block_bytes);
    tern_grid_write(tern_grid_of(format), factors, codes, dst);
    tern_grid_put_d(format, (uint16_t)(super[2 * r] | super[2 * r + 1] << 8), dst);
}

TERN_BLOCK_PACKER(IQ1_S, iq1_s)
TERN_BLOCK_PACKER(IQ1_M, iq1_m)
TERN_BLOCK_PACKER(IQ2_XXS, iq2_xxs)
TERN_BLOCK_PACKER(IQ2_XS, iq2_xs)
TERN_BLOCK_PACKER(IQ2_S, iq2_s)
TERN_BLOCK_PACKER(IQ3_XXS, iq3_xxs)
TERN_BLOCK_PACKER(IQ3_S, iq3_s)
