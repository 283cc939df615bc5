/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_DEVICE_MIRROR_INTERNAL_H
#define TERN_DEVICE_MIRROR_INTERNAL_H

/* Shared by the two files of a mirror: mirror.c has the ranges, mirror_operations.c the calls. */

#include <stdint.h>

#include "device/mirror.h"

typedef struct tern_mirror_range {
    const uint8_t *host;
    size_t bytes;
    uint8_t *device;
} tern_mirror_range;

/* The kernel of the device for an operation, found once. */
typedef struct tern_mirror_kernel {
    tern_op op;
    tern_format format;
    tern_layout layout;
    const tern_kernel_row *kernel; /* NULL: it has none in the table */
} tern_mirror_kernel;

enum { TERN_MIRROR_KERNELS = 64 }; /* that are remembered */

struct tern_mirror {
    tern_device base;
    tern_device *device;
    tern_device_stream *stream;
    const tern_mirror *first;  /* whose ranges are seen, too; NULL: none */
    tern_mirror_range *ranges; /* [n] by address */
    size_t n, capacity, bytes;
    tern_tally *tally; /* borrowed; NULL: nobody counts */
    tern_mirror_kernel kernels[TERN_MIRROR_KERNELS];
    size_t n_kernels;
};

/* The operations that passes call; NULL in place of others. */
extern const tern_device_ops tern_mirror_ops;

#endif
