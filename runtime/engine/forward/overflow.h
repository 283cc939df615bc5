/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_FORWARD_OVERFLOW_H
#define TERN_RUNTIME_ENGINE_FORWARD_OVERFLOW_H

/*
 * Numbers of a pass that exceeded their range. Weights are finite (weight_check.h), so only an
 * overflow makes an infinity or a NaN. But codes, exp, relu and rmsnorm turn these into finite
 * numbers again, and the logits would not show them. So the inputs of these steps are checked first
 * (`watch` of tern/device.h), by the worker that made them. The earliest place is reported,
 * whatever the number of threads.
 */

#include <stddef.h>
#include <stdint.h>

#include "tern/kernels.h"

/* Places of an overflow, in the order in which a layer reaches them. */
typedef enum tern_overflow_place {
    TERN_OVERFLOW_EMBEDDING,
    TERN_OVERFLOW_QUERY, /* a head of q, or the squares of a head of q or k */
    TERN_OVERFLOW_CACHE, /* a key or value, in the cache's format */
    TERN_OVERFLOW_ATTENTION,
    TERN_OVERFLOW_ROUTER, /* a score of an expert */
    TERN_OVERFLOW_GATE,   /* the input of the activation */
    TERN_OVERFLOW_ACTIVATION,
    TERN_OVERFLOW_TURNED, /* the result of a Hadamard transform */
    TERN_OVERFLOW_SUM,    /* the residual stream after attention or at the end, or its squares */
    TERN_OVERFLOW_PLACES
} tern_overflow_place;

/* The note of one span: its first overflow. Starts as TERN_NO_OVERFLOW. */
typedef uint32_t tern_overflow;
#define TERN_NO_OVERFLOW UINT32_MAX

/* The code that `watch` notes (tern/device.h): smaller means earlier. */
static inline uint32_t tern_overflow_code(size_t layer, tern_overflow_place place) {
    return (uint32_t)(layer * TERN_OVERFLOW_PLACES + place);
}

/* The smallest magnitude that does not fit into a cache of that format. */
float tern_cache_limit(tern_format kv);

/* TERN_ERR_NONFINITE with the noted place, if there is one. */
TERN_MUST_CHECK tern_status tern_overflow_tell(const tern_overflow *o, tern_format kv,
                                               tern_error *err);

/* TERN_ERR_NONFINITE, naming the token, when one of logits[rows][n_vocab] is not finite. */
TERN_MUST_CHECK tern_status tern_check_logits(const float *logits, size_t rows, size_t n_vocab,
                                              tern_error *err);

#endif
