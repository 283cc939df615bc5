/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_MODEL_PROMPTS_H
#define TERN_TOOLS_MODEL_PROMPTS_H

/*
 * Prompts from a file: one a line, or JSON objects with a text "prompt", one a line. Lines that
 * begin with '{' are JSON; empty lines are left out.
 */

#include <stddef.h>

#include "tools/model/loader.h"

typedef struct prompts {
    prompt *items; /* [n] texts alone, not tokenized */
    size_t n, capacity;
} prompts;

/* Reads path, "-" for standard input. EXIT_DONE, or the exit status after a complaint that names
 * the line. Free in any case; *p must be zero-initialised. */
int prompts_read(const char *path, prompts *p);
void prompts_free(prompts *p);

#endif
