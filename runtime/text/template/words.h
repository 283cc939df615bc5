/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_TEMPLATE_WORDS_H
#define TERN_RUNTIME_TEXT_TEMPLATE_WORDS_H

/* Shared by filters and methods. Values are NULL after a failure. */

#include "runtime/text/template/text.h"

/* The text without white space, or without the characters of `these` (a TEXT), at its ends. */
tern_tpl_text tern_tpl_strip(tern_tpl_text text, const tern_tpl_value *these, bool left,
                             bool right);

/* Splits at a separator (NULL: at runs of white space), with at most `most` cuts from one end;
 * below 0: at all of them. */
tern_tpl_value *tern_tpl_split(tern_tpl *x, tern_tpl_text text, const tern_tpl_value *separator,
                               int64_t most, bool right);

/* Splits into lines, with their ends or without. */
tern_tpl_value *tern_tpl_lines(tern_tpl *x, tern_tpl_text text, bool with_ends);

/* Replaces the first `most` occurrences of `before` by `after`; below 0: all. */
tern_tpl_value *tern_tpl_replace(tern_tpl *x, tern_tpl_text text, tern_tpl_text before,
                                 tern_tpl_text after, int64_t most);

typedef enum tern_tpl_case {
    TERN_TPL_UPPER,
    TERN_TPL_LOWER,
    TERN_TPL_TITLE,   /* the first letter of every run of letters */
    TERN_TPL_CAPITAL, /* the first character */
    TERN_TPL_HEADLINE /* the first character after white space, '-', '(', '{', '[', '<' */
} tern_tpl_case;

tern_tpl_value *tern_tpl_letters(tern_tpl *x, tern_tpl_text text, tern_tpl_case how);

/* A list of (key, value) of every member. */
tern_tpl_value *tern_tpl_pairs(tern_tpl *x, const tern_tpl_value *dict);

#endif
