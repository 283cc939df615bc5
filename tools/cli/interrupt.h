/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_CLI_INTERRUPT_H
#define TERN_TOOLS_CLI_INTERRUPT_H

/*
 * Signals that ask the program to end (SIGINT, SIGTERM, SIGHUP), as a flag that work polls so that
 * it stops at a safe place. Until one of the first two functions is called they end the process at
 * once (tools/cli/signals.h).
 */

#include <stdbool.h>

/* From now on the next signal is only noted, and the one after it ends the process. */
void interrupt_catch(void);

/* From now on every SIGINT is only noted. The other two signals end the process. */
void interrupt_catch_all(void);

/* Chooses whether SIGINT interrupts blocking reads with EINTR. Enable it only during such a read:
 * writes would be interrupted, too, and lose data. */
void interrupt_wakes(bool wakes);

/* From now on SIGHUP requests a reload, which interrupt_reload_seen reports once. A waiting poll
 * returns with EINTR. */
void interrupt_catch_reload(void);
bool interrupt_reload_seen(void);

/* True if a signal came since catching began or interrupt_forget was called. */
bool interrupt_seen(void);
void interrupt_forget(void);

/* The program's exit status: 128 + the signal that was noted, otherwise `status`. */
int interrupt_status(int status);

/* For the signal handler: notes the signal, or returns false if it has to end the process. */
bool interrupt_note(int number);

#endif
