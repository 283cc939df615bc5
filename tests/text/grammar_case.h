/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_TEXT_GRAMMAR_CASE_H
#define TERN_TESTS_TEXT_GRAMMAR_CASE_H

/* A small vocabulary for grammars, and checks of grammars. */

#include "tern/grammar.h"
#include "tests/support/check.h"

/* Token b is the byte b. These tokens follow. */
enum {
    TOKEN_END = 256, /* ends the text */
    TOKEN_CONTROL,
    TOKEN_OPEN,  /* {" */
    TOKEN_COLON, /* ": */
    TOKEN_CLOSE, /* "} */
    TOKEN_ABC,   /* abc */
    TOKEN_HEART, /* two and a half characters: e with an acute accent, a, half of a heart */
    N_TOKENS,
    WORDS = (N_TOKENS + 63) / 64
};

extern const tern_grammar_tokens *grammar_tokens;

/* Setup and teardown of a group of tests. */
int grammar_case_begin(void **state);
int grammar_case_end(void **state);

tern_grammar *grammar_of_gbnf(const char *text);
tern_grammar *grammar_of_schema(const char *text); /* compact */

/* The text is a text of the grammar; is only the beginning of one; is neither. */
void expect_whole(tern_grammar *g, const char *text);
void expect_begins(tern_grammar *g, const char *text);
void expect_wrong(tern_grammar *g, const char *text);

/* Compiling fails with TERN_ERR_GRAMMAR and a message that contains `part`. */
void expect_gbnf_refused(const char *text, const char *part);
void expect_schema_refused(const char *text, const char *part);

/* Checks all texts of a list that ends with NULL. */
void expect_schema(const char *schema, const char *const *whole, const char *const *wrong);

/* The same as servers hold answers to a schema (tern_schema_params.closed); there may be notes. */
void expect_closed(const char *schema, const char *const *whole, const char *const *wrong);

/* The same for numbers, which may begin another text: `others` are not whole ones. */
void expect_only(const char *schema, const char *const *whole, const char *const *others);

/* The schema has a note that contains `note`, and `whole` is a text. */
void expect_noted(const char *schema, const char *note, const char *whole);

#endif
