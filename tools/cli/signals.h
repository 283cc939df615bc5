/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_CLI_SIGNALS_H
#define TERN_TOOLS_CLI_SIGNALS_H

/*
 * Orderly ends of the program: by a signal, or when a mapped file fails.
 *
 * For every signal that would end the process except SIGKILL, temporary files are removed; then the
 * signal ends the process, so a shell sees 128 plus its number. A command that wants to finish in
 * order catches SIGINT, SIGTERM and SIGHUP (tools/cli/interrupt.h). A signal that was ignored when
 * the program began (nohup) stays ignored. SIGXFSZ is ignored: the write fails, which is reported.
 *
 * For SIGBUS from a mapped file that was shortened, temporary files are removed, one line names the
 * file, and the exit status is 1.
 */

/* Call it once, at the program's start. */
void signals_install(void);

#endif
