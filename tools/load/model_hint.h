/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_LOAD_MODEL_HINT_H
#define TERN_TOOLS_LOAD_MODEL_HINT_H

/* Advice about a model that cannot be opened: the next command, if there is one. */

#include <stdbool.h>

#include "tern/status.h"

/*
 * Complains about a model file that could not be opened, with a hint if the file's name or first
 * bytes tell what it is. may_be_prompt: the argument stood without -m where prompts are accepted.
 * Returns the exit status.
 */
int complain_of_model(const char *path, bool may_be_prompt, const tern_error *err);

#endif
