/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BENCH_OPERANDS_INTERNAL_H
#define TERN_BENCH_OPERANDS_INTERNAL_H

/* Declarations that operands.c (building, calling) and operands_check.c (comparing) share. */

#include "bench/operands.h"

enum { ATTEND_DIM = 128, ATTEND_GROUP = 4 };

struct tern_bench_operands {
    const tern_kernel_row *kernel;
    tern_bench_shape shape;
    uint64_t random;
    /* matrix products */
    uint8_t *file; /* weights as a file stores them */
    size_t file_bytes;
    void *packed;
    size_t matrix_bytes; /* as the row reads it */
    uint8_t *copies;     /* [shape.copies][matrix_bytes rounded up], if there are several */
    void *own_room;      /* memory of the copies, unless shape.room has them */
    size_t next_copy;
    tern_matrix matrix;
    tern_block_sparse sparse; /* its weights are in `packed` */
    uint32_t *sparse_index;   /* starts of its rows of blocks, then the columns of blocks */
    tern_activations x;
    /* float inputs and outputs; their meaning depends on the operation */
    float *in0, *in1, *out, *expected;
    void *states, *scratch; /* for attention */
    float *queries;         /* [tokens][ATTEND_GROUP][ATTEND_DIM] */
    size_t in_count, out_count;
    /* quantized activations: input of products, output of quantize */
    int8_t *q;    /* [q_bytes] */
    float *d;     /* [scale_count] */
    int32_t *sum; /* [scale_count] */
    size_t q_bytes, scale_count;
};

/* 64-byte aligned zeros; NULL when memory is short. */
void *tern_bench_zeroed(size_t bytes);

bool tern_bench_is_matmul(const tern_bench_operands *o);

/* The tensor's scale, for formats that have one. */
float tern_bench_scale(void);

tern_tile tern_bench_whole(const tern_bench_operands *o);
tern_attend_args tern_bench_attention(tern_bench_operands *o);

/* Operations that work in place get a fresh copy of their input in out. */
void tern_bench_restore(tern_bench_operands *o, float *out);

/* True if `out` (for quantize: q, d, sum) is the reference's answer. */
bool tern_bench_right(tern_bench_operands *o);

#endif
