/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_TEMPLATE_INPUT_H
#define TERN_RUNTIME_TEXT_TEMPLATE_INPUT_H

#include "runtime/text/template/eval.h"
#include "runtime/text/template/template.h"

/* How messages with calls are given to a template. */
typedef struct tern_tpl_way {
    bool objects;  /* arguments that are JSON objects become dicts */
    bool contents; /* the text beside calls is "" if there is none, not undefined */
} tern_tpl_way;

/* True for each thing that a conversation has and that the ways treat differently. */
typedef struct tern_tpl_calls {
    bool objects, silent;
} tern_tpl_calls;

/* Gives a template its variables. False after a failure. */
bool tern_tpl_add_input(tern_tpl *x, tern_tpl_frame *f, const tern_template_input *input,
                        tern_tpl_way way, tern_tpl_calls *calls);

#endif
