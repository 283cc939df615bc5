/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_FORWARD_OVERFLOW_H
#define TERN_RUNTIME_FORWARD_OVERFLOW_H

/*
 * Numbers of a pass that grew beyond what holds them. Weights are finite (weight_check.h), so only
 * an overflow makes an infinity or a NaN; but codes, exp, relu and rmsnorm make finite numbers of
 * it again, and the logits would not show it. So what goes into one of these is looked at before,
 * while it is in the cache of who made it. The earliest place is told, whatever the threads.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/kernels.h"

/* What overflowed, in the order in which a layer comes to it. */
typedef enum tern_overflow_place {
    TERN_OVERFLOW_EMBEDDING,
    TERN_OVERFLOW_QUERY, /* a head of q, or squares of one of q or k */
    TERN_OVERFLOW_CACHE, /* a key or value, in the cache's format */
    TERN_OVERFLOW_ATTENTION,
    TERN_OVERFLOW_GATE, /* what the activation is taken of */
    TERN_OVERFLOW_ACTIVATION,
    TERN_OVERFLOW_SUM, /* the residual stream after attention or after all, or its squares */
    TERN_OVERFLOW_PLACES
} tern_overflow_place;

/* Of one pass; shared by its workers. TERN_NO_OVERFLOW to begin with. */
typedef _Atomic uint32_t tern_overflow;
#define TERN_NO_OVERFLOW UINT32_MAX

/* Whether n floats are all numbers below a limit above 0 in magnitude; INFINITY: finite ones. */
bool tern_all_below(const float *x, size_t n, float limit);

/* Below it 2^16 squares can be added up. */
#define TERN_SQUARES_LIMIT 0x1p55f

/* Whether rmsnorm can add up the squares of n floats, n < 2^16; false where one is not finite. */
bool tern_squares_fit(const float *x, size_t n);

/* From which magnitude on an element does not fit into a cache of that format. */
float tern_cache_limit(tern_format kv);

/* Notes an overflow, if it is earlier than what was noted. */
void tern_overflow_note(tern_overflow *o, size_t layer, tern_overflow_place place);

/* TERN_ERR_NONFINITE with what was noted, if anything. */
TERN_MUST_CHECK tern_status tern_overflow_tell(const tern_overflow *o, tern_format kv,
                                               tern_error *err);

/* TERN_ERR_NONFINITE, naming the token, when one of logits[rows][n_vocab] is not finite. */
TERN_MUST_CHECK tern_status tern_check_logits(const float *logits, size_t rows, size_t n_vocab,
                                              tern_error *err);

#endif
