/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_MODEL_PLANNED_WEIGHTS_H
#define TERN_TOOLS_MODEL_PLANNED_WEIGHTS_H

/* The list by which a model is loaded, as `tern inspect` shows it. */

#include "tern/tern.h"
#include "tools/model/json.h"

/* Bytes that stay in use where the file is mapped. */
uint64_t planned_in_file(const tern_model *model);

/* A line for all tensors that become the same. */
void planned_print(const tern_model *model);

/* Every tensor. */
json_t *planned_json(const tern_model *model);

#endif
