/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_store_f16_cuda of kernels/kernels.toml
 * and template kernels/cuda/store.cu.j2. Do not edit.
 */

#include "kernels/isa/cuda.cuh"

namespace code_of_tern_store_f16_cuda {
/* Rows of floats to the format of the key/value cache. */
TERN_KERNEL(TERN_CUDA_THREADS, tern_store_f16_cuda) {
    const tern_cuda_store &a = job.store;

    for (size_t t = blockIdx.x; t < a.x.rows; t += gridDim.x) {
        const float *x = a.x.data + t * a.x.stride;
        uint16_t *out = (uint16_t *)a.out + t * a.stride;
        for (size_t i = threadIdx.x; i < a.x.n; i += TERN_CUDA_THREADS)
            out[i] = vf_to_f16(x[i]);
    }
}
} // namespace code_of_tern_store_f16_cuda
