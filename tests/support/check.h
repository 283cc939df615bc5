/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_SUPPORT_CHECK_H
#define TERN_TESTS_SUPPORT_CHECK_H

/*
 * Shared parts of the tests: a seeded generator, buffers between guard pages, comparison of bits
 * with a readable dump, and a line that tells which case was running when something failed.
 */

#include <setjmp.h> /* cmocka.h needs these four before it */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>

#include "tern/status.h"

/* ---- the running case ---------------------------------------------------------------------- */

/* Describes the current case for the messages of check_fail(). */
void check_case(const char *format, ...) TERN_PRINTF(1, 2);

/* Fails the test with a message that starts with the current case. */
void check_fail(const char *format, ...) TERN_PRINTF(1, 2);

/* Skips the test. tests/summary.py finds the reason in tests/skips.md, or fails. */
void check_skip(const char *reason);

/* Waits until it holds. tests/watch ends a test that waits for nothing. */
void check_until(bool (*holds)(void));

/* ---- random numbers ------------------------------------------------------------------------ */

/* splitmix64: the same sequence on every machine. Initialise with any seed. */
typedef struct check_rng {
    uint64_t state;
} check_rng;

uint64_t check_random(check_rng *rng);

/* Uniform in [0, n), n >= 1. */
uint32_t check_below(check_rng *rng, uint32_t n);

/* Roughly normal, mean 0, deviation 1. */
float check_normal(check_rng *rng);

/* Any finite float: every exponent from denormal to the largest, both signs, zeros of both signs.
 */
float check_any_finite(check_rng *rng);

/* ---- buffers ------------------------------------------------------------------------------- */

typedef enum check_place {
    CHECK_END,  /* the buffer ends at an inaccessible page (less what alignment costs) */
    CHECK_START /* the buffer starts right after an inaccessible page */
} check_place;

/* Memory between two inaccessible pages. The accessible bytes around `data` hold a canary. */
typedef struct check_buffer {
    void *data;
    size_t bytes;
    uint8_t *map;
    size_t map_bytes;
} check_buffer;

/* `align` is a power of two, at most a page. The contents are canary bytes. */
check_buffer check_buffer_new(size_t bytes, size_t align, check_place place);

/* Fails if a canary around the buffer changed. Otherwise releases it and clears *buffer. */
void check_buffer_free(check_buffer *buffer);

/* Fills memory with canary bytes; tells whether the `bytes` at p still hold them. */
void check_canary_fill(void *p, size_t bytes);
bool check_canary_intact(const void *p, size_t bytes);

/* Releases the object and clears the pointer. Checks that the pointer is NULL, and that releasing
 * it again has no effect. */
#define check_freed(release, pointer)                                                              \
    do {                                                                                           \
        release(&(pointer));                                                                       \
        assert_null(pointer);                                                                      \
        release(&(pointer));                                                                       \
    } while (0)

/* Number of bytes of memory from mmap for which the system has assigned pages. `memory` is
 * page-aligned. */
size_t check_resident(void *memory, size_t bytes);

/* ---- comparison ---------------------------------------------------------------------------- */

/* The same bits, or both NaN (IEEE leaves sign and payload of a computed NaN open). */
bool check_same_float(float a, float b);

/*
 * Fails with a dump of the first differences unless all n floats are the same. With
 * TERN_TEST_MUTATE=first or =last in the environment, the first or last element of `got` has its
 * lowest bit flipped before; then every test of a kernel must fail (tests/e2e/test_mutations.py).
 */
void check_floats(const char *what, const float *expected, const float *got, size_t n);

/* The same as check_floats, for bytes. */
void check_bytes(const char *what, const void *expected, const void *got, size_t n);

/* The first 16 hexadecimal digits of the SHA-256 of n bytes, in static storage. */
const char *check_hash(const void *bytes, size_t n);

#endif
