/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread_signals.h"

#include <stddef.h>

static const int faults[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGSYS};

void tern_signals_block(sigset_t *before) {
    sigset_t others;
    (void)sigfillset(&others);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        (void)sigdelset(&others, faults[i]);
    (void)pthread_sigmask(SIG_BLOCK, &others, before);
}

void tern_signals_unblock_faults(void) {
    sigset_t set;
    (void)sigemptyset(&set);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        (void)sigaddset(&set, faults[i]);
    (void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}
