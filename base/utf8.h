/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BASE_UTF8_H
#define TERN_BASE_UTF8_H

/* UTF-8 as Unicode defines it: no overlong forms, no surrogates, nothing above U+10FFFF. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum tern_utf8_kind {
    TERN_UTF8_VALID,  /* a whole character */
    TERN_UTF8_BROKEN, /* bytes that can never become a character, whatever follows */
    TERN_UTF8_PARTIAL /* the start of a character that the text ends inside of */
} tern_utf8_kind;

typedef struct tern_utf8 {
    tern_utf8_kind kind;
    uint32_t code; /* code point; 0 unless VALID */
    size_t size; /* bytes: of the character, of the longest broken start (>= 1), of what is left */
} tern_utf8;

enum { TERN_UTF8_MAX_BYTES = 4, TERN_UTF8_REPLACEMENT_BYTES = 3 };

/* U+FFFD, TERN_UTF8_REPLACEMENT_BYTES bytes. */
extern const char tern_utf8_replacement[];

/* Decodes the first character of text[size]. size >= 1. */
tern_utf8 tern_utf8_next(const char *text, size_t size);

/* True if the whole text is UTF-8; an empty one is. */
bool tern_utf8_is_valid(const char *text, size_t size);

/* Writes a code point (no surrogate, at most U+10FFFF) to out[TERN_UTF8_MAX_BYTES]; its bytes. */
size_t tern_utf8_put(uint32_t code, char *out);

/*
 * Copies text[size] to out with each broken or partial start as one U+FFFD and returns the bytes
 * written. When pending is not NULL a partial character at the end is not copied; *pending gets its
 * number of bytes (0 to 3). out holds TERN_UTF8_REPLACEMENT_BYTES * size bytes; out may be NULL
 * with the same result, so that a caller can size it.
 */
size_t tern_utf8_repair(const char *text, size_t size, char *out, size_t *pending);

#endif
