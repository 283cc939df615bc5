/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/engine/sample/penalties.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static tern_status check(const tern_sampler_params *params, uint32_t n_vocab, tern_error *err) {
    const float r = params->repetition_penalty;
    if (!(r >= 0.0F) || !isfinite(r)) {
        return tern_fail(err, TERN_ERR_ARG,
                         "sampler: repetition penalty %g is not a finite number >= 0", (double)r);
    }
    if (!isfinite(params->presence_penalty) || !isfinite(params->frequency_penalty)) {
        return tern_fail(err, TERN_ERR_ARG,
                         "sampler: presence penalty %g or frequency penalty %g is not finite",
                         (double)params->presence_penalty, (double)params->frequency_penalty);
    }
    if (params->bias == NULL && params->n_bias > 0)
        return tern_fail(err, TERN_ERR_NULL, "sampler: NULL argument");
    for (size_t i = 0; i < params->n_bias; i++) {
        const tern_logit_bias *b = &params->bias[i];
        if (b->token < 0 || (uint32_t)b->token >= n_vocab) {
            return tern_fail(err, TERN_ERR_TOKEN_RANGE,
                             "sampler: bias for token %d of a vocabulary of %u tokens", b->token,
                             n_vocab);
        }
        if (!isfinite(b->bias)) {
            return tern_fail(err, TERN_ERR_ARG, "sampler: bias %g of token %d is not finite",
                             (double)b->bias, b->token);
        }
    }
    return TERN_OK;
}

/* True if anything depends on earlier tokens. */
static bool looks_back(const tern_penalties *p) {
    return p->repetition != 1.0F || p->presence != 0.0F || p->frequency != 0.0F;
}

static bool allocate(tern_penalties *p, const tern_sampler_params *params) {
    if (params->n_bias > 0) {
        p->bias = calloc(params->n_bias, sizeof *p->bias);
        if (p->bias == NULL)
            return false;
        memcpy(p->bias, params->bias, params->n_bias * sizeof *p->bias);
        p->n_bias = params->n_bias;
    }
    if (looks_back(p) && params->repeat_last_n > 0) {
        p->window = calloc(params->repeat_last_n, sizeof *p->window);
        p->counts = calloc(p->n_vocab, sizeof *p->counts);
        p->capacity = params->repeat_last_n;
        if (p->window == NULL || p->counts == NULL)
            return false;
    }
    if (p->n_bias > 0 || p->window != NULL) {
        p->logits = calloc(p->n_vocab, sizeof *p->logits);
        return p->logits != NULL;
    }
    return true;
}

tern_status tern_penalties_init(tern_penalties *p, const tern_sampler_params *params,
                                uint32_t n_vocab, tern_error *err) {
    const float r = params->repetition_penalty;
    *p = (tern_penalties){.repetition = r == 0.0F ? 1.0F : r,
                          .presence = params->presence_penalty,
                          .frequency = params->frequency_penalty,
                          .n_vocab = n_vocab};
    const tern_status status = check(params, n_vocab, err);
    if (status != TERN_OK)
        return status;
    if (!allocate(p, params)) {
        return tern_fail(err, TERN_ERR_NOMEM,
                         "sampler: no memory for %zu biases and a window of %u", params->n_bias,
                         params->repeat_last_n);
    }
    return TERN_OK;
}

void tern_penalties_free(tern_penalties *p) {
    free(p->bias);
    free(p->logits);
    free(p->window);
    free(p->counts);
    *p = (tern_penalties){0};
}

void tern_penalties_reset(tern_penalties *p) {
    if (p->window != NULL) {
        memset(p->counts, 0, p->n_vocab * sizeof *p->counts);
        p->used = p->next = 0;
    }
}

void tern_penalties_accept(tern_penalties *p, int32_t token) {
    if (p->window == NULL || token < 0 || (uint32_t)token >= p->n_vocab)
        return;
    if (p->used == p->capacity)
        p->counts[p->window[p->next]]--;
    else
        p->used++;
    p->window[p->next] = token;
    p->counts[token]++;
    p->next = p->next + 1 == p->capacity ? 0 : p->next + 1;
}

static float bounded(float x) {
    return x > FLT_MAX ? FLT_MAX : x < -FLT_MAX ? -FLT_MAX : x;
}

static float penalized(const tern_penalties *p, float x, uint32_t count) {
    x = bounded(x > 0.0F ? x / p->repetition : x * p->repetition);
    x = bounded(x - bounded((float)count * p->frequency));
    return bounded(x - p->presence);
}

const float *tern_penalties_apply(tern_penalties *p, const float *logits) {
    if (p->logits == NULL)
        return logits;
    memcpy(p->logits, logits, p->n_vocab * sizeof *logits);
    tern_penalties_change(p, p->logits);
    return p->logits;
}

void tern_penalties_change(tern_penalties *p, float *logits) {
    for (size_t i = 0; i < p->n_bias; i++) {
        float *x = &logits[p->bias[i].token];
        *x = bounded(*x + p->bias[i].bias);
    }
    /* A token is penalized at its first occurrence; its count is 0 from then to the second loop. */
    for (uint32_t i = 0; i < p->used; i++) {
        const int32_t token = p->window[i];
        if (p->counts[token] > 0) {
            logits[token] = penalized(p, logits[token], p->counts[token]);
            p->counts[token] = 0;
        }
    }
    for (uint32_t i = 0; i < p->used; i++)
        p->counts[p->window[i]]++;
}
