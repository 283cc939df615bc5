/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_KERNELS_QUANTIZE_IMPORTANT_H
#define TERN_KERNELS_QUANTIZE_IMPORTANT_H

/* Weights whose columns do not count alike: docs/numerics.md, "Weights by importance". */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/quantize_grids.h"
#include "tern/kernels.h"

/* True if the codes of a format can follow the importance of columns. */
bool tern_format_weighs(tern_format format);

/*
 * A row of finite floats in such a format, whose blocks fit the columns: scales and codes with the
 * least sum of w * (difference)^2 that a search finds, w[cols] all above 0. `search` is that of a
 * format with a grid, and may be NULL for the others. False: the values are too large for the format.
 */
bool tern_quantize_important(tern_format format, const tern_grid_search *search, const float *x,
                             const float *w, size_t cols, uint8_t *row);

#endif
