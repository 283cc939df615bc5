/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_TOKENIZER_ADDED_H
#define TERN_RUNTIME_TEXT_TOKENIZER_ADDED_H

/*
 * Added tokens of a tokenizer.json in a text: at each place the longest, the places from left to
 * right, with the white space around them that is theirs.
 */

#include "runtime/text/tokenizer/index.h"
#include "runtime/text/tokenizer/regex.h"
#include "runtime/text/tokenizer/vocabulary.h"

typedef struct tern_added_set {
    size_t n;
    tern_added_token *tokens; /* [n] */
    tern_span *texts;         /* [n] what stands for them in a text */
    tern_prefix_set prefixes; /* of the texts */
    tern_regex *word;         /* a character of words; NULL unless a token is a single_word */
} tern_added_set;

/* Room for n tokens and one reference to each; false when memory is short. */
bool tern_added_set_init(tern_added_set *set, size_t n);
void tern_added_set_free(tern_added_set *set); /* zero-initialised or set up; texts stay */

/* Adds a token; texts of no bytes are never found. Of equal texts the first one counts. */
TERN_MUST_CHECK tern_status tern_added_set_add(tern_added_set *set, tern_added_token token,
                                               tern_span text);

/* Goes through a text. Zero-initialise but for set, text, parse and scratch. */
typedef struct tern_added_walk {
    const tern_added_set *set;
    tern_regex_scratch *scratch;
    tern_span text;
    bool parse;           /* special tokens count; otherwise they are passed over */
    const uint8_t *marks; /* of each byte of the text; special tokens count where all of theirs are
                           * 0. NULL: everywhere */
    size_t search;        /* after the last token without the white space around it */
    size_t at;            /* after the last token with it */
} tern_added_walk;

/* Whether n marks are all 0. */
bool tern_all_zero(const uint8_t *marks, size_t n);

/* The next token: where it starts (with its white space; perhaps before `at` was) and its id. */
bool tern_added_next(tern_added_walk *walk, size_t *start, int32_t *id);

#endif
