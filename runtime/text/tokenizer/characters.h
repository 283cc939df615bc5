/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_TOKENIZER_CHARACTERS_H
#define TERN_RUNTIME_TEXT_TOKENIZER_CHARACTERS_H

/* What is done to single characters, and what they are, as Hugging Face's tokenizers see it. */

#include <stddef.h>
#include <stdint.h>

#include "runtime/text/tokenizer/vocabulary.h"

enum { TERN_MAPPED_BYTES = 8 };

/* Writes what becomes of a character to out[TERN_MAPPED_BYTES]; returns the bytes. */
size_t tern_map_character(tern_character_map map, uint32_t code, char *out);

typedef enum tern_word_class { TERN_IN_WORD, TERN_BETWEEN_WORDS, TERN_PUNCTUATION } tern_word_class;

/* What BERT takes a character for. */
tern_word_class tern_word_class_of(uint32_t code);

#endif
