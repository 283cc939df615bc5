/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_SAMPLE_PENALTIES_H
#define TERN_RUNTIME_ENGINE_SAMPLE_PENALTIES_H

/*
 * Changes of logits before a token is picked: biases that the caller gives to tokens, and penalties
 * of recent tokens. They are float operations one after another, in the order of
 * tern_penalties_apply, so that the result has the same bits on every machine.
 */

#include "tern/tern.h"

typedef struct tern_penalties {
    float repetition, presence, frequency; /* 1, 0, 0: none */
    tern_logit_bias *bias;                 /* [n_bias] */
    size_t n_bias;
    uint32_t n_vocab;
    float *logits;    /* [n_vocab] changed logits; NULL: nothing changes them */
    int32_t *window;  /* [capacity] the most recent tokens, a ring; NULL: no penalties */
    uint32_t *counts; /* [n_vocab] how often each token is in the window */
    uint32_t capacity, used, next;
} tern_penalties;

/* Checks and copies the params. Call tern_penalties_free in any case. */
TERN_MUST_CHECK tern_status tern_penalties_init(tern_penalties *p,
                                                const tern_sampler_params *params, uint32_t n_vocab,
                                                tern_error *err);
void tern_penalties_free(tern_penalties *p);

/* Empties the window. */
void tern_penalties_reset(tern_penalties *p);

/* Puts a token into the window; a full window drops its oldest. Ignores ids out of range. */
void tern_penalties_accept(tern_penalties *p, int32_t token);

/*
 * The logits to pick from: `logits` itself where nothing changes them, else a buffer of p:
 *   1. each bias is added, in the order given;
 *   2. for each token that is c >= 1 times in the window: x > 0 ? x / repetition : x * repetition,
 *      then - c * frequency, then - presence.
 * A result beyond the largest float becomes that float. Finite logits stay finite.
 */
const float *tern_penalties_apply(tern_penalties *p, const float *logits);

/*
 * The same in place, on logits[n_vocab]. Every step is monotonic in the logit, so bounds become
 * bounds. Elements that are not finite stay so or become the largest float.
 */
void tern_penalties_change(tern_penalties *p, float *logits);

#endif
