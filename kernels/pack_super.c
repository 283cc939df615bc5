/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats with super-blocks of 256 columns (K-quants) to their R16 layouts and back: f16 fields,
 * then eight sub-blocks, each with two scales a row, four chunks of nibbles and what the codes have
 * above them.
 */

#include "kernels/codes.h"
#include "kernels/pack_bits.h"
#include "kernels/packer.h"

enum {
    SUBS = 8,
    FIELD_BYTES = 2 * TERN_ROW_GROUP, /* one f16 for each row of a group */
    SCALES_BYTES = 2 * TERN_ROW_GROUP /* two bytes for each row, of a sub-block */
};

/* How a format becomes its layout. */
typedef struct super_shape {
    size_t file_bytes;
    size_t fields, fields_at; /* f16, next to each other */
    size_t scales_at;
    size_t nibbles_at;
    size_t high_at, high_bits; /* 0, 1 or 2 bits above the nibble: as many chunks */
} super_shape;

static const super_shape q4_k = {144, 2, 0, TERN_K_SCALES, TERN_Q4_K_NIBBLES, 0, 0};
static const super_shape q5_k = {176, 2, 0, TERN_K_SCALES, TERN_Q5_K_NIBBLES, TERN_Q5_K_HIGH, 1};
static const super_shape q6_k = {210, 1, TERN_Q6_K_D, TERN_Q6_K_SCALES, 0, TERN_Q6_K_HIGH, 2};

static size_t sub_bytes(const super_shape *shape) {
    return SCALES_BYTES + (4 + shape->high_bits) * TERN_CHUNK_BYTES;
}

static size_t super_bytes(const super_shape *shape) {
    return shape->fields * FIELD_BYTES + SUBS * sub_bytes(shape);
}

/* ---- scales -------------------------------------------------------------------------------- */

/* Q6_K has two int8 a sub-block, one for 16 columns; the others a scale and a minimum. */
static void pack_scales(const super_shape *shape, const uint8_t *src, size_t s, uint8_t *out) {
    const uint8_t *scales = src + shape->scales_at;

    out[0] = shape->high_bits == 2 ? scales[2 * s] : tern_k_scale(scales, s);
    out[TERN_ROW_GROUP] = shape->high_bits == 2 ? scales[2 * s + 1] : tern_k_min(scales, s);
}

/* `packed` is the row's scale in sub-block 0; those of the others are `step` bytes apart. */
static void unpack_scales(const super_shape *shape, const uint8_t *packed, uint8_t *dst) {
    uint8_t first[SUBS], second[SUBS];

    for (size_t s = 0; s < SUBS; s++) {
        first[s] = packed[s * sub_bytes(shape)];
        second[s] = packed[s * sub_bytes(shape) + TERN_ROW_GROUP];
    }
    if (shape->high_bits != 2) {
        tern_k_put_scales(first, second, dst + shape->scales_at);
        return;
    }
    for (size_t s = 0; s < SUBS; s++) {
        dst[shape->scales_at + 2 * s] = first[s];
        dst[shape->scales_at + 2 * s + 1] = second[s];
    }
}

/* ---- codes --------------------------------------------------------------------------------- */

/* The place of a sub-block's nibbles in the file: 32 bytes, and how far they are shifted. */
typedef struct nibble_place {
    size_t at;
    unsigned shift;
} nibble_place;

static nibble_place nibbles_of(const super_shape *shape, size_t s) {
    if (shape->high_bits == 2)
        return (nibble_place){shape->nibbles_at + 64 * (s / 4) + 32 * (s % 2),
                              4 * (unsigned)(s / 2 % 2)};
    return (nibble_place){shape->nibbles_at + 32 * (s / 2), 4 * (unsigned)(s % 2)};
}

/* Four columns of the file at a time: low nibbles of a chunk are columns 8c .., high 8c + 4 .. */
static void pack_nibbles(const super_shape *shape, const uint8_t *src, size_t s, uint8_t *out) {
    const nibble_place place = nibbles_of(shape, s);

    for (size_t c = 0; c < 4; c++) {
        const uint32_t low = tern_load32(src + place.at + 8 * c) >> place.shift;
        const uint32_t high = tern_load32(src + place.at + 8 * c + 4) >> place.shift;
        tern_store32(out + c * TERN_CHUNK_BYTES,
                     (low & TERN_LOW_NIBBLES) | (high & TERN_LOW_NIBBLES) << 4);
    }
}

static void or32(uint8_t *p, uint32_t bits) {
    tern_store32(p, tern_load32(p) | bits);
}

static void unpack_nibbles(const super_shape *shape, const uint8_t *packed, size_t s,
                           uint8_t *dst) {
    const nibble_place place = nibbles_of(shape, s);

    for (size_t c = 0; c < 4; c++) {
        const uint32_t both = tern_load32(packed + c * TERN_CHUNK_BYTES);
        or32(dst + place.at + 8 * c, (both & TERN_LOW_NIBBLES) << place.shift);
        or32(dst + place.at + 8 * c + 4, (both >> 4 & TERN_LOW_NIBBLES) << place.shift);
    }
}

