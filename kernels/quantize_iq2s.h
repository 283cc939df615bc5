/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_KERNELS_QUANTIZE_IQ2S_H
#define TERN_KERNELS_QUANTIZE_IQ2S_H

/* Weights from floats to IQ2_S, whose runs of eight are entries of a grid (kernels/iq2s.h). */

#include <stdbool.h>
#include <stdint.h>

#include "kernels/iq2s.h"

enum {
    TERN_IQ2S_CODES = 6561, /* of eight levels each: 3^8 */
    TERN_IQ2S_NEAR = 24     /* candidates tried when the rounded code is not in the grid */
};

/* Tables of the search, some 340 KB: made once, then only read. */
typedef struct tern_iq2s_search {
    uint8_t levels[TERN_IQ2S_ENTRIES][8];
    int16_t entry[TERN_IQ2S_CODES];                /* of a code; -1: it is none */
    int16_t near[TERN_IQ2S_CODES][TERN_IQ2S_NEAR]; /* those next to a code that is none */
} tern_iq2s_search;

/* Some 50 million steps. */
void tern_iq2s_search_init(tern_iq2s_search *search);

/* 256 finite floats as one block; w[256] says how much the squared error of each counts, above 0.
 * False: they are too large. */
bool tern_encode_iq2_s(const tern_iq2s_search *search, const float *x, const float *w,
                       uint8_t *block);

#endif
