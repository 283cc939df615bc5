/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_quantize_token_cuda of kernels/kernels.toml
 * and template kernels/cuda/quantize_token.cu.j2. Do not edit.
 */

#include "kernels/cuda/rows.cuh"
#include "kernels/isa/cuda.cuh"

namespace code_of_tern_quantize_token_cuda {
/* Activations of one token to int8 with one scale: one block of threads for each token. */

TERN_KERNEL(TERN_CUDA_ROW_THREADS, tern_quantize_token_cuda) {
    __shared__ row_shared shared;
    const tern_device_rows &x = job.quantize.x;
    float v[TERN_CUDA_HELD];

    for (size_t t = blockIdx.x; t < x.rows; t += gridDim.x) {
        hold(x.data + t * x.stride, 0, x.n, v);
        quantize(job.quantize, t, shared, v);
        __syncthreads(); /* the next row writes what was shared */
    }
}
} // namespace code_of_tern_quantize_token_cuda
