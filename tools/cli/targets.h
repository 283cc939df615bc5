/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_CLI_TARGETS_H
#define TERN_TOOLS_CLI_TARGETS_H

/*
 * The files that a command line names, as the tables of options and commands mark them. A written
 * file never replaces another without --force, and never one that the same command reads, whatever
 * name or link is used for it. Files that are appended to may exist.
 */

#include <limits.h>

#include "base/out_file.h"
#include "tools/cli/options.h"

/*
 * Checks every file that will be written: before the command begins, and again when a model is
 * open, because the command line may name the model's file only in part. EXIT_USAGE: a file may not
 * be replaced; EXIT_FAILED: it cannot be written; both after a complaint.
 */
int targets_check(const options *o);

/*
 * The output of a command that rewrites a model: its second operand. For a sidecar without one it
 * is the folder that belongs to the first operand, in `path`. NULL: neither.
 */
const char *targets_out(const options *o, char path[PATH_MAX]);

/* TERN_OUT_REPLACE with --force, otherwise TERN_OUT_NEW. */
tern_out_mode targets_mode(const options *o);

#endif
