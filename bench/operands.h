/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BENCH_OPERANDS_H
#define TERN_BENCH_OPERANDS_H

/* Random operands for one kernel of the table, its call, and the check of its answer. */

#include <stdbool.h>
#include <stddef.h>

#include "tern/kernels.h"

typedef struct tern_bench_shape {
    size_t rows, cols;
    size_t tokens; /* of a product; of attention */
    size_t n;      /* elements of a row operation, or positions seen by attention's last token */
    size_t copies; /* of the matrix or cache, used in turn by successive calls; 0 means 1 */
    void *room;    /* for the copies, 64-byte aligned; NULL: own memory */
} tern_bench_shape;

typedef struct tern_bench_operands tern_bench_operands;

/* The block size with which the benchmark transforms n elements: the largest power of two, up to
 * 1,024, that divides n. */
static inline size_t tern_bench_hadamard_block(size_t n) {
    const size_t block = n & (~n + 1);
    return block < 1024 ? block : 1024;
}

/* Bytes of a rows x cols matrix as the row reads it; 0 for a shape that the format cannot have. */
size_t tern_bench_matrix_bytes(const tern_kernel_row *kernel, size_t rows, size_t cols);

/* Builds operands; NULL when memory is short. */
tern_bench_operands *tern_bench_operands_new(const tern_kernel_row *kernel,
                                             const tern_bench_shape *shape);
void tern_bench_operands_free(tern_bench_operands *o);

/* One call of the row. In-place operations start from the same input each time. */
void tern_bench_call(tern_bench_operands *o);

/*
 * Calls the row and the reference; true when all output bits agree. For a large matrix product the
 * reference computes only groups of 16 rows, evenly spread, for every token.
 */
bool tern_bench_check(tern_bench_operands *o);

/*
 * Bytes of packed weights or of input that a call reads, weights of a matrix (0: none) and
 * multiply-accumulates (0: none).
 */
double tern_bench_bytes(const tern_bench_operands *o);
double tern_bench_weights(const tern_bench_operands *o);
double tern_bench_macs(const tern_bench_operands *o);

#endif
