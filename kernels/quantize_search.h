/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_KERNELS_QUANTIZE_SEARCH_H
#define TERN_KERNELS_QUANTIZE_SEARCH_H

/*
 * Scales of weights whose columns do not count alike: those with the least sum of
 * w * (value - x)^2. docs/numerics.md, "Weights by importance".
 */

#include <stddef.h>
#include <stdint.h>

/* Sixteen levels in ascending order, what lies in the middle between two, and their codes. */
typedef struct tern_level_list {
    int8_t level[16];
    float middle[15];
    uint8_t code[16];
} tern_level_list;

/* A run of columns that share a scale: values are scale * (code - zero). */
typedef struct tern_search_run {
    const float *x; /* [n] finite */
    const float *w; /* [n] how much the error of each counts, above 0; NULL: all alike */
    size_t n;
    int levels;                  /* codes are 0 .. levels - 1 */
    const tern_level_list *list; /* what codes stand for in place of code - zero; or NULL */
} tern_search_run;

/* The list of the levels that codes 0 .. 15 stand for; of codes with one level the first counts. */
tern_level_list tern_sort_levels(const int8_t levels[16]);

/* The place in the list of the level that is nearest to v, the lower of two. */
size_t tern_nearest_level(const tern_level_list *list, float v);

/* The scale with that zero, as the f16 in *half. Infinite where the values are too large. */
float tern_search_scale(const tern_search_run *run, int zero, uint8_t half[2]);

/* The scale of a run with a list of levels: as such an f16, or as it is. */
float tern_search_levels(const tern_search_run *run, uint8_t half[2]);
double tern_search_step(const tern_search_run *run);

/* The nibbles of 32 columns, by the levels nearest to x * id: column j low, j + 16 high. */
void tern_put_levels(const tern_level_list *list, const float *x, double id, uint8_t nibbles[16]);

/* The error that a scale leaves in a run with a list of levels. */
double tern_levels_error(const tern_search_run *run, double scale);

/* Scale and zero point together, which lies among the codes. */
float tern_search_affine(const tern_search_run *run, int *zero, uint8_t half[2]);

#endif
