/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_TEMPLATE_EVAL_H
#define TERN_RUNTIME_TEXT_TEMPLATE_EVAL_H

/* Running a tree. Values are NULL after a failure. */

#include "runtime/text/template/parse.h"
#include "runtime/text/template/text.h"

typedef struct tern_tpl_binding tern_tpl_binding;

/* Names of one scope. A name that it lacks is looked for in the outer ones. */
typedef struct tern_tpl_frame {
    struct tern_tpl_frame *outer;
    tern_tpl_binding *first;
} tern_tpl_frame;

tern_tpl_frame *tern_tpl_frame_new(tern_tpl *x, tern_tpl_frame *outer);
bool tern_tpl_frame_set(tern_tpl *x, tern_tpl_frame *f, tern_span name, tern_tpl_value *value);
tern_tpl_value *tern_tpl_frame_get(tern_tpl *x, const tern_tpl_frame *f, tern_span name);

tern_tpl_value *tern_tpl_eval(tern_tpl *x, tern_tpl_frame *f, const tern_tpl_node *n);

/* `subject | name(arguments)` for a chain of filters whose innermost has no subject of its own. */
tern_tpl_value *tern_tpl_eval_filters(tern_tpl *x, tern_tpl_frame *f, const tern_tpl_node *n,
                                      tern_tpl_value *subject);

bool tern_tpl_eval_args(tern_tpl *x, tern_tpl_frame *f, const tern_tpl_node *first,
                        tern_tpl_args *out);
tern_tpl_value *tern_tpl_call_value(tern_tpl *x, tern_tpl_value *callee, const tern_tpl_args *args);

/* Runs statements; false after a failure. */
bool tern_tpl_exec(tern_tpl *x, tern_tpl_frame *f, const tern_tpl_node *body, tern_tpl_buffer *out);

/* ---- exec.c ---------------------------------------------------------------------------------- */
tern_tpl_value *tern_tpl_call_macro(tern_tpl *x, tern_tpl_value *macro, const tern_tpl_args *args);

/* ---- attributes.c ---------------------------------------------------------------------------- */

/* `of.name` finds a method or attribute before a member, `of[key]` the other way round. The result
 * is undefined if there is neither. */
tern_tpl_value *tern_tpl_attribute(tern_tpl *x, tern_tpl_value *of, tern_span name);
tern_tpl_value *tern_tpl_item(tern_tpl *x, tern_tpl_value *of, const tern_tpl_value *key);
tern_tpl_value *tern_tpl_slice(tern_tpl *x, tern_tpl_value *of, tern_tpl_value *const bounds[3]);

/* ---- methods.c: NULL without a failure when there is none of that name -------------------------
 */
tern_tpl_call *tern_tpl_text_method(tern_span name);
tern_tpl_call *tern_tpl_dict_method(tern_span name);
tern_tpl_call *tern_tpl_list_method(tern_span name);

/* True if Python has a method of that name that is not supported here. */
bool tern_tpl_other_method(tern_tpl_kind kind, tern_span name);

/* ---- filters.c, tests.c, functions.c --------------------------------------------------------- */
tern_tpl_value *tern_tpl_filter(tern_tpl *x, tern_span name, tern_tpl_value *subject,
                                const tern_tpl_args *args);
bool tern_tpl_test(tern_tpl *x, tern_span name, tern_tpl_value *subject, const tern_tpl_args *args,
                   bool *out);
bool tern_tpl_add_functions(tern_tpl *x, tern_tpl_frame *f);

/* ---- operators.c ----------------------------------------------------------------------------- */
tern_tpl_value *tern_tpl_binary(tern_tpl *x, tern_span operator, tern_tpl_value * a,
                                tern_tpl_value *b);
bool tern_tpl_ordered(tern_tpl *x, tern_span operator, tern_tpl_value * a, tern_tpl_value *b,
                      bool *out);

#endif
