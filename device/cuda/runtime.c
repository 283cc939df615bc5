/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA runtime behind the module's table of calls. Thin: it decides nothing. */

#include <cuda_runtime_api.h>
#include <stdio.h>

#include "device/cuda/runtime.h"

static int device_count(int *count) {
    return (int)cudaGetDeviceCount(count);
}

static int properties(int ordinal, tern_cuda_properties *p) {
    struct cudaDeviceProp all;
    const cudaError_t error = cudaGetDeviceProperties(&all, ordinal);

    if (error == cudaSuccess) {
        (void)snprintf(p->name, sizeof p->name, "%.127s", all.name);
        p->major = all.major;
        p->minor = all.minor;
    }
    return (int)error;
}

static int device_set(int ordinal) {
    return (int)cudaSetDevice(ordinal);
}

static int memory_new(void **memory, size_t bytes) {
    return (int)cudaMalloc(memory, bytes);
}

static int memory_free(void *memory) {
    return (int)cudaFree(memory);
}

static int pinned_new(void **memory, size_t bytes) {
    return (int)cudaMallocHost(memory, bytes);
}

static int pinned_free(void *memory) {
    return (int)cudaFreeHost(memory);
}

static int stream_new(void **stream) {
    cudaStream_t handle = NULL;
    const cudaError_t error = cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking);

    *stream = handle;
    return (int)error;
}

static int stream_free(void *stream) {
    return (int)cudaStreamDestroy(stream);
}

static int stream_sync(void *stream) {
    return (int)cudaStreamSynchronize(stream);
}

static int event_new(void **event) {
    cudaEvent_t handle = NULL;
    const cudaError_t error = cudaEventCreateWithFlags(&handle, cudaEventDisableTiming);

    *event = handle;
    return (int)error;
}

static int event_free(void *event) {
    return (int)cudaEventDestroy(event);
}

static int event_record(void *event, void *stream) {
    return (int)cudaEventRecord(event, stream);
}

static int event_sync(void *event) {
    return (int)cudaEventSynchronize(event);
}

static int copy_to_device(void *to, const void *from, size_t bytes, void *stream) {
    return (int)cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream);
}

static int copy_from_device(void *to, const void *from, size_t bytes, void *stream) {
    return (int)cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream);
}

static int launch(const void *function, const unsigned grid[3], unsigned threads, bool early,
                  const tern_cuda_job *job, void *stream) {
    tern_cuda_job copy = *job; /* the runtime wants it writable, and reads it before it returns */
    void *arguments[] = {&copy};
    cudaLaunchAttribute overlap = {.id = cudaLaunchAttributeProgrammaticStreamSerialization,
                                   .val = {.programmaticStreamSerializationAllowed = 1}};
    const cudaLaunchConfig_t config = {.gridDim = {grid[0], grid[1], grid[2]},
                                       .blockDim = {threads, 1, 1},
                                       .stream = stream,
                                       .attrs = &overlap,
                                       .numAttrs = early ? 1 : 0};

    return (int)cudaLaunchKernelExC(&config, function, arguments);
}

static int record(void *stream) {
    return (int)cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
}

static int end_record(void *stream, void **recording) {
    cudaGraph_t graph = NULL;
    cudaGraphExec_t ready = NULL;
    cudaError_t error = cudaStreamEndCapture(stream, &graph);

    if (error == cudaSuccess)
        error = cudaGraphInstantiate(&ready, graph, 0);
    if (graph != NULL)
        (void)cudaGraphDestroy(graph);
    *recording = ready;
    return (int)error;
}

static int replay(void *recording, void *stream) {
    return (int)cudaGraphLaunch(recording, stream);
}

static int recording_free(void *recording) {
    return (int)cudaGraphExecDestroy(recording);
}

static const char *error_text(int error) {
    return cudaGetErrorString((cudaError_t)error);
}

const tern_cuda_runtime tern_cuda_runtime_real = {
    .device_count = device_count,
    .properties = properties,
    .device_set = device_set,
    .memory_new = memory_new,
    .memory_free = memory_free,
    .pinned_new = pinned_new,
    .pinned_free = pinned_free,
    .stream_new = stream_new,
    .stream_free = stream_free,
    .stream_sync = stream_sync,
    .event_new = event_new,
    .event_free = event_free,
    .event_record = event_record,
    .event_sync = event_sync,
    .copy_to_device = copy_to_device,
    .copy_from_device = copy_from_device,
    .launch = launch,
    .record = record,
    .end_record = end_record,
    .replay = replay,
    .recording_free = recording_free,
    .error_text = error_text,
};
