/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_CUDA_ROWS_CUH
#define TERN_CUDA_ROWS_CUH

/* What a block of threads does with a row, for kernels that do one of it, or several. */

#include "kernels/isa/cuda.cuh"

/* Root mean square normalization of row t. All threads square, sixteen sum, out of shared memory:
 * terms[TERN_CUDA_TERMS]. */
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

/* Codes of row t with one scale. A thread reads the elements that it writes in normalize. Shared
 * memory: one number a warp, of each kind. */
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

#endif
