/* SPDX-License-Identifier: Apache-2.0 */
#include "base/in_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether a path names a descriptor of this process: its other end is there, or was. */
static bool is_descriptor(const char *path) {
    return strcmp(path, "/dev/stdin") == 0 || strncmp(path, "/dev/fd/", 8) == 0 ||
           strncmp(path, "/proc/self/fd/", 14) == 0;
}

static tern_status check(const char *path, tern_in_kind kind, mode_t mode, tern_error *err) {
    const bool text = kind == TERN_IN_TEXT;
    if (S_ISREG(mode) || (text && (S_ISCHR(mode) || (S_ISFIFO(mode) && is_descriptor(path)))))
        return TERN_OK;
    if (S_ISDIR(mode))
        return tern_fail(err, TERN_ERR_IO, "%s: is a directory", path);
    if (text && S_ISFIFO(mode))
        return tern_fail(err, TERN_ERR_IO, "%s: a named pipe is not waited for: - < %s reads it",
                         path, path);
    return tern_fail(err, TERN_ERR_IO, "%s: not a regular file", path);
}

/* O_NONBLOCK is for opening: reading waits, as it does for a pipe. */
static bool make_blocking(int fd) {
    const int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) == 0;
}

tern_status tern_in_file_open(const char *path, tern_in_kind kind, FILE **out, tern_error *err) {
    struct stat info;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return tern_fail(err, TERN_ERR_IO, "%s: %s", path, strerror(errno));
    tern_status status = fstat(fd, &info) == 0 && make_blocking(fd)
                             ? check(path, kind, info.st_mode, err)
                             : tern_fail(err, TERN_ERR_IO, "%s: %s", path, strerror(errno));
    FILE *file = status == TERN_OK ? fdopen(fd, "rb") : NULL;
    if (status == TERN_OK && file == NULL)
        status = tern_fail(err, TERN_ERR_NOMEM, "%s: no memory to read it", path);
    if (status != TERN_OK) {
        (void)close(fd); /* nothing was read */
        return status;
    }
    *out = file;
    return TERN_OK;
}
