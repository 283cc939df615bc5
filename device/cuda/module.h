/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_DEVICE_CUDA_MODULE_H
#define TERN_DEVICE_CUDA_MODULE_H

/* Shared by the parts of the CUDA module. */

#include "device/cuda/runtime.h"

enum { TERN_CUDA_STAGES = 2, TERN_CUDA_STAGE_BYTES = 1 << 22 };

/* Pinned memory that a copy passes through; the event says that the device is done with it. */
typedef struct cuda_stage {
    void *memory;
    void *event;
} cuda_stage;

/*
 * Operations that were called and are not begun, because the next one may do them, too. They wait
 * in this order: heads to rotate and rows to store for others of their kind, which one launch then
 * does together; a sum for a norm (or a watch before it), a watch for who reads its rows next, a
 * norm for who quantizes its results.
 */
typedef struct cuda_waiting {
    tern_device_stream *stream;
    tern_cuda_rope ropes[TERN_CUDA_PAIR];
    tern_cuda_store stores[TERN_CUDA_PAIR];
    unsigned n_ropes, n_stores;
    tern_format stored;         /* of the rows to store */
    tern_device_rows sum, more; /* sum += more; sum.data NULL: none */
    tern_device_watch watch;    /* notes NULL: none */
    tern_cuda_norm norm;        /* y.data NULL: none */
} cuda_waiting;

typedef struct cuda_device {
    tern_device base;
    const tern_cuda_runtime *rt;
    const tern_cuda_kernel *kernels;
    size_t kernel_count;
    bool overlaps; /* a kernel may be made ready while the one before it ends */
    cuda_waiting waiting;
    cuda_stage stages[TERN_CUDA_STAGES];
} cuda_device;

/* TERN_OK for 0; else the status that fits, and "cuda: <what>: <CUDA's text> (error N)". */
tern_status cuda_check(const cuda_device *cuda, int error, const char *what, tern_error *err);

/* Begins what waits; before anything that is not an operation. */
tern_status cuda_begin_waiting(cuda_device *cuda, tern_error *err);

/* The watch that waits, if it is of just the rows that an operation reads, which takes it; else
 * none. */
tern_cuda_watch cuda_watch_of(tern_device *d, const tern_device_stream *stream,
                              const tern_device_rows *x);

/* Launches the kernel of an operation that is not a product on x * y blocks, or x * y * z. */
tern_status cuda_run(tern_device *d, tern_device_stream *stream, tern_op op, tern_format format,
                     size_t x, size_t y, const tern_cuda_job *job, tern_error *err);
tern_status cuda_run_pair(tern_device *d, tern_device_stream *stream, tern_op op,
                          tern_format format, size_t x, size_t y, unsigned z,
                          const tern_cuda_job *job, tern_error *err);

/* y = f(a, b), row by row; at once where no row leaves a gap. */
tern_status cuda_elements(tern_device *d, tern_device_stream *stream, tern_op op,
                          const tern_device_rows *a, const tern_device_rows *b,
                          const tern_device_rows *y, tern_error *err);

static inline size_t cuda_larger(size_t a, size_t b) {
    return a > b ? a : b;
}

/* The entries: memory.c has the first nine and recordings, waiting.c those that wait,
 * operations.c the rest. */
#define TERN_CUDA_DECLARE(name, parameters) tern_status cuda_##name parameters;
TERN_DEVICE_OPS(TERN_CUDA_DECLARE)
#undef TERN_CUDA_DECLARE

#endif
