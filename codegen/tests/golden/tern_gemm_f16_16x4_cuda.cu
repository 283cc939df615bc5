/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_gemm_f16_16x4_cuda of kernels/kernels.toml
 * and template kernels/cuda/matmul_float.cu.j2. Do not edit.
 */

#include "kernels/isa/cuda.cuh"

namespace code_of_tern_gemm_f16_16x4_cuda {
/*
 * Matrix product over float weights in the file's own layout. Four threads take a row: thread j
 * keeps virtual lanes 4j .. 4j+3, so each sums its columns in the canonical order, and a warp reads
 * whole 32-byte sectors of eight rows.
 */

enum {
    TOKENS = 4,
    ROW_THREADS = 4
};

typedef uint16_t element;

TERN_VERB float4 multiply_add(float4 p, float4 w, float4 x) {
    return make_float4(vf_add(p.x, vf_mul(w.x, x.x)), vf_add(p.y, vf_mul(w.y, x.y)),
                       vf_add(p.z, vf_mul(w.z, x.z)), vf_add(p.w, vf_mul(w.w, x.w)));
}

/* What virtual lane j of a row has to add at distance 8, then 4, lies 2, then 1 thread further. */
TERN_VERB float4 add_from(float4 p, unsigned distance) {
    return make_float4(vf_add(p.x, __shfl_down_sync(TERN_FULL_WARP, p.x, distance, ROW_THREADS)),
                       vf_add(p.y, __shfl_down_sync(TERN_FULL_WARP, p.y, distance, ROW_THREADS)),
                       vf_add(p.z, __shfl_down_sync(TERN_FULL_WARP, p.z, distance, ROW_THREADS)),
                       vf_add(p.w, __shfl_down_sync(TERN_FULL_WARP, p.w, distance, ROW_THREADS)));
}

/* One row (the last one again past the end) x TOKENS tokens from t. */
TERN_VERB void tile(const tern_cuda_matmul &m, size_t row, size_t t) {
    const size_t cols = m.w.cols;
    const unsigned j = threadIdx.x % ROW_THREADS;
    const element *w = (const element *)m.w.data + smaller(row, m.tile.r1 - 1) * cols;
    float4 p[TOKENS];

#pragma unroll
    for (int i = 0; i < TOKENS; i++)
        p[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 4
    for (size_t k = 4 * j; k < cols; k += TERN_LANES) {
        const float4 weights = load_floats_f16(w + k, cols - k);
#pragma unroll
        for (unsigned i = 0; i < TOKENS; i++) {
            const size_t token = smaller(t + i, m.tile.t1 - 1);
            p[i] = multiply_add(p[i], weights, load_floats_f32(m.x.x + token * m.x.x_stride + k,
                cols - k));
        }
    }
#pragma unroll
    for (unsigned i = 0; i < TOKENS; i++) {
        const float4 s = add_from(add_from(p[i], 2), 1);
        const float y = vf_add(vf_add(s.x, s.z), vf_add(s.y, s.w));
        if (j == 0 && row < m.tile.r1 && t + i < m.tile.t1)
            m.y[(t + i) * m.y_stride + row] = y;
    }
}

TERN_KERNEL(TERN_CUDA_FLOAT_THREADS, tern_gemm_f16_16x4_cuda) {
    const tern_cuda_matmul &m = job.matmul;
    const size_t row = m.tile.r0 + blockIdx.x * (size_t)TERN_ROW_GROUP + threadIdx.x / ROW_THREADS;

    for (size_t t = m.tile.t0 + blockIdx.y * TOKENS; t < m.tile.t1; t += gridDim.y * TOKENS)
        tile(m, row, t);
}
} // namespace code_of_tern_gemm_f16_16x4_cuda
