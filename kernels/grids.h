/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_KERNELS_GRIDS_H
#define TERN_KERNELS_GRIDS_H

/*
 * GGUF's IQ types whose weights come from grids: blocks of 256 weights. A run of eight (or four)
 * neighbouring weights is an entry of a grid, with a sign for each weight; in IQ1_S and IQ1_M all
 * eight share one bit, which moves them up or down. 16 or 32 weights share a nibble n, and
 *
 *     weight = level * (2 n + 1) * (d * unit)
 *
 * A weight's code, 0 .. 5 or 0 .. 15, says which of the format's levels it has, from the lowest to
 * the highest. Levels and unit are facts of the format (kernels/facts.h), the entries are in
 * kernels/grids_table.c.
 */

#include <stddef.h>
#include <stdint.h>

#include "tern/kernels.h"

enum {
    TERN_GRID_BLOCK = 256, /* weights */
    TERN_GRID_HALVES =
        16, /* of 16 weights: those of a block of activations may differ in factors */
    TERN_GRID_LARGEST = 2048 /* entries of the largest grid */
};

extern const uint16_t tern_grid_iq2_xxs[256];
extern const uint16_t tern_grid_iq2_xs[512];
extern const uint16_t tern_grid_iq2_s[1024];
extern const uint16_t tern_grid_iq3_xxs[256];
extern const uint16_t tern_grid_iq3_s[512];
extern const uint16_t tern_grid_iq1[2048];

/* A field of a block as a stream of bits: number i begins at bit at + four * (i / 4) + one * (i %
 * 4). */
typedef struct tern_grid_field {
    uint16_t at, four;
    uint8_t one;
    uint8_t bits; /* 0: the field is not there */
} tern_grid_field;

/* How a block of a format is put together. */
typedef struct tern_grid {
    const uint16_t *entries; /* ascending; each is `run` digits of `base`, the lowest first */
    uint16_t count;
    uint8_t base, run;
    uint8_t sign_span;         /* weights that number i of `signs` is of */
    uint8_t scale_span;        /* weights that share a factor */
    tern_grid_field low, high; /* of the number of an entry */
    /* 8 bits: of the weights, set for negative ones; 7: the eighth makes their number even; 1: set
     * where all weights are moved down. */
    tern_grid_field signs;
    tern_grid_field scales;
} tern_grid;

/* NULL: the format has no grid. */
const tern_grid *tern_grid_of(tern_format format);

/* The f16 d of a block. */
uint16_t tern_grid_d(tern_format format, const uint8_t *block);
void tern_grid_put_d(tern_format format, uint16_t d, uint8_t *block);

/* The odd factor, 1 .. 31, of the 16 weights `half` 0 .. 15. */
unsigned tern_grid_factor(const tern_grid *grid, const uint8_t *block, size_t half);

/* The codes of the weights of run 0 .. 256 / grid->run - 1. */
void tern_grid_codes(const tern_grid *grid, const uint8_t *block, size_t run, uint8_t *codes);

/*
 * The inverse of both: a whole block of these factors and codes, which must be such as a block can
 * have. d is left alone, other bits must be 0 before.
 */
void tern_grid_write(const tern_grid *grid, const uint8_t factors[TERN_GRID_HALVES],
                     const uint8_t codes[TERN_GRID_BLOCK], uint8_t *block);

/* n weights, whole blocks, as floats. */
void tern_grid_floats(tern_format format, const void *blocks, size_t n, float *y);

#endif
