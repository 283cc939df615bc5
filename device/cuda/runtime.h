/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_DEVICE_CUDA_RUNTIME_H
#define TERN_DEVICE_CUDA_RUNTIME_H

/*
 * The calls of the CUDA runtime that the module makes, as a table, so that a test can put another
 * in its place. Every call returns a cudaError_t as int; 0 is success. Streams and events are the
 * runtime's own handles.
 */

#include "device/internal.h"
#include "kernels/cuda/job.h"

/* 10 * major + minor of the oldest device that there is code for: the first of TERN_CUDA_ARCHS. */
#ifndef TERN_CUDA_CAPABILITY_MIN
#error "TERN_CUDA_CAPABILITY_MIN is cmake/Cuda.cmake's to define"
#endif

/* cudaError_t values that mean something to the module. */
enum {
    TERN_CUDA_SUCCESS = 0,
    TERN_CUDA_NO_MEMORY = 2,
    TERN_CUDA_NO_DRIVER = 35, /* none, or one that is too old */
    TERN_CUDA_NO_DEVICE = 100
};

typedef struct tern_cuda_properties {
    char name[128];
    int major, minor; /* compute capability */
} tern_cuda_properties;

typedef struct tern_cuda_runtime {
    int (*device_count)(int *count);
    int (*properties)(int ordinal, tern_cuda_properties *p);
    int (*device_set)(int ordinal); /* of the calling thread */
    int (*memory_new)(void **memory, size_t bytes);
    int (*memory_free)(void *memory);
    int (*pinned_new)(void **memory, size_t bytes);
    int (*pinned_free)(void *memory);
    int (*stream_new)(void **stream);
    int (*stream_free)(void *stream);
    int (*stream_sync)(void *stream);
    int (*event_new)(void **event);
    int (*event_free)(void *event);
    int (*event_record)(void *event, void *stream);
    int (*event_sync)(void *event); /* at once when it was never recorded */
    int (*copy_to_device)(void *to, const void *from, size_t bytes, void *stream);
    int (*copy_from_device)(void *to, const void *from, size_t bytes, void *stream);
    /* `early`: may be made ready while the kernel before it ends (kernels wait: TERN_KERNEL). */
    int (*launch)(const void *function, const unsigned grid[3], unsigned threads, bool early,
                  const tern_cuda_job *job, void *stream);
    int (*record)(void *stream); /* launches are noted from here on */
    int (*end_record)(void *stream, void **recording);
    int (*replay)(void *recording, void *stream);
    int (*recording_free)(void *recording);
    const char *(*error_text)(int error); /* static storage */
} tern_cuda_runtime;

/* The real one. */
extern const tern_cuda_runtime tern_cuda_runtime_real;

/*
 * Opens the first device that `runtime` has, to run `kernels`, all of which stay in use.
 * TERN_ERR_DEVICE with CUDA's own words when there is none or it is too old.
 */
tern_status tern_cuda_open(const tern_cuda_runtime *runtime, const tern_cuda_kernel *kernels,
                           size_t kernel_count, tern_device **device, tern_error *err);

#endif
