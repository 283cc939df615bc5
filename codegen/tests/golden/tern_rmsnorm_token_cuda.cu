/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_rmsnorm_token_cuda of kernels/kernels.toml
 * and template kernels/cuda/rmsnorm_token.cu.j2. Do not edit.
 */

#include "kernels/cuda/rows.cuh"
#include "kernels/isa/cuda.cuh"

namespace code_of_tern_rmsnorm_token_cuda {
/* A norm, and the codes of what it gives: one block of threads for each row. */

TERN_KERNEL(TERN_CUDA_ROW_THREADS, tern_rmsnorm_token_cuda) {
    __shared__ row_shared shared;
    float v[TERN_CUDA_HELD];

    for (size_t t = blockIdx.x; t < job.norm_token.norm.x.rows; t += gridDim.x) {
        normalize(job.norm_token.norm, t, shared, v);
        quantize(job.norm_token.token, t, shared, v);
        __syncthreads(); /* the next row writes what was shared */
    }
}
} // namespace code_of_tern_rmsnorm_token_cuda
