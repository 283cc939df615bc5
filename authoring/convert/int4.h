/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_AUTHORING_CONVERT_INT4_H
#define TERN_AUTHORING_CONVERT_INT4_H

/* Floats to rows of INT4 and back (runtime/files/gguf/int4.h); docs/numerics.md has the formulas.
 */

#include "runtime/files/gguf/int4.h"

/*
 * Codes of a row of cols floats, w[cols] of which say how much the error of each counts (NULL: all
 * alike, and scales come from the largest values), with a scale (and zero point) for each group,
 * into tern_int4_row_bytes bytes. Nibbles are written low first and biased. False: a value is not
 * finite, or too large for a scale of f16.
 */
bool convert_int4_encode(const tern_int4_rows *form, const float *x, const float *w, size_t cols,
                         uint8_t *row);

/* The values that a row of any form stands for, exactly. */
void convert_int4_decode(const tern_int4_rows *form, const uint8_t *row, size_t cols, float *x);

#endif
