/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/interrupt.h"

#include <signal.h>
#include <stddef.h>

typedef enum mode { MODE_END, MODE_NOTE_ONE, MODE_NOTE_SIGINT } mode;

static volatile sig_atomic_t current = MODE_END;
static volatile sig_atomic_t seen;          /* the signal, or 0 */
static volatile sig_atomic_t reloads;       /* SIGHUP does not end the process */
static volatile sig_atomic_t reload_wanted; /* SIGHUP came */

void interrupt_catch(void) {
    seen = 0;
    current = MODE_NOTE_ONE;
}

void interrupt_catch_all(void) {
    seen = 0;
    current = MODE_NOTE_SIGINT;
}

void interrupt_wakes(bool wakes) {
    struct sigaction action;
    if (sigaction(SIGINT, NULL, &action) != 0 || action.sa_handler == SIG_IGN)
        return;
    action.sa_flags = wakes ? action.sa_flags & ~SA_RESTART : action.sa_flags | SA_RESTART;
    (void)sigaction(SIGINT, &action, NULL);
}

void interrupt_catch_reload(void) {
    reloads = 1;
}

bool interrupt_reload_seen(void) {
    const bool wanted = reload_wanted != 0;
    reload_wanted = 0;
    return wanted;
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
    if (number == SIGHUP && reloads != 0) {
        reload_wanted = 1;
        return true;
    }
    const bool noted = (current == MODE_NOTE_ONE && seen == 0) ||
                       (current == MODE_NOTE_SIGINT && number == SIGINT);
    if (noted)
        seen = number;
    return noted;
}
