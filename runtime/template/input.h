/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEMPLATE_INPUT_H
#define TERN_RUNTIME_TEMPLATE_INPUT_H

#include "runtime/template/eval.h"
#include "runtime/template/template.h"

/* Gives a template its variables. objects: arguments of tool calls that are JSON objects become
 * dicts; *had_arguments: there are such. False after a failure. */
bool tern_tpl_add_input(tern_tpl *x, tern_tpl_frame *f, const tern_template_input *input,
                        bool objects, bool *had_arguments);

#endif
