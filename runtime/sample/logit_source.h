/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_SAMPLE_LOGIT_SOURCE_H
#define TERN_RUNTIME_SAMPLE_LOGIT_SOURCE_H

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

#endif
