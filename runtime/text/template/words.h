/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_TEMPLATE_WORDS_H
#define TERN_RUNTIME_TEXT_TEMPLATE_WORDS_H

/* What filters and methods both do. Values are NULL after a failure. */

#include "runtime/text/template/text.h"

/* Without white space, or the characters of `these` (a TEXT), at the ends. */
tern_tpl_text tern_tpl_strip(tern_tpl_text text, const tern_tpl_value *these, bool left,
                             bool right);

/* Parts between separators (NULL: runs of white space), at most `most` cuts from one end; below 0:
 * all. */
tern_tpl_value *tern_tpl_split(tern_tpl *x, tern_tpl_text text, const tern_tpl_value *separator,
                               int64_t most, bool right);

/* Lines, with their ends or without. */
tern_tpl_value *tern_tpl_lines(tern_tpl *x, tern_tpl_text text, bool with_ends);

/* With `after` in the place of the first `most` times `before` stands there; below 0: all. */
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

/* (key, value) of every member. */
tern_tpl_value *tern_tpl_pairs(tern_tpl *x, const tern_tpl_value *dict);

#endif
