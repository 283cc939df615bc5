/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_LOAD_ADAPTERS_H
#define TERN_TOOLS_LOAD_ADAPTERS_H

#include "tern/tern.h"
#include "tools/cli/options.h"

/* Reads --lora, or another option of FILE[=SCALE], into the parameters of a model; what they point
 * to lives as long as the program. TERN_ERR_ARG: too many, too long a path, or answers are to be
 * recorded. */
TERN_MUST_CHECK tern_status adapters_read(const options *o, option_id id, tern_model_params *params,
                                          tern_error *err);

/* Splits FILE[=SCALE]; a scale that is not given is 1. TERN_ERR_ARG: the path does not fit. */
TERN_MUST_CHECK tern_status adapters_split(const char *text, char *path, size_t size, float *scale,
                                           tern_error *err);

#endif
