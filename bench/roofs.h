/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BENCH_ROOFS_H
#define TERN_BENCH_ROOFS_H

/*
 * The best speed of this machine at this moment: reads from three levels of memory, in addition to
 * the multiply-adds of bench/peaks.h. The probes of bench/probe.h measure it, and each checks its
 * sum.
 */

#include <stdbool.h>
#include <stddef.h>

#include "bench/peaks.h"

/* The level of memory that holds the operands: X(NAME, text). */
#define TERN_LEVEL_LIST(X)                                                                         \
    X(L1, "l1")                                                                                    \
    X(CACHE, "cache") /* the second-level cache of a core */                                       \
    X(MEMORY, "memory")

typedef enum tern_level {
#define TERN_LEVEL_ENUM(name, text) TERN_LEVEL_##name,
    TERN_LEVEL_LIST(TERN_LEVEL_ENUM)
#undef TERN_LEVEL_ENUM
        TERN_LEVEL_COUNT
} tern_level;

enum {
    TERN_ROOF_THREADS = 2,       /* most threads that read together */
    TERN_L1_BYTES = 16 << 10,    /* operands that stay in the first-level cache */
    TERN_CACHE_BYTES = 384 << 10 /* operands that stay in a second-level cache of 512 KiB */
};

const char *tern_level_name(tern_level level);

/* Bytes that exceed every cache: several times the last one, within 128 MiB to 2 GiB. */
size_t tern_memory_bytes(void);

/*
 * Allocates twice `bytes` of memory, to read from and as room for matrices; false when memory is
 * short. Call it once, before threads measure anything. Multiply-adds need no bytes.
 */
bool tern_roofs_open(size_t bytes);
void tern_roofs_close(void);

/* The part of the room for one of `threads` threads: a 64-byte aligned share of the bytes. */
void *tern_roofs_room(int thread, int threads);

/*
 * Bytes a second that `threads` threads (1 or 2) together read from a level. Each of them calls
 * this with its index, and each gets the sum. 0 when the sum read was wrong.
 */
double tern_roof_read(tern_level level, int thread, int threads);

#endif
