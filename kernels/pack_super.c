/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats with super-blocks of 256 columns (K-quants) to their R16 layouts and back: f16 fields,
 * then eight sub-blocks, each with one or two bytes of scales a row, chunks of nibbles or of codes
 * of two bits, and what codes have above them.
 */

#include "kernels/codes.h"
#include "kernels/pack_bits.h"
#include "kernels/packer.h"

enum {
    SUBS = 8,
    FIELD_BYTES = 2 * TERN_ROW_GROUP /* one f16 for each row of a group */
};

typedef uint8_t bytes_of_subs[SUBS]
                             [2]; /* of a row: what the layout keeps of each sub-block's scales */

/*
 * How a format becomes its layout. Of what it has: f16 fields, next to each other; 128 bytes of
 * nibbles; 64 bytes of codes of two bits, or of two bits above the nibbles; 32 bytes with a bit
 * above both.
 */
typedef struct super_shape {
    size_t fields, fields_at;
    size_t scales; /* bytes of each sub-block that the layout keeps: 1 or 2 */
    void (*read_scales)(const uint8_t *src, bytes_of_subs scales);
    void (*write_scales)(bytes_of_subs scales, uint8_t *dst);
    bool nibbles, twos, ones;
    size_t nibbles_at, twos_at, ones_at;
} super_shape;

/* ---- scales -------------------------------------------------------------------------------- */

/* Q4_K and Q5_K: a scale and a minimum. */
static void read_minima(const uint8_t *src, bytes_of_subs scales) {
    for (size_t s = 0; s < SUBS; s++) {
        scales[s][0] = tern_k_scale(src + TERN_K_SCALES, s);
        scales[s][1] = tern_k_min(src + TERN_K_SCALES, s);
    }
}

static void write_minima(bytes_of_subs scales, uint8_t *dst) {
    uint8_t scale[SUBS], min[SUBS];

    for (size_t s = 0; s < SUBS; s++) {
        scale[s] = scales[s][0];
        min[s] = scales[s][1];
    }
    tern_k_put_scales(scale, min, dst + TERN_K_SCALES);
}

/* A byte for each 16 columns: Q6_K and Q2_K. */
static void read_q6_k(const uint8_t *src, bytes_of_subs scales) {
    memcpy(scales, src + TERN_Q6_K_SCALES, sizeof(bytes_of_subs));
}

static void write_q6_k(bytes_of_subs scales, uint8_t *dst) {
    memcpy(dst + TERN_Q6_K_SCALES, scales, sizeof(bytes_of_subs));
}

static void read_q2_k(const uint8_t *src, bytes_of_subs scales) {
    memcpy(scales, src, sizeof(bytes_of_subs));
}

static void write_q2_k(bytes_of_subs scales, uint8_t *dst) {
    memcpy(dst, scales, sizeof(bytes_of_subs));
}

static void read_q3_k(const uint8_t *src, bytes_of_subs scales) {
    for (size_t r = 0; r < 2 * SUBS; r++)
        scales[r / 2][r % 2] = (uint8_t)tern_q3_k_scale(src, r);
}

static void write_q3_k(bytes_of_subs scales, uint8_t *dst) {
    for (size_t r = 0; r < 2 * SUBS; r++)
        tern_q3_k_put_scale(dst, r, (int8_t)scales[r / 2][r % 2]);
}

static void read_iq4_xs(const uint8_t *src, bytes_of_subs scales) {
    for (size_t s = 0; s < SUBS; s++)
        scales[s][0] = (uint8_t)tern_iq4_xs_scale(src, s);
}

static void write_iq4_xs(bytes_of_subs scales, uint8_t *dst) {
    for (size_t s = 0; s < SUBS; s++)
        tern_iq4_xs_put_scale(dst, s, (int8_t)scales[s][0]);
}

static const super_shape q4_k = {.fields = 2,
                                 .scales = 2,
                                 .read_scales = read_minima,
                                 .write_scales = write_minima,
                                 .nibbles = true,
                                 .nibbles_at = TERN_Q4_K_NIBBLES};
static const super_shape q5_k = {.fields = 2,
                                 .scales = 2,
                                 .read_scales = read_minima,
                                 .write_scales = write_minima,
                                 .nibbles = true,
                                 .nibbles_at = TERN_Q5_K_NIBBLES,
                                 .ones = true,
                                 .ones_at = TERN_Q5_K_HIGH};
