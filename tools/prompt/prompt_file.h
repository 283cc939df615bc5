/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_PROMPT_PROMPT_FILE_H
#define TERN_TOOLS_PROMPT_PROMPT_FILE_H

/*
 * Prompts from a file: one per line, or one JSON object per line with a text "prompt" or, if a
 * model is at hand, an array "tokens" of ids. Lines that begin with '{' are JSON; empty lines are
 * skipped.
 */

#include <stddef.h>

#include "tools/prompt/prompt.h"

typedef struct prompts {
    prompt *items; /* [n] texts that are not tokenized, or ids without a text */
    size_t n, capacity;
} prompts;

/* Reads path, "-" for standard input; `ids`: ids are allowed. EXIT_DONE, or the exit status after a
 * complaint that names the line. *p must be zero-initialised; free it in any case. */
int prompts_read(const char *path, bool ids, prompts *p);

/* Adds a copy of text[size]; the same results. */
int prompts_add(prompts *p, const char *text, size_t size);
void prompts_free(prompts *p);

#endif
