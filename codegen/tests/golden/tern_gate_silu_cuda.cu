/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_gate_silu_cuda of kernels/kernels.toml
 * and template kernels/cuda/elementwise.cu.j2. Do not edit.
 */

#include "kernels/cuda/rows.cuh"
#include "kernels/isa/cuda.cuh"

namespace code_of_tern_gate_silu_cuda {
/* One result per element of two rows. */

TERN_VERB float combine(float a, float b) {
    return vf_mul(vf_div(a, vf_add(1.0f, vf_exp(vf_sub(0.0f, a)))), b);
}

/* a[i]; its row is looked at. */
TERN_VERB float watched(const tern_cuda_elementwise &e, size_t i) {
    const float a = e.a[i];
    if (e.watch.a.notes != NULL)
        watch(e.watch, i / e.watch.a.x.n, a);
    return a;
}

TERN_KERNEL(TERN_CUDA_THREADS, tern_gate_silu_cuda) {
    const tern_cuda_elementwise &e = job.elementwise;
    const size_t step = gridDim.x * (size_t)TERN_CUDA_THREADS;

    for (size_t i = blockIdx.x * (size_t)TERN_CUDA_THREADS + threadIdx.x; i < e.n; i += step)
        e.y[i] = combine(watched(e, i), e.b[i]);
}
} // namespace code_of_tern_gate_silu_cuda
