/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_rmsnorm_cuda of kernels/kernels.toml
 * and template kernels/cuda/rmsnorm.cu.j2. Do not edit.
 */

#include "kernels/cuda/rows.cuh"
#include "kernels/isa/cuda.cuh"

namespace code_of_tern_rmsnorm_cuda {
/* Root mean square normalization: one block of threads for each row. */

TERN_KERNEL(TERN_CUDA_ROW_THREADS, tern_rmsnorm_cuda) {
    __shared__ row_shared shared;
    float v[TERN_CUDA_HELD];

    for (size_t t = blockIdx.x; t < job.norm.x.rows; t += gridDim.x)
        normalize(job.norm, t, shared, v);
}
} // namespace code_of_tern_rmsnorm_cuda
