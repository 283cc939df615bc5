/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_INSPECT_PLANNED_WEIGHTS_H
#define TERN_TOOLS_INSPECT_PLANNED_WEIGHTS_H

/* The plan for loading a model's weights, as `tern inspect` shows it. */

#include "base/json_tree/value.h"
#include "tern/tern.h"

/* Bytes that are used in place, in the mapped file. */
uint64_t planned_in_file(const tern_model *model);

/* Prints a line for each group of tensors that become the same. */
void planned_print(const tern_model *model);

/* All tensors as a list. */
json_t *planned_json(const tern_model *model);

#endif
