/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_TOKENIZER_NORMALIZE_H
#define TERN_RUNTIME_TEXT_TOKENIZER_NORMALIZE_H

#include "runtime/text/tokenizer/vocabulary.h"

/* True if this build has utf8proc, which the functions below need. */
bool tern_can_normalize(void);

/* Returns the lower case of a character, or the character itself. One to one: U+0130 becomes i. */
uint32_t tern_lowercase(uint32_t code);

/* Returns the bytes of the user-perceived character (grapheme cluster) at the start of valid UTF-8;
 * 0: none. */
size_t tern_whole_character(tern_span text);

/*
 * Converts valid UTF-8 to a normal form of Unicode. *out is from malloc, or NULL when the text
 * surely is in that form already. Errors: TERN_ERR_NOMEM.
 */
TERN_MUST_CHECK tern_status tern_normalize(tern_span text, tern_normal_form form, char **out,
                                           size_t *size);

#endif
