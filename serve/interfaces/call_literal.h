/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_INTERFACES_CALL_LITERAL_H
#define TERN_SERVE_INTERFACES_CALL_LITERAL_H

/*
 * Arguments as programs write them, while they arrive, turned into JSON: (key=value, ...) or
 * {key: value, ...}, with texts in single or double quotes or between marks, True, None, names
 * without quotes. JSON itself stays as it is, except for blanks.
 */

#include "base/json_tree/text.h"

enum { LITERAL_WORD_BYTES = 512, LITERAL_MOST_DEPTH = 64 };

/* Zero-initialise it, then set the mark. */
typedef struct call_literal {
    const char *mark;                  /* around texts; NULL or "": only quotes */
    char brackets[LITERAL_MOST_DEPTH]; /* [depth] those that will close, as in JSON */
    size_t depth;
    int state;
    char quote;                    /* of the text that is being read */
    size_t matched;                /* bytes of the mark */
    char word[LITERAL_WORD_BYTES]; /* [n_word] a number, a name, or a text without quotes */
    size_t n_word;
    char code[9]; /* [n_code] hexadecimal digits of an escape */
    size_t n_code, most_code;
    bool valued; /* a text or an inner value has just ended */
} call_literal;

typedef enum literal_end { LITERAL_MORE, LITERAL_ENDED, LITERAL_WRONG } literal_end;

/* Takes a byte, and appends JSON. It begins with a bracket, and ends with the one that closes it.
 */
literal_end literal_take(call_literal *l, char c, text *out);

/* Appends a byte of a text as it stands in a JSON string. */
void literal_escape(text *out, char c);

/* Appends a single value that stands alone, bytes[size], as JSON. False: it is not one. */
bool literal_value(const char *bytes, size_t size, text *out);

#endif
