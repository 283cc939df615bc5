/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_MODEL_PROMPT_CACHE_H
#define TERN_TOOLS_MODEL_PROMPT_CACHE_H

/* --prompt-cache: a session file that is read before an answer and written after it. */

#include "tools/model/loader.h"

/*
 * Gives the session what the file holds; nothing without the option, or where there is no file yet.
 * EXIT_DONE, or the exit status after a complaint.
 */
int prompt_cache_restore(const options *o, const loaded *l);

/* Writes what the session holds, unless the file is only to be read. */
int prompt_cache_save(const options *o, const loaded *l);

#endif
