/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_LOAD_DENSE_BLOCKS_H
#define TERN_RUNTIME_MODEL_LOAD_DENSE_BLOCKS_H

/*
 * Sparse blocks are read as a dense matrix where so many are stored that this is faster. The
 * products have the same bits. One table decides (dispatch/sparse_limit.h): for the instruction set
 * that runs the model, or for all of them if it is not known yet which one will.
 */

#include "kernels/iebs.h"
#include "runtime/files/gguf/gguf.h"
#include "tern/kernels.h"

/* True if a tensor of sparse blocks should be made dense; `kernel` is the one that would multiply
 * its blocks with one token. */
bool tern_blocks_want_dense(const tern_gguf_tensor *tensor, const tern_kernel_row *kernel);

/* True if a matrix of this form stays sparse on some instruction set. */
bool tern_blocks_pay_somewhere(const tern_iebs *form);

/*
 * Makes rows [r0, r1) of such a tensor dense, at the place of row r0 in `made`, which is a whole
 * matrix in the layout of *matrix. r0 is a multiple of TERN_ROW_GROUP, and so is r1 unless it is
 * the end. Checks the values of the blocks that begin in these rows: TERN_ERR_TENSOR_DATA.
 * TERN_ERR_NOMEM.
 */
TERN_MUST_CHECK tern_status tern_blocks_make_dense(const tern_gguf_tensor *tensor,
                                                   const tern_matrix *matrix, size_t r0, size_t r1,
                                                   void *made, tern_error *err);

#endif
