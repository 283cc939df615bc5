/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From logits to a token. Every step has one result on every machine (docs/numerics.md):
 *
 *   1. biases and penalties change the logits (penalties.h); the logits of tokens that are not
 *      allowed become minus infinity (tern_sampler_allow), so that their probability is 0;
 *   2. x[i] = (logit[i] - max) / temperature; at temperature 0 the largest logit wins, without any
 *      further step;
 *   3. top-k keeps the k candidates that come first by logit descending, then id ascending;
 *   4. softmax over the kept candidates, in that order (without top-k: all tokens, by id);
 *   5. top-p keeps the shortest run of candidates in the order of 3 whose probabilities add up to
 *      at least top_p; min-p ends that run before the first candidate whose probability is below
 *      min_p times the first one's;
 *   6. r = uniform * (sum of the kept probabilities); the first candidate whose running sum exceeds
 *      r wins.
 *
 * Sums are sequential, in double. No C library function decides anything.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch/select.h"
#include "runtime/engine/sample/candidates.h"
#include "runtime/engine/sample/sampler.h"

tern_sampler_params tern_sampler_params_default(void) {
    return (tern_sampler_params){
        .top_p = 1.0F, .seed = 42, .repetition_penalty = 1.0F, .repeat_last_n = 64};
}

static tern_status check_params(const tern_sampler_params *p, uint32_t n_vocab, tern_error *err) {
    if (n_vocab == 0 || n_vocab > INT32_MAX)
        return tern_fail(err, TERN_ERR_ARG, "sampler: vocabulary of %u tokens", n_vocab);
    if (!(p->temperature >= 0.0F) || !isfinite(p->temperature)) {
        return tern_fail(err, TERN_ERR_ARG, "sampler: temperature %g is not a finite number >= 0",
                         (double)p->temperature);
    }
    if (!(p->top_p > 0.0F && p->top_p <= 1.0F))
        return tern_fail(err, TERN_ERR_ARG, "sampler: top-p %g is not in (0, 1]", (double)p->top_p);
    if (!(p->min_p >= 0.0F && p->min_p <= 1.0F))
        return tern_fail(err, TERN_ERR_ARG, "sampler: min-p %g is not in [0, 1]", (double)p->min_p);
    return TERN_OK;
}

/* Allocates buffers for n tokens; float rows are padded to whole vectors. */
static bool allocate(tern_sampler *s, uint32_t n) {
    const size_t padded = ((size_t)n + TERN_LANES - 1) / TERN_LANES * TERN_LANES;
    size_t float_bytes;
    size_t heap_bytes;
    if (__builtin_mul_overflow(padded, sizeof *s->p, &float_bytes) ||
        __builtin_mul_overflow((size_t)n, sizeof *s->heap, &heap_bytes))
        return false;
    s->p = aligned_alloc(TERN_ALIGN, float_bytes);
    s->packed = aligned_alloc(TERN_ALIGN, float_bytes);
    s->heap = malloc(heap_bytes);
    s->exact = calloc(n, sizeof *s->exact);
    s->ids = calloc(n, sizeof *s->ids);
    return s->p != NULL && s->packed != NULL && s->heap != NULL && s->exact != NULL &&
           s->ids != NULL;
}

