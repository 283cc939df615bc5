/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_MODEL_JSON_H
#define TERN_TOOLS_MODEL_JSON_H

/* JSON output of the program: values, one line of output, and keys that several commands share. */

#include "base/json_tree/value.h"
#include "tools/model/loader.h"

/* Prints root as one line and frees it; returns the exit status. NULL (no memory) is a failure. */
int json_print(json_t *root);

/* Sets "isa", "choice" (tern_model_choice), "kernels" (names of the kernels in use) and
 * "refused_kernels" (kernels that were found to be wrong). */
void json_set_kernels(json_t *root, const loaded *l);

/* Sets "activations", the precision in use, if it is not the model's own. */
void json_set_activations(json_t *root, const tern_model *model);

/* Sets "load_seconds" and "weights": "mapped" from the cache, or "packed". */
void json_set_loading(json_t *root, const loaded *l);

#endif
