/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_rmsnorm_token_cuda of kernels/kernels.toml
 * and template kernels/cuda/rmsnorm_token.cu.j2. Do not edit.
 */

#include "kernels/cuda/rows.cuh"

namespace code_of_tern_rmsnorm_token_cuda {
/* A norm, and the codes of what it gives: one block of threads for each row. */

TERN_KERNEL(TERN_CUDA_THREADS, tern_rmsnorm_token_cuda) {
    __shared__ float terms[TERN_CUDA_TERMS];
    __shared__ float factor;
    __shared__ float floats[TERN_CUDA_WARPS];
    __shared__ int32_t integers[TERN_CUDA_WARPS];

    for (size_t t = blockIdx.x; t < job.norm_token.norm.x.rows; t += gridDim.x) {
        normalize(job.norm_token.norm, t, terms, &factor);
        quantize(job.norm_token.token, t, floats, integers);
    }
}
} // namespace code_of_tern_rmsnorm_token_cuda
