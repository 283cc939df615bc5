/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_FILES_GGUF_INT4_H
#define TERN_RUNTIME_FILES_GGUF_INT4_H

/*
 * Rows of INT4 in two forms: as lists of tensors hold them (tern_int4_rows in tern/gguf.h,
 * docs/formats.md), and as blocks of TERN_FORMAT_INT4, which are packed for kernels. A row is
 *   cols/2 bytes of nibbles, columns 2i and 2i + 1 in byte i | an f16 scale for each group | with
 *   zero points a byte for each group
 * Weight = (code - zero) * scale; zero is 8 where there are no zero points.
 */

#include "base/hash64.h"
#include "tern/gguf.h"

enum {
    TERN_INT4_BLOCK = 32, /* columns; groups are multiples of it, and so are rows */
    TERN_INT4_BLOCK_BYTES = 20
};

/* Groups of a row, the last of which may be shorter, and bytes of a row. */
static inline size_t tern_int4_groups(const tern_int4_rows *form, size_t cols) {
    return cols / form->group + (cols % form->group != 0);
}

static inline size_t tern_int4_row_bytes(const tern_int4_rows *form, size_t cols) {
    return cols / 2 + tern_int4_groups(form, cols) * (form->zero_points ? 3 : 2);
}

/* Columns first .. first + 31 of a row as a block of TERN_FORMAT_INT4, exactly. */
void tern_int4_block(const tern_int4_rows *form, const uint8_t *row, size_t cols, size_t first,
                     uint8_t block[TERN_INT4_BLOCK_BYTES]);

/* The rows of a tensor as such blocks, cols/32 for each. */
void tern_int4_blocks(const tern_int4_rows *form, const uint8_t *data, size_t rows, size_t cols,
                      uint8_t *blocks);

/* Adds to the hash what the bytes of a tensor mean, which is a part of what they are. Adds nothing
 * for other types. */
void tern_int4_hash(tern_hash64 *hash, const tern_int4_rows *form);

/* Fails with TERN_ERR_TENSOR_DATA, row and group if a scale is not finite. */
TERN_MUST_CHECK tern_status tern_int4_check(const tern_int4_rows *form, const uint8_t *rows,
                                            size_t cols, size_t r0, size_t r1, tern_error *err);

/*
 * Packs rows [r0, r1) of a tensor into the layout of kernels, as tern_pack_rows does, or into
 * blocks for ROWS. r0 is a multiple of TERN_ROW_GROUP. Checks the rows. TERN_ERR_NOMEM too.
 */
TERN_MUST_CHECK tern_status tern_int4_pack(const tern_int4_rows *form, const uint8_t *data,
                                           const tern_matrix *matrix, size_t r0, size_t r1,
                                           void *packed, tern_error *err);

#endif
