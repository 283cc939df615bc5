/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_KERNELS_QUANTIZE_SEARCH_H
#define TERN_KERNELS_QUANTIZE_SEARCH_H

/*
 * Scales of weights whose columns do not count alike: those with the least sum of
 * w * (value - x)^2. docs/numerics.md, "Weights by importance".
 */

#include <stddef.h>
#include <stdint.h>

/* A run of columns that share a scale: values are scale * (code - zero). */
typedef struct tern_search_run {
    const float *x; /* [n] finite */
    const float *w; /* [n] how much the error of each counts, above 0; NULL: all alike */
    size_t n;
    int levels;         /* codes are 0 .. levels - 1 */
    const int8_t *list; /* [16] what codes stand for in place of code - zero, in any order; or NULL */
} tern_search_run;

/* The code whose level is nearest to v, the first of equals. */
unsigned tern_nearest_level(const int8_t list[16], float v);

/* The scale with that zero, as the f16 in *half. Infinite where the values are too large. */
float tern_search_scale(const tern_search_run *run, int zero, uint8_t half[2]);

/* The scale of a run with a list of levels. */
float tern_search_levels(const tern_search_run *run, uint8_t half[2]);

/* Scale and zero point together, which lies among the codes. */
float tern_search_affine(const tern_search_run *run, int *zero, uint8_t half[2]);

#endif
