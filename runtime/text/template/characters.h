/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_TEMPLATE_CHARACTERS_H
#define TERN_RUNTIME_TEXT_TEMPLATE_CHARACTERS_H

/* Characters of valid UTF-8 as Python sees them. */

#include <stdbool.h>
#include <stdint.h>

#include "tern/span.h"

/* Bytes of a code point, written to out[4]. */
size_t tern_tpl_put_code(uint32_t code, char *out);

/* The code point at the start of a text that is not empty, and its bytes. */
uint32_t tern_tpl_code(tern_span text, size_t *size);

/* Code points of a text. */
size_t tern_tpl_count(tern_span text);

/* The byte where code point number i begins; the text's end if it has fewer. */
size_t tern_tpl_offset(tern_span text, size_t i);

/* The text without the characters of `these` at one end, or without white space if that is NULL. */
tern_span tern_tpl_strip_left(tern_span text, const tern_span *these);
tern_span tern_tpl_strip_right(tern_span text, const tern_span *these);

bool tern_tpl_is_space(uint32_t code);
bool tern_tpl_is_line_end(uint32_t code); /* as in splitlines; \r\n is one line end */
bool tern_tpl_is_printable(uint32_t code);

/* Letters with case; digits; letters. Characters beyond ASCII need utf8proc; without it they have
 * no case and are printable. */
bool tern_tpl_is_upper(uint32_t code);
bool tern_tpl_is_lower(uint32_t code);
bool tern_tpl_is_alpha(uint32_t code);
bool tern_tpl_is_digit(uint32_t code);

/* Return the same letter in the other case, one code point for one. */
uint32_t tern_tpl_upper(uint32_t code);
uint32_t tern_tpl_lower(uint32_t code);
uint32_t tern_tpl_title(uint32_t code);

#endif
