/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_TOKENIZER_REGEX_PARSE_H
#define TERN_RUNTIME_TEXT_TOKENIZER_REGEX_PARSE_H

/* Reads the parts of a pattern of Oniguruma that mean characters: escapes and sets. */

#include "runtime/text/tokenizer/code_set.h"

typedef struct tern_regex_reader {
    tern_span in;
    size_t at;
    bool folds; /* case does not matter here */
    bool out_of_memory;
    char *why; /* [TERN_REGEX_WHY_BYTES] */
} tern_regex_reader;

/* The byte `ahead` places on; NUL at the end (and where the pattern holds one). */
char tern_regex_peek(const tern_regex_reader *r, size_t ahead);
bool tern_regex_sees(const tern_regex_reader *r, const char *text);

/* Says what is not supported at this place, and returns false. */
bool tern_regex_refuse(tern_regex_reader *r, const char *what);

/*
 * Each reads what begins at this place and adds its characters to a set: a character, an escape
 * (from its backslash on), a set (from its bracket on). Where case does not matter the characters
 * that equal them are added, too. False: it was refused, or memory is short.
 */
bool tern_regex_read_character(tern_regex_reader *r, tern_code_set *set);
bool tern_regex_read_escape(tern_regex_reader *r, tern_code_set *set);
bool tern_regex_read_set(tern_regex_reader *r, tern_code_set *set);

#endif
