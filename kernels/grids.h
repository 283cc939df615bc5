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

#include "kernels/inline.h"
#include "tern/kernels.h"

enum {
    TERN_GRID_BLOCK = 256, /* weights */
    TERN_GRID_HALVES =
        16, /* of 16 weights: those of a block of activations may differ in factors */
    TERN_GRID_LARGEST = 2048 /* entries of the largest grid */
};

#ifndef __CUDACC__ /* which includes grids_table.c */
extern const uint16_t tern_grid_iq2_xxs[256];
extern const uint16_t tern_grid_iq2_xs[512];
extern const uint16_t tern_grid_iq2_s[1024];
extern const uint16_t tern_grid_iq3_xxs[256];
extern const uint16_t tern_grid_iq3_s[512];
extern const uint16_t tern_grid_iq1[2048];
#endif

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

/* ---- reading a block, on processors and devices ---------------------------------------------- */

TERN_INLINE size_t tern_grid_place(const tern_grid_field *f, size_t i) {
    return f->at + f->four * (i / 4) + f->one * (i % 4);
}

/* Number i of a field; 0 where the field is not there. At most 9 bits lie in three bytes. */
TERN_INLINE unsigned tern_grid_get(const uint8_t *block, const tern_grid_field *f, size_t i) {
    const size_t at = tern_grid_place(f, i), end = (at + f->bits + 7) / 8;
    unsigned word = 0;

    if (f->bits == 0)
        return 0;
    for (size_t byte = end; byte-- > at / 8;)
        word = word << 8 | block[byte];
    return word >> at % 8 & ((1u << f->bits) - 1);
}

/* IQ1_M keeps d in the upper four bits of its four words of scales, the lowest bits first. */
enum { TERN_IQ1_M_SCALES = 48 };

/* The f16 d of a block. */
TERN_INLINE uint16_t tern_grid_d(tern_format format, const uint8_t *block) {
    unsigned d = 0;

    if (format != TERN_FORMAT_IQ1_M)
        return (uint16_t)(block[0] | block[1] << 8);
    for (unsigned i = 0; i < 4; i++)
        d |= (unsigned)block[TERN_IQ1_M_SCALES + 2 * i + 1] >> 4 << 4 * i;
    return (uint16_t)d;
}

/* The odd factor, 1 .. 31, of the 16 weights `half` 0 .. 15. */
TERN_INLINE unsigned tern_grid_factor(const tern_grid *g, const uint8_t *block, size_t half) {
    return 2 * tern_grid_get(block, &g->scales, half * 16 / g->scale_span) + 1;
}

/* 1 if an odd number of the lowest seven bits is set. */
TERN_INLINE unsigned tern_grid_parity(unsigned bits) {
    bits ^= bits >> 4;
    bits ^= bits >> 2;
    return (bits ^ bits >> 1) & 1;
}

/* The signs of eight weights, a bit each. */
TERN_INLINE unsigned tern_grid_signs(const tern_grid *g, const uint8_t *block, size_t eight) {
    const unsigned signs = tern_grid_get(block, &g->signs, eight);
    const unsigned odd = g->signs.bits == 7 ? tern_grid_parity(signs) : 0;

    return signs | odd << 7;
}

/* The lowest digit, which is taken off. Divisors are constants, since packing waits for this. */
TERN_INLINE unsigned tern_grid_digit(const tern_grid *g, unsigned *digits) {
    const unsigned all = *digits;

    *digits = g->base == 3 ? all / 3 : all / 8;
    return g->base == 3 ? all % 3 : all % 8;
}

/* The codes of the weights of run 0 .. 256 / grid->run - 1. */
TERN_INLINE void tern_grid_codes(const tern_grid *g, const uint8_t *block, size_t run,
                                 uint8_t *codes) {
    const size_t first = run * g->run;
    const unsigned entry = tern_grid_get(block, &g->low, run) | tern_grid_get(block, &g->high, run)
                                                                    << g->low.bits;
    const unsigned signs = tern_grid_signs(g, block, first / g->sign_span) >> first % 8;
    unsigned digits = g->entries[entry];

    for (size_t j = 0; j < g->run; j++) {
        const unsigned digit = tern_grid_digit(g, &digits);
        if (g->signs.bits == 1)
            codes[j] = (uint8_t)(2 * digit + (1 - signs));
        else
            codes[j] = (uint8_t)(signs >> j & 1 ? g->base - 1 - digit : g->base + digit);
    }
}

/* ---- the rest is for processors -------------------------------------------------------------- */

void tern_grid_put_d(tern_format format, uint16_t d, uint8_t *block);

/*
 * The inverse of both: a whole block of these factors and codes, which must be such as a block can
 * have. d is left alone, other bits must be 0 before.
 */
void tern_grid_write(const tern_grid *grid, const uint8_t factors[TERN_GRID_HALVES],
                     const uint8_t codes[TERN_GRID_BLOCK], uint8_t *block);

/* n weights, whole blocks, as floats. */
void tern_grid_floats(tern_format format, const void *blocks, size_t n, float *y);

#endif
