/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/record/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json_tree/write.h"
#include "receipts/document.h"
#include "tools/cli/output.h"

enum {
    END_BYTES = 128,   /* that are kept free for the line which says that the file is full */
    PIECE_BYTES = 4096 /* read at once while the last whole line is looked for */
};

static const char beginning[] = "{\"$schema\":\"urn:tern:record"; /* of every line */

struct recording {
    const char *path;
    uint64_t most_bytes;
    int fd;
    pthread_mutex_t lock; /* protects the members below */
    uint64_t size;        /* of the file */
    bool over;
};

/* ---- what is there --------------------------------------------------------------------------- */

static int refuse_file(const recording *r, const char *why) {
    complain("--record: %s: %s", r->path, why);
    return EXIT_FAILED;
}

/* True if the file is empty or begins like a recording, perhaps one whose first line is a part. */
static bool begins_well(const recording *r) {
    char bytes[sizeof beginning];
    const ssize_t n = pread(r->fd, bytes, sizeof beginning - 1, 0);
    return n >= 0 && memcmp(bytes, beginning, (size_t)n) == 0;
}

/* Returns the size of the whole lines; below 0: the file cannot be read. */
static int64_t whole_lines(const recording *r) {
    char piece[PIECE_BYTES];
    uint64_t end = r->size;
    while (end > 0) {
        const size_t n = end < PIECE_BYTES ? (size_t)end : PIECE_BYTES;
        if (pread(r->fd, piece, n, (off_t)(end - n)) != (ssize_t)n)
            return -1;
        for (size_t i = n; i > 0; i--)
            if (piece[i - 1] == '\n')
                return (int64_t)(end - n + i);
        end -= n;
    }
    return 0;
}

/* Takes away the part of a line that a killed program left. */
static int mend(recording *r) {
    const int64_t whole = whole_lines(r);
    if (whole < 0)
        return refuse_file(r, "cannot be read");
    if ((uint64_t)whole == r->size)
        return EXIT_DONE;
    if (ftruncate(r->fd, (off_t)whole) != 0)
        return refuse_file(r, strerror(errno));
    complain("--record: %s: its last line was a part, %" PRIu64 " bytes, and is taken away",
             r->path, r->size - (uint64_t)whole);
    r->size = (uint64_t)whole;
    return EXIT_DONE;
}

static int check_file(recording *r) {
    struct stat info;
    if (fstat(r->fd, &info) != 0)
        return refuse_file(r, strerror(errno));
    if (!S_ISREG(info.st_mode))
        return refuse_file(r, "is not a regular file");
    if (flock(r->fd, LOCK_EX | LOCK_NB) != 0)
        return refuse_file(r, errno == EWOULDBLOCK ? "another program records to it"
                                                   : strerror(errno));
    r->size = (uint64_t)info.st_size;
    if (!begins_well(r))
        return refuse_file(r, "is there, and is not a recording");
    if (fchmod(r->fd, S_IRUSR | S_IWUSR) != 0)
        return refuse_file(r, strerror(errno));
    const int mended = mend(r);
    if (mended == EXIT_DONE && r->size + END_BYTES >= r->most_bytes)
        return refuse_file(r, "is full (--record-limit)");
    return mended;
}

/* ---- life ------------------------------------------------------------------------------------ */

int recording_open(const char *path, uint64_t most_bytes, recording **out) {
    recording *r = calloc(1, sizeof *r);
    if (r == NULL) {
        complain("no memory for a recording");
        return EXIT_FAILED;
    }
    r->path = path;
    r->most_bytes = most_bytes;
    r->fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
                 S_IRUSR | S_IWUSR);
    const int status = r->fd < 0 ? refuse_file(r, strerror(errno)) : check_file(r);
    if (status != EXIT_DONE) {
        if (r->fd >= 0)
            (void)close(r->fd);
        free(r);
        return status;
    }
    (void)pthread_mutex_init(&r->lock, NULL);
    *out = r;
    return EXIT_DONE;
}

void recording_close(recording **recorded) {
    recording *r = *recorded;
    if (r == NULL)
        return;
    (void)close(r->fd);
    (void)pthread_mutex_destroy(&r->lock);
    free(r);
    *recorded = NULL;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void end(recording *r, const char *why) {
    r->over = true;
    complain("--record: %s: %s; answers are not recorded any more", r->path, why);
}

/* Writes a line, or nothing of it. */
static bool write_line(recording *r, const char *bytes, size_t size) {
    size_t done = 0;
    while (done < size) {
        const ssize_t n = write(r->fd, bytes + done, size - done);
        if (n < 0 && errno != EINTR) {
            const int why = errno;
            (void)ftruncate(r->fd, (off_t)r->size);
            end(r, strerror(why));
            return false;
        }
        done += n > 0 ? (size_t)n : 0;
    }
    r->size += size;
    return true;
}

static void write_end(recording *r) {
    char line[END_BYTES];
    const int n = snprintf(line, sizeof line,
                           "{\"$schema\":\"" RECORD_END_SCHEMA
                           "\",\"reason\":\"limit\",\"limit\":%" PRIu64 "}\n",
                           r->most_bytes);
    if (write_line(r, line, (size_t)n))
        end(r, "is full (--record-limit)");
}

void recording_add(recording *r, const json_t *line) {
    char *bytes = json_memory_failed() ? NULL : json_dump(line, (json_style){0});
    const size_t size = bytes != NULL ? strlen(bytes) : 0;
    (void)pthread_mutex_lock(&r->lock);
    if (!r->over && bytes == NULL) {
        end(r, "no memory for a line");
    } else if (!r->over && r->size + size + 1 + END_BYTES > r->most_bytes) {
        write_end(r);
    } else if (!r->over) {
        bytes[size] = '\n'; /* in place of the terminator, so that a line is one write */
        (void)write_line(r, bytes, size + 1);
    }
    (void)pthread_mutex_unlock(&r->lock);
    free(bytes);
}