/* Columns 4i .. 4i + 3 of a sub-block have their high bits in four bytes of the file. */
static size_t high_place(const super_shape *shape, size_t s, size_t i) {
    return shape->high_at + (shape->high_bits == 2 ? 32 * (s / 4) : 0) + 4 * i;
}

/* One bit: bit s in the file, bit i packed. Two: bits 2 (s % 4) .., and plane i % 4 of chunk i / 4.
 */
static void pack_high(const super_shape *shape, const uint8_t *src, size_t s, uint8_t *out) {
    uint32_t words[2] = {0, 0};

    for (size_t i = 0; i < 8 && shape->high_bits > 0; i++) {
        const uint32_t four = tern_load32(src + high_place(shape, s, i));
        if (shape->high_bits == 1)
            words[0] |= (four >> s & 0x01010101u) << i;
        else
            words[i / 4] |= (four >> 2 * (s % 4) & 0x03030303u) << 2 * (i % 4);
    }
    for (size_t c = 0; c < shape->high_bits; c++)
        tern_store32(out + c * TERN_CHUNK_BYTES, words[c]);
}

static void unpack_high(const super_shape *shape, const uint8_t *packed, size_t s, uint8_t *dst) {
    for (size_t i = 0; i < 8 && shape->high_bits > 0; i++) {
        uint8_t *four = dst + high_place(shape, s, i);
        if (shape->high_bits == 1)
            or32(four, (tern_load32(packed) >> i & 0x01010101u) << s);
        else
            or32(four, (tern_load32(packed + i / 4 * TERN_CHUNK_BYTES) >> 2 * (i % 4) & 0x03030303u)
                           << 2 * (s % 4));
    }
}

/* ---- blocks, groups, matrices -------------------------------------------------------------- */

/* One row's share of a packed super-block; r is the row in its group. */
static void pack_block(const super_shape *shape, const uint8_t *src, size_t r, uint8_t *out) {
    for (size_t f = 0; f < shape->fields; f++)
        memcpy(out + f * FIELD_BYTES + 2 * r, src + shape->fields_at + 2 * f, 2);
    out += shape->fields * FIELD_BYTES;
    for (size_t s = 0; s < SUBS; s++, out += sub_bytes(shape)) {
        uint8_t *codes = out + SCALES_BYTES + 4 * r;
        pack_scales(shape, src, s, out + r);
        pack_nibbles(shape, src, s, codes);
        pack_high(shape, src, s, codes + 4 * TERN_CHUNK_BYTES);
    }
}

static void unpack_block(const super_shape *shape, const uint8_t *packed, size_t r, uint8_t *dst) {
    memset(dst, 0, shape->file_bytes);
    for (size_t f = 0; f < shape->fields; f++)
        memcpy(dst + shape->fields_at + 2 * f, packed + f * FIELD_BYTES + 2 * r, 2);
    packed += shape->fields * FIELD_BYTES;
    unpack_scales(shape, packed + r, dst);
    for (size_t s = 0; s < SUBS; s++, packed += sub_bytes(shape)) {
        const uint8_t *codes = packed + SCALES_BYTES + 4 * r;
        unpack_nibbles(shape, codes, s, dst);
        unpack_high(shape, codes + 4 * TERN_CHUNK_BYTES, s, dst);
    }
}

static tern_status pack_group(const tern_pack_job *job, const super_shape *shape, size_t row0,
                              uint8_t *out, tern_error *err) {
    (void)err; /* every bit pattern is a block */
    const size_t blocks = job->cols / TERN_SUPER;
    const size_t n = tern_pack_group_rows(job, row0);

    if (n < TERN_ROW_GROUP)
        memset(out, 0, job->group_bytes);
    for (size_t b = 0; b < blocks; b++, out += super_bytes(shape))
        for (size_t r = 0; r < n; r++)
            pack_block(shape, job->file + ((row0 + r) * blocks + b) * shape->file_bytes, r, out);
    return TERN_OK;
}

static void unpack_matrix(const tern_pack_job *job, const super_shape *shape, const uint8_t *packed,
                          uint8_t *file) {
    const size_t blocks = job->cols / TERN_SUPER;

    for (size_t row = 0; row < job->rows; row++) {
        const uint8_t *group = packed + row / TERN_ROW_GROUP * job->group_bytes;
        for (size_t b = 0; b < blocks; b++, file += shape->file_bytes)
            unpack_block(shape, group + b * super_bytes(shape), row % TERN_ROW_GROUP, file);
    }
}

static size_t group_bytes(const super_shape *shape, size_t cols) {
    size_t bytes;

    return __builtin_mul_overflow(cols / TERN_SUPER, super_bytes(shape), &bytes) ? 0 : bytes;
}

static bool holds(tern_format own, tern_format format) {
    return format == own;
}

TERN_FORMAT_PACKER(Q4_K, q4_k)
TERN_FORMAT_PACKER(Q5_K, q5_k)
TERN_FORMAT_PACKER(Q6_K, q6_k)
