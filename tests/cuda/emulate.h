/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_CUDA_EMULATE_H
#define TERN_TESTS_CUDA_EMULATE_H

/* Launches a kernel of the table on the emulator of emulator.h. For C and C++. */

#include "kernels/cuda/job.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The order in which threads of a block continue. A missing barrier shows in at least one of
 * them. */
typedef enum tern_emulated_order {
    TERN_EMULATED_FORWARD,
    TERN_EMULATED_BACKWARD,
    TERN_EMULATED_SHUFFLED, /* a different order each time */
    TERN_EMULATED_ORDERS
} tern_emulated_order;

/* Applies to all launches from now on. */
void tern_emulated_order_set(tern_emulated_order order);

/*
 * Runs `function` for each block of the grid with each of its threads. Returns NULL, or a
 * description of the kernel's error in static storage.
 */
const char *tern_emulate(const void *function, const unsigned grid[3], unsigned threads,
                         const tern_cuda_job *job);

#ifdef __cplusplus
}
#endif

#endif
