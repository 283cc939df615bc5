/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_CONVERT_INT4_H
#define TERN_AUTHORING_CONVERT_INT4_H

/* Floats to rows of INT4 and back (runtime/files/gguf/int4.h); docs/numerics.md has the formulas.
 */

#include "runtime/files/gguf/int4.h"

/*
 * Encodes a row of cols floats into tern_int4_row_bytes bytes: codes, and a scale (and zero point)
 * for each group. w[cols] weights the error of each column; NULL: all weigh the same, and scales
 * come from the largest values. Nibbles are written low first and biased. False: a value is not
 * finite, or too large for a scale of f16.
 */
bool convert_int4_encode(const tern_int4_rows *form, const float *x, const float *w, size_t cols,
                         uint8_t *row);

/* The exact values that a row of any form represents. */
void convert_int4_decode(const tern_int4_rows *form, const uint8_t *row, size_t cols, float *x);

#endif
