/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from kernel tern_gemv_i2_s_16x1_cuda of kernels/kernels.toml
 * and template kernels/cuda/matmul_ternary.cu.j2. Do not edit.
 */

#include "kernels/cuda/rows.cuh"
#include "kernels/isa/cuda.cuh"

namespace code_of_tern_gemv_i2_s_16x1_cuda {
/*
 * Ternary matrix product over layout T2R16. A block of threads takes one group of 16 rows: each
 * thread loads 16 bytes, four rows of a chunk, so that a warp reads 512 consecutive bytes, and the
 * warps share the chunks. Sums are integers: their order does not matter.
 */

enum {
    CHUNK_BYTES = 64,
    CHUNK_COLS = 16,
    WARP_CHUNKS = 8, /* 512 bytes */
    STEP_CHUNKS = TERN_CUDA_WARPS * WARP_CHUNKS,
    TOKENS = 1,
    AHEAD = 4 /* chunks of a thread that are asked for together */
};

/* The codes that a thread begins with: its quarter of chunks c0, c0 + STEP_CHUNKS, ... of a group;
 * zeros after the last one. */
TERN_VERB void load_ahead(const uint8_t *mine, size_t c0, size_t chunks, uint4 *ahead) {
#pragma unroll
    for (int j = 0; j < AHEAD; j++) {
        const size_t c = c0 + (size_t)j * STEP_CHUNKS;
        ahead[j] = c < chunks ? load16(mine + c * CHUNK_BYTES) : make_uint4(0, 0, 0, 0);
    }
}

/* 16 rows x TOKENS tokens from t; tokens past the last one repeat it and are not stored. The first
 * tile of a block asks for weights before it waits for what the activations are made of. */
TERN_VERB void tile(const tern_cuda_matmul &m, size_t row0, size_t t, bool first,
                    int32_t part[][TOKENS][16]) {
    const size_t chunks = (m.w.cols + CHUNK_COLS - 1) / CHUNK_COLS;
    const uint8_t *group = (const uint8_t *)m.w.data + row0 / TERN_ROW_GROUP * chunks * CHUNK_BYTES;
    const size_t last = m.tile.t1 - 1;
    const unsigned warp = threadIdx.x / TERN_CUDA_WARP;
    const unsigned lane = threadIdx.x % TERN_CUDA_WARP;
    const uint8_t *mine = group + lane % 4 * 16;
    int32_t sum[TOKENS][4] = {};
    uint4 ahead[AHEAD];

    size_t c0 = warp * WARP_CHUNKS + lane / 4;
    load_ahead(mine, c0, chunks, ahead);
    if (first)
        grid_wait();
    for (; c0 < chunks; c0 += AHEAD * STEP_CHUNKS) {
        uint4 now[AHEAD];
#pragma unroll
        for (int j = 0; j < AHEAD; j++)
            now[j] = ahead[j];
        load_ahead(mine, c0 + AHEAD * STEP_CHUNKS, chunks, ahead);
#pragma unroll
        for (int j = 0; j < AHEAD; j++) {
            const uint4 codes = now[j];
            const size_t c = smaller(c0 + (size_t)j * STEP_CHUNKS, chunks - 1);
#pragma unroll
            for (int i = 0; i < TOKENS; i++) {
                const size_t token = smaller(t + (size_t)i, last);
                const uint4 x = load16(m.x.q + token * m.x.q_stride + c * CHUNK_COLS);
                sum[i][0] = vi_dot_ternary(sum[i][0], codes.x, x);
                sum[i][1] = vi_dot_ternary(sum[i][1], codes.y, x);
                sum[i][2] = vi_dot_ternary(sum[i][2], codes.z, x);
                sum[i][3] = vi_dot_ternary(sum[i][3], codes.w, x);
            }
        }
    }
#pragma unroll
    for (int i = 0; i < TOKENS; i++) {
#pragma unroll
        for (int k = 0; k < 4; k++) { /* lanes that agree modulo 4 have the same rows */
            const int32_t total = warp_sum(sum[i][k], 4, 16);
            if (lane < 4)
                part[warp][i][lane * 4 + (unsigned)k] = total;
        }
    }
    __syncthreads();
    const unsigned r = threadIdx.x % TERN_ROW_GROUP;
    const unsigned i = threadIdx.x / TERN_ROW_GROUP;
    if (i < TOKENS && t + i <= last && row0 + r < m.tile.r1) {
        int32_t raw = 0;
        for (int w = 0; w < TERN_CUDA_WARPS; w++)
            raw += part[w][i][r];
        m.y[(t + i) * m.y_stride + row0 + r] = ternary_y(m, row0 + r, t + i, raw);
    }
    __syncthreads();
}

TERN_KERNEL_AHEAD(TERN_CUDA_THREADS, tern_gemv_i2_s_16x1_cuda) {
    __shared__ int32_t part[TERN_CUDA_WARPS][TOKENS][16];
    const tern_cuda_matmul &m = job.products[blockIdx.z];
    const size_t row0 = m.tile.r0 + blockIdx.x * (size_t)TERN_ROW_GROUP;

    if (row0 >= m.tile.r1) /* another product has more */
        return;
    const size_t t0 = m.tile.t0 + blockIdx.y * TOKENS;
    for (size_t t = t0; t < m.tile.t1; t += gridDim.y * TOKENS)
        tile(m, row0, t, t == t0, part);
}
} // namespace code_of_tern_gemv_i2_s_16x1_cuda
