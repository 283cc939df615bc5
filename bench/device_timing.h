/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BENCH_DEVICE_TIMING_H
#define TERN_BENCH_DEVICE_TIMING_H

/* Measures how long a queued operation of a device takes, and how fast the device copies. */

#include "tern/device.h"

/* Queues one call of the operation that is timed. */
typedef tern_status tern_device_queue_fn(void *operands, tern_error *err);

typedef struct tern_device_time {
    size_t calls, rounds; /* calls in a round, between two waits for the stream */
    double seconds;       /* of a call: the median of the rounds */
    double spread;        /* (largest - smallest) / median */
} tern_device_time;

/* Measures rounds of about 20 ms, for at most a second. The first calls warm up and are not
 * timed. */
tern_status tern_device_measure(tern_device *d, tern_device_stream *stream,
                                tern_device_queue_fn *queue, void *operands, tern_device_time *time,
                                tern_error *err);

/*
 * Measures bytes a second that the device's own copy reads and writes, over 1 GiB read and written
 * together, and checks the copy. `small`: only checks, over few bytes; *roof is 0.
 */
tern_status tern_device_roof(tern_device *d, tern_device_stream *stream, bool small, double *roof,
                             tern_error *err);

#endif
