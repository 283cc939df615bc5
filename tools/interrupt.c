/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/interrupt.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t seen;

static void on_interrupt(int signal) {
    (void)signal;
    seen = 1;
}

void interrupt_catch(void) {
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};
    (void)sigemptyset(&action.sa_mask);
    seen = 0;
    (void)sigaction(SIGINT, &action, NULL);
}

bool interrupt_seen(void) {
    return seen != 0;
}
