/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_KERNELS_REFERENCE_LANES_H
#define TERN_KERNELS_REFERENCE_LANES_H

/* What the files of the reference share. */

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

/* Element `index` of a row-major stream of the format, as its exact value (Q4_1: rounded once). */
float tern_ref_value(tern_format format, const void *file, size_t index);

#endif
