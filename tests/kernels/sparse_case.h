/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_KERNELS_SPARSE_CASE_H
#define TERN_TESTS_KERNELS_SPARSE_CASE_H

/* A block-sparse matrix, one token, and their product. */

#include "tern/kernels.h"
#include "tests/support/check.h"

enum { SPARSE_ROWS = 37, SPARSE_COLS = 90 };

typedef struct sparse_case {
    tern_block_sparse w;
    uint32_t start[SPARSE_ROWS + 1];
    uint32_t column[SPARSE_ROWS * SPARSE_COLS];
    float blocks[64 * 4 * 4 * SPARSE_ROWS]; /* for any block size, with parts past the edge */
    float dense[SPARSE_ROWS * SPARSE_COLS];
    float x[SPARSE_COLS];
    float bias[SPARSE_ROWS];
} sparse_case;

/* Stores about half of the blocks of h x w. The parts past the matrix's edge are NaN and must not
 * be read. */
void sparse_fill(sparse_case *s, uint32_t h, uint32_t w, check_rng *rng);

/* want[SPARSE_ROWS] = the reference's dense product, plus s->w.bias if it is set. */
void sparse_expect(const sparse_case *s, float *want);

#endif
