/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_DEVICE_FINISH_H
#define TERN_DEVICE_FINISH_H

/* The end of a product of a matrix: the numbers that files have beside it. */

#include <stddef.h>

#include "tern/kernels.h"

/*
 * y[n] of a row is multiplied by the factor of the whole matrix, then its bias[n] is added. Each
 * may be NULL; `add` is the kernel for the bias.
 */
static inline void tern_finish_row(const tern_kernel_row *add, const float *factor,
                                   const float *bias, float *y, size_t n) {
    for (size_t i = 0; factor != NULL && i < n; i++)
        y[i] *= *factor;
    if (bias != NULL)
        add->fn.add(y, bias, n);
}

#endif
