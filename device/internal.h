/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_DEVICE_INTERNAL_H
#define TERN_DEVICE_INTERNAL_H

/* Shared by the devices: how each is opened, and the checks of operands. */

#include <stdbool.h>

#include "tern/device.h"

/* ---- opening ------------------------------------------------------------------------------- */

typedef tern_status tern_device_opener(tern_device **device, tern_error *err);

tern_device_opener tern_cpu_device_open;
tern_device_opener tern_cuda_device_open; /* loads the module, if there is one */
tern_device_opener tern_level_zero_device_open;

/* Every entry answers TERN_ERR_UNIMPLEMENTED; here for tests, since none can be opened. */
extern const tern_device_ops tern_level_zero_ops;

/*
 * The table that libtern-cuda exports as TERN_CUDA_MODULE_SYMBOL. A module of another version or
 * with another table of functions is refused.
 */
#define TERN_CUDA_MODULE_SYMBOL "tern_cuda_module"
typedef struct tern_cuda_module_info {
    const char *version;
    size_t ops_bytes; /* sizeof(tern_device_ops) */
    tern_device_opener *open;
} tern_cuda_module_info;

/* The kernel of a device for an operation, or NULL. Kernels of a packed layout serve all formats it
 * holds. */
const tern_kernel_row *tern_device_kernel(tern_device_kind kind, tern_op op, tern_format format,
                                          tern_layout layout);

/* ---- checks -------------------------------------------------------------------------------- */

/* All return TERN_ERR_ARG and a message that begins with `what` when an operand is unusable. */
tern_status tern_check_rows(const char *what, const tern_device_rows *x, tern_error *err);
tern_status tern_check_pair(const char *what, const tern_device_rows *x, const tern_device_rows *y,
                            tern_error *err);
tern_status tern_check_matmul(const char *what, const tern_matrix *w, const tern_activations *x,
                              const tern_tile *tile, const float *y, size_t y_stride,
                              tern_error *err);
tern_status tern_check_quantize(const char *what, const tern_device_rows *x,
                                const tern_device_quantized *out, bool per_token, tern_error *err);
tern_status tern_check_norm(const tern_device_rows *x, const float *g, const tern_device_rows *y,
                            tern_error *err);
tern_status tern_check_hadamard(const tern_device_rows *x, size_t block, const tern_device_rows *y,
                                tern_error *err);
tern_status tern_check_rope(const tern_device_rope *a, tern_error *err);
tern_status tern_check_attend(const tern_device_attend *a, tern_error *err);
tern_status tern_check_store_pages(const tern_device_store *a, tern_error *err);
tern_status tern_check_attend_pages(const tern_device_attend_pages *a, tern_error *err);
tern_status tern_check_watch(const tern_device_watch *a, tern_error *err);
tern_status tern_check_round(tern_op op, const tern_device_rows *x, const tern_device_rows *y,
                             tern_error *err);
tern_status tern_check_gate(tern_op op, const tern_device_rows *g, const tern_device_rows *u,
                            const tern_device_rows *y, tern_error *err);
tern_status tern_check_embed(const tern_matrix *w, const int32_t *ids, const tern_device_rows *y,
                             tern_error *err);

/* A matrix in one piece of memory: its data, then its row scales, if it has any. */
typedef struct tern_matrix_parts {
    size_t data_bytes;
    size_t scales_at, scales_bytes;
    size_t bytes; /* all */
} tern_matrix_parts;

/* Bytes of a matrix in its layout; 0 when it has no such layout, or one whose size its rows and
 * columns do not tell. */
size_t tern_matrix_bytes(const tern_matrix *w);

tern_status tern_check_upload(const tern_matrix *w, tern_matrix_parts *parts, tern_error *err);

/* The matrix as it is when its parts lie at `memory`. */
tern_matrix tern_matrix_at(const tern_matrix *w, const tern_matrix_parts *parts, void *memory);

#endif
