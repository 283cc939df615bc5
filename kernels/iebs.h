/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_KERNELS_IEBS_H
#define TERN_KERNELS_IEBS_H

/*
 * IEBS: a matrix of which only some blocks of h rows x w columns are stored, as a file has it and
 * as kernels read it. All numbers are little endian; docs/formats.md has the picture.
 *
 *   bytes  0  "IEBS"
 *          4  u32 version: 3
 *          8  u32 rows, u32 cols, u32 h, u32 w, u32 blocks
 *         28  u32 kind of values: 0 f32, 1 f16, 2 ternary
 *         32  f32 scale of ternary values; else 0
 *         36  u32 block rows: ceil(rows / h)
 *         40  u64 bytes of start, u64 bytes of column, u64 bytes of values
 *         64  u32 start[block rows + 1]   blocks of block row i are start[i] .. start[i + 1] - 1
 *             u32 column[blocks]          first column / w; ascending within a block row
 *             values other than f32: zero bytes up to a multiple of 64
 *             values[blocks][h][w]
 *
 * Older files are read, too: version 1 (f32) and 2 (other values) have two u32 of 0 at 36, and
 * start at 44.
 *
 * Ternary values: h and w are 4, 8 or a multiple of 16. A block is cut into strips of up to 16
 * rows, a strip into chunks of up to 16 columns: with n columns in a chunk, byte n/4 * r + j holds
 * columns n/4 * p + j of row r, p = 0..3, at bits 2p+1:2p, as weight + 1. With 16 x 16 that is a
 * chunk of layout T2R16.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tern/kernels.h"

enum {
    TERN_IEBS_HEADER = 64,
    TERN_IEBS_OLDER_HEADER = 44,  /* of versions 1 and 2 */
    TERN_IEBS_MAGIC = 0x53424549, /* "IEBS" */
    TERN_IEBS_CHUNK = 16          /* rows and columns of the chunks of ternary values, at most */
};

/* A matrix in these bytes, which it borrows. */
typedef struct tern_iebs {
    tern_format format; /* of the values: F32, F16, or I2_S for ternary ones */
    uint32_t rows, cols, block_rows, block_cols;
    uint32_t blocks;
    float scale;            /* of ternary values; else 1 */
    uint32_t version;       /* of bytes that were read; 0: the one that is written */
    const uint32_t *start;  /* [block rows + 1] */
    const uint32_t *column; /* [blocks] */
    const uint8_t *values;
    size_t block_bytes;
} tern_iebs;

static inline size_t tern_iebs_block_rows(const tern_iebs *m) {
    return m->rows / m->block_rows + (m->rows % m->block_rows != 0);
}

static inline size_t tern_iebs_block_columns(const tern_iebs *m) {
    return m->cols / m->block_cols + (m->cols % m->block_cols != 0);
}

/* The place of byte 0 of block b. */
static inline const uint8_t *tern_iebs_block(const tern_iebs *m, size_t b) {
    return m->values + b * m->block_bytes;
}

/* Columns of block b that lie within the matrix. */
static inline size_t tern_iebs_width(const tern_iebs *m, size_t b) {
    const size_t left = m->cols - (size_t)m->column[b] * m->block_cols;
    return left < m->block_cols ? left : m->block_cols;
}

/* The place of a ternary weight's code in its block: bits shift + 1 and shift of a byte. */
typedef struct tern_iebs_place {
    size_t byte;
    unsigned shift;
} tern_iebs_place;

/* The code of row r, column k of a block, both below its sides. */
static inline tern_iebs_place tern_iebs_trit_place(const tern_iebs *m, size_t r, size_t k) {
    const size_t h = m->block_rows < TERN_IEBS_CHUNK ? m->block_rows : TERN_IEBS_CHUNK;
    const size_t w = m->block_cols < TERN_IEBS_CHUNK ? m->block_cols : TERN_IEBS_CHUNK;
    const size_t chunk = r / h * (m->block_cols / w) + k / w;
    return (tern_iebs_place){.byte = chunk * (h * w / 4) + r % h * (w / 4) + k % w % (w / 4),
                             .shift = (unsigned)(k % w / (w / 4) * 2)};
}

/* The weight there: -1, 0, 1. */
static inline int tern_iebs_trit(const tern_iebs *m, const uint8_t *block, size_t r, size_t k) {
    const tern_iebs_place at = tern_iebs_trit_place(m, r, k);
    return (block[at.byte] >> at.shift & 3) - 1;
}

/* The header of a matrix of which format, shape, sides, number of blocks and scale are set, in the
 * newest version. */
void tern_iebs_write_header(const tern_iebs *m, void *out);

/*
 * A header's contents, with pointers into bytes that tern_iebs_check has accepted; they are aligned
 * to 4 bytes.
 */
tern_iebs tern_iebs_view(const void *bytes);

/* True if values of the format can be stored in blocks of that size. */
bool tern_iebs_holds(tern_format format, uint32_t block_rows, uint32_t block_cols);

/*
 * Bytes of a matrix whose shape, sides of blocks and number of blocks are set; 0 when it cannot be:
 * a size is 0, values do not suit the sides, there are more blocks than places for them, or 2^63
 * bytes are not enough.
 */
uint64_t tern_iebs_bytes(const tern_iebs *m);

/*
 * Checks that these bytes are one matrix and nothing else: every field, the sum of the sizes,
 * `start` not falling, columns ascending and inside the matrix. Values are not looked at
 * (tern_iebs_values). `bytes` is aligned to 4. TERN_ERR_TRUNCATED: no whole header;
 * TERN_ERR_TENSOR_SHAPE: sizes that cannot be; TERN_ERR_TENSOR_RANGE: the sum is not `size`;
 * TERN_ERR_TENSOR_DATA: all else. *out is zero then.
 */
TERN_MUST_CHECK tern_status tern_iebs_check(const void *bytes, size_t size, tern_iebs *out,
                                            tern_error *err);

/*
 * Checks that the values of block rows [i0, i1) are weights: finite floats, no ternary code 3, also
 * past the matrix's edge. TERN_ERR_TENSOR_DATA names the block.
 */
TERN_MUST_CHECK tern_status tern_iebs_values(const tern_iebs *m, size_t i0, size_t i1,
                                             tern_error *err);

/*
 * Writes a matrix of which format, shape, sides, number of blocks and scale are set, into
 * tern_iebs_bytes bytes that are aligned to 4: of weights[rows][cols] the blocks that `stored`, one
 * for each place, row by row, says. Ternary values are the signs of the weights; halves must be
 * exact.
 */
void tern_iebs_write(const tern_iebs *m, const bool *stored, const float *weights, void *out);

/* Row r of the matrix as floats, zeros where no block is stored; exact. */
void tern_iebs_row(const tern_iebs *m, size_t r, float *out);

#endif
