/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_DEVICE_PROCESSOR_H
#define TERN_DEVICE_PROCESSOR_H

/*
 * The processor as a device. Memory is memory; a stream is a lane (device/lane.h) and runs at once;
 * an operation is a kernel of the table, for each of the lane's items. tern_device_open("cpu")
 * opens one whose streams have no team; a runner has one that computes its passes.
 */

#include <stdatomic.h>

#include "device/internal.h"
#include "device/lane.h"
#include "device/tally.h"

/* A head and some tokens whose chunks several lanes share. All zero between two operations. */
typedef struct tern_attend_share {
    atomic_size_t done; /* chunks */
    size_t lead;        /* chunks that the lane of chunk 0 merged */
} tern_attend_share;

/* Memory of attention, owned by the maker of the device. */
typedef struct tern_attend_scratch {
    uint8_t *heads;       /* [lanes][stride] states of a lane's own, then scratch of the kernels */
    size_t stride;        /* bytes */
    size_t scratch_begin; /* bytes after which the scratch stands */
    uint8_t *states;      /* [states_bytes] of what several lanes share; NULL with one lane */
    size_t states_bytes;
    tern_attend_share *shares; /* [n_shares] */
    size_t n_shares;
} tern_attend_scratch;

/* Bytes of a lane's own, for heads in groups of `group` over one key/value head. */
void tern_attend_scratch_sizes(size_t group, size_t dim, tern_attend_scratch *s);

typedef struct tern_processor_device {
    tern_device base;
    uint64_t mask; /* features that kernels may need */
    /* Kernels to use for operations over a format; NULL: the first one that the mask allows. */
    const tern_kernel_row *kernels[TERN_OP_COUNT][TERN_FORMAT_COUNT + 1];
    tern_attend_scratch attend; /* heads NULL: taken from the system for each operation */
    tern_tally *tally;          /* of the kernels that run, borrowed; NULL: nobody counts */
} tern_processor_device;

/* Makes *p such a device, without kernels and memory of its own. It owns nothing. */
void tern_processor_init(tern_processor_device *p, uint64_t mask);

/* The kernel for it; NULL and a message where there is none. */
const tern_kernel_row *tern_processor_kernel(const tern_device *d, tern_op op, tern_format format,
                                             tern_error *err);

/* An operation runs a kernel for the lane of the stream: the first lane counts for all. */
static inline void tern_processor_ran(const tern_device *d, tern_device_stream *stream,
                                      const tern_kernel_row *kernel) {
    const tern_lane *lane = tern_lane_of(stream);
    if (lane == NULL || lane->worker.index == 0)
        tern_tally_count(((const tern_processor_device *)d)->tally, kernel);
}

/* Bytes of n elements of a format, whole blocks. */
size_t tern_elements_bytes(tern_format format, size_t n);

/* The entries: processor.c has memory and streams, processor_*.c the rest. */
#define TERN_PROCESSOR_DECLARE(name, parameters) tern_status tern_processor_##name parameters;
TERN_DEVICE_OPS(TERN_PROCESSOR_DECLARE)
#undef TERN_PROCESSOR_DECLARE

#endif
