/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_LOAD_TOGETHER_H
#define TERN_TOOLS_LOAD_TOGETHER_H

/*
 * The program as one of several ranks (tern/ranks.h). Rank 0 runs the command as if it were alone.
 * The others open the same model and follow; they print nothing, unless rank 0 is the one that is
 * lost.
 */

#include <stdbool.h>

#include "tern/ranks.h"
#include "tools/cli/options.h"

/* Becomes one of several where --ranks or mpirun says so, before threads are started. Returns an
 * exit status, after a complaint where it is not EXIT_DONE. */
int together_start(const options *o);

tern_ranks *together_ranks(void); /* NULL: the process is alone */
bool together_follows(void);      /* it is a rank other than 0 */

/* Computes what rank 0 asks for with an opened model. */
int together_follow(tern_model *model);

/* Opens the model that the command opens, and follows. */
int together_follow_command(const options *o);

/* Leaves the others. Returns `status`. */
int together_finish(int status);

#endif
