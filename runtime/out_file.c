/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/out_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tern/tern.h"

enum {
    NAME_ATTEMPTS = 100, /* temporary names that may be taken by leftovers of killed programs */
    LISTED = 64          /* files written at once; those beyond are not removed by a signal */
};

struct tern_out_file {
    char *path;
    char *temporary;
    int fd;
    bool lazy; /* no fsync */
};

/* ---- the list of temporary files ------------------------------------------------------------- */

/* Read by signal handlers, so it holds no lock: an entry is set and cleared in one store. */
static _Atomic(const char *) listed[LISTED];

static void list(const char *temporary) {
    for (int i = 0; i < LISTED; i++) {
        const char *none = NULL;
        if (atomic_compare_exchange_strong(&listed[i], &none, temporary))
            return;
    }
}

static void unlist(const char *temporary) {
    for (int i = 0; i < LISTED; i++) {
        const char *name = temporary;
        if (atomic_compare_exchange_strong(&listed[i], &name, NULL))
            return;
    }
}

void tern_temporary_files_remove(void) {
    for (int i = 0; i < LISTED; i++) {
        const char *name = atomic_exchange(&listed[i], NULL);
        if (name != NULL)
            (void)unlink(name); /* nothing else could be done about it */
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

static void release(tern_out_file *f) {
    free(f->temporary);
    free(f->path);
    free(f);
}

static tern_status check_target(const char *path, tern_error *err) {
    struct stat info;
    if (stat(path, &info) != 0)
        return errno == ENOENT ? TERN_OK
                               : tern_fail(err, TERN_ERR_IO, "%s: %s", path, strerror(errno));
    if (S_ISREG(info.st_mode))
        return TERN_OK;
    return tern_fail(err, TERN_ERR_IO, "%s: exists and is not a regular file", path);
}

/* Bytes of the path that a temporary name begins with: all of them, or so many that the name of the
 * file is no longer than a folder takes. Not cut inside a character. */
static size_t stem_bytes(const char *path, size_t suffix) {
    const char *slash = strrchr(path, '/');
    const size_t bytes = strlen(path), folder = slash != NULL ? (size_t)(slash + 1 - path) : 0;
    if (bytes - folder + suffix <= NAME_MAX)
        return bytes;
    size_t stem = folder + NAME_MAX - suffix;
    while (stem > folder && ((unsigned char)path[stem] & 0xC0) == 0x80)
        stem--;
    return stem;
}

/* Creates PATH.tmp-PID, or PATH.tmp-PID-N when that name is taken. Listed before it exists, so that
 * no signal can fall in between. */
static tern_status create_temporary(tern_out_file *f, tern_error *err) {
    enum { SUFFIX = 48 }; /* ".tmp-", a process id and an attempt fit */
    const size_t stem = stem_bytes(f->path, SUFFIX), size = stem + SUFFIX;
    f->temporary = malloc(size);
    if (f->temporary == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory to write it", f->path);
    for (int i = 0; i < NAME_ATTEMPTS; i++) {
        int n = snprintf(f->temporary, size, "%.*s.tmp-%ld", (int)stem, f->path, (long)getpid());
        if (i > 0)
            snprintf(f->temporary + n, size - (size_t)n, "-%d", i);
        list(f->temporary);
        f->fd = open(f->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (f->fd >= 0)
            return TERN_OK;
        const int code = errno;
        unlist(f->temporary);
        if (code != EEXIST)
            return tern_fail(err, TERN_ERR_IO, "%s: cannot be created: %s", f->path,
                             strerror(code));
    }
    return tern_fail(err, TERN_ERR_IO, "%s: %d temporary files are in the way", f->temporary,
                     NAME_ATTEMPTS);
}

tern_status tern_out_file_create(const char *path, tern_out_file **out, tern_error *err) {
    if (path == NULL || out == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_out_file_create: NULL argument");
    tern_status status = check_target(path, err);
    if (status != TERN_OK)
        return status;
    tern_out_file *f = calloc(1, sizeof *f);
    if (f == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory to write it", path);
    f->fd = -1;
    f->path = strdup(path);
    status = f->path != NULL ? create_temporary(f, err)
                             : tern_fail(err, TERN_ERR_NOMEM, "%s: no memory to write it", path);
    if (status != TERN_OK) {
        release(f);
        return status;
    }
    *out = f;
    return TERN_OK;
}

static tern_status fail(const tern_out_file *f, const char *what, tern_error *err) {
    return tern_fail(err, TERN_ERR_IO, "%s: cannot be %s: %s", f->path, what, strerror(errno));
}

tern_status tern_out_file_write(tern_out_file *f, const void *bytes, size_t size, tern_error *err) {
    const char *at = bytes;
    while (size > 0) {
        const ssize_t n = write(f->fd, at, size);
        if (n < 0 && errno != EINTR)
            return fail(f, "written", err);
        if (n > 0) {
            at += n;
            size -= (size_t)n;
        }
    }
    return TERN_OK;
}

void tern_out_file_lazy(tern_out_file *f) {
    f->lazy = true;
}

/* EINVAL and ENOTSUP: a file system that has nothing to bring to a disk. */
static bool synchronize(int fd) {
    return fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP;
}

tern_status tern_out_file_commit(tern_out_file **file, tern_error *err) {
    tern_out_file *f = *file;
    tern_status status = f->lazy || synchronize(f->fd) ? TERN_OK : fail(f, "written", err);
    const int closed = close(f->fd); /* some file systems report a full disk only here */
    f->fd = -1;
    if (status == TERN_OK && closed != 0)
        status = fail(f, "written", err);
    if (status == TERN_OK && rename(f->temporary, f->path) != 0)
        status = fail(f, "renamed into place", err);
    if (status != TERN_OK) {
        tern_out_file_discard(file);
        return status;
    }
    unlist(f->temporary);
    release(f);
    *file = NULL;
    return TERN_OK;
}

void tern_out_file_discard(tern_out_file **file) {
    if (file == NULL || *file == NULL)
        return;
    tern_out_file *f = *file;
    if (f->fd >= 0)
        (void)close(f->fd); /* incomplete: removed next */
    (void)unlink(f->temporary);
    unlist(f->temporary);
    release(f);
    *file = NULL;
}
