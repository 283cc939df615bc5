/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_STRICT_H
#define TERN_RUNTIME_MODEL_STRICT_H

/*
 * Strict models: whatever tern would do in place of what was asked for or of what a file should
 * say is refused, TERN_ERR_STRICT, in a line that says what was missing and what would have stood
 * in. docs/strict.md lists every such place.
 */

#include "runtime/model/model.h"

/* What can be told before weights are read: metadata, tokenizer, formats, layouts, rows. */
TERN_MUST_CHECK tern_status tern_strict_plan(const tern_model *m, const tern_model_params *params,
                                             tern_error *err);

/* What is known only when they have been: rows that gave wrong results. */
TERN_MUST_CHECK tern_status tern_strict_loaded(const tern_model *m, tern_error *err);

#endif
