/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_CLI_INTERRUPT_H
#define TERN_TOOLS_CLI_INTERRUPT_H

/*
 * Signals that ask the program to end (SIGINT, SIGTERM, SIGHUP) as something to look at, so that
 * work ends where it may end. Until one of the first two functions is called they end the process
 * at once (tools/cli/signals.h).
 */

#include <stdbool.h>

/* From now on the next signal is noted, and the one after it ends the process. */
void interrupt_catch(void);

/* From now on every SIGINT is only noted. The other two end the process. */
void interrupt_catch_all(void);

/* Whether reads that wait return with EINTR when SIGINT comes: for the time of such a read alone,
 * because writes would, too, and lose what they had. */
void interrupt_wakes(bool wakes);

/* From now on SIGHUP asks for something else, which interrupt_reload_seen tells once; calls that
 * wait return with EINTR. */
void interrupt_catch_reload(void);
bool interrupt_reload_seen(void);

/* Whether one came since it was caught or forgotten. */
bool interrupt_seen(void);
void interrupt_forget(void);

/* What the program should exit with: 128 + the signal that was noted, else `status`. */
int interrupt_status(int status);

/* For the signal handler: takes note, or tells that this signal has to end the process. */
bool interrupt_note(int number);

#endif
