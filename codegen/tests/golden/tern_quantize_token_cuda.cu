/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_quantize_token_cuda of kernels/kernels.toml
 * and template kernels/cuda/quantize_token.cu.j2. Do not edit.
 */

#include "kernels/isa/cuda.cuh"

namespace code_of_tern_quantize_token_cuda {
/* Activations of one token to int8 with one scale: one block of threads for each token. */

TERN_VERB void quantize(const tern_cuda_quantize &a, size_t t, float *floats, int32_t *integers) {
    const float *x = a.x.data + t * a.x.stride;
    int8_t *q = a.out.q + t * a.out.q_stride;
    const size_t end = (a.x.n + TERN_Q_PAD - 1) / TERN_Q_PAD * TERN_Q_PAD;
    float m = 0.0f;
    int32_t sum = 0;

    for (size_t i = threadIdx.x; i < a.x.n; i += TERN_CUDA_THREADS)
        m = vf_max(vf_abs(x[i]), m);
    const double amax = (double)block_max(m, floats);
    const float s = (float)__ddiv_rn(127.0, amax > 1e-5 ? amax : 1e-5);
    for (size_t i = threadIdx.x; i < end; i += TERN_CUDA_THREADS) {
        const int32_t code = i < a.x.n ? vi_quantize(vf_mul(x[i], s), -128.0f) : 0;
        q[i] = (int8_t)code;
        sum += code;
    }
    sum = block_sum(sum, integers);
    if (threadIdx.x == 0) {
        a.out.s[t] = s;
        a.out.sum[t] = sum;
    }
}

TERN_KERNEL(TERN_CUDA_THREADS, tern_quantize_token_cuda) {
    __shared__ float floats[TERN_CUDA_WARPS];
    __shared__ int32_t integers[TERN_CUDA_WARPS];

    for (size_t t = blockIdx.x; t < job.quantize.x.rows; t += gridDim.x)
        quantize(job.quantize, t, floats, integers);
}
} // namespace code_of_tern_quantize_token_cuda
