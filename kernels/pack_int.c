/* SPDX-License-Identifier: Apache-2.0 */
/* INT8 and INT4 to their R16 layouts and back. */

#include <string.h>

#include "kernels/pack_bits.h"

enum {
    INT4_BYTES = 20,  /* of a block in the file: f16 scale, zero point, a spare byte, nibbles */
    INT4_HEADER = 64, /* of a packed block: 16 scales, 16 zero points, 16 spare bytes */
    INT4_PACKED = 64 + 4 * TERN_CHUNK_BYTES,
    INT8_PACKED = 8 * TERN_CHUNK_BYTES
};

static size_t bytes_of(size_t blocks, size_t packed) {
    size_t bytes;

    return __builtin_mul_overflow(blocks, packed, &bytes) ? 0 : bytes;
}

/* The place of column k of row r in chunks of bytes (4 columns each), from the first chunk. */
static size_t byte_at(size_t r, size_t k) {
    return k / 4 * TERN_CHUNK_BYTES + 4 * r + k % 4;
}

/* ---- INT8 ---------------------------------------------------------------------------------- */

static bool holds_int8(tern_format format) {
    return format == TERN_FORMAT_INT8;
}

static size_t group_bytes_int8(size_t cols) {
    return bytes_of(cols / TERN_BLOCK + (cols % TERN_BLOCK != 0), INT8_PACKED);
}

/* Columns [k, end) of n rows, four columns at a time as far as they go. */
static void pack_int8_words(const uint8_t *rows, size_t n, size_t cols, size_t k, uint8_t *group) {
    for (; k + 4 <= cols; k += 4)
        for (size_t r = 0; r < n; r++)
            memcpy(group + byte_at(r, k), rows + r * cols + k, 4);
    for (; k < cols; k++)
        for (size_t r = 0; r < n; r++)
            group[byte_at(r, k)] = rows[r * cols + k];
}

/* Runs of 16 columns of a whole group; returns how many columns they are. */
static size_t pack_int8_runs(const uint8_t *rows, size_t cols, uint8_t *group) {
    size_t k = 0;

    for (; k + 16 <= cols; k += 16)
        for (size_t r = 0; r < TERN_ROW_GROUP; r += 4)
            tern_store_square(group + byte_at(r, k), TERN_CHUNK_BYTES,
                              tern_load_square(rows + r * cols + k, cols));
    return k;
}

static tern_status pack_int8(const tern_pack_job *job, size_t row0, uint8_t *group,
                             tern_error *err) {
    const size_t n = tern_pack_group_rows(job, row0), cols = job->cols;
    const uint8_t *rows = job->file + row0 * cols;
    size_t k = 0;

    (void)err;
    if (n < TERN_ROW_GROUP)
        memset(group, 0, job->group_bytes);
    else if (cols % TERN_BLOCK != 0) /* the last block has columns that do not exist */
        memset(group + job->group_bytes - INT8_PACKED, 0, INT8_PACKED);
    if (n == TERN_ROW_GROUP)
        k = pack_int8_runs(rows, cols, group);
    pack_int8_words(rows, n, cols, k, group);
    return TERN_OK;
}

static void unpack_int8(const tern_pack_job *job, const uint8_t *packed, uint8_t *file) {
    for (size_t row = 0; row < job->rows; row++) {
        const uint8_t *group = packed + row / TERN_ROW_GROUP * job->group_bytes;
        for (size_t k = 0; k < job->cols; k++)
            file[row * job->cols + k] = group[byte_at(row % TERN_ROW_GROUP, k)];
    }
}

const tern_packer tern_packer_int8r16 = {TERN_LAYOUT_INT8R16, holds_int8, group_bytes_int8,
                                         pack_int8, unpack_int8};

/* ---- INT4 ---------------------------------------------------------------------------------- */

static bool holds_int4(tern_format format) {
    return format == TERN_FORMAT_INT4;
}

static size_t group_bytes_int4(size_t cols) {
    return bytes_of(cols / TERN_BLOCK, INT4_PACKED);
}

/* Byte of a packed block that holds column k of row r, and its nibble. */
static size_t nibble_at(size_t r, size_t k) {
    return INT4_HEADER + k / 8 * TERN_CHUNK_BYTES + 4 * r + k % 4;
}

static unsigned nibble_shift(size_t k) {
    return k % 8 < 4 ? 0 : 4;
}

static void pack_int4_block(const uint8_t *src, size_t r, uint8_t *block) {
    memcpy(block + 2 * r, src, 2);
    block[32 + r] = src[2];
    block[48 + r] = src[3];
    for (size_t k = 0; k < TERN_BLOCK; k++) {
        const unsigned code = (unsigned)src[4 + k % 16] >> (k < 16 ? 0 : 4) & 15;
        uint8_t *byte = &block[nibble_at(r, k)];
        *byte = (uint8_t)(*byte | code << nibble_shift(k));
    }
}

static void unpack_int4_block(const uint8_t *block, size_t r, uint8_t *dst) {
    memset(dst, 0, INT4_BYTES);
    memcpy(dst, block + 2 * r, 2);
    dst[2] = block[32 + r];
    dst[3] = block[48 + r];
    for (size_t k = 0; k < TERN_BLOCK; k++) {
        const unsigned code = (unsigned)block[nibble_at(r, k)] >> nibble_shift(k) & 15;
        dst[4 + k % 16] = (uint8_t)(dst[4 + k % 16] | code << (k < 16 ? 0 : 4));
    }
}

static tern_status pack_int4(const tern_pack_job *job, size_t row0, uint8_t *group,
                             tern_error *err) {
    const size_t blocks = job->cols / TERN_BLOCK, n = tern_pack_group_rows(job, row0);

    (void)err;
    memset(group, 0, job->group_bytes);
    for (size_t b = 0; b < blocks; b++)
        for (size_t r = 0; r < n; r++)
            pack_int4_block(job->file + ((row0 + r) * blocks + b) * INT4_BYTES, r,
                            group + b * INT4_PACKED);
    return TERN_OK;
}

static void unpack_int4(const tern_pack_job *job, const uint8_t *packed, uint8_t *file) {
    const size_t blocks = job->cols / TERN_BLOCK;

    for (size_t row = 0; row < job->rows; row++)
        for (size_t b = 0; b < blocks; b++)
            unpack_int4_block(packed + row / TERN_ROW_GROUP * job->group_bytes + b * INT4_PACKED,
                              row % TERN_ROW_GROUP, file + (row * blocks + b) * INT4_BYTES);
}

const tern_packer tern_packer_int4r16 = {TERN_LAYOUT_INT4R16, holds_int4, group_bytes_int4,
                                         pack_int4, unpack_int4};
