/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_store_f16_cuda of kernels/kernels.toml
 * and template kernels/cuda/store.cu.j2. Do not edit.
 */

#include "kernels/cuda/rows.cuh"
#include "kernels/isa/cuda.cuh"

namespace code_of_tern_store_f16_cuda {
/* Rows of floats to the format of the key/value cache. */
/* Where a row goes: in order, or to its head of the page that holds the token's position. */
TERN_VERB uint16_t *place(const tern_cuda_store &a, size_t row) {
    if (a.at == nullptr)
        return (uint16_t *)a.out + row * a.stride;
    const tern_device_place at = a.at[row / a.heads];
    const size_t page = a.tables[at.sequence][at.position / TERN_ATTEND_CHUNK];
    uint8_t *head = (uint8_t *)a.out + page * a.page_stride + row % a.heads * a.head_stride;
    return (uint16_t *)head + at.position % TERN_ATTEND_CHUNK * a.stride;
}

TERN_KERNEL(TERN_CUDA_THREADS, tern_store_f16_cuda) {
    const tern_cuda_store &a = job.stores[blockIdx.z];

    for (size_t row = blockIdx.x; row < a.x.rows; row += gridDim.x) {
        const float *x = a.x.data + row / a.heads * a.token + row % a.heads * a.x.stride;
        uint16_t *out = place(a, row);
        for (size_t i = threadIdx.x; i < a.x.n; i += TERN_CUDA_THREADS) {
            watch(a.watch, row, x[i]);
            out[i] = vf_to_f16(x[i]);
        }
    }
}
} // namespace code_of_tern_store_f16_cuda
