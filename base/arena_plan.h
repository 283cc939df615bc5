/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BASE_ARENA_PLAN_H
#define TERN_BASE_ARENA_PLAN_H

/*
 * The same calls first add up what pieces an arena needs, then take them, so that plan and use
 * cannot disagree.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"

typedef struct tern_taker {
    tern_arena *arena;  /* NULL: only adds up */
    size_t bytes;       /* added up */
    bool overflow;      /* the sum or a product exceeds size_t */
    tern_status status; /* of the first piece that was not there */
    tern_error *err;
} tern_taker;

/* count * size bytes, aligned to TERN_ALIGN; NULL where they are only added up or are not there. */
void *tern_take(tern_taker *t, size_t count, size_t size);

/* a * b; an overflow is remembered. */
size_t tern_taker_times(tern_taker *t, size_t a, size_t b);

#endif
