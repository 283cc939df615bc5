/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_PREFETCH_NOTED_H
#define TERN_TESTS_PREFETCH_NOTED_H

/*
 * Included before everything else in files of the source that ask memory ahead and that a test
 * compiles once more: what they ask for is noted, in place of advice to the processor.
 */

/* `keep` is the third argument of __builtin_prefetch, 3 where there is none. */
void note_prefetch(const void *address, int keep);

#define NOTED_ADDRESS(address, ...) (address)
#define NOTED_KEEP(address, writes, keep, ...) (keep)
#define __builtin_prefetch(...)                                                                    \
    note_prefetch(NOTED_ADDRESS(__VA_ARGS__, 0), NOTED_KEEP(__VA_ARGS__, 0, 3, 3))

#endif
