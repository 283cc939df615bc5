/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_SERVED_CHILD_H
#define TERN_TOOLS_SERVED_CHILD_H

/* Runs this program once more, with another command, as a process of its own. */

#include <stdbool.h>

#include "tern/status.h"

/* Takes a line of standard output, without its end, or NULL several times a second. False: the
 * child is to end. */
typedef bool child_reader(void *user, const char *line);

/*
 * Runs words[0], the program's command, with the words after it up to NULL, where the files of the
 * Hub are in `cache`. Waits until it ends. TERN_ERR_STATE: the reader wanted that; TERN_ERR_IO: it
 * failed, for the reason that it gave on standard error.
 */
TERN_MUST_CHECK tern_status child_run(const char *const *words, const char *cache,
                                      child_reader *reader, void *user, tern_error *err);

#endif
