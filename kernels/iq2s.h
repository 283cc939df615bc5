/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_KERNELS_IQ2S_H
#define TERN_KERNELS_IQ2S_H

/*
 * Blocks of IQ2_S: 256 weights in 82 bytes. Runs of eight weights are entries of a grid with signs;
 * a weight is level * (2 * nibble + 1) * d / 8, levels 8, 25 and 43 (docs/formats.md).
 */

#include <stddef.h>
#include <stdint.h>

enum {
    TERN_IQ2S_BYTES = 82,
    TERN_IQ2S_ENTRIES = 1024,
    TERN_IQ2S_LOW_AT = 2,     /* low 8 bits of the entry of each run */
    TERN_IQ2S_SIGNS_AT = 34,  /* bit j: weight j of the run is negative */
    TERN_IQ2S_HIGH_AT = 66,   /* two more bits of the entry, four runs a byte */
    TERN_IQ2S_SCALES_AT = 74, /* a nibble for each 16 weights */
    TERN_IQ2S_HALVES = 16     /* groups of 16 weights with a scale */
};

/* Fills the grid: entry i as eight base-3 digits. About 7,000 steps; callers keep it for a while.
 */
void tern_iq2s_grid(uint16_t grid[TERN_IQ2S_ENTRIES]);

/* The eight signed levels of run 0..31 of a block. */
void tern_iq2s_run(const uint16_t *grid, const uint8_t *block, size_t run, int8_t out[8]);

/* The odd factor, 1 .. 31, of the 16 weights `half` 0..15. */
unsigned tern_iq2s_scale(const uint8_t *block, size_t half);

#endif
