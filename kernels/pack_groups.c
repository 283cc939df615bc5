/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of 64 to 256 columns that share a scale to their R16 layouts and back: 16 f16 d, then for
 * each 32 columns one chunk of bits (Q1_0) or two of 2-bit planes (the others). PTQ1_0 is packed as
 * PQ2_0. STQ1_0 has for each 128 columns a chunk of signs and four of slots.
 */

#include "kernels/codes.h"
#include "kernels/pack_bits.h"
#include "kernels/packer.h"

enum { SCALES_BYTES = 2 * TERN_ROW_GROUP };

/* How a format becomes its layout. */
typedef struct group_shape {
    size_t blocks; /* of 32 columns that share a scale */
    size_t chunks; /* for them: as many bits of a code as there are for each block */
} group_shape;

static const group_shape q1_0 = {4, 4};
static const group_shape q2_0 = {2, 4};
static const group_shape pq2_0 = {4, 8};
static const group_shape stq1_0 = {8, 10};

static size_t packed_bytes(const group_shape *shape) {
    return SCALES_BYTES + shape->chunks * TERN_CHUNK_BYTES;
}

static size_t scale_at(tern_format format) {
    if (format == TERN_FORMAT_STQ1_0)
        return TERN_STQ1_0_D;
    return format == TERN_FORMAT_PTQ1_0 ? TERN_PTQ1_0_D : 0;
}

/* The place of the row's word that belongs to the first chunk of block s. */
static size_t block_at(const group_shape *shape, size_t s) {
    return SCALES_BYTES + s * (shape->chunks / shape->blocks) * TERN_CHUNK_BYTES;
}

/* ---- 32 columns of a row ------------------------------------------------------------------- */

/* The 2-bit codes of 16 columns: byte i of the file holds columns 4i .., plane p of byte j 4p + j.
 */
static uint32_t transpose_fours(uint32_t fours) {
    uint32_t planes = 0;

    for (unsigned i = 0; i < 4; i++)
        for (unsigned j = 0; j < 4; j++)
            planes |= (fours >> (8 * i + 2 * j) & 3u) << (8 * j + 2 * i);
    return planes;
}

/* The codes of a PTQ1_0 block as PQ2_0 has them: 8 bytes for 32 columns. */
static void fours_of_trits(const uint8_t *block, size_t s, uint8_t fours[8]) {
    int8_t codes[TERN_BLOCK];

    tern_ptq1_0_codes(block, s, codes);
    memset(fours, 0, 8);
    for (size_t k = 0; k < TERN_BLOCK; k++)
        fours[k / 4] = (uint8_t)(fours[k / 4] | (codes[k] + 1) << 2 * (k % 4));
}

/* `out` is the row's place in the first chunk. */
static void pack_block(tern_format format, const uint8_t *block, size_t s, uint8_t *out) {
    uint8_t trits[8];

    if (format == TERN_FORMAT_Q1_0) {
        tern_store32(out, tern_columns_to_bytes(tern_load32(block + 2 + 4 * s)));
        return;
    }
    if (format == TERN_FORMAT_PTQ1_0)
        fours_of_trits(block, s, trits);
    const uint8_t *fours = format == TERN_FORMAT_PTQ1_0 ? trits : block + 2 + 8 * s;
    tern_store32(out, transpose_fours(tern_load32(fours)));
    tern_store32(out + TERN_CHUNK_BYTES, transpose_fours(tern_load32(fours + 4)));
}

/* The inverse of pack_block; bytes of a PTQ1_0 block are 0 before its first 32 columns. */
static void unpack_block(tern_format format, const uint8_t *packed, size_t s, uint8_t *block) {
    uint8_t trits[8];

    if (format == TERN_FORMAT_Q1_0) {
        tern_store32(block + 2 + 4 * s, tern_bytes_to_columns(tern_load32(packed)));
        return;
    }
    uint8_t *fours = format == TERN_FORMAT_PTQ1_0 ? trits : block + 2 + 8 * s;
    tern_store32(fours, transpose_fours(tern_load32(packed)));
    tern_store32(fours + 4, transpose_fours(tern_load32(packed + TERN_CHUNK_BYTES)));
    for (size_t k = 0; k < TERN_BLOCK && format == TERN_FORMAT_PTQ1_0; k++)
        tern_ptq1_0_add(block, TERN_BLOCK * s + k, (uint32_t)trits[k / 4] >> 2 * (k % 4) & 3u);
}