static const super_shape q6_k = {.fields = 1,
                                 .fields_at = TERN_Q6_K_D,
                                 .scales = 2,
                                 .read_scales = read_q6_k,
                                 .write_scales = write_q6_k,
                                 .nibbles = true,
                                 .twos = true,
                                 .twos_at = TERN_Q6_K_HIGH};
static const super_shape q3_k = {.fields = 1,
                                 .fields_at = TERN_Q3_K_D,
                                 .scales = 2,
                                 .read_scales = read_q3_k,
                                 .write_scales = write_q3_k,
                                 .twos = true,
                                 .twos_at = TERN_Q3_K_TWOS,
                                 .ones = true,
                                 .ones_at = TERN_Q3_K_HIGH};
static const super_shape q2_k = {.fields = 2,
                                 .fields_at = TERN_Q2_K_D,
                                 .scales = 2,
                                 .read_scales = read_q2_k,
                                 .write_scales = write_q2_k,
                                 .twos = true,
                                 .twos_at = TERN_Q2_K_TWOS};
static const super_shape iq4_xs = {.fields = 1,
                                   .scales = 1,
                                   .read_scales = read_iq4_xs,
                                   .write_scales = write_iq4_xs,
                                   .nibbles = true,
                                   .nibbles_at = TERN_IQ4_XS_NIBBLES};

static size_t scales_bytes(const super_shape *shape) {
    return shape->scales * TERN_ROW_GROUP;
}

static size_t chunks_of(const super_shape *shape) {
    return (shape->nibbles ? 4u : 0u) + (shape->twos ? 2u : 0u) + (shape->ones ? 1u : 0u);
}

static size_t sub_bytes(const super_shape *shape) {
    return scales_bytes(shape) + chunks_of(shape) * TERN_CHUNK_BYTES;
}

static size_t packed_bytes(const super_shape *shape) {
    return shape->fields * FIELD_BYTES + SUBS * sub_bytes(shape);
}

/* ---- codes --------------------------------------------------------------------------------- */

/* The place of four columns' nibbles in the file, columns 4i .. of sub-block s. */
typedef struct nibble_place {
    size_t at;
    unsigned shift;
} nibble_place;

static nibble_place nibbles_of(const super_shape *shape, size_t s, size_t i) {
    if (shape->scales == 1) /* sub-blocks of their own, halves of whose columns share bytes */
        return (nibble_place){shape->nibbles_at + 16 * s + 4 * (i % 4), 4 * (unsigned)(i / 4)};
    if (shape->twos)
        return (nibble_place){shape->nibbles_at + 64 * (s / 4) + 32 * (s % 2) + 4 * i,
                              4 * (unsigned)(s / 2 % 2)};
    return (nibble_place){shape->nibbles_at + 32 * (s / 2) + 4 * i, 4 * (unsigned)(s % 2)};
}

static uint32_t load_nibbles(const super_shape *shape, const uint8_t *src, size_t s, size_t i) {
    const nibble_place place = nibbles_of(shape, s, i);
    return tern_load32(src + place.at) >> place.shift & TERN_LOW_NIBBLES;
}

/* Four columns of the file at a time: low nibbles of a chunk are columns 8c .., high 8c + 4 .. */
static void pack_nibbles(const super_shape *shape, const uint8_t *src, size_t s, uint8_t *out) {
    for (size_t c = 0; c < 4; c++)
        tern_store32(out + c * TERN_CHUNK_BYTES, load_nibbles(shape, src, s, 2 * c) |
                                                     load_nibbles(shape, src, s, 2 * c + 1) << 4);
}

static void or32(uint8_t *p, uint32_t bits) {
    tern_store32(p, tern_load32(p) | bits);
}

static void unpack_nibbles(const super_shape *shape, const uint8_t *packed, size_t s,
                           uint8_t *dst) {
    for (size_t i = 0; i < 8; i++) {
        const nibble_place place = nibbles_of(shape, s, i);
        const uint32_t both = tern_load32(packed + i / 2 * TERN_CHUNK_BYTES);
        or32(dst + place.at, (both >> 4 * (i % 2) & TERN_LOW_NIBBLES) << place.shift);
    }
}

/* Two bits: bits 2 (s % 4) .. of byte 32 (s / 4) + l in the file, packed plane i % 4 of chunk i
 * / 4.
 */
static size_t twos_place(const super_shape *shape, size_t s, size_t i) {
    return shape->twos_at + 32 * (s / 4) + 4 * i;
}

