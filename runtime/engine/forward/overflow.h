/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_FORWARD_OVERFLOW_H
#define TERN_RUNTIME_ENGINE_FORWARD_OVERFLOW_H

/*
 * Numbers of a pass that grew beyond what holds them. Weights are finite (weight_check.h), so only
 * an overflow makes an infinity or a NaN; but codes, exp, relu and rmsnorm make finite numbers of
 * it again, and the logits would not show it. So what goes into one of these is looked at before
 * (`watch` of tern/device.h), by who made it. The earliest place is told, whatever the threads.
 */

#include <stddef.h>
#include <stdint.h>

#include "tern/kernels.h"

/* What overflowed, in the order in which a layer comes to it. */
typedef enum tern_overflow_place {
    TERN_OVERFLOW_EMBEDDING,
    TERN_OVERFLOW_QUERY, /* a head of q, or squares of one of q or k */
    TERN_OVERFLOW_CACHE, /* a key or value, in the cache's format */
    TERN_OVERFLOW_ATTENTION,
    TERN_OVERFLOW_ROUTER, /* a score of an expert */
    TERN_OVERFLOW_GATE,   /* what the activation is taken of */
    TERN_OVERFLOW_ACTIVATION,
    TERN_OVERFLOW_TURNED, /* what a Hadamard transform gives */
    TERN_OVERFLOW_SUM,    /* the residual stream after attention or after all, or its squares */
    TERN_OVERFLOW_PLACES
} tern_overflow_place;

/* The note of one span: its first overflow. TERN_NO_OVERFLOW to begin with. */
typedef uint32_t tern_overflow;
#define TERN_NO_OVERFLOW UINT32_MAX

/* What `watch` notes (tern/device.h): the smaller, the earlier. */
static inline uint32_t tern_overflow_code(size_t layer, tern_overflow_place place) {
    return (uint32_t)(layer * TERN_OVERFLOW_PLACES + place);
}

/* From which magnitude on an element does not fit into a cache of that format. */
float tern_cache_limit(tern_format kv);

/* TERN_ERR_NONFINITE with what was noted, if anything. */
TERN_MUST_CHECK tern_status tern_overflow_tell(const tern_overflow *o, tern_format kv,
                                               tern_error *err);

/* TERN_ERR_NONFINITE, naming the token, when one of logits[rows][n_vocab] is not finite. */
TERN_MUST_CHECK tern_status tern_check_logits(const float *logits, size_t rows, size_t n_vocab,
                                              tern_error *err);

#endif
