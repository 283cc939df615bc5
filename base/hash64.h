/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BASE_HASH64_H
#define TERN_BASE_HASH64_H

/*
 * XXH64 with seed 0: a 64-bit hash at the speed of memory, against accidents. It is no protection
 * from people: anyone who can change a file can change the hash in it.
 */

#include <stddef.h>
#include <stdint.h>

enum { TERN_HASH64_STRIPE = 32 };

typedef struct tern_hash64 {
    uint64_t lanes[4];
    uint64_t total; /* bytes added so far; total % TERN_HASH64_STRIPE of them wait in rest */
    uint8_t rest[TERN_HASH64_STRIPE];
} tern_hash64;

void tern_hash64_start(tern_hash64 *h);
void tern_hash64_add(tern_hash64 *h, const void *bytes, size_t n);

/* The hash of everything added; h is unchanged and can take more. */
uint64_t tern_hash64_value(const tern_hash64 *h);

/* The hash of these bytes alone. */
uint64_t tern_hash64_of(const void *bytes, size_t n);

#endif
