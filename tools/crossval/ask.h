/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_CROSSVAL_ASK_H
#define TERN_TOOLS_CROSSVAL_ASK_H

/* Another engine, asked by the script lab/crossval-reference where one is installed. */

#include "tools/crossval/reference.h"

/*
 * Asks for the answer to a prompt and reads it. EXIT_DONE, or after a complaint EXIT_USAGE where
 * there is no engine to ask, EXIT_FAILED where asking failed. Nothing is installed, and no file
 * stays.
 */
int crossval_ask(const char *model, const char *prompt, reference **out);

/* Reads a reference from its file; EXIT_DONE, or the exit status after a complaint. */
int crossval_read(const char *path, reference **out);

#endif
