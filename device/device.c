/* SPDX-License-Identifier: Apache-2.0 */
/* Which device: by name, or the best that works. */

#include <stdio.h>
#include <string.h>

#include "device/internal.h"

static const char *const names[TERN_DEVICE_COUNT] = {
#define DEVICE_NAME(name, text) [TERN_DEVICE_##name] = (text),
    TERN_DEVICE_LIST(DEVICE_NAME)
#undef DEVICE_NAME
};

#define NAME_IN_LIST(name, text) ", " text
#define VALID_NAMES TERN_DEVICE_LIST(NAME_IN_LIST)

static tern_device_opener *const openers[TERN_DEVICE_COUNT] = {
    [TERN_DEVICE_CPU] = tern_cpu_device_open,
    [TERN_DEVICE_CUDA] = tern_cuda_device_open,
    [TERN_DEVICE_LEVEL_ZERO] = tern_level_zero_device_open,
};

const char *tern_device_name(tern_device_kind kind) {
    return (unsigned)kind < TERN_DEVICE_COUNT ? names[kind] : NULL;
}

tern_device_kind tern_device_of_row(const tern_kernel_row *kernel) {
    for (int kind = TERN_DEVICE_CPU + 1; kind < TERN_DEVICE_COUNT; kind++)
        if (strcmp(kernel->isa, names[kind]) == 0)
            return (tern_device_kind)kind;
    return TERN_DEVICE_CPU;
}

/* CUDA, or the processor with CUDA's reason in the note. */
static tern_status open_best(tern_device **device, tern_error *err) {
    tern_error reason = {0};

    if (tern_cuda_device_open(device, &reason) == TERN_OK)
        return TERN_OK;
    const tern_status status = tern_cpu_device_open(device, err);
    if (status == TERN_OK)
        (void)snprintf((*device)->note, sizeof(*device)->note, "%s", reason.message);
    return status;
}

tern_status tern_device_open(const char *name, tern_device **device, tern_error *err) {
    if (device == NULL)
        return tern_fail(err, TERN_ERR_NULL, "no place for the device");
    *device = NULL;
    if (name == NULL || strcmp(name, "auto") == 0)
        return open_best(device, err);
    for (int kind = 0; kind < TERN_DEVICE_COUNT; kind++)
        if (strcmp(name, names[kind]) == 0)
            return openers[kind](device, err);
    return tern_fail(err, TERN_ERR_NAME, "unknown device '%s' (valid: auto" VALID_NAMES ")", name);
}

void tern_device_close(tern_device **device) {
    if (device == NULL || *device == NULL)
        return;
    (*device)->ops->close(*device);
    *device = NULL;
}

const tern_kernel_row *tern_device_kernel(tern_device_kind kind, tern_op op, tern_format format,
                                          tern_layout layout) {
    size_t n = 0;
    const tern_kernel_row *kernels = tern_kernel_rows(&n);
    const bool packed = layout != TERN_LAYOUT_ROWS && layout != TERN_LAYOUT_NONE;
    for (size_t i = 0; i < n; i++)
        if (kernels[i].op == op && tern_device_of_row(&kernels[i]) == kind &&
            kernels[i].layout == layout && (packed || kernels[i].format == format))
            return &kernels[i];
    return NULL;
}

tern_status tern_device_gemv_block_sparse_f32(tern_device *device, const tern_block_sparse *w,
                                              const float *x, float *y, tern_error *err) {
    tern_device *cpu = NULL;
    tern_status status = TERN_ERR_UNIMPLEMENTED;

    if (device != NULL)
        status = device->ops->gemv_block_sparse_f32(device, w, x, y, err);
    if (status != TERN_ERR_UNIMPLEMENTED)
        return status;
    status = tern_cpu_device_open(&cpu, err);
    if (status == TERN_OK)
        status = cpu->ops->gemv_block_sparse_f32(cpu, w, x, y, err);
    tern_device_close(&cpu);
    return status;
}
