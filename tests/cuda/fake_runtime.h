/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_CUDA_FAKE_RUNTIME_H
#define TERN_TESTS_CUDA_FAKE_RUNTIME_H

/*
 * A CUDA runtime without CUDA: device memory is host memory between guard pages, streams are queues
 * that run when somebody waits for them, and kernels run on the emulator. It counts living objects,
 * notices misuse, and fails at the call that a test chooses.
 */

#include "device/cuda/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const tern_cuda_runtime tern_fake_cuda;

typedef struct tern_fake_counts {
    unsigned long calls; /* calls of the runtime since the last reset */
    unsigned long launches;
    unsigned memory, pinned, streams, events, recordings; /* living objects */
    unsigned queued;    /* copies and launches that nobody has waited for */
    const char *misuse; /* the first one, or NULL */
} tern_fake_counts;

tern_fake_counts tern_fake_look(void);

/* Resets calls, launches, misuse and the requested failure. No object may be alive. */
void tern_fake_reset(void);

/* Call number `call` from now on (1: the next one) returns `error`; all others succeed. */
void tern_fake_fail(unsigned long call, int error);

/* Sets the reported number of devices and compute capability. 0 and 9.0 are the ends of the
 * range. */
void tern_fake_device(int count, int major, int minor);

#ifdef __cplusplus
}
#endif

#endif
