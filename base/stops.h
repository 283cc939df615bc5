/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BASE_STOPS_H
#define TERN_BASE_STOPS_H

/*
 * Stop strings. A text ends at the first byte with which any of them is complete; where several are
 * complete with the same byte the longest counts. What is decided here depends on the bytes alone,
 * never on how they arrived.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/*
 * The same for a text that comes byte by byte, whatever the number and length of the stop strings:
 * a byte takes a few steps, of all bytes together at most two each (and as many as different bytes
 * may follow a beginning). Memory: 24 bytes for each byte of the stop strings.
 */
typedef struct tern_stop_finder tern_stop_finder;

/* Copies what it needs of s, whose texts are not empty and have less than 2 GiB together; NULL: no
 * memory. */
tern_stop_finder *tern_stop_finder_new(const tern_stops *s);
void tern_stop_finder_free(tern_stop_finder *f); /* NULL is fine */

/* One more byte. True when a stop string is complete: *size gets the bytes of the longest one that
 * is, *which the first in the list that is this one. Then nothing more may be added. */
bool tern_stop_finder_add(tern_stop_finder *f, char byte, size_t *size, size_t *which);

/* Equals tern_stops_held of all bytes so far. */
size_t tern_stop_finder_held(const tern_stop_finder *f);

#endif
