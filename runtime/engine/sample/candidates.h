/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_SAMPLE_CANDIDATES_H
#define TERN_RUNTIME_ENGINE_SAMPLE_CANDIDATES_H

/*
 * Tokens in the order in which a sampler looks at them: logit descending, then id ascending. A heap
 * of 64-bit keys yields them one by one, largest key first.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t tern_float_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Builds a heap of n candidates in heap[n]: tokens ids[0 .. n), or 0 .. n - 1 if ids is NULL.
 * logits is indexed by token. */
void tern_candidates_build(uint64_t *heap, const float *logits, const uint32_t *ids, size_t n);

/* Moves the first candidate of heap[0, n) to heap[n - 1] and returns its token. */
uint32_t tern_candidates_pop(uint64_t *heap, size_t n);

/* The token of a key. */
static inline uint32_t tern_candidate_token(uint64_t key) {
    return (uint32_t)~key;
}

#endif
