/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/forward/overflow.h"

#include <math.h>
#include <string.h>

#include "kernels/half.h"

/* Vectors that any compiler knows. */
enum { LANES = 4 };
typedef uint32_t words __attribute__((vector_size(4 * LANES)));

static words load(const float *x) {
    words bits;
    memcpy(&bits, x, sizeof bits);
    return bits;
}

/*
 * Magnitudes order as their bits do, infinities and NaNs after all numbers. So bits without the
 * sign, plus what the limit lacks to 2^31, have bit 31 where a magnitude reaches the limit.
 */
bool tern_all_below(const float *x, size_t n, float limit) {
    const uint32_t rest = UINT32_C(0x7fffffff);
    const uint32_t lack = UINT32_C(0x80000000) - tern_f32_to_bits(limit);
    words a = {0}, b = {0}, c = {0}, d = {0};
    uint32_t bits = 0;
    size_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        a |= (load(x + i) & rest) + lack;
        b |= (load(x + i + LANES) & rest) + lack;
        c |= (load(x + i + 2 * LANES) & rest) + lack;
        d |= (load(x + i + 3 * LANES) & rest) + lack;
    }
    for (; i < n; i++)
        bits |= (tern_f32_to_bits(x[i]) & rest) + lack;
    a |= b | c | d;
    for (size_t j = 0; j < LANES; j++)
        bits |= a[j];
    return !(bits & ~rest);
}

bool tern_squares_fit(const float *x, size_t n) {
    double sum = 0.0;
    if (tern_all_below(x, n, TERN_SQUARES_LIMIT))
        return true;
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return sum <
           0x1.ffp127; /* false for NaN; a float sum of that rounds by far less than is left */
}

/* The first numbers that round to an infinity as halves; of q8_0 the scale is one, of 127 codes. */
float tern_cache_limit(tern_format kv) {
    if (kv == TERN_FORMAT_F16)
        return 65520.0f;
    return kv == TERN_FORMAT_Q8_0 ? 127 * 65520.0f : INFINITY;
}

void tern_overflow_note(tern_overflow *o, size_t layer, tern_overflow_place place) {
    const uint32_t mine = (uint32_t)(layer * TERN_OVERFLOW_PLACES + place);
    uint32_t known = atomic_load_explicit(o, memory_order_relaxed);
    while (mine < known && !atomic_compare_exchange_weak_explicit(
                               o, &known, mine, memory_order_relaxed, memory_order_relaxed)) {
    }
}

tern_status tern_overflow_tell(const tern_overflow *o, tern_format kv, tern_error *err) {
    static const char *const places[TERN_OVERFLOW_PLACES] = {
        [TERN_OVERFLOW_EMBEDDING] = "an embedding",
        [TERN_OVERFLOW_QUERY] = "a query",
        [TERN_OVERFLOW_CACHE] = "a key or value of the cache in",
        [TERN_OVERFLOW_ATTENTION] = "the result of attention",
        [TERN_OVERFLOW_GATE] = "a gate",
        [TERN_OVERFLOW_ACTIVATION] = "an activation",
        [TERN_OVERFLOW_SUM] = "the residual stream",
    };
    const uint32_t found = atomic_load_explicit(o, memory_order_relaxed);
    if (found == TERN_NO_OVERFLOW)
        return TERN_OK;
    const uint32_t place = found % TERN_OVERFLOW_PLACES;
    const bool cache = place == TERN_OVERFLOW_CACHE;
    return tern_fail(err, TERN_ERR_NONFINITE,
                     "the numbers of this model overflow: %s%s%s in layer %u", places[place],
                     cache ? " " : "", cache ? tern_format_describe(kv)->name : "",
                     (unsigned)(found / TERN_OVERFLOW_PLACES));
}

tern_status tern_check_logits(const float *logits, size_t rows, size_t n_vocab, tern_error *err) {
    for (size_t i = 0; i < rows * n_vocab; i++)
        if (!isfinite(logits[i]))
            return tern_fail(err, TERN_ERR_NONFINITE, "the logit of token %zu is not finite",
                             i % n_vocab);
    return TERN_OK;
}
