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

/* The checks of tern_in_file_open alone, before a library opens the file itself. */
TERN_MUST_CHECK tern_status tern_in_file_check(const char *path, tern_in_kind kind,
                                               tern_error *err);

/*
 * All of a regular file of at most limit bytes, with a terminator behind it: settings, keys,
 * certificates, which may be read again while a program runs. TERN_ERR_IO names the file and says
 * what is wrong with it; TERN_ERR_NOMEM. The caller frees *bytes.
 */
TERN_MUST_CHECK tern_status tern_in_file_read(const char *path, size_t limit, char **bytes,
                                              size_t *size, tern_error *err);

/* Wipes and frees bytes[size] of it; NULL is fine. */
void tern_in_file_forget(char *bytes, size_t size);

#endif
