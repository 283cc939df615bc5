/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_KERNELS_QUADS_H
#define TERN_KERNELS_QUADS_H

/*
 * Four weights of STQ1_0, one of them 0, the others +1 or -1: 32 patterns, each a slot of four bits
 * and a sign. Bits 3:2 of the slot are the lane of the 0; bits 0 and 1 are set where the second and
 * the third of the others differ from the first; the sign is set where the first is -1.
 */

#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/inline.h"

/* Weight + 1 of a lane (0 .. 3) in the patterns 16 * sign + slot. */
TERN_INLINE const uint8_t *tern_quad_weights(size_t lane) {
    alignas(16) static const uint8_t weights[4][32] = {
        {1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
         1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
        {2, 2, 2, 2, 1, 1, 1, 1, 2, 0, 2, 0, 2, 0, 2, 0,
         0, 0, 0, 0, 1, 1, 1, 1, 0, 2, 0, 2, 0, 2, 0, 2},
        {2, 0, 2, 0, 2, 0, 2, 0, 1, 1, 1, 1, 2, 2, 0, 0,
         0, 2, 0, 2, 0, 2, 0, 2, 1, 1, 1, 1, 0, 0, 2, 2},
        {2, 2, 0, 0, 2, 2, 0, 0, 2, 2, 0, 0, 1, 1, 1, 1,
         0, 0, 2, 2, 0, 0, 2, 2, 0, 0, 2, 2, 1, 1, 1, 1}};
    return weights[lane];
}

#endif
