/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_PULL_TOLD_H
#define TERN_TOOLS_PULL_TOLD_H

/* The lines that tern pull prints with --json, one for each step, in the words of Ollama's
 * interface. Without --json nothing is printed but the path. */

#include "tools/cli/options.h"
#include "tools/pull/download.h"

/* False: nobody reads the lines any more. */
bool told_step(const options *o, const char *step);

/* Tells the bytes of a download that have come, and before its hash is compared that this is done.
 * Its user must be the options. */
bool told_bytes(const download *d, uint64_t have);

/* Tells the size of a file that is there already. */
void told_size(const download *d);

/* Prints the path of what was fetched: the end. */
void told_path(const options *o, const char *path);

#endif
