/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_KERNELS_ROUNDING_H
#define TERN_KERNELS_ROUNDING_H

/* The operations that round a row of activations to another precision. */

#include "tern/kernels.h"

static inline bool tern_op_rounds(tern_op op) {
    return op >= TERN_OP_ROUND_INT8 && op <= TERN_OP_ROUND_BF16;
}

#endif
