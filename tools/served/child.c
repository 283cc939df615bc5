/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/served/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json_tree/text.h"
#include "base/metrics.h"
#include "base/os/os.h"

enum { MOST_WORDS = 8, LOOK_MS = 200, END_SECONDS = 10, LINE_BYTES = 1 << 16 };

static const char cache_variable[] = "HF_HUB_CACHE=";

extern char **environ;

/* Lines that come from a child. */
typedef struct listening {
    int fd;
    text pending; /* of a line */
    text said;    /* what it said on standard error, or in lines that are not objects */
    child_reader *reader;
    void *user;
    bool stopped; /* the reader wants no more */
} listening;

/* ---- the process ----------------------------------------------------------------------------- */

/* The environment with another place for files of the Hub. NULL: no memory. The caller frees it. */
static char **environment(char *cache) {
    size_t n = 0, k = 0;
    while (environ[n] != NULL)
        n++;
    char **list = calloc(n + 2, sizeof *list);
    for (size_t i = 0; list != NULL && i < n; i++)
        if (strncmp(environ[i], cache_variable, sizeof cache_variable - 1) != 0)
            list[k++] = environ[i];
    if (list != NULL)
        list[k] = cache;
    return list;
}

/* Signals are as they are for a program that a user starts: the server's threads block them. */
static int set_signals(posix_spawnattr_t *with) {
    sigset_t none, all;
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    const int failed =
        posix_spawnattr_setflags(with, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    return failed != 0 || posix_spawnattr_setsigmask(with, &none) != 0 ||
           posix_spawnattr_setsigdefault(with, &all) != 0;
}

/* Starts the program with its output and errors in a pipe. */
static int start(char *const *words, char **variables, int output, pid_t *child) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t with;
    if (posix_spawn_file_actions_init(&files) != 0)
        return ENOMEM;
    int failed = posix_spawnattr_init(&with);
    if (failed == 0) {
        failed = set_signals(&with) ||
                 posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0) ||
                 posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO) ||
                 posix_spawn_file_actions_adddup2(&files, output, STDERR_FILENO);
        failed = failed != 0
                     ? ENOMEM
                     : posix_spawn(child, tern_os_program(), &files, &with, words, variables);
        (void)posix_spawnattr_destroy(&with);
    }
    (void)posix_spawn_file_actions_destroy(&files);
    return failed;
}

/* ---- its output ------------------------------------------------------------------------------ */

/* Objects go to the reader; of other lines the latest are kept as the reason of a failure. */
static void take_line(listening *l) {
    text_add(&l->pending, "", 1);
    const char *line = l->pending.bytes != NULL ? l->pending.bytes : "";
    const char *words = strncmp(line, "tern: ", 6) == 0 ? line + 6 : line;
    if (line[0] == '{') {
        l->stopped = l->stopped || !l->reader(l->user, line);
    } else if (words[0] != '\0') {
        if (words != line)
            text_clear(&l->said); /* a new message */
        text_print(&l->said, "%s%s", l->said.size > 0 ? " " : "", words);
    }
    text_clear(&l->pending);
}

static void take_bytes(listening *l, const char *bytes, size_t size) {
    while (size > 0) {
        const char *end = memchr(bytes, '\n', size);
        const size_t n = end != NULL ? (size_t)(end - bytes) : size;
        if (l->pending.size + n < LINE_BYTES)
            text_add(&l->pending, bytes, n);
        if (end == NULL)
            return;
        take_line(l);
        bytes += n + 1;
        size -= n + 1;
    }
}

/* Reads until the child has closed its output. One that is to end has some seconds for that. */
static void listen_to(listening *l, pid_t child) {
    char bytes[4096];
    double stopped_at = 0.0;
    for (;;) {
        struct pollfd look = {.fd = l->fd, .events = POLLIN};
        const int ready = poll(&look, 1, LOOK_MS);
        const ssize_t n = ready > 0 ? read(l->fd, bytes, sizeof bytes) : -1;
        if (n > 0)
            take_bytes(l, bytes, (size_t)n);
        if (n == 0 || (n < 0 && ready > 0 && errno != EINTR))
            return;
        l->stopped = l->stopped || !l->reader(l->user, NULL);
        const double now = tern_clock_seconds();
        if (l->stopped && stopped_at <= 0.0)
            (void)kill(child, SIGTERM);
        stopped_at = l->stopped && stopped_at <= 0.0 ? now : stopped_at;
        if (l->stopped && now > stopped_at + END_SECONDS)
            (void)kill(child, SIGKILL);
    }
}

static tern_status result_of(const listening *l, int status, const char *command, tern_error *err) {
    if (l->stopped)
        return tern_fail(err, TERN_ERR_STATE, "%s: it was stopped", command);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return TERN_OK;
    return tern_fail(err, TERN_ERR_IO, "%s",
                     l->said.size > 0 ? l->said.bytes : "the process that does it was killed");
}

tern_status child_run(const char *const *words, const char *cache, child_reader *reader, void *user,
                      tern_error *err) {
    char *list[MOST_WORDS + 2] = {(char *)(uintptr_t) "tern"};
    int pipes[2], status = 0;
    text variable = {0};
    for (size_t i = 0; i < MOST_WORDS && words[i] != NULL; i++)
        list[i + 1] = (char *)(uintptr_t)words[i];
    text_print(&variable, "%s%s", cache_variable, cache);
    char **variables = variable.failed ? NULL : environment(variable.bytes);
    if (variables == NULL || !tern_os_pipe(pipes)) {
        free(variables);
        text_free(&variable);
        return tern_fail(err, TERN_ERR_NOMEM, "no memory or files for a process");
    }
    pid_t child;
    const int failed = start(list, variables, pipes[1], &child);
    (void)close(pipes[1]);
    free(variables);
    text_free(&variable);
    listening l = {.fd = pipes[0], .reader = reader, .user = user};
    if (failed == 0) {
        listen_to(&l, child);
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            ;
    }
    (void)close(pipes[0]);
    const tern_status result =
        failed != 0 ? tern_fail(err, TERN_ERR_IO, "%s: %s", tern_os_program(), strerror(failed))
                    : result_of(&l, status, words[0], err);
    text_free(&l.pending);
    text_free(&l.said);
    return result;
}
