/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_SAMPLE_SAMPLER_H
#define TERN_RUNTIME_SAMPLE_SAMPLER_H

/* What a tern_sampler is made of, and the steps that picking from all logits (sampler.c) and
 * picking from bounds (sampler_bounds.c) share. */

#include "base/chacha.h"
#include "runtime/sample/penalties.h"
#include "tern/tern.h"

struct tern_sampler {
    tern_sampler_params params;
    uint32_t n_vocab;
    tern_softmax_fn *softmax;
    tern_chacha random;
    tern_penalties penalties;
    float *p;       /* [n_vocab] scaled logits, then probabilities */
    uint64_t *heap; /* [n_vocab] candidate keys */
    /* picking from bounds */
    uint32_t *ids; /* [n_vocab] candidates, ascending */
    float *exact;  /* [n_vocab] logits by token; only those of candidates mean something */
    float *packed; /* [n_vocab] of candidates, in the order of ids */
};

/* Top-k, top-p and min-p over the n candidates in s->heap, which are the first n >= top_k >= 1. */
uint32_t tern_sampler_from_top_k(tern_sampler *s, const float *logits, size_t n, float max);

#endif
