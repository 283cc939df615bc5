/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_softmax_cuda of kernels/kernels.toml
 * and template kernels/cuda/softmax.cu.j2. Do not edit.
 */

#include "kernels/cuda/rows.cuh"
#include "kernels/isa/cuda.cuh"

namespace code_of_tern_softmax_cuda {
/* Softmax in place: one block of threads for each row. */

TERN_VERB void softmax(float *x, size_t n, float *terms, float *largest, float *total) {
    float m = x[0];
    float p = 0.0f;

    for (size_t i = threadIdx.x; i < n; i += TERN_CUDA_THREADS)
        m = vf_max(x[i], m);
    m = block_max(m, largest); /* its barriers: x[0] has been read by all */
    for (size_t first = 0; first < n; first += TERN_CUDA_TERMS) {
        const size_t count = smaller(n - first, TERN_CUDA_TERMS);
        for (size_t i = threadIdx.x; i < count; i += TERN_CUDA_THREADS) {
            terms[i] = vf_exp(vf_sub(x[first + i], m));
            x[first + i] = terms[i];
        }
        __syncthreads();
        if (threadIdx.x < TERN_LANES)
            p = lanes_add(p, terms, count, threadIdx.x);
        __syncthreads();
    }
    if (threadIdx.x < TERN_CUDA_WARP) {
        p = fold16(p);
        if (threadIdx.x == 0)
            *total = p;
    }
    __syncthreads();
    const float sum = *total;
    for (size_t i = threadIdx.x; i < n; i += TERN_CUDA_THREADS)
        x[i] = vf_div(x[i], sum);
}

TERN_KERNEL(TERN_CUDA_THREADS, tern_softmax_cuda) {
    __shared__ float terms[TERN_CUDA_TERMS];
    __shared__ float largest[TERN_CUDA_WARPS];
    __shared__ float total;

    for (size_t t = blockIdx.x; t < job.softmax.rows; t += gridDim.x)
        softmax(job.softmax.data + t * job.softmax.stride, job.softmax.n, terms, largest, &total);
}
} // namespace code_of_tern_softmax_cuda
