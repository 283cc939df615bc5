/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_PREFETCH_NOTED_H
#define TERN_TESTS_PREFETCH_NOTED_H

/*
 * Included before everything else in sources that prefetch and that a test compiles a second time.
 * The prefetches are recorded instead of advising the processor.
 */

/* `keep` is the third argument of __builtin_prefetch, or 3 if there is none. */
void note_prefetch(const void *address, int keep);

#define NOTED_ADDRESS(address, ...) (address)
#define NOTED_KEEP(address, writes, keep, ...) (keep)
#define __builtin_prefetch(...)                                                                    \
    note_prefetch(NOTED_ADDRESS(__VA_ARGS__, 0), NOTED_KEEP(__VA_ARGS__, 0, 3, 3))

#endif
