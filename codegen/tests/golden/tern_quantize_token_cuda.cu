/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_quantize_token_cuda of kernels/kernels.toml
 * and template kernels/cuda/quantize_token.cu.j2. Do not edit.
 */

#include "kernels/cuda/rows.cuh"

namespace code_of_tern_quantize_token_cuda {
/* Activations of one token to int8 with one scale: one block of threads for each token. */

TERN_KERNEL(TERN_CUDA_THREADS, tern_quantize_token_cuda) {
    __shared__ float floats[TERN_CUDA_WARPS];
    __shared__ int32_t integers[TERN_CUDA_WARPS];

    for (size_t t = blockIdx.x; t < job.quantize.x.rows; t += gridDim.x)
        quantize(job.quantize, t, floats, integers);
}
} // namespace code_of_tern_quantize_token_cuda
