/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BASE_IN_FILE_H
#define TERN_BASE_IN_FILE_H

/* How files that users name are opened: no name makes the program wait for ever. */

#include <stdio.h>

#include "tern/status.h"

typedef enum tern_in_kind {
    TERN_IN_FILE, /* a regular file: models and what belongs to them */
    TERN_IN_TEXT  /* also a character device, and a pipe that is open already (/dev/stdin, or
                     /dev/fd/63, a shell's <(...)): its reader needs a limit */
} tern_in_kind;

/*
 * Opens for reading. Refuses with TERN_ERR_IO folders, sockets, named pipes, which may never have a
 * writer, and what else is not of that kind.
 */
TERN_MUST_CHECK tern_status tern_in_file_open(const char *path, tern_in_kind kind, FILE **out,
                                              tern_error *err);

#endif
