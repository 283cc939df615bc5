/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory, streams and copies of a CUDA device. Copies go through two pinned buffers in turn: the
 * caller's memory need not be pinned and may be reused when upload returns, and one buffer is
 * filled while the device reads the other.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/module.h"

tern_status cuda_check(const cuda_device *cuda, int error, const char *what, tern_error *err) {
    if (error == TERN_CUDA_SUCCESS)
        return TERN_OK;
    return tern_fail(err, error == TERN_CUDA_NO_MEMORY ? TERN_ERR_NOMEM : TERN_ERR_DEVICE,
                     "cuda: %s: %s (error %d)", what, cuda->rt->error_text(error), error);
}

/* ---- memory and streams -------------------------------------------------------------------- */

tern_status cuda_alloc(tern_device *d, size_t bytes, void **memory, tern_error *err) {
    const cuda_device *cuda = (const cuda_device *)d;
    char what[64];

    *memory = NULL;
    if (bytes == 0)
        return tern_fail(err, TERN_ERR_ARG, "cuda: cannot allocate 0 bytes");
    (void)snprintf(what, sizeof what, "allocation of %zu bytes", bytes);
    return cuda_check(cuda, cuda->rt->memory_new(memory, bytes), what, err);
}

tern_status cuda_free(tern_device *d, void *memory, tern_error *err) {
    const cuda_device *cuda = (const cuda_device *)d;

    if (memory == NULL)
        return TERN_OK;
    return cuda_check(cuda, cuda->rt->memory_free(memory), "release of memory", err);
}

tern_status cuda_stream_new(tern_device *d, tern_device_stream **stream, tern_error *err) {
    const cuda_device *cuda = (const cuda_device *)d;
    void *handle = NULL;
    const tern_status status = cuda_check(cuda, cuda->rt->stream_new(&handle), "new stream", err);

    *stream = (tern_device_stream *)handle;
    return status;
}

tern_status cuda_stream_free(tern_device *d, tern_device_stream *stream, tern_error *err) {
    const cuda_device *cuda = (const cuda_device *)d;

    if (stream == NULL)
        return TERN_OK;
    return cuda_check(cuda, cuda->rt->stream_free(stream), "release of a stream", err);
}

tern_status cuda_stream_sync(tern_device *d, tern_device_stream *stream, tern_error *err) {
    cuda_device *cuda = (cuda_device *)d;
    const tern_status status = cuda_begin_waiting(cuda, err);
    const tern_status end =
        cuda_check(cuda, cuda->rt->stream_sync(stream), "stream", status == TERN_OK ? err : NULL);

    return status == TERN_OK ? end : status;
}

/* ---- copies -------------------------------------------------------------------------------- */

static size_t piece_at(size_t done, size_t bytes) {
    return bytes - done < TERN_CUDA_STAGE_BYTES ? bytes - done : TERN_CUDA_STAGE_BYTES;
}

static tern_status begin_copy(cuda_device *cuda, const void *to, const void *from, size_t bytes,
                              tern_error *err) {
    if (to == NULL || from == NULL || bytes == 0)
        return tern_fail(err, TERN_ERR_ARG, "cuda: nothing to copy");
    return cuda_begin_waiting(cuda, err);
}

tern_status cuda_upload(tern_device *d, tern_device_stream *stream, void *to, const void *from,
                        size_t bytes, tern_error *err) {
    cuda_device *cuda = (cuda_device *)d;
    const tern_cuda_runtime *rt = cuda->rt;
    tern_status status = begin_copy(cuda, to, from, bytes, err);

    for (size_t done = 0, i = 0; status == TERN_OK && done < bytes; i++) {
        const cuda_stage *stage = &cuda->stages[i % TERN_CUDA_STAGES];
        const size_t piece = piece_at(done, bytes);
        int error = rt->event_sync(stage->event); /* the device may still read what was there */
        if (error == TERN_CUDA_SUCCESS) {
            memcpy(stage->memory, (const uint8_t *)from + done, piece);
            error = rt->copy_to_device((uint8_t *)to + done, stage->memory, piece, stream);
        }
        if (error == TERN_CUDA_SUCCESS)
            error = rt->event_record(stage->event, stream);
        status = cuda_check(cuda, error, "upload", err);
        done += piece;
    }
    return status;
}

