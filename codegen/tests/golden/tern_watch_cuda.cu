/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_watch_cuda of kernels/kernels.toml
 * and template kernels/cuda/watch.cu.j2. Do not edit.
 */

#include "kernels/isa/cuda.cuh"

namespace code_of_tern_watch_cuda {
/*
 * Whether numbers stay below what holds them: one block of threads for each row. As
 * device/finite.c decides it, in the same order where that counts.
 */

/* How many of the thread's elements reach the limit. Magnitudes order as their bits do,
    NaNs last. */
TERN_VERB int32_t reaching(const tern_cuda_watch &w, const float *x) {
    const uint32_t limit = __float_as_uint(w.limit);
    int32_t n = 0;

    for (size_t i = threadIdx.x; i < w.a.x.n; i += TERN_CUDA_THREADS)
        n += (__float_as_uint(x[i]) & 0x7fffffffu) >= limit;
    return n;
}

/* Whether rmsnorm can add up the squares, although some are large; false for a NaN. One thread. */
TERN_VERB bool squares_fit(const float *x, size_t n) {
    double sum = 0.0;

    for (size_t i = 0; i < n; i++)
        sum = __dadd_rn(sum, __dmul_rn((double)x[i], (double)x[i]));
    return sum < 0x1.ffp127;
}

TERN_KERNEL(TERN_CUDA_THREADS, tern_watch_cuda) {
    __shared__ int32_t integers[TERN_CUDA_WARPS];
    const tern_cuda_watch &w = job.watch;

    for (size_t row = blockIdx.x; row < w.a.x.rows; row += gridDim.x) {
        const float *x = w.a.x.data + row * w.a.x.stride;
        const int32_t n = block_sum(reaching(w, x), integers);
        if (n > 0 && threadIdx.x == 0 && !(w.a.squares && squares_fit(x, w.a.x.n)))
            atomicMin(&w.a.notes[w.a.at[row / w.a.group].sequence], w.a.code);
    }
}
} // namespace code_of_tern_watch_cuda
