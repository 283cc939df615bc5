/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ternary files to layouts T2R16 and T5R16 and back. A strip of a row is decoded to codes, a byte
 * each, and the codes go four columns at a time to the row's place in each chunk. pack_planes.c is
 * a shorter way for what most models have.
 */

#include <string.h>

#include "kernels/half.h"
#include "kernels/pack.h"
#include "kernels/ternary.h"

/* How a strip of one row looks in a packed group. */
typedef struct strip_shape {
    size_t chunk_cols;
    /* Codes of a chunk to the four bytes of a row, and back. */
    uint32_t (*join)(const uint8_t *codes);
    void (*split)(uint32_t bytes, uint8_t *codes);
} strip_shape;

static uint32_t load32(const uint8_t *p) {
    uint32_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

static void store32(uint8_t *p, uint32_t word) {
    memcpy(p, &word, sizeof word);
}

/* ---- T2R16: four codes a byte, 16 columns a chunk -------------------------------------------- */

static uint32_t join_2bit(const uint8_t *codes) {
    return load32(codes) | load32(codes + 4) << 2 | load32(codes + 8) << 4 |
           load32(codes + 12) << 6;
}

static void split_2bit(uint32_t bytes, uint8_t *codes) {
    for (int p = 0; p < 4; p++)
        store32(codes + 4 * p, bytes >> 2 * p & 0x03030303u);
}

static const strip_shape t2r16 = {16, join_2bit, split_2bit};

/* ---- T5R16: five codes a byte, 20 columns a chunk -------------------------------------------- */

/* v = 81 t0 + 27 t1 + 9 t2 + 3 t3 + t4 of four bytes at once (v <= 242), then the place of v/243 on
 * a circle of 256, rounded up, with v = 121 (five zeros) at 0. */
static uint32_t join_trits(const uint8_t *codes) {
    uint32_t v = load32(codes);
    uint32_t bytes = 0;

    for (int n = 1; n < 5; n++)
        v = 3 * v + load32(codes + 4 * n);
    for (int shift = 0; shift < 32; shift += 8)
        bytes |= (uint32_t)(uint8_t)((256 * (v >> shift & 255) + 242) / 243 - 128) << shift;
    return bytes;
}

static void split_trits(uint32_t bytes, uint8_t *codes) {
    for (int j = 0; j < 4; j++) {
        unsigned fraction = (bytes >> 8 * j & 255) ^ 128u;
        for (int n = 0; n < 5; n++) {
            codes[4 * n + j] = (uint8_t)(3 * fraction >> 8);
            fraction = 3 * fraction & 255;
        }
    }
}

static const strip_shape t5r16 = {20, join_trits, split_trits};

/* ---- both ---------------------------------------------------------------------------------- */

/* Columns of the strip at column k, and the same with the chunk's padding. */
static size_t strip_cols(size_t cols, size_t k) {
    return cols - k < TERN_TERNARY_COLS ? cols - k : TERN_TERNARY_COLS;
}

static size_t padded_cols(const strip_shape *shape, size_t cols) {
    return (cols + shape->chunk_cols - 1) / shape->chunk_cols * shape->chunk_cols;
}

/* Writes `cols` codes (whole chunks) of row r of a group whose strip begins at `out`. */
static inline __attribute__((always_inline)) void
join_strip(const strip_shape *shape, const uint8_t *codes, size_t cols, size_t r, uint8_t *out) {
    for (size_t k = 0; k < cols; k += shape->chunk_cols, out += TERN_CHUNK_BYTES)
        store32(out + 4 * r, shape->join(codes + k));
}

static inline __attribute__((always_inline)) tern_status pack_group(const tern_pack_job *job,
                                                                    const strip_shape *shape,
                                                                    size_t row0, uint8_t *out,
                                                                    tern_error *err) {
    const size_t n = tern_pack_group_rows(job, row0);
    uint8_t codes[TERN_TERNARY_COLS];

    for (size_t k = 0; k < job->cols; k += TERN_TERNARY_COLS) {
        const size_t cols = strip_cols(job->cols, k);
        const size_t padded = padded_cols(shape, cols);
        memset(codes, 1, sizeof codes); /* weight 0, for columns that do not exist */
        for (size_t r = 0; r < n; r++) {
            tern_ternary_read(job->format, job->file, (row0 + r) * job->cols + k, cols, codes);
            if (tern_ternary_invalid(codes, cols))
                return tern_ternary_fail(job->format, job->file, job->cols, row0, err);
            join_strip(shape, codes, padded, r, out);
        }
        memset(codes, 1, sizeof codes);
        for (size_t r = n; r < TERN_ROW_GROUP; r++)
            join_strip(shape, codes, padded, r, out);
        out += padded / shape->chunk_cols * TERN_CHUNK_BYTES;
    }
    return TERN_OK;
}

static void unpack_row(const tern_pack_job *job, const strip_shape *shape, const uint8_t *group,
                       size_t row, uint8_t *file) {
    uint8_t codes[TERN_TERNARY_COLS];
    const uint8_t *bytes = group + 4 * (row % TERN_ROW_GROUP);

    for (size_t k = 0; k < job->cols; k += TERN_TERNARY_COLS) {
        const size_t cols = strip_cols(job->cols, k);
        for (size_t at = 0; at < cols; at += shape->chunk_cols, bytes += TERN_CHUNK_BYTES)
            shape->split(load32(bytes), codes + at);
        tern_ternary_write(job->format, codes, row * job->cols + k, cols, file);
    }
}

static void unpack_matrix(const tern_pack_job *job, const strip_shape *shape, const uint8_t *packed,
                          uint8_t *file) {
    if (job->format == TERN_FORMAT_I2_S)
        memset(file, 0, job->rows * job->cols / 4);
    for (size_t row = 0; row < job->rows; row++) {
        unpack_row(job, shape, packed + row / TERN_ROW_GROUP * job->group_bytes, row, file);
        tern_unpack_scales(job, row, file);
    }
}

static size_t group_bytes(const strip_shape *shape, size_t cols) {
    const size_t chunks = cols / shape->chunk_cols + (cols % shape->chunk_cols != 0);
    size_t bytes;

    return __builtin_mul_overflow(chunks, (size_t)TERN_CHUNK_BYTES, &bytes) ? 0 : bytes;
}

static size_t group_bytes_t2r16(size_t cols) {
    return group_bytes(&t2r16, cols);
}

static size_t group_bytes_t5r16(size_t cols) {
    return group_bytes(&t5r16, cols);
}

static tern_status pack_t2r16(const tern_pack_job *job, size_t row0, uint8_t *group,
                              tern_error *err) {
    if (job->format == TERN_FORMAT_TQ1_0 || job->cols % TERN_I2S_UNIT != 0 ||
        tern_pack_group_rows(job, row0) < TERN_ROW_GROUP)
        return pack_group(job, &t2r16, row0, group, err);
    return tern_pack_planes(job, row0, group)
               ? TERN_OK
               : tern_ternary_fail(job->format, job->file, job->cols, row0, err);
}

static tern_status pack_t5r16(const tern_pack_job *job, size_t row0, uint8_t *group,
                              tern_error *err) {
    return pack_group(job, &t5r16, row0, group, err);
}

static void unpack_t2r16(const tern_pack_job *job, const uint8_t *packed, uint8_t *file) {
    unpack_matrix(job, &t2r16, packed, file);
}

static void unpack_t5r16(const tern_pack_job *job, const uint8_t *packed, uint8_t *file) {
    unpack_matrix(job, &t5r16, packed, file);
}

const tern_packer tern_packer_t2r16 = {TERN_LAYOUT_T2R16, tern_format_is_ternary, group_bytes_t2r16,
                                       pack_t2r16, unpack_t2r16};
const tern_packer tern_packer_t5r16 = {TERN_LAYOUT_T5R16, tern_format_is_ternary, group_bytes_t5r16,
                                       pack_t5r16, unpack_t5r16};
