/* SPDX-License-Identifier: Apache-2.0 */
/* The processor as a device: opening, memory, streams, and which kernel an operation takes. */

#include "device/processor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch/cpu.h"

/* Streams without a team have no state; this is the address of all of them. */
static const tern_lane the_stream = {.worker = {.count = 1}};

const tern_kernel_row *tern_processor_kernel(const tern_device *d, tern_op op, tern_format format,
                                             tern_error *err) {
    const tern_processor_device *p = (const tern_processor_device *)d;
    const tern_format_info *info = tern_format_describe(format);
    const tern_kernel_row *kernel = p->kernels[op][format];

    if (kernel == NULL)
        kernel = tern_kernel_select(p->mask, op, format);
    if (kernel == NULL)
        (void)tern_fail(err, TERN_ERR_KERNEL, "cpu: no kernel for %s of %s", tern_op_name(op),
                        info != NULL ? info->name : "floats");
    return kernel;
}

size_t tern_elements_bytes(tern_format format, size_t n) {
    const tern_format_info *info = tern_format_describe(format);

    return n / info->block_elements * info->block_bytes;
}

/* ---- memory and streams -------------------------------------------------------------------- */

tern_status tern_processor_alloc(tern_device *d, size_t bytes, void **memory, tern_error *err) {
    (void)d;
    if (bytes == 0 || bytes > SIZE_MAX - TERN_ALIGN)
        return tern_fail(err, TERN_ERR_ARG, "cpu: cannot allocate %zu bytes", bytes);
    *memory = aligned_alloc(TERN_ALIGN, (bytes + TERN_ALIGN - 1) / TERN_ALIGN * TERN_ALIGN);
    return *memory != NULL ? TERN_OK
                           : tern_fail(err, TERN_ERR_NOMEM, "cpu: no memory for %zu bytes", bytes);
}

tern_status tern_processor_free(tern_device *d, void *memory, tern_error *err) {
    (void)d;
    (void)err;
    free(memory);
    return TERN_OK;
}

tern_status tern_processor_stream_new(tern_device *d, tern_device_stream **stream,
                                      tern_error *err) {
    (void)d;
    (void)err;
    *stream = (tern_device_stream *)(uintptr_t)&the_stream; /* only its address counts */
    return TERN_OK;
}

tern_status tern_processor_stream_free(tern_device *d, tern_device_stream *stream,
                                       tern_error *err) {
    (void)d;
    (void)stream; /* there is nothing to release */
    (void)err;
    return TERN_OK;
}

tern_status tern_processor_stream_sync(tern_device *d, tern_device_stream *stream,
                                       tern_error *err) {
    (void)d;
    (void)err;
    tern_lane_meet(tern_lane_of(stream));
    return TERN_OK;
}

/* Memory is the host's, too: a lane copies all of it. */
static tern_status copy_bytes(void *to, const void *from, size_t bytes, tern_error *err) {
    if (to == NULL || from == NULL || bytes == 0)
        return tern_fail(err, TERN_ERR_ARG, "cpu: nothing to copy");
    memcpy(to, from, bytes);
    return TERN_OK;
}

tern_status tern_processor_upload(tern_device *d, tern_device_stream *stream, void *to,
                                  const void *from, size_t bytes, tern_error *err) {
    (void)d;
    (void)stream;
    return copy_bytes(to, from, bytes, err);
}

tern_status tern_processor_download(tern_device *d, tern_device_stream *stream, void *to,
                                    const void *from, size_t bytes, tern_error *err) {
    (void)d;
    (void)stream;
    return copy_bytes(to, from, bytes, err);
}

tern_status tern_processor_upload_matrix(tern_device *d, tern_device_stream *stream,
                                         const tern_matrix *host, tern_matrix *to,
                                         tern_error *err) {
    tern_matrix_parts parts;
    void *memory;

    (void)stream;
    tern_status status = tern_check_upload(host, &parts, err);
    if (status == TERN_OK)
        status = tern_processor_alloc(d, parts.bytes, &memory, err);
    if (status != TERN_OK)
        return status;
    memcpy(memory, host->data, parts.data_bytes);
    if (host->row_scale != NULL)
        memcpy((uint8_t *)memory + parts.scales_at, host->row_scale, parts.scales_bytes);
    *to = tern_matrix_at(host, &parts, memory);
    return TERN_OK;
}

tern_status tern_processor_free_matrix(tern_device *d, tern_matrix *matrix, tern_error *err) {
    (void)d;
    (void)err;
    free((void *)matrix->data);
    matrix->data = NULL;
    return TERN_OK;
}

/* ---- recordings: calls run at once ---------------------------------------------------------- */

static tern_status no_recordings(tern_error *err) {
    return tern_fail(err, TERN_ERR_UNIMPLEMENTED, "cpu: recordings are not implemented");
}

tern_status tern_processor_record(tern_device *d, tern_device_stream *stream, tern_error *err) {
    (void)d;
    (void)stream;
    return no_recordings(err);
}

tern_status tern_processor_end_record(tern_device *d, tern_device_stream *stream,
                                      tern_device_recording **recording, tern_error *err) {
    (void)d;
    (void)stream;
    *recording = NULL;
    return no_recordings(err);
}

tern_status tern_processor_replay(tern_device *d, tern_device_stream *stream,
                                  const tern_device_recording *recording, tern_error *err) {
    (void)d;
    (void)stream;
    (void)recording;
    return no_recordings(err);
}

tern_status tern_processor_free_recording(tern_device *d, tern_device_recording *recording,
                                          tern_error *err) {
    (void)d;
    return recording == NULL ? TERN_OK : no_recordings(err);
}

/* ---- the device ---------------------------------------------------------------------------- */

static void close_processor(tern_device *d) {
    free(d);
}

void tern_processor_init(tern_processor_device *p, uint64_t mask) {
    static const tern_device_ops ops = {
#define ENTRY(name, parameters) .name = tern_processor_##name,
        TERN_DEVICE_OPS(ENTRY)
#undef ENTRY
            .close = close_processor,
    };

    *p = (tern_processor_device){.base = {.ops = &ops, .kind = TERN_DEVICE_CPU}, .mask = mask};
    (void)snprintf(p->base.name, sizeof p->base.name, "%s", tern_cpu_name());
}

tern_status tern_cpu_device_open(tern_device **device, tern_error *err) {
    uint64_t mask;
    const tern_status status = tern_cpu_mask(NULL, NULL, &mask, err);

    *device = NULL;
    if (status != TERN_OK)
        return status;
    tern_processor_device *p = malloc(sizeof *p);
    if (p == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "cpu: no memory for the device");
    tern_processor_init(p, mask);
    *device = &p->base;
    return TERN_OK;
}