tern_status tern_sampler_new(const tern_sampler_params *params, uint32_t n_vocab,
                             tern_sampler **out, tern_error *err) {
    const tern_sampler_params defaults = tern_sampler_params_default();
    params = params != NULL ? params : &defaults;
    if (out == NULL)
        return tern_fail(err, TERN_ERR_NULL, "sampler: NULL argument");
    const tern_status status = check_params(params, n_vocab, err);
    if (status != TERN_OK)
        return status;
    const tern_kernel_row *kernel = tern_kernel_scalar(TERN_OP_SOFTMAX, TERN_FORMAT_NONE);
    if (kernel == NULL)
        return tern_fail(err, TERN_ERR_KERNEL, "sampler: no softmax kernel");
    tern_sampler *s = calloc(1, sizeof *s);
    if (s == NULL || !allocate(s, n_vocab)) {
        tern_sampler_free(&s);
        return tern_fail(err, TERN_ERR_NOMEM, "sampler: no memory for %u tokens", n_vocab);
    }
    const tern_status penalties = tern_penalties_init(&s->penalties, params, n_vocab, err);
    if (penalties != TERN_OK) {
        tern_sampler_free(&s);
        return penalties;
    }
    s->params = *params;
    s->n_vocab = n_vocab;
    s->softmax = kernel->fn.softmax;
    tern_sampler_reset(s, params->seed);
    *out = s;
    return TERN_OK;
}

void tern_sampler_free(tern_sampler **s) {
    if (s == NULL || *s == NULL)
        return;
    free((*s)->p);
    free((*s)->packed);
    free((*s)->heap);
    free((*s)->exact);
    free((*s)->ids);
    tern_penalties_free(&(*s)->penalties);
    free(*s);
    *s = NULL;
}

void tern_sampler_reset(tern_sampler *s, uint64_t seed) {
    s->params.seed = seed;
    tern_chacha_seed(&s->random, seed);
    tern_penalties_reset(&s->penalties);
}

void tern_sampler_accept(tern_sampler *s, int32_t token) {
    tern_penalties_accept(&s->penalties, token);
}

static bool is_allowed(const uint64_t *allowed, uint32_t token) {
    return allowed[token / 64] >> (token % 64) & 1;
}

tern_status tern_sampler_allow(tern_sampler *s, const uint64_t *allowed, tern_error *err) {
    uint32_t first = 0;
    while (allowed != NULL && first < s->n_vocab && !is_allowed(allowed, first))
        first++;
    if (first == s->n_vocab)
        return tern_fail(err, TERN_ERR_ARG, "sampler: none of %u tokens is allowed", s->n_vocab);
    s->allowed = allowed;
    return TERN_OK;
}

void tern_sampler_forbid(const tern_sampler *s, float *logits) {
    for (uint32_t i = 0; s->allowed != NULL && i < s->n_vocab; i++)
        logits[i] = is_allowed(s->allowed, i) ? logits[i] : -INFINITY;
}

int32_t tern_argmax(const float *logits, size_t n) {
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (logits[i] > logits[best])
            best = i;
    return (int32_t)best;
}

/* True if the exponent is all ones: infinity or NaN. */
static bool is_nonfinite(float x) {
    return (tern_float_bits(x) & 0x7f800000U) == 0x7f800000U;
}

static tern_status check_finite(const float *logits, uint32_t n, tern_error *err) {
    bool bad = false; /* without an early exit the loop vectorises */
    for (uint32_t i = 0; i < n; i++)
        bad |= is_nonfinite(logits[i]);
    if (!bad)
        return TERN_OK;
    uint32_t i = 0;
    while (!is_nonfinite(logits[i]))
        i++;
    return tern_fail(err, TERN_ERR_NONFINITE, "logit of token %u is %g", i, (double)logits[i]);
}

/* ---- the draw -------------------------------------------------------------------------------- */

/*
 * Draws one of n candidates in order: the index at which a uniform share of the total falls. The
 * probability of candidate j is p[j]; with `popped` it is that of the token whose key is
 * popped[-j].
 */
static size_t draw(tern_sampler *s, const uint64_t *popped, size_t n, double total) {
    const double r = tern_chacha_uniform(&s->random) * total;
    double sum = 0.0;
    for (size_t j = 0; j + 1 < n; j++) {
        sum += (double)s->p[popped == NULL ? j : tern_candidate_token(*(popped - j))];
        if (sum > r)
            return j;
    }
    return n - 1;
}