/* Asks for the piece at `done`; nothing when there is none. */
static int request_piece(cuda_device *cuda, const cuda_stage *stage, tern_device_stream *stream,
                         const void *from, size_t done, size_t bytes) {
    if (done >= bytes)
        return TERN_CUDA_SUCCESS;
    int error = cuda->rt->event_sync(stage->event); /* an upload may still need it */
    if (error == TERN_CUDA_SUCCESS)
        error = cuda->rt->copy_from_device(stage->memory, (const uint8_t *)from + done,
                                           piece_at(done, bytes), stream);
    if (error == TERN_CUDA_SUCCESS)
        error = cuda->rt->event_record(stage->event, stream);
    return error;
}

tern_status cuda_download(tern_device *d, tern_device_stream *stream, void *to, const void *from,
                          size_t bytes, tern_error *err) {
    cuda_device *cuda = (cuda_device *)d;
    tern_status status = begin_copy(cuda, to, from, bytes, err);

    if (status == TERN_OK)
        status = cuda_check(cuda, request_piece(cuda, &cuda->stages[0], stream, from, 0, bytes),
                            "download", err);
    for (size_t done = 0, i = 0; status == TERN_OK && done < bytes; i++) {
        const cuda_stage *stage = &cuda->stages[i % TERN_CUDA_STAGES];
        const cuda_stage *other = &cuda->stages[(i + 1) % TERN_CUDA_STAGES];
        const size_t piece = piece_at(done, bytes);
        int error = request_piece(cuda, other, stream, from, done + piece, bytes);
        if (error == TERN_CUDA_SUCCESS)
            error = cuda->rt->event_sync(stage->event);
        if (error == TERN_CUDA_SUCCESS)
            memcpy((uint8_t *)to + done, stage->memory, piece);
        status = cuda_check(cuda, error, "download", err);
        done += piece;
    }
    return status;
}

/* ---- recordings ---------------------------------------------------------------------------- */

tern_status cuda_record(tern_device *d, tern_device_stream *stream, tern_error *err) {
    cuda_device *cuda = (cuda_device *)d;
    const tern_status status = cuda_begin_waiting(cuda, err);

    return status == TERN_OK ? cuda_check(cuda, cuda->rt->record(stream), "record", err) : status;
}

tern_status cuda_end_record(tern_device *d, tern_device_stream *stream,
                            tern_device_recording **recording, tern_error *err) {
    cuda_device *cuda = (cuda_device *)d;
    void *handle = NULL;
    const tern_status status = cuda_begin_waiting(cuda, err);
    const int error = cuda->rt->end_record(stream, &handle); /* in any case */
    const tern_status end = cuda_check(cuda, error, "recording", status == TERN_OK ? err : NULL);

    *recording = (tern_device_recording *)handle;
    return status == TERN_OK ? end : status;
}

tern_status cuda_replay(tern_device *d, tern_device_stream *stream,
                        const tern_device_recording *recording, tern_error *err) {
    const cuda_device *cuda = (const cuda_device *)d;

    return cuda_check(cuda, cuda->rt->replay((void *)recording, stream), "replay", err);
}

tern_status cuda_free_recording(tern_device *d, tern_device_recording *recording, tern_error *err) {
    const cuda_device *cuda = (const cuda_device *)d;

    if (recording == NULL)
        return TERN_OK;
    return cuda_check(cuda, cuda->rt->recording_free(recording), "release of a recording", err);
}

/* ---- matrices ------------------------------------------------------------------------------ */

tern_status cuda_upload_matrix(tern_device *d, tern_device_stream *stream, const tern_matrix *host,
                               tern_matrix *to, tern_error *err) {
    tern_matrix_parts parts;
    void *memory = NULL;
    tern_status status = tern_check_upload(host, &parts, err);

    if (status == TERN_OK)
        status = cuda_alloc(d, parts.bytes, &memory, err);
    if (status != TERN_OK)
        return status;
    const tern_matrix placed = tern_matrix_at(host, &parts, memory);
    status = cuda_upload(d, stream, memory, host->data, parts.data_bytes, err);
    if (status == TERN_OK && host->row_scale != NULL)
        status = cuda_upload(d, stream, (void *)placed.row_scale, host->row_scale,
                             parts.scales_bytes, err);
    if (status != TERN_OK) { /* the first error is the one to report */
        (void)cuda_stream_sync(d, stream, NULL);
        (void)cuda_free(d, memory, NULL);
        return status;
    }
    *to = placed;
    return TERN_OK;
}

