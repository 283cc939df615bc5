/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/touch/touch.h"

#include <stdlib.h>

#include "base/metrics.h"

enum { WORD = sizeof(uint64_t), AHEAD = 512 }; /* words between a read and what is fetched: 4 KiB */

/* Word i of the ring: odd multiples, so that leaving one out changes the sum. */
static uint64_t word_at(size_t i) {
    return (2 * (uint64_t)i + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

bool touch_open(touch *t, size_t bytes, size_t stride, touch_hint hint, size_t cache) {
    const size_t ring = bytes < TOUCH_RING / 2 ? 2 * bytes : TOUCH_RING;
    const size_t step = stride / WORD;
    /* Whole strides, at least one: then a walk round the ring meets the same words again. */
    const size_t strides = ring / WORD / step > 0 ? ring / WORD / step : 1;
    *t =
        (touch){.n_words = strides * step,
                .stride = step,
                .steps = (bytes + stride - 1) / stride,
                .non_temporal = hint == TOUCH_HINT_ON || (hint == TOUCH_HINT_AUTO && ring > cache)};
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

/* Sum of `steps` words from `at` on; the ring is walked without a look at its end until there. */
static uint64_t walk(touch *t, size_t steps) {
    const volatile uint64_t *words = t->words; /* every read is made */
    uint64_t sum = 0;
    while (steps > 0) {
        const size_t room = (t->n_words - t->at) / t->stride;
        const size_t n = steps < room ? steps : room;
        for (size_t i = 0; i < n; i++) {
            if (t->non_temporal)
                __builtin_prefetch(t->words + t->at + AHEAD, 0, 0);
            sum += words[t->at];
            t->at += t->stride;
        }
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
    for (size_t i = 0; i < strides; i++) { /* rounds that met this word */
        const uint64_t rounds = reads / strides + (i < reads % strides ? 1 : 0);
        sum += rounds * word_at(i * t->stride);
    }
    return sum == t->sum;
}
