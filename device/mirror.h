/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_DEVICE_MIRROR_H
#define TERN_DEVICE_MIRROR_H

/*
 * A device that is called with addresses of the host. Ranges of the host's memory have
 * counterparts on the device, and an operation works on the counterparts of its operands. So who
 * makes passes (runtime/engine/forward) calls it as it calls the processor, and has only to say
 * what goes over and what comes back.
 *
 * Nothing goes over by itself: the host's memory and its counterpart differ until one is sent or
 * fetched. A mirror is used by one thread at a time; everything it does is in order.
 */

#include <stdbool.h>
#include <stddef.h>

#include "device/tally.h"
#include "tern/device.h"

typedef struct tern_mirror tern_mirror;

/* A mirror on the device of that name (tern_device_open), which is not the processor. */
TERN_MUST_CHECK tern_status tern_mirror_open(const char *name, tern_mirror **out, tern_error *err);

/* Another mirror on the same device, which sees the ranges of the first one, too. The first one
 * gets no more ranges, and is closed after it. */
TERN_MUST_CHECK tern_status tern_mirror_open_beside(const tern_mirror *first, tern_mirror **out,
                                                    tern_error *err);

/* Closes *mirror with the memory of its ranges, and sets it to NULL. NULL and a pointer to NULL
 * are fine. */
void tern_mirror_close(tern_mirror **mirror);

/* The device to call; the mirror's. Its operations ignore the stream that they are given. It has
 * those that passes call, and NULL in place of others. */
tern_device *tern_mirror_device(tern_mirror *m);

/* Kernels of the device behind it count in the tally, which is borrowed; NULL: nobody counts. Those
 * of a recording count when it is noted, however often it is replayed. */
void tern_mirror_set_tally(tern_mirror *m, tern_tally *tally);

/* The device behind it, for its name. */
const tern_device *tern_mirror_behind(const tern_mirror *m);

/* Gives a range of the host's memory, bytes > 0, a counterpart with any contents. Nothing where
 * it lies in a range. It overlaps no other one. */
TERN_MUST_CHECK tern_status tern_mirror_add(tern_mirror *m, const void *host, size_t bytes,
                                            tern_error *err);

/* The counterpart of an address, for what the device reads addresses in; NULL: there is none. */
void *tern_mirror_at(const tern_mirror *m, const void *host);

/* The counterpart becomes what the host's memory is. The memory may change when it returns. */
TERN_MUST_CHECK tern_status tern_mirror_send(tern_mirror *m, const void *host, size_t bytes,
                                             tern_error *err);

/* `to` becomes what the counterpart of `host` is, when all that was called before is done. */
TERN_MUST_CHECK tern_status tern_mirror_fetch(tern_mirror *m, void *to, const void *host,
                                              size_t bytes, tern_error *err);

/*
 * Calls on the mirror's device are noted from tern_mirror_record on, up to
 * tern_mirror_end_record, which makes a recording of it; tern_mirror_replay runs it (`record` of
 * tern/device.h). Recordings are freed before the mirror is closed.
 */
TERN_MUST_CHECK tern_status tern_mirror_record(tern_mirror *m, tern_error *err);
TERN_MUST_CHECK tern_status tern_mirror_end_record(tern_mirror *m,
                                                   tern_device_recording **recording,
                                                   tern_error *err);
TERN_MUST_CHECK tern_status tern_mirror_replay(tern_mirror *m,
                                               const tern_device_recording *recording,
                                               tern_error *err);
void tern_mirror_free_recording(tern_mirror *m, tern_device_recording **recording);

/* Bytes of all counterparts, those of the first mirror included. */
size_t tern_mirror_bytes(const tern_mirror *m);

#endif
