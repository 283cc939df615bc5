/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/pull/download.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/metrics.h"
#include "base/sha256.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"
#include "tools/cli/progress.h"
#include "tools/remote/reply.h"

enum { MOST_ATTEMPTS = 5, LONGEST_WAIT = 60 /* seconds */, BLOCK = 1 << 16 };

/* A download in progress. */
typedef struct fetching {
    const download *d;
    char path[PATH_MAX]; /* of the incomplete file */
    int fd;
    uint64_t have; /* bytes in the file, all of which are in the sum */
    tern_sha256 sum;
    const exchange_reply *reply;
    progress shown;
    double told;      /* when somebody was told last */
    bool asked_whole; /* bytes of the reply to this request have come */
    int disk;         /* errno of a write that failed; 0: none did */
    bool too_long;
} fetching;

/* ---- waiting --------------------------------------------------------------------------------- */

bool download_wait(double seconds) {
    const double until = tern_clock_seconds() + seconds;
    while (tern_clock_seconds() < until && !interrupt_seen())
        (void)poll(NULL, 0, 50);
    return !interrupt_seen();
}

bool download_again(const exchange_reply *reply, unsigned attempt, double *seconds) {
    const bool busy = reply->status == 429 || reply->status == 408 || reply->status >= 500;
    const double wish = (double)reply->retry_seconds;
    *seconds = wish > 0.0 ? wish : (double)(1U << (attempt < 5 ? attempt : 5)) / 2.0;
    return busy && attempt + 1 < MOST_ATTEMPTS && *seconds <= LONGEST_WAIT;
}

/* ---- earlier attempts ------------------------------------------------------------------------ */

static bool start_again(fetching *f) {
    f->have = 0;
    tern_sha256_start(&f->sum);
    return ftruncate(f->fd, 0) == 0 && lseek(f->fd, 0, SEEK_SET) == 0;
}

/* Adds what an earlier attempt has left to the sum. */
static bool take_up(fetching *f) {
    uint8_t block[BLOCK];
    struct stat info;
    tern_sha256_start(&f->sum);
    if (fstat(f->fd, &info) != 0)
        return false;
    if ((uint64_t)info.st_size > f->d->bytes)
        return start_again(f);
    for (ssize_t n; (n = read(f->fd, block, sizeof block)) != 0;) {
        if (n < 0)
            return false;
        tern_sha256_add(&f->sum, block, (size_t)n);
        f->have += (uint64_t)n;
        if (interrupt_seen())
            return true;
    }
    return true;
}

static bool has_room(const fetching *f, uint64_t *room) {
    struct statvfs info;
    if (fstatvfs(f->fd, &info) != 0)
        return true; /* unknown: writing will fail if there is none */
    *room = (uint64_t)info.f_bavail * info.f_frsize;
    return f->d->bytes - f->have <= *room;
}

/* ---- received bytes -------------------------------------------------------------------------- */

/* Tells how many bytes have come, unless that was told a moment ago. False: nobody hears it. */
static bool tell_bytes(fetching *f) {
    const double now = tern_clock_seconds();
    if (f->d->told == NULL || (now - f->told < 0.1 && f->have < f->d->bytes))
        return true;
    f->told = now;
    if (f->d->told(f->d, f->have))
        return true;
    f->disk = EPIPE;
    return false;
}

static bool keep(fetching *f, const char *bytes, size_t size) {
    tern_sha256_add(&f->sum, bytes, size);
    f->have += size;
    while (size > 0) {
        const ssize_t n = write(f->fd, bytes, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            f->disk = n < 0 ? errno : ENOSPC;
            return false;
        }
        bytes += n;
        size -= (size_t)n;
    }
    return true;
}

static bool take(void *user, const char *bytes, size_t size) {
    fetching *f = user;
    if (!f->asked_whole && f->reply->status == 200 && f->have > 0 && !start_again(f)) {
        f->disk = errno; /* the server sends the whole file although a range was asked for */
        return false;
    }
    f->asked_whole = true;
    f->too_long = size > f->d->bytes - f->have;
    if (f->too_long || !keep(f, bytes, size))
        return false;
    progress_update(f->have, f->d->bytes, &f->shown);
    return tell_bytes(f);
}

/* ---- requests -------------------------------------------------------------------------------- */

static int tell(const fetching *f, const tern_error *err) {
    if (f->disk != 0)
        complain("%s: %s; what has come stays for the next time", f->path, strerror(f->disk));
    else if (f->too_long)
        complain("%s: the server sends more than the %" PRIu64 " bytes that it has", f->d->name,
                 f->d->bytes);
    else
        (void)complain_error(err);
    return EXIT_FAILED;
}

