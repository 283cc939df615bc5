/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plain formats (kernels/formats.toml), with blocks of 32 columns, to their R16 layouts and back:
 * f16 fields or powers first, then the codes, moved in 32-bit words, last the fifth bits of 5-bit
 * codes.
 */

#include <string.h>

#include "kernels/facts.h"
#include "kernels/pack_bits.h"
#include "kernels/packer.h"
#include "kernels/ternary.h"

enum { SCALES_BYTES = 2 * TERN_ROW_GROUP }; /* one f16 for each row of a group */

/* How a block format becomes its R16 layout. */
typedef struct block_shape {
    size_t file_bytes; /* of a block in the file */
    size_t scales;     /* f16 fields before the codes */
    size_t chunks;     /* of 64 bytes in a packed block: 4 of nibbles or 8 of bytes */
    size_t fifth;      /* 1 when a chunk of fifth bits follows; in the file they precede codes */
    size_t power;      /* 1 when a byte of each row precedes the codes */
} block_shape;

#define TERN_PLAIN(NAME, name, ...) static const block_shape name = {__VA_ARGS__};
#include "gen/plain.inc"
#undef TERN_PLAIN

static size_t header_bytes(const block_shape *shape) {
    return shape->scales * SCALES_BYTES + shape->power * TERN_ROW_GROUP;
}

static size_t packed_block_bytes(const block_shape *shape) {
    return header_bytes(shape) + (shape->chunks + shape->fifth) * TERN_CHUNK_BYTES;
}

/*
 * A Q4 block of the file keeps columns j and j+16 in one byte; a chunk wants j and j+4. Word i of
 * the file holds columns 4i..4i+3 (low nibbles) and 16+4i.. (high nibbles).
 */
static void pack_nibbles(const uint8_t *qs, uint8_t *out) {
    for (int i = 0; i < 2; i++) {
        const uint32_t a = tern_load32(qs + 8 * i);
        const uint32_t b = tern_load32(qs + 8 * i + 4);
        tern_store32(out + i * TERN_CHUNK_BYTES, (a & TERN_LOW_NIBBLES) | (b & TERN_LOW_NIBBLES)
                                                                              << 4);
        tern_store32(out + (i + 2) * TERN_CHUNK_BYTES,
                     (a >> 4 & TERN_LOW_NIBBLES) | (b & ~TERN_LOW_NIBBLES));
    }
}

static void unpack_nibbles(const uint8_t *packed, uint8_t *qs) {
    for (int i = 0; i < 2; i++) {
        const uint32_t low = tern_load32(packed + i * TERN_CHUNK_BYTES);
        const uint32_t high = tern_load32(packed + (i + 2) * TERN_CHUNK_BYTES);
        tern_store32(qs + 8 * i, (low & TERN_LOW_NIBBLES) | (high & TERN_LOW_NIBBLES) << 4);
        tern_store32(qs + 8 * i + 4, (low >> 4 & TERN_LOW_NIBBLES) | (high & ~TERN_LOW_NIBBLES));
    }
}

/* One row's share of a packed block; `out` points at the block, r is the row in its group. */
static void pack_block(const block_shape *shape, const uint8_t *src, size_t r, uint8_t *out) {
    uint8_t *codes = out + header_bytes(shape) + 4 * r;

    for (size_t i = 0; i < shape->scales; i++)
        memcpy(out + i * SCALES_BYTES + 2 * r, src + 2 * i, 2);
    if (shape->power)
        out[r] = src[0];
    src += 2 * shape->scales + shape->power;
    if (shape->fifth) {
        const uint32_t bits = tern_columns_to_bytes(tern_load32(src));
        tern_store32(codes + shape->chunks * TERN_CHUNK_BYTES, bits);
        src += 4;
    }
    if (shape->chunks == 4) {
        pack_nibbles(src, codes);
        return;
    }
    for (size_t c = 0; c < shape->chunks; c++)
        memcpy(codes + c * TERN_CHUNK_BYTES, src + 4 * c, 4);
}

static void unpack_block(const block_shape *shape, const uint8_t *packed, size_t r, uint8_t *dst) {
    const uint8_t *codes = packed + header_bytes(shape) + 4 * r;

    for (size_t i = 0; i < shape->scales; i++)
        memcpy(dst + 2 * i, packed + i * SCALES_BYTES + 2 * r, 2);
    if (shape->power)
        dst[0] = packed[r];
    dst += 2 * shape->scales + shape->power;
    if (shape->fifth) {
        const uint32_t bits = tern_load32(codes + shape->chunks * TERN_CHUNK_BYTES);
        tern_store32(dst, tern_bytes_to_columns(bits));
        dst += 4;
    }
    if (shape->chunks == 4) {
        unpack_nibbles(codes, dst);
        return;
    }
    for (size_t c = 0; c < shape->chunks; c++)
        memcpy(dst + 4 * c, codes + c * TERN_CHUNK_BYTES, 4);
}

static tern_status pack_group(const tern_pack_job *job, const block_shape *shape, size_t row0,
                              uint8_t *out, tern_error *err) {
    const size_t blocks = job->cols / TERN_BLOCK;
    const size_t n = tern_pack_group_rows(job, row0);

    if (tern_format_is_ternary(job->format))
        return tern_pack_tq(job, row0, out, err);
    if (n < TERN_ROW_GROUP)
        memset(out, 0, job->group_bytes);
    for (size_t b = 0; b < blocks; b++, out += packed_block_bytes(shape))
        for (size_t r = 0; r < n; r++)
            pack_block(shape, job->file + ((row0 + r) * blocks + b) * shape->file_bytes, r, out);
    return TERN_OK;
}

static void unpack_matrix(const tern_pack_job *job, const block_shape *shape, const uint8_t *packed,
                          uint8_t *file) {
    const size_t blocks = job->cols / TERN_BLOCK;

    if (tern_format_is_ternary(job->format)) {
        tern_unpack_tq(job, packed, file);
        return;
    }
    for (size_t row = 0; row < job->rows; row++) {
        const uint8_t *group = packed + row / TERN_ROW_GROUP * job->group_bytes;
        for (size_t b = 0; b < blocks; b++, file += shape->file_bytes)
            unpack_block(shape, group + b * packed_block_bytes(shape), row % TERN_ROW_GROUP, file);
    }
}

static size_t group_bytes(const block_shape *shape, size_t cols) {
    size_t bytes;

    return __builtin_mul_overflow(cols / TERN_BLOCK, packed_block_bytes(shape), &bytes) ? 0 : bytes;
}

/* Each layout holds the formats that have it in the table, Q4_0R16 also the TQ formats. */
static bool holds(tern_layout layout, tern_format format) {
    const bool tq = format == TERN_FORMAT_TQ1_0 || format == TERN_FORMAT_TQ2_0;
    return tern_format_layout(format) == layout || (layout == TERN_LAYOUT_Q4_0R16 && tq);
}

#define TERN_PLAIN(NAME, name, ...)                                                                \
    static bool holds_##name(tern_format format) {                                                 \
        return holds(TERN_LAYOUT_##NAME##R16, format);                                             \
    }                                                                                              \
    TERN_PACKER(NAME, name, holds_##name)
#include "gen/plain.inc"
#undef TERN_PLAIN
