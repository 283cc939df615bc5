/* SPDX-License-Identifier: Apache-2.0 */

#include "kernels/attend.h"

size_t tern_attend_state_bytes(size_t heads, size_t dim) {
    return heads * tern_attend_state(dim) * sizeof(float);
}

/*
 * For the heads of a tile scores and states. For heads that go together the lanes of 16 scores.
 * Widened values. For a cache of codes: scales and the weights of heads that go together as 16-bit
 * codes. All query heads, rounded, or as codes with a factor.
 */
size_t tern_attend_scratch_bytes(size_t heads, size_t dim) {
    const size_t blocks = tern_attend_blocks(dim);
    const size_t together = heads < TERN_ATTEND_TILE ? heads : TERN_ATTEND_TILE;
    const size_t tile = together * (TERN_ATTEND_CHUNK + tern_attend_state(dim));
    const size_t lanes = TERN_ATTEND_MANY * TERN_LANES * TERN_LANES;
    const size_t codes = 4 * TERN_ATTEND_CHUNK * blocks + TERN_LANES;
    const size_t queries = heads * (tern_attend_padded(dim) + TERN_LANES);
    return (tile + lanes + tern_attend_wide(dim) + codes + queries) * sizeof(float);
}

void tern_attend_all(const tern_kernel_row *kernel, const tern_attend_args *args, void *states,
                     float *out, size_t out_stride) {
    kernel->fn.attend.chunks(args, 0, tern_attend_chunks(&args->heads), states, 0);
    kernel->fn.attend.finish(&args->heads, states, out, out_stride);
}
