/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_round_fp8_cuda of kernels/kernels.toml
 * and template kernels/cuda/round.cu.j2. Do not edit.
 */

#include "kernels/cuda/rows.cuh"
#include "kernels/isa/cuda.cuh"

namespace code_of_tern_round_fp8_cuda {
/* Rows of activations,
    rounded to what another precision holds: one block of threads for each row. */
enum { EXPONENT = 8 }; /* of the largest value */

TERN_VERB float rounded(float x, float scale, float inverse) {
    const float v = vf_min(0x1.cp8f, vf_mul(vf_abs(x), inverse)); /* keeps a NaN */
    const float binade = vf_max(0x1p-6f, vf_binade(v));
    const float magic = vf_mul(binade, 0x1.8p20f);
    return vf_copysign(vf_mul(vf_sub(vf_add(v, magic), magic), scale), x);
}

/* The scale as kernels/fp8.h has it. */
TERN_VERB void round_row(const float *x, size_t n, float *y, float *largest) {
    float m = 0x1p-100f;

    for (size_t i = threadIdx.x; i < n; i += TERN_CUDA_THREADS)
        m = vf_max(vf_abs(x[i]), m);
    const float amax = vf_min(block_max(m, largest), 0x1.fffffep127f);
    const uint32_t s = ((__float_as_uint(amax) + 0x1fffffu) >> 23) - EXPONENT;
    const float scale = __uint_as_float(s << 23), inverse = __uint_as_float((254u - s) << 23);
    for (size_t i = threadIdx.x; i < n; i += TERN_CUDA_THREADS)
        y[i] = rounded(x[i], scale, inverse);
}

TERN_KERNEL(TERN_CUDA_THREADS, tern_round_fp8_cuda) {
    __shared__ float largest[TERN_CUDA_WARPS];
    const tern_cuda_round &a = job.round;

    for (size_t t = blockIdx.x; t < a.x.rows; t += gridDim.x)
        round_row(a.x.data + t * a.x.stride, a.x.n, a.y.data + t * a.y.stride, largest);
}
} // namespace code_of_tern_round_fp8_cuda
