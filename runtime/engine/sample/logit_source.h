/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_SAMPLE_LOGIT_SOURCE_H
#define TERN_RUNTIME_ENGINE_SAMPLE_LOGIT_SOURCE_H

/*
 * Where a sampler gets logits from that are not all known: bounds of all, exact values of some.
 * Picking from a source gives the token that tern_sampler_pick would give for all exact values.
 */

#include "tern/tern.h"

typedef struct tern_logit_source {
    void *user;
    /*
     * Sets *lower, *upper to [n_vocab] floats that the caller may change: the logit of token i lies
     * in [lower[i], upper[i]]. False: there are no bounds this time, ask for all.
     */
    bool (*bounds)(void *user, float **lower, float **upper);
    /* logits[ids[i]] = the exact logit of that token, for i < n; ids ascend. */
    void (*rows)(void *user, const uint32_t *ids, size_t n, float *logits);
    /* All exact logits. */
    tern_status (*all)(void *user, const float **logits, tern_error *err);
} tern_logit_source;

/* As tern_sampler_pick. Asks for all logits where the bounds leave a choice open. */
TERN_MUST_CHECK tern_status tern_sampler_pick_from(tern_sampler *s, const tern_logit_source *source,
                                                   int32_t *token, tern_error *err);

/*
 * The same step by step, for callers that pick for several samplers at once. Where
 * tern_bounds_help, the caller finds bounds; where tern_bounds_choose then is true, it puts exact
 * logits of the candidates into place, and where tern_bounds_decide is true, there is the token.
 * One false, and the token has to be picked from all logits, as if nothing had been asked.
 */
typedef struct tern_bounded_pick {
    tern_sampler *sampler;
    float *lower, *upper; /* [n_vocab] as in tern_logit_source */
    size_t n;             /* candidates */
    float floor;          /* every other token's logit is less */
} tern_bounded_pick;

/* Whether the sampler leaves out any token, so that bounds may be enough. */
bool tern_bounds_help(const tern_sampler *s);

/* Changes the bounds, and sets n: the candidates are tern_bounds_candidates[n], ascending. */
bool tern_bounds_choose(tern_bounded_pick *p);
const uint32_t *tern_bounds_candidates(const tern_bounded_pick *p);

/* Where the exact logits of the candidates go, by token: [n_vocab]. */
float *tern_bounds_exact(const tern_bounded_pick *p);

/* Draws from the sampler's random stream only where it decides. */
bool tern_bounds_decide(tern_bounded_pick *p, int32_t *token);

#endif
