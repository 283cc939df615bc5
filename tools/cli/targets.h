/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_CLI_TARGETS_H
#define TERN_TOOLS_CLI_TARGETS_H

/*
 * The files that a command line asks for, as the tables of options and commands mark them: what is
 * written never replaces a file without --force, and never one that the same command reads,
 * whatever name, link or second name of it is given. What is only added to may be there already.
 */

#include <limits.h>

#include "base/out_file.h"
#include "tools/cli/options.h"

/*
 * Looks at every file that is to be written, before the command begins and again when a model is
 * open, whose file the command line may name by half. EXIT_USAGE for one that may not be replaced,
 * EXIT_FAILED for one that cannot be written; after a complaint.
 */
int targets_check(const options *o);

/*
 * What a command that rewrites a model writes: its second operand; for a sidecar without one the
 * folder that belongs to the first, in `path`. NULL: neither.
 */
const char *targets_out(const options *o, char path[PATH_MAX]);

/* With --force: TERN_OUT_REPLACE. */
tern_out_mode targets_mode(const options *o);

#endif
