/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_INSPECT_MODEL_FACTS_H
#define TERN_TOOLS_INSPECT_MODEL_FACTS_H

/* Activation, norms, rope and tokenizer of a model and the sources of these facts, for people. */

#include "base/json_tree/value.h"
#include "tern/tern.h"

/* Prints a line for each fact to standard output. */
void model_facts_print(const tern_model *model);

/* Prints the same to standard error, after "model: ". */
void model_facts_remark(const tern_model *model);

/* [{"name", "value", "from"}]; the caller owns it. */
json_t *model_facts_json(const tern_model *model);

#endif
