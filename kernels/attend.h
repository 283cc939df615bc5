/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_KERNELS_ATTEND_H
#define TERN_KERNELS_ATTEND_H

/* What the attend rows and the functions that size their memory agree on. Sizes are in floats. */

#include <math.h>
#include <stddef.h>

#include "tern/kernels.h"

enum {
    TERN_ATTEND_HEADS = 4, /* heads that go together: what is read of the cache serves them */
    TERN_ATTEND_TILE = 16, /* heads of a tile at most: what four of them widen serves the others */
    TERN_ATTEND_COLUMNS = 64 /* of a chunk's values that a tile widens at once, at most */
};

/* Where the maximum and the sum of a state stand: after its values, padded to whole vectors. */
static inline size_t tern_attend_padded(size_t dim) {
    return (dim + TERN_LANES - 1) / TERN_LANES * TERN_LANES;
}

/* The state of a head. */
static inline size_t tern_attend_state(size_t dim) {
    return tern_attend_padded(dim) + TERN_LANES;
}

/* What a tile widens at once: the keys of 16 positions, or columns of a chunk's values. */
static inline size_t tern_attend_wide(size_t dim) {
    const size_t keys = TERN_LANES * tern_attend_padded(dim);
    const size_t values = TERN_ATTEND_CHUNK * TERN_ATTEND_COLUMNS;
    return keys > values ? keys : values;
}

/* Blocks of a row of codes. */
static inline size_t tern_attend_blocks(size_t dim) {
    return (dim + TERN_BLOCK - 1) / TERN_BLOCK;
}

/* Chunks that the last token sees. */
static inline size_t tern_attend_chunks(const tern_attend_heads *heads) {
    const size_t seen = heads->positions + heads->tokens - 1;
    return (seen + TERN_ATTEND_CHUNK - 1) / TERN_ATTEND_CHUNK;
}

#endif