/* The candidates of an ordered run that top-p and min-p have kept so far. */
typedef struct nucleus {
    double floor, total;
    size_t kept;
} nucleus;

/* Takes the next candidate; false if it no longer belongs to the run. The product of two floats is
 * exact in double. */
static bool nucleus_take(nucleus *n, const tern_sampler_params *params, float p) {
    if (n->kept == 0)
        n->floor = (double)params->min_p * (double)p;
    else if ((params->top_p < 1.0F && n->total >= (double)params->top_p) || (double)p < n->floor)
        return false;
    n->total += (double)p;
    n->kept++;
    return true;
}

static void scale_all(tern_sampler *s, const float *logits, float max) {
    for (size_t i = 0; i < s->n_vocab; i++)
        s->p[i] = (logits[i] - max) / s->params.temperature;
    s->softmax(s->p, s->n_vocab);
}

static uint32_t pick_from_all(tern_sampler *s, const float *logits, float max) {
    scale_all(s, logits, max);
    double total = 0.0;
    for (size_t i = 0; i < s->n_vocab; i++)
        total += (double)s->p[i];
    return (uint32_t)draw(s, NULL, s->n_vocab, total);
}

uint32_t tern_sampler_from_top_k(tern_sampler *s, const float *logits, size_t n, float max) {
    const size_t k = s->params.top_k < n ? s->params.top_k : n;
    for (size_t j = 0; j < k; j++)
        s->p[j] = (logits[tern_candidates_pop(s->heap, n - j)] - max) / s->params.temperature;
    s->softmax(s->p, k);
    nucleus kept = {0};
    while (kept.kept < k && nucleus_take(&kept, &s->params, s->p[kept.kept])) {
    }
    return tern_candidate_token(s->heap[n - 1 - draw(s, NULL, kept.kept, kept.total)]);
}

/* Pops candidates from the heap in order until one is not kept; their keys stay after its end. */
static uint32_t pick_in_order(tern_sampler *s, const float *logits, float max) {
    const size_t n = s->n_vocab;
    scale_all(s, logits, max);
    tern_candidates_build(s->heap, logits, NULL, n);
    nucleus kept = {0};
    while (kept.kept < n &&
           nucleus_take(&kept, &s->params, s->p[tern_candidates_pop(s->heap, n - kept.kept)])) {
    }
    return tern_candidate_token(s->heap[n - 1 - draw(s, s->heap + n - 1, kept.kept, kept.total)]);
}

/* The logits to pick from. */
static const float *change(tern_sampler *s, const float *logits) {
    const float *changed = tern_penalties_apply(&s->penalties, logits);
    if (s->allowed == NULL)
        return changed;
    memcpy(s->exact, changed, s->n_vocab * sizeof *changed);
    tern_sampler_forbid(s, s->exact);
    return s->exact;
}

tern_status tern_sampler_pick(tern_sampler *s, const float *logits, int32_t *token,
                              tern_error *err) {
    if (s == NULL || logits == NULL || token == NULL)
        return tern_fail(err, TERN_ERR_NULL, "sampler: NULL argument");
    const tern_status status = check_finite(logits, s->n_vocab, err);
    if (status != TERN_OK)
        return status;
    const float *changed = change(s, logits);
    const int32_t best = tern_argmax(changed, s->n_vocab);
    if (s->params.temperature == 0.0F) {
        *token = best;
        return TERN_OK;
    }
    const float max = changed[best];
    uint32_t id;
    if (s->params.top_k > 0 && s->params.top_k < s->n_vocab) {
        tern_candidates_build(s->heap, changed, NULL, s->n_vocab);
        id = tern_sampler_from_top_k(s, changed, s->n_vocab, max);
    } else if (s->params.top_p < 1.0F || s->params.min_p > 0.0F) {
        id = pick_in_order(s, changed, max);
    } else {
        id = pick_from_all(s, changed, max);
    }
    *token = (int32_t)id;
    return TERN_OK;
}
