/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_BASE_THREAD_SIGNALS_H
#define TERN_BASE_THREAD_SIGNALS_H

/*
 * Signals of threads that leave them to others. A signal that a thread raises by its own fault (it
 * reads a mapped file that became shorter, it divides by zero) is never among what is blocked: the
 * system ends a process that blocks such a signal, and no handler says why.
 */

#include <signal.h>

/* Blocks in this thread, and in those that it starts, all signals but faults. *before gets what was
 * blocked; pthread_sigmask(SIG_SETMASK, before, NULL) goes back to it. */
void tern_signals_block(sigset_t *before);

/* Unblocks faults in this thread, and in those that it starts: a process may be started with any
 * signal blocked. */
void tern_signals_unblock_faults(void);

#endif
