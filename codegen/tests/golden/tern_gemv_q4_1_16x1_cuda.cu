/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_gemv_q4_1_16x1_cuda of kernels/kernels.toml
 * and template kernels/cuda/matmul_block.cu.j2. Do not edit.
 */

#include "kernels/cuda/rows.cuh"
#include "kernels/isa/cuda.cuh"

namespace code_of_tern_gemv_q4_1_16x1_cuda {
/*
 * Matrix product over block formats in the R16 layouts. A block of threads takes one group of 16
 * rows. The integer part and the products of a 32-column block are computed by a warp or half a
 * warp, in any order; the float sums of docs/numerics.md, block after block, by one thread for each
 * row and token out of shared memory.
 */

enum {
    TOKENS = 1,
    HEADER_BYTES = 64,
    CODE_BYTES = 256,
    BLOCK_BYTES = HEADER_BYTES + CODE_BYTES,
    BLOCK_LANES = CODE_BYTES / 16, /* threads of a block: 16 bytes each */
    CODE_BIAS = 0, /* what a code exceeds its weight by */
    TERMS = 2, /* of each block */
    STEPS = 4, /* blocks that a thread has in flight */
    PHASE = STEPS * TERN_CUDA_THREADS / BLOCK_LANES /* blocks between two barriers */
};

/* Terms of one phase: for each block, token and row. At most 8 KB. */
typedef float terms[PHASE][TOKENS][TERMS][16];

/* Sum of codes x activations of the four rows of a word group in one block, for the lane's row. */
TERN_VERB int32_t dot(uint4 codes, const int8_t *q, unsigned chunk) {
    const uint2 x = load8(q + chunk * 8);
    const int32_t s0 = warp_sum(vi_dot_nibbles(codes.x, x), 4, BLOCK_LANES / 2);
    const int32_t s1 = warp_sum(vi_dot_nibbles(codes.y, x), 4, BLOCK_LANES / 2);
    const int32_t s2 = warp_sum(vi_dot_nibbles(codes.z, x), 4, BLOCK_LANES / 2);
    const int32_t s3 = warp_sum(vi_dot_nibbles(codes.w, x), 4, BLOCK_LANES / 2);
    return chunk == 0 ? s0 : chunk == 1 ? s1 : chunk == 2 ? s2 : s3;
}

/* The terms of block `first` + slot. Blocks and tokens past the last one repeat it. */
TERN_VERB void block_terms(const tern_cuda_matmul &m, const uint8_t *group, size_t first,
                                  unsigned slot, size_t t, terms &out) {
    const size_t end = m.w.cols / TERN_BLOCK;
    const size_t b = smaller(first + slot, end - 1);
    const uint8_t *block = group + b * BLOCK_BYTES;
    const unsigned lane = threadIdx.x % BLOCK_LANES;
    const unsigned chunk = lane / 4;
    const unsigned r = lane % 4 * 4 + chunk % 4; /* the row that this thread finishes */
    const uint4 codes = load16(block + HEADER_BYTES + lane * 16);
    const float d = vf_load_f16(block + 2 * r);
    const float minimum = vf_load_f16(block + 32 + 2 * r);
#pragma unroll
    for (unsigned i = 0; i < TOKENS; i++) {
        const size_t token = smaller(t + i, m.tile.t1 - 1);
        const size_t at = token * m.x.d_stride + b;
        const int32_t sum = dot(codes, m.x.q + token * m.x.q_stride + b * TERN_BLOCK, chunk);
        if (chunk >= 4)
            continue;
        const int32_t exact = sum - CODE_BIAS * m.x.block_sum[at];
        out[slot][i][0][r] = vf_mul((float)exact, vf_mul(d, m.x.d[at]));
        out[slot][i][1][r] = vf_mul(minimum, vf_mul(m.x.d[at], (float)m.x.block_sum[at]));
    }
}

/* 16 rows x TOKENS tokens from t. */
TERN_VERB void tile(const tern_cuda_matmul &m, size_t row0, size_t t, terms &shared) {
    const size_t blocks = m.w.cols / TERN_BLOCK;
    const uint8_t *group = (const uint8_t *)m.w.data + row0 / TERN_ROW_GROUP * blocks * BLOCK_BYTES;
    const unsigned r = threadIdx.x % TERN_ROW_GROUP;
    const unsigned i = threadIdx.x / TERN_ROW_GROUP;
    float y = 0.0f;

    for (size_t b = 0; b < blocks; b += PHASE) {
        const size_t n = smaller(blocks - b, PHASE);
#pragma unroll
        for (unsigned step = 0; step < STEPS; step++)
            block_terms(m, group, b, (step * TERN_CUDA_THREADS + threadIdx.x) / BLOCK_LANES, t,
                shared);
        __syncthreads();
        for (size_t k = 0; k < n && i < TOKENS; k++)
            for (int term = 0; term < TERMS; term++)
                y = vf_add(y, shared[k][i][term][r]);
        __syncthreads();
    }
    if (i < TOKENS && t + i < m.tile.t1 && row0 + r < m.tile.r1)
        m.y[(t + i) * m.y_stride + row0 + r] = y;
}

TERN_KERNEL(TERN_CUDA_THREADS, tern_gemv_q4_1_16x1_cuda) {
    __shared__ terms shared;
    const tern_cuda_matmul &m = job.products[blockIdx.z];
    const size_t row0 = m.tile.r0 + blockIdx.x * (size_t)TERN_ROW_GROUP;

    if (row0 >= m.tile.r1) /* another product has more */
        return;
    for (size_t t = m.tile.t0 + blockIdx.y * TOKENS; t < m.tile.t1; t += gridDim.y * TOKENS)
        tile(m, row0, t, shared);
}
} // namespace code_of_tern_gemv_q4_1_16x1_cuda
