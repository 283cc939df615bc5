/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_TOKENIZER_NORMALIZE_H
#define TERN_RUNTIME_TEXT_TOKENIZER_NORMALIZE_H

#include "runtime/text/tokenizer/vocabulary.h"

/* Whether this build can do what is declared here at all (utf8proc). */
bool tern_can_normalize(void);

/* The small letter of a capital one; other characters stay. One to one: U+0130 becomes i. */
uint32_t tern_lowercase(uint32_t code);

/* Bytes of the character as users see it (grapheme cluster) that valid UTF-8 begins with; 0: none.
 */
size_t tern_whole_character(tern_span text);

/*
 * Valid UTF-8 in a normal form of Unicode. *out is from malloc, or NULL when the text is in that
 * form for certain. Errors: TERN_ERR_NOMEM.
 */
TERN_MUST_CHECK tern_status tern_normalize(tern_span text, tern_normal_form form, char **out,
                                           size_t *size);

#endif
