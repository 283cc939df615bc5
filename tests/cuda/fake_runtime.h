/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_CUDA_FAKE_RUNTIME_H
#define TERN_TESTS_CUDA_FAKE_RUNTIME_H

/*
 * A CUDA runtime without CUDA: device memory is host memory between guard pages, streams are
 * queues that run when somebody waits for them, and kernels run on the emulator. It counts what is
 * alive, notices misuse, and fails at the call that a test names.
 */

#include "device/cuda/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const tern_cuda_runtime tern_fake_cuda;

typedef struct tern_fake_counts {
    unsigned long calls; /* of the runtime, since the last reset */
    unsigned long launches;
    unsigned memory, pinned, streams, events, recordings; /* alive */
    unsigned queued;    /* copies and launches that nobody has waited for */
    const char *misuse; /* the first one, or NULL */
} tern_fake_counts;

tern_fake_counts tern_fake_look(void);

/* Forgets calls, launches, misuse and the failure that was asked for; nothing may be alive. */
void tern_fake_reset(void);

/* From now on call number `call` (1: the next one) returns `error`, and only that one. */
void tern_fake_fail(unsigned long call, int error);

/* What the device says it is; 0 devices and capability 9.0 are the ends of the range. */
void tern_fake_device(int count, int major, int minor);

#ifdef __cplusplus
}
#endif

#endif