tern_status cuda_free_matrix(tern_device *d, tern_matrix *matrix, tern_error *err) {
    void *memory = (void *)matrix->data;

    matrix->data = NULL;
    return cuda_free(d, memory, err);
}

/* ---- opening and closing ------------------------------------------------------------------- */

static void cuda_close(tern_device *d) {
    cuda_device *cuda = (cuda_device *)d;

    for (int i = 0; i < TERN_CUDA_STAGES; i++) { /* an error can no longer be reported */
        if (cuda->stages[i].event != NULL) {
            (void)cuda->rt->event_sync(cuda->stages[i].event); /* a failed copy may go on */
            (void)cuda->rt->event_free(cuda->stages[i].event);
        }
        if (cuda->stages[i].memory != NULL)
            (void)cuda->rt->pinned_free(cuda->stages[i].memory);
    }
    free(cuda);
}

/* The first device, if it is new enough: at least TERN_CUDA_CAPABILITY_MIN. */
static tern_status choose_device(cuda_device *cuda, tern_error *err) {
    tern_cuda_properties p;
    int count = 0;
    int error = cuda->rt->device_count(&count);

    if (error == TERN_CUDA_SUCCESS && count < 1)
        error = TERN_CUDA_NO_DEVICE;
    if (error == TERN_CUDA_SUCCESS)
        error = cuda->rt->device_set(0);
    if (error == TERN_CUDA_SUCCESS)
        error = cuda->rt->properties(0, &p);
    /* CUDA's own words for this speak of versions; mostly there is no GPU. */
    if (error == TERN_CUDA_NO_DRIVER)
        return tern_fail(err, TERN_ERR_DEVICE, "cuda: no device, or no driver for it (error %d)",
                         error);
    if (error != TERN_CUDA_SUCCESS)
        return cuda_check(cuda, error, "no device", err);
    if (p.major * 10 + p.minor < TERN_CUDA_CAPABILITY_MIN)
        return tern_fail(
            err, TERN_ERR_DEVICE, "cuda: %s has compute capability %d.%d; %d.%d is the least",
            p.name, p.major, p.minor, TERN_CUDA_CAPABILITY_MIN / 10, TERN_CUDA_CAPABILITY_MIN % 10);
    (void)snprintf(cuda->base.name, sizeof cuda->base.name, "%s", p.name);
    cuda->overlaps = p.major >= 9;
    return TERN_OK;
}

static tern_status make_stages(cuda_device *cuda, tern_error *err) {
    tern_status status = TERN_OK;

    for (int i = 0; status == TERN_OK && i < TERN_CUDA_STAGES; i++) {
        cuda_stage *stage = &cuda->stages[i];
        int error = cuda->rt->pinned_new(&stage->memory, TERN_CUDA_STAGE_BYTES);
        if (error == TERN_CUDA_SUCCESS)
            error = cuda->rt->event_new(&stage->event);
        status = cuda_check(cuda, error, "staging memory", err);
    }
    return status;
}

tern_status tern_cuda_open(const tern_cuda_runtime *runtime, const tern_cuda_kernel *kernels,
                           size_t kernel_count, tern_device **device, tern_error *err) {
    static const tern_device_ops ops = {
#define ENTRY(name, parameters) .name = cuda_##name,
        TERN_DEVICE_OPS(ENTRY)
#undef ENTRY
            .close = cuda_close,
    };
    cuda_device *cuda = calloc(1, sizeof *cuda);

    *device = NULL;
    if (cuda == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "cuda: no memory for the device");
    cuda->base.ops = &ops;
    cuda->base.kind = TERN_DEVICE_CUDA;
    cuda->rt = runtime;
    cuda->kernels = kernels;
    cuda->kernel_count = kernel_count;
    tern_status status = choose_device(cuda, err);
    if (status == TERN_OK)
        status = make_stages(cuda, err);
    if (status != TERN_OK) {
        cuda_close(&cuda->base);
        return status;
    }
    *device = &cuda->base;
    return TERN_OK;
}
