/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_KERNELS_TERNARY_H
#define TERN_KERNELS_TERNARY_H

/*
 * The ternary formats of files, a code (weight + 1: 0, 1 or 2; 3 is invalid) at a time or in runs.
 * Elements count row-major through the whole matrix; docs/formats.md has the pictures.
 */

#include "tern/kernels.h"

enum {
    TERN_I2S_UNIT = 128, /* elements that 32 bytes of I2_S interleave */
    TERN_I2S_UNIT_BYTES = 32,
    TERN_I2S_TRAILER_BYTES = 32, /* after the codes of an I2_S tensor: its scale, 28 unspecified */
    TERN_TQ_BLOCK = 256,         /* elements of a TQ block, which never straddles two rows */
    TERN_TERNARY_COLS = 1280 /* columns a packer decodes at a time: whole TQ blocks, whole chunks */
};

/* I2_S, TQ1_0, TQ2_0: formats with codes and, in TQ, an f16 scale for each block. */
bool tern_format_is_ternary(tern_format format);

/* The codes of n elements from `first` on. */
void tern_ternary_read(tern_format format, const uint8_t *file, size_t first, size_t n,
                       uint8_t *codes);

/* The inverse; TQ: whole blocks, whose scales stay. Codes of I2_S must be 0 in the file before. */
void tern_ternary_write(tern_format format, const uint8_t *codes, size_t first, size_t n,
                        uint8_t *file);

/* The place in the file of the f16 scale of the TQ block that holds `element`. */
size_t tern_ternary_scale_at(tern_format format, size_t element);

/* True if one of n codes is 3. */
bool tern_ternary_invalid(const uint8_t *codes, size_t n);

/*
 * The float at byte `at` of a tensor with one scale. TERN_ERR_TENSOR_DATA, with the place, when it
 * is negative or not finite.
 */
tern_status tern_ternary_tensor_scale(const uint8_t *file, size_t at, float *scale,
                                      tern_error *err);

/* TERN_ERR_TENSOR_DATA with the place of the first code 3 at or after row0; there must be one. */
tern_status tern_ternary_fail(tern_format format, const uint8_t *file, size_t cols, size_t row0,
                              tern_error *err);

#endif
