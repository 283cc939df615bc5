/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_TOKENIZER_CHARACTERS_H
#define TERN_RUNTIME_TEXT_TOKENIZER_CHARACTERS_H

/* Maps and classes of single characters, as Hugging Face's tokenizers define them. */

#include <stddef.h>
#include <stdint.h>

#include "runtime/text/tokenizer/vocabulary.h"

enum { TERN_MAPPED_BYTES = 8 };

/* Maps a character: writes the result to out[TERN_MAPPED_BYTES] and returns its bytes. */
size_t tern_map_character(tern_character_map map, uint32_t code, char *out);

typedef enum tern_word_class { TERN_IN_WORD, TERN_BETWEEN_WORDS, TERN_PUNCTUATION } tern_word_class;

/* The class that BERT puts a character in. */
tern_word_class tern_word_class_of(uint32_t code);

#endif
