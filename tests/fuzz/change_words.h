/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_FUZZ_CHANGE_WORDS_H
#define TERN_TESTS_FUZZ_CHANGE_WORDS_H

/*
 * Random changes of a text of words and marks, such as a program or a grammar: some words are
 * dropped, repeated, replaced, or copied from elsewhere. Random changes of bytes seldom give a word
 * of a language, so they seldom get past its parser.
 */

#include <stddef.h>
#include <stdint.h>

/*
 * Changes the text in bytes[size], which has room for `most`. words[n_words] are of the language,
 * single words or several that belong together. Words may also come from the text
 * other[other_size]; other_size 0: there is none. Returns the new size.
 */
size_t change_words(const char *const *words, size_t n_words, char *bytes, size_t size, size_t most,
                    const char *other, size_t other_size, unsigned seed);

#endif
