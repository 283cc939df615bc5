/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_KERNELS_QUANTIZE_GRIDS_H
#define TERN_KERNELS_QUANTIZE_GRIDS_H

/* Weights from floats to formats whose runs are entries of a grid (kernels/grids.h). */

#include <stdbool.h>
#include <stdint.h>

#include "kernels/grids.h"

enum {
    TERN_GRID_COMBINATIONS = 6561, /* of the digits of a run: 3^8, which is more than 8^4 */
    TERN_GRID_NEAR = 24            /* candidates tried when rounded digits are no entry */
};

/* Tables of the search in the grid of a format, some 350 KB: made once, then only read. */
typedef struct tern_grid_search {
    tern_format format;
    uint8_t digits[TERN_GRID_LARGEST][8];                 /* of the entries */
    bool is_entry[TERN_GRID_COMBINATIONS];                /* true of those digits */
    int16_t near[TERN_GRID_COMBINATIONS][TERN_GRID_NEAR]; /* entries, the nearest first; of those
                                                             that are one, it alone */
} tern_grid_search;

/* For a format with a grid. Up to 110 million steps. */
void tern_grid_search_init(tern_grid_search *search, tern_format format);

/* 256 finite floats as one block; w[256] says how much the squared error of each counts, above 0.
 * False: they are too large. */
bool tern_encode_grid(const tern_grid_search *search, const float *x, const float *w,
                      uint8_t *block);

#endif
