/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_TERMINAL_WRAP_H
#define TERN_TOOLS_TERMINAL_WRAP_H

/*
 * Writes a text to a terminal while it is generated, and keeps words whole at the right edge: when
 * a word reaches it, the word's beginning is erased and the word goes on in the next line. The
 * terminal is asked for its width before each piece, because its window may change meanwhile.
 */

#include <stdbool.h>
#include <stddef.h>

enum { WRAP_WORD_BYTES = 256 }; /* longer words are broken */

typedef struct wrap {
    bool on;          /* off: bytes are written as they are */
    unsigned columns; /* of the terminal; 0: unknown */
    unsigned column;  /* where the next character goes; `columns`: the line is full */
    char word[WRAP_WORD_BYTES];
    size_t word_bytes;
    unsigned word_width; /* columns of the word's beginning, which word[word_bytes] holds */
} wrap;

/* Chooses UTF-8 where the locale has single-byte characters, as in many containers. Widths of
 * characters depend on it. */
void wrap_choose_letters(void);

/* True if fd is a terminal that understands control sequences. */
bool wrap_is_possible(int fd);

/* Begins a text in the first column. */
void wrap_begin(wrap *w);

/* Writes bytes[size], whole characters, to standard output; false once a write has failed. */
bool wrap_write(wrap *w, const char *bytes, size_t size);

/* The row in which a cursor stands behind text[size], printed from row 0 and column `*column` in
 * so many columns; *column becomes its column. */
unsigned wrap_row(const char *text, size_t size, unsigned columns, unsigned *column);

#endif
