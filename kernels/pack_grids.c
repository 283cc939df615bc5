/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats with grids to their R16 layouts and back: for 256 columns 16 f16 d, then for each 32 of
 * them a byte of factors a row, and codes of three or four bits. Entries of grids are taken apart
 * when a matrix is packed, so that products look up levels in sixteen bytes.
 */

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
    size_t bits;    /* of a code, 3 or 4: as many chunks */
    bool by_halves; /* 16 columns have a factor: two nibbles. Else 32 have one: a byte */
} grid_shape;

static const grid_shape iq1_s = {3, false}, iq2_xxs = {3, false};
static const grid_shape iq1_m = {3, true}, iq2_xs = {3, true}, iq2_s = {3, true};
static const grid_shape iq3_xxs = {4, false}, iq3_s = {4, false};

static size_t sub_bytes(const grid_shape *shape) {
    return TERN_ROW_GROUP + shape->bits * TERN_CHUNK_BYTES;
}

static size_t packed_bytes(const grid_shape *shape) {
    return D_BYTES + SUBS * sub_bytes(shape);
}

/* ---- 32 columns of a row: word i has the codes of columns 4i .. 4i + 3 -------------------------
 */

static void pack_threes(const uint32_t words[FOURS], uint8_t *out) {
    uint32_t third = 0;

    for (size_t i = 0; i < FOURS; i++)
        third |= (words[i] >> 2 & 0x01010101u) << i;
    for (size_t c = 0; c < 2; c++) {
        uint32_t planes = 0;
        for (size_t p = 0; p < 4; p++)
            planes |= (words[4 * c + p] & 0x03030303u) << 2 * p;
        tern_store32(out + c * TERN_CHUNK_BYTES, planes);
    }
    tern_store32(out + 2 * TERN_CHUNK_BYTES, third);
}

static void unpack_threes(const uint8_t *packed, uint32_t words[FOURS]) {
    const uint32_t third = tern_load32(packed + 2 * TERN_CHUNK_BYTES);

    for (size_t i = 0; i < FOURS; i++)
        words[i] = (tern_load32(packed + i / 4 * TERN_CHUNK_BYTES) >> 2 * (i % 4) & 0x03030303u) |
                   (third >> i & 0x01010101u) << 2;
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
        sub[r] = (uint8_t)(shape->by_halves ? low / 2 | high / 2 << 4 : low);
        (shape->bits == 3 ? pack_threes : pack_nibbles)(words, sub + TERN_ROW_GROUP + 4 * r);
    }
}

static void unpack_row(const grid_shape *shape, tern_format format, const uint8_t *super, size_t r,
                       uint8_t *dst) {
    uint8_t factors[TERN_GRID_HALVES], codes[TERN_GRID_BLOCK];
    const uint8_t *sub = super + D_BYTES;
    uint32_t words[FOURS];

    for (size_t s = 0; s < SUBS; s++, sub += sub_bytes(shape)) {
        const uint8_t byte = sub[r];
        factors[2 * s] = (uint8_t)(shape->by_halves ? 2 * (byte & 15) + 1 : byte);
        factors[2 * s + 1] = (uint8_t)(shape->by_halves ? 2 * (byte >> 4) + 1 : byte);
        (shape->bits == 3 ? unpack_threes : unpack_nibbles)(sub + TERN_ROW_GROUP + 4 * r, words);
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
