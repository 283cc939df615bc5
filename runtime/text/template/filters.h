/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_TEMPLATE_FILTERS_H
#define TERN_RUNTIME_TEXT_TEMPLATE_FILTERS_H

#include "runtime/text/template/eval.h"
#include "runtime/text/template/words.h"

enum { TERN_TPL_MOST_ARGUMENTS = 4 };

/* A filter. It gets its arguments by their names, NULL where none was given, or all as they are. */
typedef struct tern_tpl_filter_entry {
    const char *name, *names;
    tern_tpl_value *(*bound)(tern_tpl *x, tern_tpl_value *subject, tern_tpl_value **arguments);
    tern_tpl_value *(*all)(tern_tpl *x, tern_tpl_value *subject, const tern_tpl_args *args);
} tern_tpl_filter_entry;

extern const tern_tpl_filter_entry tern_tpl_list_filters[]; /* the last one has no name */

#endif
