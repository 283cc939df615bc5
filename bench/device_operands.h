/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BENCH_DEVICE_OPERANDS_H
#define TERN_BENCH_DEVICE_OPERANDS_H

/* The operands of a case on a device, its call, and the comparison with the reference. */

#include "bench/device_cases.h"
#include "tern/device.h"

typedef struct tern_device_operands tern_device_operands;

/*
 * Makes random operands and uploads them. Weights, keys and values get as many copies as fill
 * `bytes`, at least one; successive calls read the copies in turn.
 */
tern_status tern_device_operands_new(tern_device *d, tern_device_stream *stream,
                                     const tern_device_case *c, size_t bytes,
                                     tern_device_operands **out, tern_error *err);
/* Also frees operands that could not be made completely. Waits for the stream first. NULL is
 * fine. */
void tern_device_operands_free(tern_device_operands *u);

/* Queues one call. Operations in place continue from the result of the call before. */
tern_status tern_device_call(tern_device_operands *u, tern_error *err);

/* After the first call: fetches the answer and compares all its bits. */
tern_status tern_device_right(tern_device_operands *u, bool *right, tern_error *err);

/* Bytes of weights, keys and values or input that a call reads, and its multiply-accumulates. */
double tern_device_bytes(const tern_device_operands *u);
double tern_device_macs(const tern_device_operands *u);

#endif
