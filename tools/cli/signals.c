/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/cli/signals.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/thread_signals.h"
#include "tern/tern.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"

enum { STACK_BYTES = 1 << 16 };

/* The functions below use only async-signal-safe functions. */

static void restore(int number) {
    const struct sigaction action = {.sa_handler = SIG_DFL};
    (void)sigaction(number, &action, NULL);
}

static void on_end(int number) {
    const bool asks = number == SIGINT || number == SIGTERM || number == SIGHUP;
    if (asks && interrupt_note(number))
        return;
    tern_temporary_files_remove();
    restore(number);
    (void)raise(number); /* takes effect when the handler returns */
}

static void say(const char *text, size_t size) {
    if (write(STDERR_FILENO, text, size) < 0)
        return; /* the error cannot be reported */
}

static void on_bus_error(int number, siginfo_t *info, void *context) {
    static atomic_flag told = ATOMIC_FLAG_INIT;
    (void)context;
    const char *path = tern_mapped_file(info->si_addr);
    if (path == NULL) {
        tern_temporary_files_remove();
        restore(number); /* not a mapped file: the access faults again, or the signal was sent */
        (void)raise(number);
        return;
    }
    while (atomic_flag_test_and_set(&told))
        (void)pause(); /* another thread had the same fault and ends the process */
    static const char head[] = "tern: ";
    static const char tail[] = ": cannot be read any more: it became shorter while it was in use, "
                               "or its disk failed\n";
    char line[1024]; /* longer paths are cut */
    size_t n = strnlen(path, sizeof line - sizeof head - sizeof tail);
    memcpy(line, head, sizeof head - 1);
    for (size_t i = 0; i < n; i++) { /* replaces control characters like complain() */
        const unsigned char c = (unsigned char)path[i];
        line[sizeof head - 1 + i] = c < ' ' || c == 0x7f ? '?' : path[i];
    }
    n += sizeof head - 1;
    memcpy(line + n, tail, sizeof tail - 1);
    tern_temporary_files_remove();
    say(line, n + sizeof tail - 1);
    _exit(EXIT_FAILED);
}

/* Installs a handler only for signals with the default action: those that were ignored at the start
 * (nohup) stay ignored, and sanitizers keep their handlers. */
static void install(int number) {
    struct sigaction action;
    if (sigaction(number, NULL, &action) != 0 || action.sa_handler != SIG_DFL)
        return;
    action = (struct sigaction){.sa_handler = on_end, .sa_flags = SA_RESTART | SA_ONSTACK};
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(number, &action, NULL);
}

/*
 * Gives handlers on this thread a separate stack: the fault may be that the thread's stack is full.
 */
static void take_stack(void) {
    static _Alignas(16) char bytes[STACK_BYTES];
    const stack_t stack = {.ss_sp = bytes, .ss_size = sizeof bytes};
    stack_t before;
    if (sigaltstack(NULL, &before) == 0 && (before.ss_flags & SS_DISABLE) != 0)
        (void)sigaltstack(&stack, NULL);
}

/* Makes a write beyond `ulimit -f` fail with EFBIG, which is reported, instead of ending the
 * process. */
static void ignore_file_limit(void) {
    struct sigaction action;
    if (sigaction(SIGXFSZ, NULL, &action) == 0 && action.sa_handler == SIG_DFL) {
        action.sa_handler = SIG_IGN;
        (void)sigaction(SIGXFSZ, &action, NULL);
    }
}

void signals_install(void) {
    static const int ending[] = {
        SIGINT,    SIGTERM, SIGHUP,  SIGPIPE, SIGQUIT, SIGXCPU, SIGUSR1, SIGUSR2, SIGALRM,
        SIGVTALRM, SIGPROF, SIGABRT, SIGSEGV, SIGILL,  SIGFPE,  SIGTRAP, SIGSYS,
#ifdef SIGPOLL
        SIGPOLL,
#endif
#ifdef SIGPWR
        SIGPWR,
#endif
#ifdef SIGSTKFLT
        SIGSTKFLT,
#endif
    };
    tern_signals_unblock_faults();
    take_stack();
    ignore_file_limit();
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++)
        install(ending[i]);
#ifdef SIGRTMIN
    for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
        install(number);
#endif
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGBUS, &action, NULL);
}
