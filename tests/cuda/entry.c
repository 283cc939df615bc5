/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA module with the fake runtime and the emulated rows, to be opened like the real one.
 * TERN_EMULATED_ORDER: 0 forward, 1 backward, 2 shuffled. If the runtime noticed a misuse, the
 * program ends when the module is unloaded, since no CUDA error reports it.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/cuda/emulate.h"
#include "tests/cuda/fake_runtime.h"

static tern_status open_first(tern_device **device, tern_error *err) {
    const char *order = getenv("TERN_EMULATED_ORDER");

    if (order != NULL)
        tern_emulated_order_set((tern_emulated_order)(strtol(order, NULL, 10)));
    return tern_cuda_open(&tern_fake_cuda, tern_cuda_kernels, tern_cuda_kernel_count, device, err);
}

__attribute__((destructor)) static void complain(void) {
    const tern_fake_counts counts = tern_fake_look();

    if (counts.misuse == NULL &&
        counts.memory + counts.pinned + counts.streams + counts.recordings == 0)
        return;
    (void)fprintf(stderr, "fake CUDA runtime: %s; alive: %u memory, %u pinned, %u streams\n",
                  counts.misuse != NULL ? counts.misuse : "leaks", counts.memory, counts.pinned,
                  counts.streams);
    _Exit(1);
}

extern const tern_cuda_module_info tern_cuda_module;

__attribute__((visibility("default"))) const tern_cuda_module_info tern_cuda_module = {
    .version = TERN_VERSION,
    .ops_bytes = sizeof(tern_device_ops),
    .open = open_first,
};
