/* SPDX-License-Identifier: Apache-2.0 */
/* The table that libtern-cuda exports: see TERN_CUDA_MODULE_SYMBOL. */

#include "device/cuda/runtime.h"

static tern_status open_first(tern_device **device, tern_error *err) {
    return tern_cuda_open(&tern_cuda_runtime_real, tern_cuda_kernels, tern_cuda_kernel_count,
                          device, err);
}

extern const tern_cuda_module_info tern_cuda_module;

__attribute__((visibility("default"))) const tern_cuda_module_info tern_cuda_module = {
    .version = TERN_VERSION,
    .ops_bytes = sizeof(tern_device_ops),
    .open = open_first,
};