static void pack_twos(const super_shape *shape, const uint8_t *src, size_t s, uint8_t *out) {
    uint32_t words[2] = {0, 0};

    for (size_t i = 0; i < 8; i++) {
        const uint32_t four = tern_load32(src + twos_place(shape, s, i));
        words[i / 4] |= (four >> 2 * (s % 4) & 0x03030303u) << 2 * (i % 4);
    }
    for (size_t c = 0; c < 2; c++)
        tern_store32(out + c * TERN_CHUNK_BYTES, words[c]);
}

static void unpack_twos(const super_shape *shape, const uint8_t *packed, size_t s, uint8_t *dst) {
    for (size_t i = 0; i < 8; i++) {
        const uint32_t word = tern_load32(packed + i / 4 * TERN_CHUNK_BYTES);
        or32(dst + twos_place(shape, s, i), (word >> 2 * (i % 4) & 0x03030303u) << 2 * (s % 4));
    }
}

/* One bit: bit s of byte l in the file, bit i packed. */
static void pack_ones(const super_shape *shape, const uint8_t *src, size_t s, uint8_t *out) {
    uint32_t word = 0;

    for (size_t i = 0; i < 8; i++)
        word |= (tern_load32(src + shape->ones_at + 4 * i) >> s & 0x01010101u) << i;
    tern_store32(out, word);
}

static void unpack_ones(const super_shape *shape, const uint8_t *packed, size_t s, uint8_t *dst) {
    for (size_t i = 0; i < 8; i++)
        or32(dst + shape->ones_at + 4 * i, (tern_load32(packed) >> i & 0x01010101u) << s);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* The codes of sub-block s of a row. */
static void pack_codes(const super_shape *shape, const uint8_t *src, size_t s, uint8_t *out) {
    if (shape->nibbles) {
        pack_nibbles(shape, src, s, out);
        out += 4 * TERN_CHUNK_BYTES;
    }
    if (shape->twos) {
        pack_twos(shape, src, s, out);
        out += 2 * TERN_CHUNK_BYTES;
    }
    if (shape->ones)
        pack_ones(shape, src, s, out);
}

static void unpack_codes(const super_shape *shape, const uint8_t *packed, size_t s, uint8_t *dst) {
    if (shape->nibbles) {
        unpack_nibbles(shape, packed, s, dst);
        packed += 4 * TERN_CHUNK_BYTES;
    }
    if (shape->twos) {
        unpack_twos(shape, packed, s, dst);
        packed += 2 * TERN_CHUNK_BYTES;
    }
    if (shape->ones)
        unpack_ones(shape, packed, s, dst);
}

/* One row's share of a packed super-block; r is the row in its group. */
static void pack_row(const super_shape *shape, tern_format format, const uint8_t *src, size_t r,
                     uint8_t *out) {
    (void)format;
    bytes_of_subs scales;

    for (size_t f = 0; f < shape->fields; f++)
        memcpy(out + f * FIELD_BYTES + 2 * r, src + shape->fields_at + 2 * f, 2);
    out += shape->fields * FIELD_BYTES;
    shape->read_scales(src, scales);
    for (size_t s = 0; s < SUBS; s++, out += sub_bytes(shape)) {
        for (size_t i = 0; i < shape->scales; i++)
            out[i * TERN_ROW_GROUP + r] = scales[s][i];
        pack_codes(shape, src, s, out + scales_bytes(shape) + 4 * r);
    }
}

static void unpack_row(const super_shape *shape, tern_format format, const uint8_t *packed,
                       size_t r, uint8_t *dst) {
    bytes_of_subs scales;

    memset(dst, 0, tern_format_describe(format)->block_bytes);
    for (size_t f = 0; f < shape->fields; f++)
        memcpy(dst + shape->fields_at + 2 * f, packed + f * FIELD_BYTES + 2 * r, 2);
    packed += shape->fields * FIELD_BYTES;
    for (size_t s = 0; s < SUBS; s++, packed += sub_bytes(shape)) {
        for (size_t i = 0; i < shape->scales; i++)
            scales[s][i] = packed[i * TERN_ROW_GROUP + r];
        unpack_codes(shape, packed + scales_bytes(shape) + 4 * r, s, dst);
    }
    shape->write_scales(scales, dst);
}

TERN_BLOCK_PACKER(Q2_K, q2_k)
TERN_BLOCK_PACKER(Q3_K, q3_k)
TERN_BLOCK_PACKER(Q4_K, q4_k)
TERN_BLOCK_PACKER(Q5_K, q5_k)
TERN_BLOCK_PACKER(Q6_K, q6_k)
TERN_BLOCK_PACKER(IQ4_XS, iq4_xs)
