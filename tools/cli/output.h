/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_CLI_OUTPUT_H
#define TERN_TOOLS_CLI_OUTPUT_H

/*
 * Standard output and diagnostics. Write errors are remembered and decide the exit status at the
 * end, so that a full disk is never taken for success.
 */

#include <stdbool.h>
#include <stddef.h>

#include "tern/status.h"

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/*
 * Standard output. Returns false once any write has failed; callers may ignore it. out_write gives
 * a file or pipe exactly these bytes, and a terminal only their visible form (tools/cli/visible.h).
 * out_print writes lines for people, always in visible form.
 */
bool out_write(const char *bytes, size_t size);
bool out_print(const char *format, ...) TERN_PRINTF(1, 2);
bool out_flush(void);

/* Writes a control sequence of the program's own to a terminal. */
bool out_control(const char *bytes, size_t size);

/* Flushes and reports a write error, silently if the reader has gone (EPIPE). Returns `status`, or
 * EXIT_FAILED if that was EXIT_DONE and something could not be written. */
int out_finish(int status);

/* Prints "tern: " and a line on standard error, in visible form. */
void complain(const char *format, ...) TERN_PRINTF(1, 2);

/* Prints a text on standard error, in visible form. */
void remark(const char *format, ...) TERN_PRINTF(1, 2);

/* Complains about a failed call. Returns the exit status: EXIT_USAGE for a wrong instruction set or
 * a file that may not be replaced, otherwise EXIT_FAILED. */
int complain_error(const tern_error *err);

/* True if remarks (metrics, progress) are wanted on standard error. */
bool wants_remarks(bool verbose);

#endif
