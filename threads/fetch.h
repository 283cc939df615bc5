/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_THREADS_FETCH_H
#define TERN_THREADS_FETCH_H

/* Asking memory for weights before a thread multiplies by them: tern_fetch of tern/topology.h. */

#include "tern/topology.h"

enum { TERN_FETCH_LINE = 64 }; /* bytes that one request brings, at least */

#define TERN_FETCH_WHOLE (UINT64_C(1) << 32)

/* A wish in the numbers that threads go by. All zero: nothing is asked for. */
typedef struct tern_fetching {
    size_t ahead;     /* bytes of a part, at most */
    uint64_t passing; /* of TERN_FETCH_WHOLE lines those that are not to be kept */
} tern_fetching;

/* TERN_ERR_ARG: unknown hint, or kept_percent outside 0 to 100. */
TERN_MUST_CHECK tern_status tern_fetch_check(const tern_fetch *wish, tern_error *err);

/*
 * A checked wish with AUTO decided: `weights` bytes that a token reads are passing where they
 * exceed the `caches` bytes of the last level; 0: not known, and then they are kept.
 */
tern_fetch tern_fetch_settle(const tern_fetch *wish, uint64_t weights, uint64_t caches);

/* The same in numbers. */
tern_fetching tern_fetching_of(const tern_fetch *settled);

/*
 * Asks for the lines that the first f->ahead of `bytes` bytes at `begin` lie in, and returns how
 * many they are. *due, 0 at first, carries how much of the next passing line is reached.
 */
size_t tern_fetch_ask(const tern_fetching *f, const void *begin, size_t bytes, uint64_t *due);

#endif
