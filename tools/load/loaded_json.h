/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_LOAD_LOADED_JSON_H
#define TERN_TOOLS_LOAD_LOADED_JSON_H

/* Keys of JSON output that say how a model was loaded. */

#include "base/json_tree/value.h"
#include "tools/load/loader.h"

/* Sets "isa", "choice" (tern_model_choice), "kernels" (names of the kernels in use) and
 * "refused_kernels" (kernels that were found to be wrong). */
void json_set_kernels(json_t *root, const loaded *l);

/* Sets "activations", the precision in use, if it is not the model's own. */
void json_set_activations(json_t *root, const tern_model *model);

/* Sets "load_seconds" and "weights": "mapped" from the cache, or "packed". */
void json_set_loading(json_t *root, const loaded *l);

#endif
