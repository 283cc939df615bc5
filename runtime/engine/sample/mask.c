/* SPDX-License-Identifier: Apache-2.0 */

#include <math.h>

#include "tern/tern.h"

void tern_causal_mask(size_t n, float *mask) {
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            mask[i * n + j] = j <= i ? 0.0f : -INFINITY;
}
