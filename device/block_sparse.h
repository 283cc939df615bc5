/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_DEVICE_BLOCK_SPARSE_H
#define TERN_DEVICE_BLOCK_SPARSE_H

#include "tern/device.h"

/* y[r] of one token, by a kernel of GEMV_SPARSE. TERN_ERR_ARG when the blocks are not in order or
 * outside the matrix. */
tern_status tern_block_sparse_gemv(const tern_kernel_row *kernel, const tern_block_sparse *w,
                                   const float *x, float *y, tern_error *err);

#endif
