/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_MODEL_MODEL_HINT_H
#define TERN_TOOLS_MODEL_MODEL_HINT_H

/* What to do about a model that does not open: the next command, where there is one. */

#include <stdbool.h>

#include "tern/status.h"

/*
 * Complains about a model file that could not be opened, with a hint where the file's name or its
 * first bytes tell what it is. may_be_prompt: it stood without -m, where prompts are taken. Returns
 * the exit status.
 */
int complain_of_model(const char *path, bool may_be_prompt, const tern_error *err);

#endif
