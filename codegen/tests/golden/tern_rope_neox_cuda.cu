/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_rope_neox_cuda of kernels/kernels.toml
 * and template kernels/cuda/rope.cu.j2. Do not edit.
 */

#include "kernels/cuda/rows.cuh"
#include "kernels/isa/cuda.cuh"

namespace code_of_tern_rope_neox_cuda {
/* Rotary position embedding in place: one block of threads for a head of a token, one pair each. */
TERN_KERNEL(TERN_CUDA_THREADS, tern_rope_neox_cuda) {
    const tern_cuda_rope &rope = job.ropes[blockIdx.z];
    const tern_device_rope &a = rope.a;

    for (size_t head = blockIdx.x; head < a.heads * a.tokens; head += gridDim.x) {
        const size_t t = head / a.heads;
        float *x = a.x + t * a.stride + head % a.heads * a.dim;
        for (size_t i = threadIdx.x; i < a.half; i += TERN_CUDA_THREADS) {
            float *first = x + i;
            float *second = first + a.half;
            const float c = a.c[t * a.half + i];
            const float s = a.s[t * a.half + i];
            const float x0 = *first;
            const float x1 = *second;
            const float y0 = vf_sub(vf_mul(x0, c), vf_mul(x1, s));
            const float y1 = vf_add(vf_mul(x0, s), vf_mul(x1, c));
            *first = y0;
            *second = y1;
            watch(rope.watch, head, y0);
            watch(rope.watch, head, y1);
        }
    }
}
} // namespace code_of_tern_rope_neox_cuda
