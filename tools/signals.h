/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_SIGNALS_H
#define TERN_TOOLS_SIGNALS_H

/*
 * How the program ends when it is told to, or when a file fails under its map.
 *
 * SIGINT, SIGTERM, SIGHUP and SIGPIPE: temporary files are removed, then the signal ends the
 * process, so a shell sees 130, 143, 129, 141. A command that would rather end in order catches the
 * first three (tools/interrupt.h). A signal that was ignored when the program began (nohup) stays
 * ignored.
 *
 * SIGBUS of a mapped file that was shortened: temporary files are removed, one line names the file,
 * the exit status is 1.
 */

/* Once, at the program's start. */
void signals_install(void);

#endif
