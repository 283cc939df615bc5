/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_ATTEND_H
#define TERN_ATTEND_H

/* The functions of an attention kernel, and what they work on. kernels.h, which includes this, has
 * the rules of ownership and alignment, and the size of a chunk. */

#include <stddef.h>
#include <stdint.h>

#include "tern/status.h"

TERN_API_BEGIN

/*
 * attend: causal attention of the query heads of some tokens over one key/value head, in three
 * functions. Positions are taken in chunks of TERN_ATTEND_CHUNK. `chunks` gives every head a state
 * for each chunk, `merge` merges states in the order of their chunks, `finish` adds the sinks,
 * where there are any, and divides. A state depends on its chunk alone, and the order of merging is
 * fixed, so chunks may be shared by any number of callers, in any order. A state is memory that
 * only these functions read. tern_attend_state_bytes says how much one chunk takes for all heads of
 * a call; 64-byte aligned. Heads of tokens that do not see a chunk have no state of it: their part
 * of the memory is neither read nor written.
 */

/* The query heads of a call: token t sees positions [0, positions + t). All at least 1. */
typedef struct tern_attend_heads {
    size_t positions;   /* that the first token sees */
    size_t tokens;      /* that follow each other in one sequence */
    size_t group;       /* heads of a token */
    size_t dim;         /* elements of a head */
    const float *sinks; /* [group]: a logit of each head that joins its maximum and sum, and gives
                         * no value; only `finish` reads them. NULL: none */
} tern_attend_heads;

/*
 * Keys and values lie in pages: TERN_ATTEND_CHUNK rows, one after the other, of dim elements in the
 * kernel's cache format (a row of Q8_0 is whole blocks: ceil(dim / 32) * 34 bytes).
 * Chunk c of the keys begins at k + pages[c] * page_stride, of the values at v + pages[c] *
 * page_stride. As many positions are read as the last token sees. Alignment: an element's.
 */
typedef struct tern_attend_args {
    tern_attend_heads heads;
    const float *q;        /* [tokens][group][dim] */
    size_t q_stride;       /* from a token's first head to the next token's, in floats */
    const void *k;         /* this head's keys in page 0 */
    const void *v;         /* this head's values in page 0 */
    const uint32_t *pages; /* [chunks that the last token sees]; NULL: chunk c is page c */
    size_t page_stride;    /* from page to page, in bytes */
    float scale;           /* 1 / sqrt(dim) */
    float cap; /* scores become cap * tanh(score / cap), before a mask is added; 0: they do not */
    const float *mask;  /* NULL: none; [tokens][mask_stride], added to the scores of the heads of
                         * a token: minus infinity hides a position, at least one is not hidden */
    size_t mask_stride; /* at least as many as the last token sees */
    size_t window;      /* 0: none; else a token sees so many, those before are in chunk 0 */
    void *scratch;      /* tern_attend_scratch_bytes, 64-byte aligned */
} tern_attend_args;

/*
 * Chunks [first, last), first < last, of those that the last token sees: the states of chunk c go
 * to states + (c - first) * stride bytes. With stride 0 there is one place for all of them: each
 * chunk is merged, as it comes, into the ones before.
 */
typedef void tern_attend_chunks_fn(const tern_attend_args *args, size_t first, size_t last,
                                   void *states, size_t stride);

/* Merges the states of chunks [first, last), that lie as above, into those of chunks [0, first). */
typedef void tern_attend_merge_fn(const tern_attend_heads *heads, size_t first, size_t last,
                                  const void *states, size_t stride, void *total);

/* out[tokens][group][dim] of the states of all chunks; out_stride in floats, between tokens. */
typedef void tern_attend_finish_fn(const tern_attend_heads *heads, const void *total, float *out,
                                   size_t out_stride);

typedef struct tern_attend_functions {
    tern_attend_chunks_fn *chunks;
    tern_attend_merge_fn *merge;
    tern_attend_finish_fn *finish;
} tern_attend_functions;

/*
 * Bytes of the states that a chunk gives `heads` heads (tokens * group) of dim elements, and of a
 * call's scratch. Both are multiples of 64.
 */
size_t tern_attend_state_bytes(size_t heads, size_t dim);
size_t tern_attend_scratch_bytes(size_t heads, size_t dim);

TERN_API_END

#endif
