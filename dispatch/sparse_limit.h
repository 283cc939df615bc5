/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_DISPATCH_SPARSE_LIMIT_H
#define TERN_DISPATCH_SPARSE_LIMIT_H

#include "tern/kernels.h"

/*
 * Percent of the blocks of a matrix that may be stored for the product of one token by this kernel,
 * a GEMV of sparse blocks, to be no slower than by the dense matrix, from memory, with the same
 * instruction set. 100: at any share, or nobody has measured it. docs/converting.md says how the
 * figures were found.
 */
unsigned tern_sparse_limit(const tern_kernel_row *kernel);

/* The largest of these figures among instruction sets that were measured, for blocks whose values
 * have this format; 100 where none was. */
unsigned tern_sparse_limit_anywhere(tern_format format);

#endif
