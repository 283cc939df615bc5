/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_KERNELS_ATTEND_H
#define TERN_KERNELS_ATTEND_H

/* Sizes that the attend kernels and the functions that size their memory agree on, in floats. */

#include <math.h>
#include <stddef.h>

#include "tern/kernels.h"

enum {
    TERN_ATTEND_HEADS = 4, /* heads that go together: what is read of the cache serves them */
    TERN_ATTEND_MANY = 6,  /* heads that go together at most, where there are registers for them */
    TERN_ATTEND_TILE = 64, /* heads of a tile at most: what is widened once serves all of them */
    TERN_ATTEND_COLUMNS = 64, /* of a chunk's values that a tile widens at once, at most */
    TERN_ATTEND_TURNED = 32   /* elements of keys that are turned at once */
};

/* The place of a state's maximum and sum: after its values, padded to whole vectors. */
static inline size_t tern_attend_padded(size_t dim) {
    return (dim + TERN_LANES - 1) / TERN_LANES * TERN_LANES;
}

/* The state of a head. */
static inline size_t tern_attend_state(size_t dim) {
    return tern_attend_padded(dim) + TERN_LANES;
}

/* The part that a tile widens at once: the keys of a chunk, or columns of its values. */
static inline size_t tern_attend_wide(size_t dim) {
    const size_t turned = (dim + TERN_ATTEND_TURNED - 1) / TERN_ATTEND_TURNED * TERN_ATTEND_TURNED;
    const size_t columns = turned > TERN_ATTEND_COLUMNS ? turned : TERN_ATTEND_COLUMNS;
    return TERN_ATTEND_CHUNK * columns;
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
