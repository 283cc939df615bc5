/* SPDX-License-Identifier: Apache-2.0 */
/* System calls as events. A seccomp filter raises SIGSYS for them, also inside the C library. The
 * handler makes the call, or returns an error for it. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "tests/faults/shim.h"

/* A sixth argument that no trapped call has. It marks a call as the shim's, which passes. */
#define PASS UINT64_C(0x7ae125f0c0ffee11)

static const struct {
    long number;
    const char *name;
    int error; /* the error that a failing call returns */
} trapped[] = {
    {SYS_openat, "openat", EMFILE},  {SYS_read, "read", EIO},
    {SYS_write, "write", ENOSPC},    {SYS_close, "close", EIO},
    {SYS_fsync, "fsync", ENOSPC},    {SYS_pipe2, "pipe2", EMFILE},
    {SYS_fstat, "fstat", EIO},       {SYS_newfstatat, "newfstatat", EIO},
    {SYS_renameat, "renameat", EIO}, {SYS_renameat2, "renameat2", EIO},
    {SYS_linkat, "linkat", EIO},
#ifdef SYS_rename
    {SYS_rename, "rename", EIO},
#endif
};
enum { TRAPPED = sizeof trapped / sizeof *trapped };

static const char *hidden_folder; /* NULL: none */

long shim_call(long number, long a, long b, long c, long d, long e) {
    return syscall(number, a, b, c, d, e, (long)PASS);
}

typedef struct call {
    long number, arguments[5];
} call;

#if defined(__x86_64__)
static call read_call(const ucontext_t *u) {
    const greg_t *r = u->uc_mcontext.gregs;
    return (call){r[REG_RAX], {r[REG_RDI], r[REG_RSI], r[REG_RDX], r[REG_R10], r[REG_R8]}};
}
static void answer(ucontext_t *u, long result) {
    u->uc_mcontext.gregs[REG_RAX] = result;
}
#elif defined(__aarch64__)
static call read_call(const ucontext_t *u) {
    const unsigned long long *r = u->uc_mcontext.regs;
    return (call){(long)r[8], {(long)r[0], (long)r[1], (long)r[2], (long)r[3], (long)r[4]}};
}
static void answer(ucontext_t *u, long result) {
    u->uc_mcontext.regs[0] = (unsigned long long)result;
}
#endif

static bool hides(const call *c) {
    return hidden_folder != NULL && (c->number == SYS_openat || c->number == SYS_linkat) &&
           strncmp((const char *)c->arguments[1], hidden_folder, strlen(hidden_folder)) == 0;
}

static void on_call(int number, siginfo_t *info, void *context) {
    (void)number;
    const int before = errno;
    call c = read_call(context);
    c.number = info->si_syscall;
    size_t i = 0;
    while (i < TRAPPED && trapped[i].number != c.number)
        i++;
    long result;
    if (hides(&c)) {
        result = -ENOENT;
    } else if (i < TRAPPED && shim_event(SHIM_SYSTEM, trapped[i].name)) {
        /* A descriptor is closed even where close reports an error. */
        if (c.number == SYS_close)
            (void)shim_call(SYS_close, c.arguments[0], 0, 0, 0, 0);
        result = -trapped[i].error;
    } else {
        errno = 0;
        result = shim_call(c.number, c.arguments[0], c.arguments[1], c.arguments[2], c.arguments[3],
                           c.arguments[4]);
        result = result == -1 ? -errno : result;
    }
    answer(context, result);
    errno = before;
}

static bool install_handler(void) {
    struct sigaction action = {.sa_sigaction = on_call, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigemptyset(&action.sa_mask);
    return sigaction(SIGSYS, &action, NULL) == 0;
}

bool shim_trap_system(const char *hidden) {
    hidden_folder = hidden;
    enum { HEAD = 5 };
    struct sock_filter filter[HEAD + TRAPPED + 2] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[5])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)PASS, 0, 2),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[5]) + 4),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(PASS >> 32), TRAPPED + 1, 0),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    };
    for (size_t i = 0; i < TRAPPED; i++)
        filter[HEAD + i] = (struct sock_filter)BPF_JUMP(
            BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)trapped[i].number, (uint8_t)(TRAPPED - i), 0);
    filter[HEAD + TRAPPED] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    filter[HEAD + TRAPPED + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
    const struct sock_fprog program = {.len = HEAD + TRAPPED + 2, .filter = filter};
    return install_handler() && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}
