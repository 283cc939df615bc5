/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_TOKENIZER_ADDED_H
#define TERN_RUNTIME_TEXT_TOKENIZER_ADDED_H

/*
 * Finds the added tokens of a tokenizer.json in a text, from left to right and the longest one at
 * each place. A token includes the white space around it that its flags ask for.
 */

#include "runtime/text/tokenizer/index.h"
#include "runtime/text/tokenizer/regex.h"
#include "runtime/text/tokenizer/vocabulary.h"

typedef struct tern_added_set {
    size_t n;
    tern_added_token *tokens; /* [n] */
    tern_span *texts;         /* [n] what stands for them in a text */
    tern_prefix_set prefixes; /* set of the texts */
    tern_regex *word;         /* a character of words; NULL unless a token is a single_word */
} tern_added_set;

/* Room for n tokens and one reference to each; false when memory is short. */
bool tern_added_set_init(tern_added_set *set, size_t n);
void tern_added_set_free(tern_added_set *set); /* zero-initialised or set up; the texts are not
                                                  freed */

/* Adds a token. An empty text is never found. Of equal texts the first one counts. */
TERN_MUST_CHECK tern_status tern_added_set_add(tern_added_set *set, tern_added_token token,
                                               tern_span text);

/* A walk through a text. Zero-initialise all but set, text, parse and scratch. */
typedef struct tern_added_walk {
    const tern_added_set *set;
    tern_regex_scratch *scratch;
    tern_span text;
    bool parse;           /* special tokens are found; otherwise they are passed over */
    const uint8_t *marks; /* one for each byte of the text; special tokens count only where all of
                           * theirs are 0. NULL: everywhere */
    size_t search;        /* end of the last token without the white space around it */
    size_t at;            /* end of the last token with that white space */
} tern_added_walk;

/* True if all n marks are 0. */
bool tern_all_zero(const uint8_t *marks, size_t n);

/* Finds the next token: sets *start, where it begins with its white space (perhaps before `at`),
 * and *id. False if there is none. */
bool tern_added_next(tern_added_walk *walk, size_t *start, int32_t *id);

#endif
