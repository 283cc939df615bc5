/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_PROMPT_PROMPT_CACHE_H
#define TERN_TOOLS_PROMPT_PROMPT_CACHE_H

/* --prompt-cache: a session file that is read before an answer and written after it. */

#include "tools/load/loader.h"

/*
 * Loads the session from the file. Does nothing without the option, or if the file does not exist
 * yet. EXIT_DONE, or the exit status after a complaint.
 */
int prompt_cache_restore(const options *o, const loaded *l);

/* Saves the session to the file, unless it is read-only. */
int prompt_cache_save(const options *o, const loaded *l);

#endif
