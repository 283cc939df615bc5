/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_rmsnorm_cuda of kernels/kernels.toml
 * and template kernels/cuda/rmsnorm.cu.j2. Do not edit.
 */

#include "kernels/isa/cuda.cuh"

namespace code_of_tern_rmsnorm_cuda {
/*
 * Root mean square normalization: one block of threads for each row. All threads square, sixteen
 * sum, out of shared memory.
 */

TERN_VERB void normalize(const tern_cuda_norm &a, size_t t, float *terms, float *factor) {
    const float *x = a.x.data + t * a.x.stride;
    float *y = a.y.data + t * a.y.stride;
    const size_t n = a.x.n;
    float p = 0.0f;

    for (size_t first = 0; first < n; first += TERN_CUDA_TERMS) {
        const size_t count = smaller(n - first, TERN_CUDA_TERMS);
        for (size_t i = threadIdx.x; i < count; i += TERN_CUDA_THREADS) {
            watch(a.watch, t, x[first + i]);
            terms[i] = vf_mul(x[first + i], x[first + i]);
        }
        __syncthreads();
        if (threadIdx.x < TERN_LANES)
            p = lanes_add(p, terms, count, threadIdx.x);
        __syncthreads();
    }
    if (threadIdx.x < TERN_CUDA_WARP) {
        p = fold16(p);
        if (threadIdx.x == 0)
            *factor = vf_div(1.0f, vf_sqrt(vf_add(vf_div(p, (float)n), a.eps)));
    }
    __syncthreads();
    const float r = *factor;
    for (size_t i = threadIdx.x; i < n; i += TERN_CUDA_THREADS)
        y[i] = vf_mul(vf_mul(x[i], r), a.g[i]);
}

TERN_KERNEL(TERN_CUDA_THREADS, tern_rmsnorm_cuda) {
    __shared__ float terms[TERN_CUDA_TERMS];
    __shared__ float factor;

    for (size_t t = blockIdx.x; t < job.norm.x.rows; t += gridDim.x)
        normalize(job.norm, t, terms, &factor);
}
} // namespace code_of_tern_rmsnorm_cuda
