/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_STRICT_H
#define TERN_RUNTIME_MODEL_STRICT_H

/*
 * Strict models: tern refuses to replace what was asked for, or what a file should say, by anything
 * else (TERN_ERR_STRICT). The message says what is missing and what would have replaced it.
 * docs/strict.md lists every such place.
 */

#include "runtime/model/model.h"

/* Checks what is known before weights are read: metadata, tokenizer, formats, layouts, kernels. */
TERN_MUST_CHECK tern_status tern_strict_plan(const tern_model *m, const tern_model_params *params,
                                             tern_error *err);

/* Checks what is known only after weights have been read: kernels that gave wrong results. */
TERN_MUST_CHECK tern_status tern_strict_loaded(const tern_model *m, tern_error *err);

#endif
