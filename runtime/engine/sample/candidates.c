/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/engine/sample/candidates.h"

/*
 * A key that is larger for the candidate that comes first: the upper half is the logit's bits made
 * monotonic (negative: all bits flipped; else the sign bit set; + 0.0f turns -0 into +0), the lower
 * half is the complement of the id.
 */
static uint64_t candidate_key(float logit, uint32_t id) {
    const uint32_t bits = tern_float_bits(logit + 0.0F);
    const uint32_t ordered = bits & 0x80000000U ? ~bits : bits | 0x80000000U;
    return (uint64_t)ordered << 32 | (uint32_t)~id;
}

static void sift_down(uint64_t *heap, size_t i, size_t n) {
    const uint64_t key = heap[i];
    for (size_t child = 2 * i + 1; child < n; child = 2 * i + 1) {
        child += child + 1 < n && heap[child + 1] > heap[child];
        if (heap[child] <= key)
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = key;
}

void tern_candidates_build(uint64_t *heap, const float *logits, const uint32_t *ids, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const uint32_t id = ids != NULL ? ids[i] : (uint32_t)i;
        heap[i] = candidate_key(logits[id], id);
    }
    for (size_t i = n / 2; i-- > 0;)
        sift_down(heap, i, n);
}

uint32_t tern_candidates_pop(uint64_t *heap, size_t n) {
    const uint64_t top = heap[0];
    heap[0] = heap[n - 1];
    heap[n - 1] = top;
    sift_down(heap, 0, n - 1);
    return tern_candidate_token(top);
}
