/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/engine/forward/overflow.h"

#include <math.h>

/* The smallest number that becomes infinite as a half; in q8_0 the scale is a half, times 127
 * codes. */
float tern_cache_limit(tern_format kv) {
    if (kv == TERN_FORMAT_F16)
        return 65520.0f;
    return kv == TERN_FORMAT_Q8_0 ? 127 * 65520.0f : INFINITY;
}

tern_status tern_overflow_tell(const tern_overflow *o, tern_format kv, tern_error *err) {
    static const char *const places[TERN_OVERFLOW_PLACES] = {
        [TERN_OVERFLOW_EMBEDDING] = "an embedding",
        [TERN_OVERFLOW_QUERY] = "a query",
        [TERN_OVERFLOW_CACHE] = "a key or value of the cache in",
        [TERN_OVERFLOW_ATTENTION] = "the result of attention",
        [TERN_OVERFLOW_ROUTER] = "a router's score of an expert",
        [TERN_OVERFLOW_GATE] = "a gate",
        [TERN_OVERFLOW_ACTIVATION] = "an activation",
        [TERN_OVERFLOW_TURNED] = "a Hadamard transform",
        [TERN_OVERFLOW_SUM] = "the residual stream",
    };
    const uint32_t found = *o;
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
