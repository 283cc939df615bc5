/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/touch/touch.h"

#include <stdlib.h>

#include "base/metrics.h"

enum { WORD = sizeof(uint64_t) };

/* Word i of the ring: an odd multiple, so that skipping a word changes the sum. */
static uint64_t word_at(size_t i) {
    return (2 * (uint64_t)i + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

bool touch_open(touch *t, const touch_plan *plan) {
    const size_t ring = plan->bytes < TOUCH_RING / 2 ? 2 * plan->bytes : TOUCH_RING;
    const size_t step = plan->stride / WORD;
    const bool not_kept =
        plan->hint == TOUCH_HINT_ON || (plan->hint == TOUCH_HINT_AUTO && ring > plan->cache);
    const size_t ahead = plan->ahead_is_given ? plan->ahead : not_kept ? TOUCH_AHEAD : 0;
    /* A whole number of strides, at least one, so that each walk round the ring meets the same
     * words. */
    const size_t strides = ring / WORD / step > 0 ? ring / WORD / step : 1;
    *t = (touch){.n_words = strides * step,
                 .stride = step,
                 .steps = (plan->bytes + plan->stride - 1) / plan->stride,
                 .non_temporal = not_kept,
                 .keep_not = plan->keep_not,
                 .part = not_kept ? (uint64_t)(plan->keep_not / 100.0 * (double)TOUCH_WHOLE) : 0,
                 .ahead = (ahead + WORD - 1) / WORD};
    t->words = malloc(t->n_words * WORD);
    if (t->words == NULL)
        return false;
    for (size_t i = 0; i < t->n_words; i++)
        t->words[i] = word_at(i);
    return true;
}

void touch_free(touch *t) {
    free(t->words);
    t->words = NULL;
}

/* Reads n words from t->at on, prefetches the words `ahead` of them, and returns their sum. */
static uint64_t walk_ahead(touch *t, size_t n) {
    const volatile uint64_t *words = t->words; /* volatile: every read happens */
    uint64_t sum = 0, due = t->due;
    for (size_t i = 0; i < n; i++, t->at += t->stride) {
        due += t->part;
        if (due >= TOUCH_WHOLE)
            __builtin_prefetch(t->words + t->at + t->ahead, 0, 0);
        else
            __builtin_prefetch(t->words + t->at + t->ahead, 0, 3);
        due %= TOUCH_WHOLE;
        sum += words[t->at];
    }
    t->due = due;
    return sum;
}

static uint64_t walk_plainly(touch *t, size_t n) {
    const volatile uint64_t *words = t->words;
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++, t->at += t->stride)
        sum += words[t->at];
    return sum;
}

/* Sums `steps` words from t->at on; the end of the ring is checked only once per round. */
static uint64_t walk(touch *t, size_t steps) {
    uint64_t sum = 0;
    while (steps > 0) {
        const size_t room = (t->n_words - t->at) / t->stride;
        const size_t n = steps < room ? steps : room;
        sum += t->ahead > 0 ? walk_ahead(t, n) : walk_plainly(t, n);
        t->at = t->at == t->n_words ? 0 : t->at;
        steps -= n;
    }
    return sum;
}

void touch_token(touch *t) {
    const double begin = tern_clock_seconds();
    t->sum += walk(t, t->steps);
    t->tokens++;
    t->seconds += tern_clock_seconds() - begin;
}

bool touch_is_complete(const touch *t) {
    const uint64_t strides = t->n_words / t->stride;
    const uint64_t reads = t->tokens * t->steps;
    uint64_t sum = 0;
    for (size_t i = 0; i < strides; i++) { /* rounds that read this word */
        const uint64_t rounds = reads / strides + (i < reads % strides ? 1 : 0);
        sum += rounds * word_at(i * t->stride);
    }
    return sum == t->sum;
}
