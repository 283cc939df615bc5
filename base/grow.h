/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BASE_GROW_H
#define TERN_BASE_GROW_H

/* Lists whose memory doubles when they are full. */

#include <stdbool.h>
#include <stddef.h>

/*
 * Grows *items to hold one more than n items of `size` bytes, at most `most`; false when that is
 * not possible.
 */
bool tern_grow(void **items, size_t *capacity, size_t n, size_t size, size_t most);

#endif
