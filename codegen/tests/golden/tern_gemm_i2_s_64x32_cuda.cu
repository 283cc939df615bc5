/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_gemm_i2_s_64x32_cuda of kernels/kernels.toml
 * and template kernels/cuda/matmul_ternary_gemm.cu.j2. Do not edit.
 */

#include "kernels/cuda/rows.cuh"
#include "kernels/isa/cuda.cuh"

namespace code_of_tern_gemm_i2_s_64x32_cuda {
/*
 * Ternary matrix product over layout T2R16 for many tokens, on the units that multiply small
 * matrices. A block of threads takes 64 rows and 32 tokens, and its warps share the columns. Sums
 * are integers: their order does not matter. So the word of a chunk that a thread has, and the 16
 * activations that it meets, are the thread's share of two such products as they are.
 */

enum {
    CHUNK_BYTES = 64,
    CHUNK_COLS = 16,
    STEP_CHUNKS = 4, /* 64 columns */
    ROWS = 64,
    TOKENS = 32,
    GROUPS = ROWS / TERN_ROW_GROUP,
    TILES = TOKENS / 8, /* of tokens in one of the products */
    WARPS = TERN_CUDA_TILE_THREADS / TERN_CUDA_WARP
};

/* Sums of each warp for each token and row, whose padding keeps a warp's stores in other banks. */
typedef int32_t partial[WARPS][TOKENS][ROWS + 4];

/* Rows 2g and 2g + 1 of each group and the columns of chunk j times 8 tokens: see warp_multiply. */
TERN_VERB void multiply(int32_t (&sum)[GROUPS][TILES][4], const uint2 (&codes)[GROUPS],
                        const uint4 (&x)[TILES]) {
    const uint32_t mask = 0x03030303u;

#pragma unroll
    for (unsigned g = 0; g < GROUPS; g++) {
        const uint2 w = codes[g];
        const uint32_t first[4] = {w.x & mask, w.y & mask, w.x >> 2 & mask, w.y >> 2 & mask};
        const uint32_t second[4] = {w.x >> 4 & mask, w.y >> 4 & mask, w.x >> 6 & mask,
            w.y >> 6 & mask};
#pragma unroll
        for (unsigned i = 0; i < TILES; i++) {
            warp_multiply(sum[g][i], first, x[i].x, x[i].y);
            warp_multiply(sum[g][i], second, x[i].z, x[i].w);
        }
    }
}

/* This warp's columns of the block's tile. Groups and tokens past the last one repeat it. */
TERN_VERB void add_columns(const tern_cuda_matmul &m, size_t row0, size_t t,
                           int32_t (&sum)[GROUPS][TILES][4]) {
    const size_t chunks = (m.w.cols + CHUNK_COLS - 1) / CHUNK_COLS;
    const unsigned warp = threadIdx.x / TERN_CUDA_WARP;
    const unsigned g = threadIdx.x % TERN_CUDA_WARP / 4;
    const unsigned j = threadIdx.x % 4;
    const uint8_t *w[GROUPS];
    const int8_t *q[TILES];

#pragma unroll
    for (unsigned i = 0; i < GROUPS; i++) {
        const size_t group = smaller(row0 / TERN_ROW_GROUP + i, (m.tile.r1 - 1) / TERN_ROW_GROUP);
        w[i] = (const uint8_t *)m.w.data + group * chunks * CHUNK_BYTES + g * 8;
    }
#pragma unroll
    for (unsigned i = 0; i < TILES; i++)
        q[i] = m.x.q + smaller(t + 8 * i + g, m.tile.t1 - 1) * m.x.q_stride;
    for (size_t first = warp * STEP_CHUNKS; first < chunks; first += WARPS * STEP_CHUNKS) {
        const size_t c = first + j;
        uint2 codes[GROUPS];
        uint4 x[TILES];
#pragma unroll
        for (unsigned i = 0; i < GROUPS; i++)
            codes[i] = c < chunks ? load8(w[i] + c * CHUNK_BYTES) : make_uint2(0, 0);
#pragma unroll
        for (unsigned i = 0; i < TILES; i++) /* activations end at a multiple of 64 */
            x[i] = load16(q[i] + c * CHUNK_COLS);
        multiply(sum, codes, x);
    }
}

/* 64 rows x TOKENS tokens from t. */
TERN_VERB void tile(const tern_cuda_matmul &m, size_t row0, size_t t, partial &part) {
    const unsigned warp = threadIdx.x / TERN_CUDA_WARP;
    const unsigned g = threadIdx.x % TERN_CUDA_WARP / 4;
    const unsigned j = threadIdx.x % 4;
    const size_t row = row0 + threadIdx.x % ROWS;
    int32_t sum[GROUPS][TILES][4] = {};

    add_columns(m, row0, t, sum);
#pragma unroll
    for (unsigned k = 0; k < GROUPS; k++) {
#pragma unroll
        for (unsigned i = 0; i < TILES; i++) {
            int32_t(*to)[ROWS + 4] = &part[warp][8 * i + 2 * j];
            *(int2 *)&to[0][TERN_ROW_GROUP * k + 2 * g] = make_int2(sum[k][i][0], sum[k][i][2]);
            *(int2 *)&to[1][TERN_ROW_GROUP * k + 2 * g] = make_int2(sum[k][i][1], sum[k][i][3]);
        }
    }
    __syncthreads();
    for (unsigned i = threadIdx.x / ROWS; i < TOKENS; i += TERN_CUDA_TILE_THREADS / ROWS) {
        int32_t raw = 0;
        for (unsigned k = 0; k < WARPS; k++)
            raw += part[k][i][threadIdx.x % ROWS];
        if (row < m.tile.r1 && t + i < m.tile.t1)
            m.y[(t + i) * m.y_stride + row] = ternary_y(m, row, t + i, raw);
    }
    __syncthreads();
}

TERN_KERNEL(TERN_CUDA_TILE_THREADS, tern_gemm_i2_s_64x32_cuda) {
    alignas(16) __shared__ partial part;
    const tern_cuda_matmul &m = job.products[blockIdx.z];
    const size_t row0 = m.tile.r0 + blockIdx.x * (size_t)ROWS;

    if (row0 >= m.tile.r1) /* another product has more */
        return;
    for (size_t t = m.tile.t0 + blockIdx.y * TOKENS; t < m.tile.t1; t += gridDim.y * TOKENS)
        tile(m, row0, t, part);
}
} // namespace code_of_tern_gemm_i2_s_64x32_cuda
