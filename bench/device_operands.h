/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BENCH_DEVICE_OPERANDS_H
#define TERN_BENCH_DEVICE_OPERANDS_H

/* The operands of a case on a device, its call, and whether the answer is the reference's. */

#include "bench/device_cases.h"
#include "tern/device.h"

typedef struct tern_device_operands tern_device_operands;

/*
 * Makes random operands and puts them on the device; of weights, keys and values as many copies as
 * have `bytes` together, or one. Successive calls read them in turn.
 */
tern_status tern_device_operands_new(tern_device *d, tern_device_stream *stream,
                                     const tern_device_case *c, size_t bytes,
                                     tern_device_operands **out, tern_error *err);
/* Also of what could not be made whole. Waits for the stream first. NULL is fine. */
void tern_device_operands_free(tern_device_operands *u);

/* Queues one call. Operations in place go on with what the call before left. */
tern_status tern_device_call(tern_device_operands *u, tern_error *err);

/* After the first call: fetches the answer and compares all its bits. */
tern_status tern_device_right(tern_device_operands *u, bool *right, tern_error *err);

/* Bytes of weights, keys and values or input that a call reads, and its multiply-accumulates. */
double tern_device_bytes(const tern_device_operands *u);
double tern_device_macs(const tern_device_operands *u);

#endif
