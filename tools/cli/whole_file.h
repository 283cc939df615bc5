/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_CLI_WHOLE_FILE_H
#define TERN_TOOLS_CLI_WHOLE_FILE_H

/* Whole files. Functions with a status return EXIT_DONE, or EXIT_FAILED after a complaint that
 * names the file. */

#include <stddef.h>
#include <stdio.h>

/* Opens a text file ("-": standard input, which must not be closed); NULL after a complaint. */
FILE *file_open_text(const char *path);

/* Reads a whole file ("-": standard input) into *bytes, which the caller frees, with a terminating
 * 0 after *size bytes. Refuses more than limit bytes. */
int file_read(const char *path, size_t limit, char **bytes, size_t *size);

/* The name of a file for messages: "-" is standard input. */
const char *file_shown(const char *path);

/* SHA-256 of a file's bytes as 64 lower-case hexadecimal digits. */
int file_sha256(const char *path, char hex[65]);

#endif
