/* SPDX-License-Identifier: Apache-2.0 */
#include "base/out_file.h"

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

#include "base/file_map.h"
#include "base/os/os.h"
#include "tern/tern.h"

enum {
    NAME_ATTEMPTS = 100, /* temporary names that may be taken by leftovers of killed programs */
    NAME_EXTRA = 48,     /* bytes: ".tmp-", a process id and an attempt fit */
    LISTED = 64          /* files written at once; those beyond are not removed by a signal */
};

struct tern_out_file {
    char *path;
    char *temporary; /* the name that it has, or would have, before its own */
    int fd;
    tern_out_mode mode;
    bool named; /* temporary exists */
};

/* ---- the list of temporary files ------------------------------------------------------------- */

/* Read by signal handlers, so it holds no lock: an entry is set and cleared in one store. */
static _Atomic(const char *) listed[LISTED];

void tern_temporary_list(const char *temporary) {
    for (int i = 0; i < LISTED; i++) {
        const char *none = NULL;
        if (atomic_compare_exchange_strong(&listed[i], &none, temporary))
            return;
    }
}

void tern_temporary_unlist(const char *temporary) {
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

/* ---- opening --------------------------------------------------------------------------------- */

static tern_status fail(const tern_out_file *f, const char *what, tern_error *err) {
    const char *limit = errno == EFBIG ? " (a limit of the shell: ulimit -f, or of the disk)" : "";
    return tern_fail(err, TERN_ERR_IO, "%s: cannot be %s: %s%s", f->path, what, strerror(errno),
                     limit);
}

static bool must_be_new(tern_out_mode mode) {
    return mode == TERN_OUT_NEW || mode == TERN_OUT_SECRET;
}

static tern_status exists(const char *path, tern_error *err) {
    return tern_fail(err, TERN_ERR_EXISTS, "%s: exists already", path);
}

tern_status tern_out_file_check(const char *path, tern_out_mode mode, tern_error *err) {
    struct stat info;
    const int found = must_be_new(mode) ? lstat(path, &info) : stat(path, &info);
    if (found != 0)
        return errno == ENOENT ? TERN_OK
                               : tern_fail(err, TERN_ERR_IO, "%s: %s", path, strerror(errno));
    if (must_be_new(mode) && (S_ISREG(info.st_mode) || S_ISLNK(info.st_mode)))
        return exists(path, err);
    if (!S_ISREG(info.st_mode))
        return tern_fail(err, TERN_ERR_IO, "%s: exists and is not a regular file", path);
    if (mode == TERN_OUT_REPLACE && tern_file_is_mapped(&info))
        return tern_fail(err, TERN_ERR_EXISTS, "%s: is being read, and not replaced", path);
    return TERN_OK;
}

static mode_t permissions(const tern_out_file *f) {
    return f->mode == TERN_OUT_SECRET ? S_IRUSR | S_IWUSR : 0666;
}

/* Bytes of the path that a temporary name begins with: all of them, or fewer, so that the name of
 * the file is no longer than a folder allows. Not cut inside a character. */
static size_t stem_bytes(const char *path) {
    const char *slash = strrchr(path, '/');
    const size_t bytes = strlen(path), folder = slash != NULL ? (size_t)(slash + 1 - path) : 0;
    if (bytes - folder + NAME_EXTRA <= NAME_MAX)
        return bytes;
    size_t stem = folder + NAME_MAX - NAME_EXTRA;
    while (stem > folder && ((unsigned char)path[stem] & 0xC0) == 0x80)
        stem--;
    return stem;
}

/*
 * Tries PATH.tmp-PID, PATH.tmp-PID-1 and so on until `make` makes one: false with errno on another
 * error than EEXIST, or when all are there. A name is listed before it exists, so that no signal
 * can fall in between.
 */
static bool take_name(tern_out_file *f, bool (*make)(tern_out_file *f)) {
    const size_t stem = stem_bytes(f->path), size = stem + NAME_EXTRA;
    for (int i = 0; i < NAME_ATTEMPTS; i++) {
        const int n =
            snprintf(f->temporary, size, "%.*s.tmp-%ld", (int)stem, f->path, (long)getpid());
        if (i > 0)
            (void)snprintf(f->temporary + n, size - (size_t)n, "-%d", i);
        tern_temporary_list(f->temporary);
        f->named = make(f);
        if (f->named)
            return true;
        const int code = errno;
        tern_temporary_unlist(f->temporary);
        errno = code;
        if (code != EEXIST)
            return false;
    }
    return false;
}

static bool open_named(tern_out_file *f) {
    f->fd = open(f->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, permissions(f));
    return f->fd >= 0;
}

/* Gives the file without a name its temporary one. */
static bool link_temporary(tern_out_file *f) {
    return tern_os_name_file(f->fd, f->temporary);
}

static void remove_temporary(tern_out_file *f) {
    (void)unlink(f->temporary);
    tern_temporary_unlist(f->temporary);
    f->named = false;
}

static int open_without_name(const tern_out_file *f, const char *folder) {
    return tern_os_open_nameless(folder, permissions(f));
}

/*
 * A file without a name. Whether it could be given one is tried beforehand, with another one: that
 * takes /proc and a file system with hard links. False: f->fd is -1.
 */
static bool open_nameless(tern_out_file *f) {
    const char *slash = strrchr(f->path, '/');
    char *folder = slash != NULL ? strndup(f->path, (size_t)(slash - f->path) + 1) : strdup(".");
    if (folder != NULL && (f->fd = open_without_name(f, folder)) >= 0) {
        const bool good = take_name(f, link_temporary);
        if (good)
            remove_temporary(f);
        (void)close(f->fd); /* nothing was written */
        f->fd = good ? open_without_name(f, folder) : -1;
    }
    free(folder);
    return f->fd >= 0;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void release(tern_out_file *f) {
    free(f->temporary);
    free(f->path);
    free(f);
}

/* Makes one with its path and room for its temporary name; NULL without memory. */
static tern_out_file *new_file(const char *path, tern_out_mode mode) {
    tern_out_file *f = calloc(1, sizeof *f);
    if (f == NULL)
        return NULL;
    *f = (tern_out_file){.path = strdup(path), .fd = -1, .mode = mode};
    f->temporary = malloc(strlen(path) + NAME_EXTRA);
    if (f->path != NULL && f->temporary != NULL)
        return f;
    release(f);
    return NULL;
}

tern_status tern_out_file_create(const char *path, tern_out_mode mode, tern_out_file **out,
                                 tern_error *err) {
    if (path == NULL || out == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_out_file_create: NULL argument");
    tern_status status = tern_out_file_check(path, mode, err);
    if (status != TERN_OK)
        return status;
    tern_out_file *f = new_file(path, mode);
    if (f == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory to write it", path);
    if (!open_nameless(f) && !take_name(f, open_named)) {
        status = fail(f, "created", err);
        release(f);
        return status;
    }
    *out = f;
    return TERN_OK;
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

/* EINVAL and ENOTSUP: a file system that has nothing to bring to a disk. */
static bool synchronize(const tern_out_file *f) {
    return f->mode == TERN_OUT_CACHE || fsync(f->fd) == 0 || errno == EINVAL || errno == ENOTSUP;
}

/*
 * Renames to a name that does not exist yet. Where the file system has no such call, the name is
 * taken first, with an empty file.
 */
static bool rename_new(const tern_out_file *f) {
    if (tern_os_rename_to_new(f->temporary, f->path))
        return true;
    if (errno != EINVAL && errno != ENOSYS)
        return false;
    const int fd = open(f->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, permissions(f));
    if (fd < 0)
        return false;
    (void)close(fd); /* nothing was written */
    if (rename(f->temporary, f->path) == 0)
        return true;
    const int code = errno;
    (void)unlink(f->path);
    errno = code;
    return false;
}

/* Gives the complete file its name; false with errno. */
static bool publish(tern_out_file *f) {
    if (must_be_new(f->mode) ? !rename_new(f) : rename(f->temporary, f->path) != 0)
        return false;
    tern_temporary_unlist(f->temporary);
    f->named = false;
    return true;
}

static tern_status finish(tern_out_file *f, tern_error *err) {
    if (!synchronize(f))
        return fail(f, "written", err);
    if (!f->named && !take_name(f, link_temporary))
        return fail(f, "put into place", err);
    const int closed = close(f->fd); /* some file systems report a full disk only here */
    f->fd = -1;
    if (closed != 0)
        return fail(f, "written", err);
    if (f->mode == TERN_OUT_REPLACE) { /* as it is now */
        const tern_status status = tern_out_file_check(f->path, f->mode, err);
        if (status != TERN_OK)
            return status;
    }
    if (publish(f))
        return TERN_OK;
    return errno == EEXIST ? exists(f->path, err) : fail(f, "put into place", err);
}

tern_status tern_out_file_commit(tern_out_file **file, tern_error *err) {
    const tern_status status = finish(*file, err);
    tern_out_file_discard(file);
    return status;
}

void tern_out_file_discard(tern_out_file **file) {
    if (file == NULL || *file == NULL)
        return;
    tern_out_file *f = *file;
    if (f->fd >= 0)
        (void)close(f->fd); /* incomplete: without a name, or removed next */
    if (f->named)
        remove_temporary(f);
    release(f);
    *file = NULL;
}
