/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_quantize_block_cuda of kernels/kernels.toml
 * and template kernels/cuda/quantize_block.cu.j2. Do not edit.
 */

#include "kernels/cuda/rows.cuh"
#include "kernels/isa/cuda.cuh"

namespace code_of_tern_quantize_block_cuda {
/* Activations to int8 with a scale for each 32 columns: one warp for each, one thread a column. */

/* Block b of token t; blocks after the row's end are only zeros that pad it. */
TERN_VERB void quantize(const tern_cuda_quantize &a, size_t t, size_t b) {
    const unsigned lane = threadIdx.x % TERN_CUDA_WARP;
    const size_t i = b * TERN_BLOCK + lane;
    const float x = i < a.x.n ? a.x.data[t * a.x.stride + i] : 0.0f;
    const float amax = warp_max(vf_max(vf_abs(x), 1e-30f));
    const int32_t code = vi_quantize(vf_mul(x, vf_div(127.0f, amax)), -127.0f);
    const int32_t sum = warp_sum(code, 1, 16);

    a.out.q[t * a.out.q_stride + i] = (int8_t)code;
    if (lane == 0 && i < a.x.n) {
        a.out.d[t * a.out.d_stride + b] = vf_div(amax, 127.0f);
        a.out.block_sum[t * a.out.d_stride + b] = sum;
    }
}

TERN_KERNEL(TERN_CUDA_THREADS, tern_quantize_block_cuda) {
    const tern_cuda_quantize &a = job.quantize;
    const size_t padded = (a.x.n + TERN_Q_PAD - 1) / TERN_Q_PAD * (TERN_Q_PAD / TERN_BLOCK);
    const size_t warp = threadIdx.x / TERN_CUDA_WARP;

    for (size_t t = blockIdx.y; t < a.x.rows; t += gridDim.y)
        for (size_t b =
            blockIdx.x * TERN_CUDA_WARPS + warp; b < padded; b += gridDim.x * TERN_CUDA_WARPS)
            quantize(a, t, b);
}
} // namespace code_of_tern_quantize_block_cuda
