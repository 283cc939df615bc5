/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BASE_STOPS_H
#define TERN_BASE_STOPS_H

/*
 * Stop strings. A text ends at the first byte with which any of them is complete; where several are
 * complete with the same byte the longest counts. What is decided here depends on the bytes alone,
 * never on how they arrived.
 */

#include <stddef.h>

typedef struct tern_stops {
    const char *const *texts; /* [n] terminated, none empty */
    size_t n;
} tern_stops;

/* Bytes of the longest stop string that text[size] ends with; 0 for none. */
size_t tern_stops_match(const tern_stops *s, const char *text, size_t size);

/*
 * Bytes at the end of text[size] that more text could make part of a stop string: the longest
 * suffix that is the beginning of one, and not all of it.
 */
size_t tern_stops_held(const tern_stops *s, const char *text, size_t size);

#endif
