/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/interrupt.h"

#include <signal.h>
#include <stddef.h>

typedef enum mode { MODE_END, MODE_NOTE_ONE, MODE_NOTE_SIGINT } mode;

static volatile sig_atomic_t current = MODE_END;
static volatile sig_atomic_t seen; /* the signal, or 0 */

void interrupt_catch(void) {
    seen = 0;
    current = MODE_NOTE_ONE;
}

void interrupt_catch_all(void) {
    struct sigaction action;
    seen = 0;
    current = MODE_NOTE_SIGINT;
    if (sigaction(SIGINT, NULL, &action) == 0 && action.sa_handler != SIG_IGN) {
        action.sa_flags &= ~SA_RESTART;
        (void)sigaction(SIGINT, &action, NULL);
    }
}

bool interrupt_seen(void) {
    return seen != 0;
}

void interrupt_forget(void) {
    seen = 0;
}

int interrupt_status(int status) {
    return seen != 0 ? 128 + seen : status;
}

bool interrupt_note(int number) {
    const bool noted = (current == MODE_NOTE_ONE && seen == 0) ||
                       (current == MODE_NOTE_SIGINT && number == SIGINT);
    if (noted) {
        seen = number;
    }
    return noted;
}