/* Makes one request. *again: another one may succeed, after *seconds. */
static int ask(fetching *f, unsigned attempt, bool *again, double *seconds) {
    exchange_reply reply;
    tern_error err = {0};
    const exchange_request request = {
        .path = f->d->url, .follow = true, .from = f->have, .sink = take, .user = f};
    f->reply = &reply;
    f->asked_whole = false;
    f->disk = 0;
    tern_status status = exchange_ask(f->d->server, &request, &reply, &err);
    *again = false;
    if (reply.interrupted)
        return EXIT_FAILED;
    if (status == TERN_OK && !reply.unwanted && reply.status >= 300) {
        *again = download_again(&reply, attempt, seconds);
        status = reply_refuse(f->d->place, reply.status, reply.retry_seconds, &reply.refusal, &err);
    } else if (status != TERN_OK) {
        *again = status == TERN_ERR_IO && attempt + 1 < MOST_ATTEMPTS;
        *seconds = (double)(1U << attempt) / 2.0;
    } else if (!reply.unwanted && f->have < f->d->bytes) {
        status = tern_fail(&err, TERN_ERR_IO,
                           "%s: the reply ends after %" PRIu64 " of %" PRIu64 " bytes", f->d->name,
                           f->have, f->d->bytes);
        *again = attempt + 1 < MOST_ATTEMPTS;
        *seconds = 0.5;
    }
    text_free(&reply.refusal);
    if (status == TERN_OK && !reply.unwanted)
        return EXIT_DONE;
    if (!*again || reply.unwanted)
        return tell(f, &err);
    progress_end(&f->shown);
    remark("%s; again in %.1f s\n", err.message, *seconds);
    return EXIT_FAILED;
}

static int fetch_rest(fetching *f) {
    for (unsigned attempt = 0; f->have < f->d->bytes;) {
        const uint64_t before = f->have;
        bool again;
        double seconds = 0.0;
        const int status = ask(f, attempt, &again, &seconds);
        if (status == EXIT_DONE)
            break;
        if (!again || !download_wait(f->have > before ? 0.0 : seconds))
            return EXIT_FAILED;
        attempt = f->have > before ? 0 : attempt + 1;
    }
    return EXIT_DONE;
}

/* ---- the end --------------------------------------------------------------------------------- */

static int finish(fetching *f) {
    char hex[65];
    tern_sha256_finish(&f->sum, hex);
    if (f->d->sha256 != NULL && strcmp(hex, f->d->sha256) != 0) {
        complain("%s: SHA-256 %s, but the Hub says %s: thrown away", f->d->name, hex, f->d->sha256);
        (void)unlink(f->path);
        return EXIT_FAILED;
    }
    if (fsync(f->fd) != 0 || rename(f->path, f->d->path) != 0) {
        complain("%s: %s", f->path, strerror(errno));
        return EXIT_FAILED;
    }
    return EXIT_DONE;
}

static int fetch_whole(fetching *f) {
    uint64_t room;
    if (!take_up(f)) {
        complain("%s: %s", f->path, strerror(errno));
        return EXIT_FAILED;
    }
    if (!has_room(f, &room)) {
        complain("%s: %" PRIu64 " bytes are to come, and %s has room for %" PRIu64, f->d->name,
                 f->d->bytes - f->have, f->path, room);
        return EXIT_FAILED;
    }
    f->shown = progress_start(f->d->verbose);
    const int status = fetch_rest(f);
    progress_end(&f->shown);
    return status == EXIT_DONE && !interrupt_seen() ? finish(f) : EXIT_FAILED;
}

int download_file(const download *d) {
    fetching f = {.d = d};
    const int n = snprintf(f.path, sizeof f.path, "%s.incomplete", d->path);
    if (n <= 0 || n >= PATH_MAX) {
        complain("%.100s: a path that is too long", d->path);
        return EXIT_FAILED;
    }
    f.fd = open(f.path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
    struct stat info;
    if (f.fd < 0 || fstat(f.fd, &info) != 0) {
        complain("%s: %s", f.path, strerror(errno));
        if (f.fd >= 0)
            (void)close(f.fd);
        return EXIT_FAILED;
    }
    const bool regular = S_ISREG(info.st_mode);
    if (!regular)
        complain("%s: not a regular file", f.path);
    const int status = regular ? fetch_whole(&f) : EXIT_FAILED;
    (void)close(f.fd); /* fsync has saved what matters */
    return status;
}
