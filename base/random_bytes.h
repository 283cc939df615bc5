/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BASE_RANDOM_BYTES_H
#define TERN_BASE_RANDOM_BYTES_H

/* Random numbers of the system, for names and seeds that nobody should guess. */

#include <stddef.h>

/*
 * Fills at most 256 bytes, which the system gives whole. Waits where a system that just started has
 * none yet. A kernel without the call (Linux before 3.17) is asked by its file /dev/urandom; where
 * that is missing too, the process ends: numbers that can be guessed would be worse.
 */
void tern_random_bytes(void *bytes, size_t size);

#endif
