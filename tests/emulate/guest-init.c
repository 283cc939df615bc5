/*
 * The first process of the emulated machine. It runs one program, copies what
 * the program writes to I/O port 0xe9, which Bochs prints on its own stdout,
 * and ends with a line that holds the exit status. bochs-run stops Bochs then.
 *
 * Port 0xe9 rather than a serial port: it has no baud rate, so it takes no
 * emulated time, and it passes every byte as it is.
 *
 * /.run/job holds strings, each closed by a NUL: the token that makes the
 * markers of this run unlike any output of the program, the working folder,
 * the number of environment strings, those strings, then the arguments.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>

enum { DEBUG_PORT = 0xe9 };

struct job {
    char *token;
    char *folder;
    char **env;
    char **argv;
};

static void emit(const void *bytes, size_t n) {
    __asm__ volatile("rep outsb" : "+S"(bytes), "+c"(n) : "d"(DEBUG_PORT) : "memory");
}

static void emit_marker(const char *token, const char *what, long status) {
    char line[256];
    int n = snprintf(line, sizeof line, "\036%s %s %ld %llu\n", token, what, status,
                     (unsigned long long)__rdtsc());
    emit(line, (size_t)n);
}

static void stop_machine(void) {
    sync();
    reboot(RB_POWER_OFF);
    for (;;)
        pause();
}

static void die(const char *what) {
    char line[256];
    int n = snprintf(line, sizeof line, "guest-init: %s: %s\n", what, strerror(errno));
    emit(line, (size_t)n);
    stop_machine();
}

static void mount_or_die(const char *type, const char *where) {
    mkdir(where, 0755);
    if (mount(type, where, type, 0, NULL) != 0)
        die(where);
}

/* There is no console, so descriptors 0 to 2 are closed and a pipe would get one of them. */
static void occupy_standard_descriptors(void) {
    int fd;
    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= 2);
    close(fd);
}

static char *read_job(size_t *size) {
    struct stat st;
    int fd = open("/.run/job", O_RDONLY);
    if (fd < 0 || fstat(fd, &st) != 0)
        die("/.run/job");
    char *text = malloc((size_t)st.st_size + 1);
    if (!text || read(fd, text, (size_t)st.st_size) != st.st_size)
        die("/.run/job");
    close(fd);
    *size = (size_t)st.st_size;
    return text;
}

static char **take(char **list, size_t n) {
    char **copy = calloc(n + 1, sizeof *copy);
    if (!copy)
        die("calloc");
    memcpy(copy, list, n * sizeof *copy);
    return copy;
}

static struct job parse_job(void) {
    size_t size, count = 0;
    char *text = read_job(&size);
    char **all = calloc(size + 1, sizeof *all);
    if (!all)
        die("calloc");
    for (size_t at = 0; at < size; at += strlen(text + at) + 1)
        all[count++] = text + at;
    if (count < 4)
        die("too short a job");
    size_t env_count = strtoul(all[2], NULL, 10);
    if (count < 4 + env_count)
        die("too short a job");
    struct job job = {all[0], all[1], take(all + 3, env_count),
                      take(all + 3 + env_count, count - 3 - env_count)};
    free(all);
    return job;
}

static void run_program(const struct job *job, int output) {
    int input = open("/dev/null", O_RDONLY);
    dup2(input, 0);
    dup2(output, 1);
    dup2(output, 2);
    for (int fd = 3; fd < 16; fd++)
        close(fd);
    if (chdir(job->folder) == 0)
        execve(job->argv[0], job->argv, job->env);
    int failed = errno;
    dprintf(2, "%s: %s\n", job->argv[0], strerror(failed));
    _exit(failed == ENOENT ? 127 : 126);
}

/* Copies the bytes in the pipe. Returns false once no more can come. */
static int copy_some(int from) {
    static char buffer[65536];
    ssize_t n = read(from, buffer, sizeof buffer);
    if (n > 0)
        emit(buffer, (size_t)n);
    return n > 0 || (n < 0 && errno == EINTR);
}

static int exit_code(int status) {
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* A program that leaves children behind keeps the pipe open. So what counts is the end of the
 * program, not that of the pipe; SIGCHLD interrupts poll. */
static int copy_until_exit(pid_t child, int from, const sigset_t *unblocked) {
    struct pollfd wait_for = {from, POLLIN, 0};
    const struct timespec now = {0, 0};
    int status, ended = 0, open_pipe = 1;
    for (;;) {
        if (!ended && waitpid(child, &status, WNOHANG) == child)
            ended = 1;
        int ready =
            ppoll(open_pipe ? &wait_for : NULL, (nfds_t)open_pipe, ended ? &now : NULL, unblocked);
        if (ready > 0)
            open_pipe = copy_some(from);
        else if (ended)
            return exit_code(status);
    }
}

static void on_child(int number) {
    (void)number;
}

int main(void) {
    int ends[2];
    sigset_t blocked, unblocked;

    if (iopl(3) != 0)
        die("iopl");
    mount_or_die("devtmpfs", "/dev");
    mount_or_die("proc", "/proc");
    mount_or_die("sysfs", "/sys");
    mount_or_die("tmpfs", "/dev/shm");

    occupy_standard_descriptors();

    struct job job = parse_job();
    signal(SIGCHLD, on_child);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGCHLD);
    sigprocmask(SIG_BLOCK, &blocked, &unblocked);
    if (pipe2(ends, O_CLOEXEC) != 0)
        die("pipe");

    emit_marker(job.token, "begin", 0);
    pid_t child = fork();
    if (child < 0)
        die("fork");
    if (child == 0) {
        iopl(0); /* like any program, it gets no I/O ports */
        sigprocmask(SIG_SETMASK, &unblocked, NULL);
        signal(SIGCHLD, SIG_DFL);
        run_program(&job, ends[1]);
    }
    close(ends[1]);
    emit_marker(job.token, "end", copy_until_exit(child, ends[0], &unblocked));
    stop_machine();
}
