/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_embed_q4_1_cuda of kernels/kernels.toml
 * and template kernels/cuda/embed.cu.j2. Do not edit.
 */

#include "kernels/cuda/rows.cuh"
#include "kernels/isa/cuda.cuh"

namespace code_of_tern_embed_q4_1_cuda {
/* Rows of an embedding matrix in the file's own layout to floats: one block of threads for each. */

/* Element i of a row. */
TERN_VERB float value(const void *row, size_t i) {
    const uint8_t *block = (const uint8_t *)row + i / TERN_BLOCK * 20;
    const unsigned j = (unsigned)(i % TERN_BLOCK);
    const uint8_t both = block[4 + j % 16];
    const int32_t code = (j < 16 ? both & 15 : both >> 4);
    const float product = vf_mul((float)code, vf_load_f16(block));
    return vf_add(product, vf_load_f16(block + 2));
}

TERN_KERNEL(TERN_CUDA_THREADS, tern_embed_q4_1_cuda) {
    const tern_cuda_embed &e = job.embed;
    const size_t row_bytes = e.w.cols / TERN_BLOCK * 20;

    for (size_t t = blockIdx.x; t < e.y.rows; t += gridDim.x) {
        const uint8_t *row = (const uint8_t *)e.w.data + (size_t)e.ids[t] * row_bytes;
        for (size_t i = threadIdx.x; i < e.y.n; i += TERN_CUDA_THREADS)
            e.y.data[t * e.y.stride + i] = vf_mul(value(row, i), e.factor);
    }
}
} // namespace code_of_tern_embed_q4_1_cuda
