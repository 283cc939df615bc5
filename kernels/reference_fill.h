/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_KERNELS_REFERENCE_FILL_H
#define TERN_KERNELS_REFERENCE_FILL_H

/* Weights in a file's own layout for tests and benchmarks, the same on every machine. */

#include "tern/kernels.h"

typedef enum tern_ref_filling {
    TERN_REF_FILL_RANDOM,      /* what models look like */
    TERN_REF_FILL_SMALLEST,    /* the smallest code everywhere, random scales */
    TERN_REF_FILL_LARGEST,     /* the largest code everywhere, random scales */
    TERN_REF_FILL_ALTERNATING, /* smallest and largest in turn */
    TERN_REF_FILL_EXTREME      /* scales and floats of every finite magnitude */
} tern_ref_filling;

/* splitmix64: the next number of the sequence whose state is *state. */
uint64_t tern_ref_random(uint64_t *state);

/* Uniform in [0, n), n >= 1. */
uint32_t tern_ref_below(uint64_t *state, uint32_t n);

/* Roughly normal, mean 0, deviation 1. */
float tern_ref_normal(uint64_t *state);

/* Any finite float: every exponent from denormal to the largest, zeros of both signs. */
float tern_ref_any_finite(uint64_t *state);

/*
 * Fills `file` (tern_format_bytes of a rows x cols matrix) with valid weights. `scale` is what a
 * format with one scale for the tensor stores as such.
 */
void tern_ref_fill_weights(tern_format format, tern_ref_filling filling, size_t rows, size_t cols,
                           float scale, uint64_t *state, void *file);

#endif