/* ---- 256 columns of a row of STQ1_0 ---------------------------------------------------------- */

enum { HALF_CHUNKS = 5, HALF_SLOTS = 16 }; /* of 128 columns: chunks, bytes of slots in the file */

/* Eight slots: one after the other in the file, packed i and i + 4 in byte i. */
static uint32_t slots_to_bytes(uint32_t slots) {
    uint32_t bytes = 0;

    for (unsigned i = 0; i < 4; i++)
        bytes |= (slots >> 4 * i & 15u) << 8 * i | (slots >> (16 + 4 * i) & 15u) << (8 * i + 4);
    return bytes;
}

static uint32_t bytes_to_slots(uint32_t bytes) {
    uint32_t slots = 0;

    for (unsigned i = 0; i < 4; i++)
        slots |= (bytes >> 8 * i & 15u) << 4 * i | (bytes >> (8 * i + 4) & 15u) << (16 + 4 * i);
    return slots;
}

static void pack_quads(const uint8_t *block, uint8_t *out) {
    for (size_t half = 0; half < 2; half++, out += HALF_CHUNKS * TERN_CHUNK_BYTES) {
        const uint8_t *slots = block + HALF_SLOTS * half;
        const uint8_t *signs = block + TERN_STQ1_0_SIGNS + 4 * half;
        tern_store32(out, tern_columns_to_bytes(tern_load32(signs)));
        for (size_t c = 0; c < 4; c++)
            tern_store32(out + (1 + c) * TERN_CHUNK_BYTES,
                         slots_to_bytes(tern_load32(slots + 4 * c)));
    }
}

static void unpack_quads(const uint8_t *packed, uint8_t *block) {
    for (size_t half = 0; half < 2; half++, packed += HALF_CHUNKS * TERN_CHUNK_BYTES) {
        uint8_t *slots = block + HALF_SLOTS * half;
        uint8_t *signs = block + TERN_STQ1_0_SIGNS + 4 * half;
        tern_store32(signs, tern_bytes_to_columns(tern_load32(packed)));
        for (size_t c = 0; c < 4; c++)
            tern_store32(slots + 4 * c,
                         bytes_to_slots(tern_load32(packed + (1 + c) * TERN_CHUNK_BYTES)));
    }
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* One row's share of a packed block; r is the row in its group. */
static void pack_row(const group_shape *shape, tern_format format, const uint8_t *src, size_t r,
                     uint8_t *out) {
    memcpy(out + 2 * r, src + scale_at(format), 2);
    if (format == TERN_FORMAT_STQ1_0) {
        pack_quads(src, out + SCALES_BYTES + 4 * r);
        return;
    }
    for (size_t s = 0; s < shape->blocks; s++)
        pack_block(format, src, s, out + block_at(shape, s) + 4 * r);
}

static void unpack_row(const group_shape *shape, tern_format format, const uint8_t *packed,
                       size_t r, uint8_t *dst) {
    memset(dst, 0, tern_format_describe(format)->block_bytes);
    if (format == TERN_FORMAT_STQ1_0)
        unpack_quads(packed + SCALES_BYTES + 4 * r, dst);
    else
        for (size_t s = 0; s < shape->blocks; s++)
            unpack_block(format, packed + block_at(shape, s) + 4 * r, s, dst);
    if (format == TERN_FORMAT_PTQ1_0)
        tern_ptq1_0_round(dst);
    memcpy(dst + scale_at(format), packed + 2 * r, 2);
}

TERN_BLOCK_PACKER(Q1_0, q1_0)
TERN_BLOCK_PACKER(Q2_0, q2_0)
TERN_BLOCK_PACKER(PQ2_0, pq2_0)
TERN_BLOCK_PACKER(STQ1_0, stq1_0)
