/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_SAMPLE_SAMPLER_H
#define TERN_RUNTIME_ENGINE_SAMPLE_SAMPLER_H

/* The parts of a tern_sampler, and the steps that picking from all logits (sampler.c) and picking
 * from bounds (sampler_bounds.c) share. */

#include "base/chacha.h"
#include "runtime/engine/sample/penalties.h"
#include "tern/tern.h"

struct tern_sampler {
    tern_sampler_params params;
    uint32_t n_vocab;
    tern_softmax_fn *softmax;
    tern_chacha random;
    tern_penalties penalties;
    const uint64_t *allowed; /* bit i % 64 of word i / 64 is token i; NULL: all */
    float *p;                /* [n_vocab] scaled logits, then probabilities */
    uint64_t *heap;          /* [n_vocab] candidate keys */
    /* for picking from bounds */
    uint32_t *ids; /* [n_vocab] candidates, ascending */
    float *exact;  /* [n_vocab] logits by token; only valid for candidates */
    float *packed; /* [n_vocab] values of candidates, in the order of ids */
};

/*
 * Sets the tokens that may be picked, until the next call: bit i % 64 of allowed[i / 64] for token
 * i; NULL: all. Any other token is treated as if its logit, after biases and penalties, were minus
 * infinity. Borrowed. TERN_ERR_ARG when no token is allowed; then the sampler is unchanged.
 */
TERN_MUST_CHECK tern_status tern_sampler_allow(tern_sampler *s, const uint64_t *allowed,
                                               tern_error *err);

/* Sets logits[n_vocab] of tokens that are not allowed to minus infinity. */
void tern_sampler_forbid(const tern_sampler *s, float *logits);

/* Picks by top-k, top-p and min-p from the n candidates in s->heap: all allowed tokens, or the
 * first n >= top_k >= 1 of them. */
uint32_t tern_sampler_from_top_k(tern_sampler *s, const float *logits, size_t n, float max);

#endif
