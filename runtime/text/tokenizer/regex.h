/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_TOKENIZER_REGEX_H
#define TERN_RUNTIME_TEXT_TOKENIZER_REGEX_H

/*
 * Regular expressions of tokenizer files. They are written for Oniguruma (Ruby's syntax), and PCRE2
 * runs them. A pattern must match the same characters in both. Where the two read it differently it
 * is rewritten; what cannot be rewritten is refused.
 *
 * Classes of characters (\p{L}, \p{Han}, \w, \s, what case does not matter for) are those of tern's
 * own table of one version of Unicode, whichever PCRE2 is installed: PCRE2 sees each character as
 * one byte, the number of the sets that it is in (regex_alphabet.h). ^ and $ are those of lines;
 * groups do not capture. Refused: back references, \b and other escapes with another meaning, POSIX
 * classes, possessive or lazy {n,m}, verbs, and patterns that tell more than 128 kinds of
 * characters beyond ASCII apart.
 */

#include "runtime/files/gguf/gguf.h"
#include "tern/status.h"

/*
 * The set of the characters of words as Rust's regular expressions define them. Oniguruma's \w also holds
 * raised digits and fractions of Latin-1.
 */
#define TERN_REGEX_RUST_WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{200c}\\x{200d}"

typedef struct tern_regex tern_regex;                 /* compiled, immutable */
typedef struct tern_regex_scratch tern_regex_scratch; /* working memory of one thread */

enum { TERN_REGEX_MAX_BYTES = 16384, TERN_REGEX_WHY_BYTES = 160 };

/*
 * Compiles a pattern. literal: it is plain text, and all of its characters stand for themselves. On
 * failure why[TERN_REGEX_WHY_BYTES] says what is wrong: TERN_ERR_TOKENIZER_PRE, or TERN_ERR_NOMEM.
 */
TERN_MUST_CHECK tern_status tern_regex_new(tern_span pattern, bool literal, tern_regex **out,
                                           char *why);
void tern_regex_free(tern_regex **regex);

tern_regex_scratch *tern_regex_scratch_new(void); /* NULL when memory is short */
void tern_regex_scratch_free(tern_regex_scratch *scratch);

/* A walk through the matches in a text. Zero-initialise all but regex, scratch and text. */
typedef struct tern_regex_walk {
    const tern_regex *regex;
    tern_regex_scratch *scratch; /* walks may be nested: the inner one ends first */
    tern_span text;              /* valid UTF-8 */
    /* The rest belongs to the functions below. They count letters, which are bytes of the text
     * where the pattern is plain text. */
    size_t base, n;       /* the letters of the text in the scratch */
    size_t from;          /* where the next search begins */
    size_t end;           /* end of the last match */
    size_t letter, place; /* a letter, and the byte of the text that it is at */
    uint64_t spent;       /* steps at places that take many */
    bool any;             /* there was a match */
} tern_regex_walk;

/* Begins a walk, which tern_regex_walk_end ends. TERN_ERR_NOMEM. */
TERN_MUST_CHECK tern_status tern_regex_walk_begin(tern_regex_walk *walk);
void tern_regex_walk_end(tern_regex_walk *walk);

/*
 * Finds the next match: bytes of the text. *found is false when there is none. A match may be
 * empty, but not where the previous one ended. TERN_ERR_TOKENIZER_PATTERN when the search takes too
 * many steps.
 */
TERN_MUST_CHECK tern_status tern_regex_next(tern_regex_walk *walk, bool *found, size_t *start,
                                            size_t *end);

#endif
