/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_TOKENIZER_REGEX_ALPHABET_H
#define TERN_RUNTIME_TEXT_TOKENIZER_REGEX_ALPHABET_H

/*
 * The letters that a pattern can tell apart. Characters that are in the same sets of a pattern are
 * one letter, a byte: below 0x80 the character of ASCII, each by itself, from 0x80 on the others.
 * So a pattern is matched on bytes, and which characters a set has is decided by tern's own tables
 * (code_set.h), not by the library that matches.
 */

#include "runtime/text/tokenizer/code_set.h"

typedef struct tern_regex_alphabet tern_regex_alphabet; /* immutable */

enum { TERN_REGEX_LETTERS = 256, TERN_REGEX_MAX_SETS = 512 };

/*
 * Makes the letters for sets[n], n <= TERN_REGEX_MAX_SETS. TERN_ERR_TOKENIZER_PRE: the characters
 * beyond ASCII are of more than 128 kinds; TERN_ERR_NOMEM.
 */
TERN_MUST_CHECK tern_status tern_regex_alphabet_new(const tern_code_set *sets, size_t n,
                                                    tern_regex_alphabet **out);
void tern_regex_alphabet_free(tern_regex_alphabet **alphabet);

/* Marks the letters of a set by 1, the others by 0. */
void tern_regex_alphabet_letters(const tern_regex_alphabet *alphabet, const tern_code_set *sets,
                                 size_t set, uint8_t marks[TERN_REGEX_LETTERS]);

/* Writes the letters of a text of valid UTF-8 to out[text.size]; returns how many. */
size_t tern_regex_alphabet_spell(const tern_regex_alphabet *alphabet, tern_span text, uint8_t *out);

#endif
