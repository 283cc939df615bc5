/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_CROSSVAL_ASK_H
#define TERN_TOOLS_CROSSVAL_ASK_H

/* Asks another engine by the script lab/crossval-reference, if one is installed. */

#include "tools/crossval/reference.h"

/*
 * Asks for the answer to a prompt and reads it. EXIT_DONE, or after a complaint EXIT_USAGE if no
 * engine is installed, EXIT_FAILED if asking failed. Nothing is installed, and no file is left.
 */
int crossval_ask(const char *model, const char *prompt, reference **out);

/* Reads a reference from its file; EXIT_DONE, or the exit status after a complaint. */
int crossval_read(const char *path, reference **out);

#endif
