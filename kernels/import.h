/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_KERNELS_IMPORT_H
#define TERN_KERNELS_IMPORT_H

/*
 * Ternary tensors that files hold in another way than TERN_FORMAT_I2_S means: codes in another
 * order, codes of another meaning, the tiles of table-lookup kernels. All of them become I2_S, a
 * range of rows at a time, so that threads can share a matrix.
 */

#include "kernels/ternary.h"

enum { TERN_NO_WEIGHT = 3 /* in a map: no weight has this code */ };

/* Rows of ternary codes, each after its own scale, as ik_llama.cpp stores them. */
typedef enum tern_bn_kind {
    TERN_IQ1_BN = 1, /* five codes in a byte, an f16 scale */
    TERN_IQ2_BN,     /* four codes in a byte, a float */
    TERN_IQ2_BN_R4   /* the same, four rows woven into each other */
} tern_bn_kind;

/* How a tensor is to be read. */
typedef struct tern_import {
    tern_tl_kind kind;    /* 0: I2_S, or rows with scales */
    tern_bn_kind bn;      /* 0: no rows with scales */
    tern_tl_tiles tiles;  /* of TL1 and TL2 */
    tern_i2s_order order; /* of I2_S */
    uint8_t map[4];       /* of I2_S: weight + 1 of each code of the file, or TERN_NO_WEIGHT */
} tern_import;

/* The published models' map: 0, 1, 2 and nothing. */
extern const uint8_t tern_usual_map[4];

/* True if the tensor is TERN_FORMAT_I2_S as it is. */
bool tern_import_is_plain(const tern_import *how);

/*
 * Checks the shape, and for TL2 that the bytes after the weights are 0. TERN_ERR_TENSOR_SHAPE,
 * TERN_ERR_TENSOR_DATA.
 */
tern_status tern_import_check(const tern_import *how, const uint8_t *file, size_t rows, size_t cols,
                              tern_error *err);

/*
 * The scales of the rows of a checked tensor, which most kinds have only one of. A row of zeros
 * gets that of the first row that has one. TERN_ERR_TENSOR_DATA: one is negative or not finite.
 */
tern_status tern_import_scales(const tern_import *how, const uint8_t *file, size_t rows,
                               size_t cols, float *scales, tern_error *err);

/* The byte of a checked tensor with one scale where that, a float, lies. */
size_t tern_import_scale_at(const tern_import *how, size_t rows, size_t cols);

/*
 * Codes of rows [r0, r1) of a tensor that was checked, to an I2_S stream of their own. After them
 * come rows of zeros, up to a multiple of 32: whole units for every width. The stream takes that
 * many rows * cols / 4 bytes. TERN_ERR_TENSOR_DATA names the row and the column of a code that is
 * no weight; TERN_ERR_NOMEM.
 */
tern_status tern_import_rows(const tern_import *how, const uint8_t *file, size_t rows, size_t cols,
                             size_t r0, size_t r1, uint8_t *stream, tern_error *err);

/* Like tern_pack_rows, from such a tensor. */
tern_status tern_import_pack(const tern_import *how, const uint8_t *file, size_t rows, size_t cols,
                             tern_layout layout, size_t r0, size_t r1, uint8_t *out,
                             tern_error *err);

/* A whole tensor to one of TERN_FORMAT_I2_S, scale and zeros after it included. Where the scales of
 * rows differ, it is that of the first row. */
tern_status tern_import_tensor(const tern_import *how, const uint8_t *file, size_t rows,
                               size_t cols, uint8_t *i2s, tern_error *err);

/* ---- of each kind ---------------------------------------------------------------------------- */

/* The codes of a row, as the file has them (import_i2s.c). */
void tern_i2s_read_row(tern_i2s_order order, const uint8_t *file, size_t cols, size_t row,
                       uint8_t *codes);

/* The codes of a row of a checked TL1 or TL2 tensor; TERN_NO_WEIGHT for an index that stands for
 * nothing (import_lookup.c). */
void tern_tl_read_row(const tern_import *how, const uint8_t *file, size_t rows, size_t cols,
                      size_t row, uint8_t *codes);

/* import_bn.c: as above, of rows with scales. A row of scale 0 has weights 0. */
tern_status tern_bn_check(tern_bn_kind kind, size_t rows, size_t cols, tern_error *err);
void tern_bn_read_row(tern_bn_kind kind, const uint8_t *file, size_t cols, size_t row,
                      uint8_t *codes);
tern_status tern_bn_scales(tern_bn_kind kind, const uint8_t *file, size_t rows, size_t cols,
                           float *scales, tern_error *err);

/* Bytes of a row of IQ1_BN or IQ2_BN, cols a multiple of 64. */
size_t tern_bn_row_bytes(tern_bn_kind kind, size_t cols);

/* A row of finite floats to one of these, and back: the largest magnitude is the scale, other
 * weights become the nearest of it, 0 and its negative. False: too large for an f16. */
bool tern_bn_write_row(tern_bn_kind kind, const float *x, size_t cols, uint8_t *row);
void tern_bn_floats(tern_bn_kind kind, const uint8_t *row, size_t cols, float *x);

/*
 * The place of the scale. It depends only on rows and columns, so it also gives the size of
 * a tensor of unknown tiles: TERN_I2S_TRAILER_BYTES more. False for shapes that no tiles fit.
 */
bool tern_tl_scale_at(tern_tl_kind kind, uint64_t rows, uint64_t cols, uint64_t *at);

/* Checks shape and tiles, and that what lies between the sections and the scale is 0. */
tern_status tern_tl_check(const tern_import *how, const uint8_t *file, size_t rows, size_t cols,
                          tern_error *err);

#endif
