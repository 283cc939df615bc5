/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_MODEL_LOAD_H
#define TERN_RUNTIME_MODEL_MODEL_LOAD_H

/* Loads a model: from the list of its tensors (load/list.h) to weights that passes read. */

#include "runtime/model/model.h"

/*
 * Plans the weights of a model whose configuration, layers and guard are set, and loads them unless
 * params->no_weights: packs them, or maps an image that was packed before. `precision` is the one
 * that was asked for. Errors of load/list.h; TERN_ERR_STRICT.
 */
TERN_MUST_CHECK tern_status tern_model_load(tern_model *m, const tern_model_params *params,
                                            tern_precision precision, tern_error *err);

/* Reports why an operation has no kernel: TERN_ERR_KERNEL, or TERN_ERR_NOMEM if there was no memory
 * to try kernels. */
TERN_MUST_CHECK tern_status tern_model_no_kernel(const tern_model *m, tern_op op, tern_error *err);

#endif
