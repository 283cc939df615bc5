/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/json_tree/text.h"
#include "base/metrics.h"

enum {
    MOST_WAITING_BYTES = 1 << 20,
    MOST_BODY_BYTES = 16 << 10, /* bytes of a body that are written */
    PIECE_BYTES = 4096,         /* a pipe that has room takes at least this many */
    LOOK_MILLISECONDS = 100
};

static const double close_seconds = 1.0;

struct access_log {
    log_config config;
    pthread_t thread;
    bool torn; /* part of a line was written and could not be taken back */
    bool told; /* the user has been told that lines are dropped */
    int fd;    /* used by the thread alone; writing needs no further descriptor */

    pthread_mutex_t lock; /* protects the members below */
    pthread_cond_t wanted;
    int fresh;    /* descriptor from log_reopen that will replace fd; -1: there is none */
    text waiting; /* complete lines */
    uint64_t dropped;
    bool stop;
    double stop_at; /* time at which waiting lines are given up */
};

/* ---- lines ----------------------------------------------------------------------------------- */

static void add_time(text *t) {
    char when[32];
    const time_t now = time(NULL);
    struct tm utc;
    (void)gmtime_r(&now, &utc);
    text_add(t, when, strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &utc));
}

static void add_body(const log_entry *e, text *t) {
    text_quote(t, e->body, e->body_size < MOST_BODY_BYTES ? e->body_size : MOST_BODY_BYTES);
}

static void write_text(const access_log *l, const log_entry *e, text *t) {
    add_time(t);
    text_print(t, " %s %s %s %u %" PRIu64 " bytes %.3f s", e->label != NULL ? e->label : "-",
               e->method, e->path, e->status, e->bytes, e->seconds);
    if (e->prompt_tokens > 0)
        text_print(t, " %" PRIu64 " + %" PRIu64 " tokens", e->prompt_tokens, e->generated_tokens);
    text_print(t, "%s", e->whole ? "" : " cut");
    if (l->config.prompts && e->body_size > 0) {
        text_add(t, " ", 1);
        add_body(e, t);
    }
}

static void write_json(const access_log *l, const log_entry *e, text *t) {
    text_print(t, "{\"time\":\"");
    add_time(t);
    text_print(t, "\"");
    if (e->label != NULL)
        text_string(t, "key", e->label);
    else
        text_print(t, ",\"key\":null");
    text_string(t, "method", e->method);
    text_string(t, "path", e->path);
    text_print(t,
               ",\"status\":%u,\"bytes\":%" PRIu64 ",\"seconds\":%.6f,\"complete\":%s"
               ",\"prompt_tokens\":%" PRIu64 ",\"cached_tokens\":%" PRIu64
               ",\"generated_tokens\":%" PRIu64,
               e->status, e->bytes, e->seconds, e->whole ? "true" : "false", e->prompt_tokens,
               e->cached_tokens, e->generated_tokens);
    if (l->config.prompts && e->body_size > 0) {
        text_print(t, ",\"body_bytes\":%zu,\"body\":", e->body_size);
        add_body(e, t);
    }
    text_print(t, "}");
}

