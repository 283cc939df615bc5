/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_DEVICE_MIRROR_INTERNAL_H
#define TERN_DEVICE_MIRROR_INTERNAL_H

/* What the two files of a mirror share: mirror.c has the ranges, mirror_operations.c the calls. */

#include <stdint.h>

#include "device/mirror.h"

typedef struct tern_mirror_range {
    const uint8_t *host;
    size_t bytes;
    uint8_t *device;
} tern_mirror_range;

struct tern_mirror {
    tern_device base;
    tern_device *device;
    tern_device_stream *stream;
    const tern_mirror *first;  /* whose ranges are seen, too; NULL: none */
    tern_mirror_range *ranges; /* [n] by address */
    size_t n, capacity, bytes;
};

/* The operations that passes call; NULL in place of others. */
extern const tern_device_ops tern_mirror_ops;

#endif
