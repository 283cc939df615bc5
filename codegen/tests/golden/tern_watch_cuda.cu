/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generated from row tern_watch_cuda of kernels/kernels.toml
 * and template kernels/cuda/watch.cu.j2. Do not edit.
 */

#include "kernels/cuda/rows.cuh"
#include "kernels/isa/cuda.cuh"

namespace code_of_tern_watch_cuda {
/* Whether numbers stay below what holds them, where no other kernel reads them next. */

TERN_KERNEL(TERN_CUDA_THREADS, tern_watch_cuda) {
    const tern_cuda_watch &w = job.watch;

    for (size_t row = blockIdx.x; row < w.a.x.rows; row += gridDim.x) {
        const float *x = w.a.x.data + row * w.a.x.stride;
        for (size_t i = threadIdx.x; i < w.a.x.n; i += TERN_CUDA_THREADS)
            watch(w, row, x[i]);
    }
}
} // namespace code_of_tern_watch_cuda
