/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BASE_ARENA_H
#define TERN_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

#include "tern/status.h"

enum { TERN_HUGE_PAGE_BYTES = 2 << 20 };

/*
 * A block of memory that is sized once and handed out in pieces aligned to TERN_ALIGN. Pieces are
 * never returned one by one.
 */
typedef struct tern_arena {
    unsigned char *base;
    size_t size;
    size_t used;
    bool borrowed; /* somebody else's memory, which may be read-only */
} tern_arena;

/*
 * Maps `size` zero bytes (0 is allowed). TERN_ERR_NOMEM names the size. huge_pages is a hint for
 * memory that is used from end to end, or from the front: what is streamed meets fewer TLB misses,
 * whereas memory that is touched here and there would take its whole size at once.
 */
TERN_MUST_CHECK tern_status tern_arena_new(size_t size, bool huge_pages, tern_arena *out,
                                           tern_error *err);

/* An arena over memory that holds already what its pieces will be taken for. The owner keeps it. */
tern_arena tern_arena_over(const void *memory, size_t size);

/* Gives the whole pages of bytes [begin, end) of its memory back, which nobody reads again. */
void tern_arena_give_back(const tern_arena *arena, size_t begin, size_t end);

/* Unmaps its memory unless it is borrowed, and zeroes *arena. */
void tern_arena_free(tern_arena *arena);

/*
 * The next count * size bytes, 64-byte aligned, into *out. TERN_ERR_ARENA when they are not there
 * any more (or the product overflows): the arena was sized wrongly, nothing is changed.
 */
TERN_MUST_CHECK tern_status tern_arena_take(tern_arena *arena, size_t count, size_t size,
                                            void **out, tern_error *err);

/* Bytes that tern_arena_take of count * size uses, added to *total; false on overflow. */
bool tern_arena_reserve(size_t *total, size_t count, size_t size);

#endif