void log_add(access_log *l, const log_entry *e) {
    text line = {0};
    if (l->config.json)
        write_json(l, e, &line);
    else
        write_text(l, e, &line);
    text_add(&line, "\n", 1);
    (void)pthread_mutex_lock(&l->lock);
    const size_t before = l->waiting.size;
    if (!line.failed && l->waiting.size + line.size <= MOST_WAITING_BYTES)
        text_add(&l->waiting, line.bytes, line.size);
    l->dropped += line.failed || l->waiting.size < before + line.size;
    l->waiting.failed = false;
    (void)pthread_cond_signal(&l->wanted);
    (void)pthread_mutex_unlock(&l->lock);
    text_free(&line);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static bool given_up(access_log *l) {
    (void)pthread_mutex_lock(&l->lock);
    const bool over = l->stop && tern_clock_seconds() > l->stop_at;
    (void)pthread_mutex_unlock(&l->lock);
    return over;
}

/* Returns how many bytes were written; if not all, errno says why. Stops waiting when log_close
 * gives the lines up. */
static size_t put(access_log *l, int fd, const char *bytes, size_t size) {
    size_t done = 0;
    while (done < size) {
        struct pollfd look = {.fd = fd, .events = POLLOUT};
        if (poll(&look, 1, LOOK_MILLISECONDS) <= 0) {
            if (given_up(l)) {
                errno = EAGAIN;
                break;
            }
            continue;
        }
        const size_t left = size - done;
        const ssize_t n = write(fd, bytes + done, left < PIECE_BYTES ? left : PIECE_BYTES);
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            break;
        done += n > 0 ? (size_t)n : 0;
    }
    return done;
}

/* Takes back the last `size` bytes, a part of a line, if the file allows it. False: it does not. */
static bool take_back(int fd, size_t size) {
    struct stat st;
    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size >= (off_t)size &&
           ftruncate(fd, st.st_size - (off_t)size) == 0;
}

static void tell(access_log *l, int why) {
    if (!l->told && l->config.path != NULL) {
        (void)fprintf(stderr,
                      "tern: %s: cannot be written: %s; lines of the log are dropped and counted "
                      "in tern_log_dropped_lines_total\n",
                      l->config.path, strerror(why));
    }
    l->told = true;
}

/* Writes complete lines. Those that cannot be written are dropped and counted. */
static void write_lines(access_log *l, const char *bytes, size_t size) {
    const int fd = l->fd;
    if (l->torn && put(l, fd, "\n", 1) == 1)
        l->torn = false;
    const size_t done = put(l, fd, bytes, size);
    if (done == size)
        return;
    const int why = errno;
    size_t whole = done;
    while (whole > 0 && bytes[whole - 1] != '\n')
        whole--;
    uint64_t lost = 0;
    for (size_t i = whole; i < size; i++)
        lost += bytes[i] == '\n';
    if (whole < done && !take_back(fd, done - whole))
        l->torn = true;
    (void)pthread_mutex_lock(&l->lock);
    l->dropped += lost;
    (void)pthread_mutex_unlock(&l->lock);
    tell(l, why);
}

/* Switches to the file that log_reopen opened. Needs the lock. */
static void take_fresh(access_log *l) {
    if (l->fresh < 0)
        return;
    (void)close(l->fd);
    l->fd = l->fresh;
    l->fresh = -1;
    l->torn = l->told = false;
}

static void *run(void *user) {
    access_log *l = user;
    (void)pthread_mutex_lock(&l->lock);
    while (l->waiting.size > 0 || !l->stop) {
        take_fresh(l);
        if (l->waiting.size == 0) {
            (void)pthread_cond_wait(&l->wanted, &l->lock);
            continue;
        }
        text lines = l->waiting;
        l->waiting = (text){0};
        (void)pthread_mutex_unlock(&l->lock);
        write_lines(l, lines.bytes, lines.size);
        text_free(&lines);
        (void)pthread_mutex_lock(&l->lock);
    }
    (void)pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

/* Opens a descriptor for the lines; -1 with the error set. Neither opening nor writing waits for
 * the reader of a pipe, or for a terminal. */
static int open_place(const log_config *c, tern_error *err) {
    const int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    const int fd = c->path != NULL ? open(c->path, flags, S_IRUSR | S_IWUSR)
                                   : fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    struct stat info;
    const char *why = strerror(errno);
    if (fd < 0 && errno == ENXIO && stat(c->path, &info) == 0 && S_ISFIFO(info.st_mode))
        why = "a pipe that nobody reads";
    if (fd < 0) {
        (void)tern_fail(err, TERN_ERR_IO, "%s: cannot be opened: %s",
                        c->path != NULL ? c->path : "standard error", why);
    }
    return fd;
}

tern_status log_open(const log_config *config, access_log **out, tern_error *err) {
    access_log *l = calloc(1, sizeof *l);
    if (l == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for a log");
    l->config = *config;
    l->fresh = -1;
    l->fd = open_place(config, err);
    if (l->fd < 0) {
        free(l);
        return TERN_ERR_IO;
    }
    (void)pthread_mutex_init(&l->lock, NULL);
    (void)pthread_cond_init(&l->wanted, NULL);
    if (pthread_create(&l->thread, NULL, run, l) != 0) {
        (void)close(l->fd);
        (void)pthread_cond_destroy(&l->wanted);
        (void)pthread_mutex_destroy(&l->lock);
        free(l);
        return tern_fail(err, TERN_ERR_NOMEM, "no thread for a log");
    }
    *out = l;
    return TERN_OK;
}

tern_status log_reopen(access_log *l, tern_error *err) {
    const int fd = open_place(&l->config, err);
    if (fd < 0)
        return TERN_ERR_IO;
    (void)pthread_mutex_lock(&l->lock);
    if (l->fresh >= 0)
        (void)close(l->fresh);
    l->fresh = fd;
    (void)pthread_cond_signal(&l->wanted);
    (void)pthread_mutex_unlock(&l->lock);
    return TERN_OK;
}

uint64_t log_dropped(access_log *l) {
    (void)pthread_mutex_lock(&l->lock);
    const uint64_t dropped = l->dropped;
    (void)pthread_mutex_unlock(&l->lock);
    return dropped;
}

void log_close(access_log **log) {
    access_log *l = *log;
    if (l == NULL)
        return;
    (void)pthread_mutex_lock(&l->lock);
    l->stop = true;
    l->stop_at = tern_clock_seconds() + close_seconds;
    (void)pthread_cond_signal(&l->wanted);
    (void)pthread_mutex_unlock(&l->lock);
    (void)pthread_join(l->thread, NULL);
    (void)close(l->fd);
    if (l->fresh >= 0)
        (void)close(l->fresh);
    text_free(&l->waiting);
    (void)pthread_cond_destroy(&l->wanted);
    (void)pthread_mutex_destroy(&l->lock);
    free(l);
    *log = NULL;
}
