/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_SAMPLE_LOGIT_SOURCE_H
#define TERN_RUNTIME_ENGINE_SAMPLE_LOGIT_SOURCE_H

/*
 * A source of logits that are not all known: bounds of all, exact values of some. Picking from a
 * source gives the token that tern_sampler_pick would give for all exact values.
 */

#include "tern/tern.h"

typedef struct tern_logit_source {
    void *user;
    /*
     * Sets *lower, *upper to [n_vocab] floats that the caller may change: the logit of token i lies
     * in [lower[i], upper[i]]. False: there are no bounds this time, so all logits are needed.
     */
    bool (*bounds)(void *user, float **lower, float **upper);
    /* logits[ids[i]] = the exact logit of that token, for i < n; ids ascend. */
    void (*rows)(void *user, const uint32_t *ids, size_t n, float *logits);
    /* All exact logits. */
    tern_status (*all)(void *user, const float **logits, tern_error *err);
} tern_logit_source;

/* Picks as tern_sampler_pick does. Asks for all logits if the bounds leave a choice open. */
TERN_MUST_CHECK tern_status tern_sampler_pick_from(tern_sampler *s, const tern_logit_source *source,
                                                   int32_t *token, tern_error *err);

/*
 * The same step by step, for callers that pick for several samplers at once. If tern_bounds_help is
 * true, the caller finds bounds. If tern_bounds_choose is then true, the caller stores exact logits
 * of the candidates, and if tern_bounds_decide is true the token is there. If any of them is false,
 * the token has to be picked from all logits, as if none had been called.
 */
typedef struct tern_bounded_pick {
    tern_sampler *sampler;
    float *lower, *upper; /* [n_vocab] as in tern_logit_source */
    size_t n;             /* candidates */
    float floor;          /* the logits of all other tokens are less */
} tern_bounded_pick;

/* True if the sampler leaves out any tokens, so that bounds may be enough. */
bool tern_bounds_help(const tern_sampler *s);

/* Changes the bounds, and sets n. The candidates are tern_bounds_candidates[n], ascending. */
bool tern_bounds_choose(tern_bounded_pick *p);
const uint32_t *tern_bounds_candidates(const tern_bounded_pick *p);

/* The place for the exact logits of the candidates, by token: [n_vocab]. */
float *tern_bounds_exact(const tern_bounded_pick *p);

/* Draws from the sampler's random stream only if it returns true. */
bool tern_bounds_decide(tern_bounded_pick *p, int32_t *token);

#endif
