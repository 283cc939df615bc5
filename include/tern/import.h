/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_IMPORT_H
#define TERN_IMPORT_H

/*
 * Ternary tensors that files hold in another order than TERN_FORMAT_I2_S, brought into it exactly:
 * I2_S of other writers, and the tiled files TL1 and TL2. kernels.h has the format and the rules of
 * ownership, alignment and errors.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/status.h"

TERN_API_BEGIN

/* ---- other orders of I2_S -------------------------------------------------------------------- */

/*
 * The orders in which writers of I2_S leave the codes of a tensor (docs/formats.md): the one that
 * TERN_FORMAT_I2_S means, units of 64, four rows in a byte, one code after the other. Nothing in a
 * tensor says which it is.
 */
typedef enum tern_i2s_order {
    TERN_I2S_UNITS_128, /* "a": the published models */
    TERN_I2S_UNITS_64,  /* "b": written on ARM */
    TERN_I2S_ROWS_4,    /* "c": byte k of row group g holds column k of rows 4g .. 4g + 3 */
    TERN_I2S_SEQUENTIAL /* "d" */
} tern_i2s_order;

/*
 * Rewrites a tensor of `order` as TERN_FORMAT_I2_S; both have tern_format_bytes bytes and must not
 * overlap. TERN_ERR_TENSOR_DATA: a code 3, or a scale that is negative or not finite.
 * TERN_ERR_TENSOR_SHAPE: as tern_format_bytes; ROWS_4 needs a multiple of 4 rows.
 */
TERN_MUST_CHECK tern_status tern_i2s_import(tern_i2s_order order, const void *file, size_t rows,
                                            size_t cols, void *i2s, tern_error *err);

/* ---- tiled ternary files -------------------------------------------------------------------- */

/*
 * TL1 and TL2 are files written for table-lookup kernels: a ternary matrix in the order of one
 * program's loops (docs/formats.md). They are imported to I2_S, exactly, and packed from there; the
 * tile sizes are not in the file.
 */
typedef enum tern_tl_kind { TERN_TL1 = 1, TERN_TL2 = 2 } tern_tl_kind;

typedef struct tern_tl_tiles {
    uint32_t rows;       /* of a tile ("BM") */
    uint32_t cols;       /* of a tile ("BK") */
    uint32_t block_rows; /* of a register block ("bm"): 32 or 64; TL2: 32 */
} tern_tl_tiles;

/* The tile sizes with which files of this shape are usually written. False for unknown shapes. */
bool tern_tl_tiles_known(tern_tl_kind kind, size_t rows, size_t cols, tern_tl_tiles *tiles);

/*
 * Bytes of such a tensor, scale included. TERN_ERR_TENSOR_SHAPE when the matrix cannot be cut so;
 * the message has all sizes.
 */
TERN_MUST_CHECK tern_status tern_tl_bytes(tern_tl_kind kind, size_t rows, size_t cols,
                                          const tern_tl_tiles *tiles, size_t *bytes,
                                          tern_error *err);

/*
 * Reads a tensor of tern_tl_bytes bytes into an I2_S tensor (tern_format_bytes), scale included.
 * TERN_ERR_TENSOR_DATA: an index that stands for no weights (wrong tile sizes often show so), or a
 * scale that is negative or not finite; the message says where.
 */
TERN_MUST_CHECK tern_status tern_tl_import(tern_tl_kind kind, const void *file, size_t rows,
                                           size_t cols, const tern_tl_tiles *tiles, void *i2s,
                                           tern_error *err);

/* The inverse. TERN_ERR_TENSOR_DATA: a code 3. */
TERN_MUST_CHECK tern_status tern_tl_export(tern_tl_kind kind, const void *i2s, size_t rows,
                                           size_t cols, const tern_tl_tiles *tiles, void *file,
                                           tern_error *err);

TERN_API_END

#endif
