/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_CLI_SIGNALS_H
#define TERN_TOOLS_CLI_SIGNALS_H

/*
 * How the program ends when it is told to, or when a file fails under its map.
 *
 * Every signal that would end the process, but SIGKILL: temporary files are removed, then the
 * signal ends the process, so a shell sees 128 and its number. A command that would rather end in
 * order catches SIGINT, SIGTERM and SIGHUP (tools/cli/interrupt.h). A signal that was ignored when
 * the program began (nohup) stays ignored. SIGXFSZ is ignored: the write fails, and that is told.
 *
 * SIGBUS of a mapped file that was shortened: temporary files are removed, one line names the file,
 * the exit status is 1.
 */

/* Once, at the program's start. */
void signals_install(void);

#endif
