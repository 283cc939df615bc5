/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_KERNELS_REFERENCE_LANES_H
#define TERN_KERNELS_REFERENCE_LANES_H

/* Shared by the files of the reference. */

#include <math.h>

#include "kernels/reference.h"

/* Sixteen virtual lanes: terms arrive in order, term i goes to lane i mod 16. */
typedef struct lanes {
    float p[TERN_LANES];
    size_t count;
} lanes;

static inline void lanes_add(lanes *sum, float term) {
    sum->p[sum->count % TERN_LANES] += term;
    sum->count++;
}

static inline float lanes_total(lanes *sum) {
    while (sum->count % TERN_LANES != 0)
        lanes_add(sum, 0.0f);
    for (int s = TERN_LANES / 2; s > 0; s /= 2)
        for (int j = 0; j < s; j++)
            sum->p[j] += sum->p[j + s];
    return sum->p[0];
}

/* binary16 from its definition. */
static inline float tern_ref_half(uint16_t bits) {
    const int exponent = bits >> 10 & 31;
    const int fraction = bits & 1023;
    float magnitude = ldexpf((float)(1024 + fraction), exponent - 25);

    if (exponent == 31)
        magnitude = fraction != 0 ? NAN : INFINITY;
    else if (exponent == 0)
        magnitude = ldexpf((float)fraction, -24);
    return bits & 0x8000 ? -magnitude : magnitude;
}

static inline uint16_t tern_ref_read16(const uint8_t *p) {
    return (uint16_t)(p[0] | p[1] << 8);
}

/* Element `index` of a row-major stream of the format, as its exact value (Q4_1: rounded once). */
float tern_ref_value(tern_format format, const void *file, size_t index);

/* The same, and one output of a product, for INT8 (values without the scale) and INT4. */
float tern_ref_int_value(tern_format format, const void *file, size_t index);
float tern_ref_int_dot(const tern_ref_matrix *w, size_t row, const tern_activations *x, size_t t);

/* The same for formats with super-blocks of 256 columns, and their product (reference_super.c). */
float tern_ref_super_value(tern_format format, const void *file, size_t index);
float tern_ref_super_dot(const tern_ref_matrix *w, size_t row, const tern_activations *x, size_t t);

/* The same for formats with grids (reference_grids.c). */
float tern_ref_grid_value(tern_format format, const void *file, size_t index);
float tern_ref_grid_dot(const tern_ref_matrix *w, size_t row, const tern_activations *x, size_t t);

/* The same for blocks of 64 to 256 columns with one scale (reference_groups.c). */
float tern_ref_group_value(tern_format format, const void *file, size_t index);
float tern_ref_group_dot(const tern_ref_matrix *w, size_t row, const tern_activations *x, size_t t);

/* The same for NVFP4 (reference_runs.c). */
float tern_ref_runs_value(const void *file, size_t index);
float tern_ref_runs_dot(const tern_ref_matrix *w, size_t row, const tern_activations *x, size_t t);

#endif
