/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_FUZZ_CHANGE_WORDS_H
#define TERN_TESTS_FUZZ_CHANGE_WORDS_H

/*
 * Random changes of a text of words and marks, as a program or a grammar is one: some words are
 * dropped, repeated, replaced, or taken from elsewhere. Bytes changed at random seldom give a word
 * of a language, and so seldom get past its parser.
 */

#include <stddef.h>
#include <stdint.h>

/* bytes[size], of which most may be written, changed. words[n_words]: of the language, single ones
 * or several that belong together. other[other_size] is another text whose words may be taken;
 * other_size 0: none. The new size. */
size_t change_words(const char *const *words, size_t n_words, char *bytes, size_t size, size_t most,
                    const char *other, size_t other_size, unsigned seed);

#endif
