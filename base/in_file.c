/* SPDX-License-Identifier: Apache-2.0 */
#include "base/in_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* True if a path names a descriptor of this process: its other end is there, or was. */
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

/* A descriptor of a file of that kind; -1 with the error set. */
static int open_kind(const char *path, tern_in_kind kind, tern_error *err) {
    struct stat info;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        (void)tern_fail(err, TERN_ERR_IO, "%s: %s", path, strerror(errno));
        return -1;
    }
    const tern_status status = fstat(fd, &info) == 0 && make_blocking(fd)
                                   ? check(path, kind, info.st_mode, err)
                                   : tern_fail(err, TERN_ERR_IO, "%s: %s", path, strerror(errno));
    if (status == TERN_OK)
        return fd;
    (void)close(fd); /* nothing was read */
    return -1;
}

tern_status tern_in_file_open(const char *path, tern_in_kind kind, FILE **out, tern_error *err) {
    tern_error why = {0};
    const int fd = open_kind(path, kind, &why);
    FILE *file = fd >= 0 ? fdopen(fd, "rb") : NULL;
    if (fd >= 0 && file == NULL) {
        (void)close(fd);
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory to read it", path);
    }
    if (file == NULL)
        return tern_fail(err, why.status, "%s", why.message);
    *out = file;
    return TERN_OK;
}

tern_status tern_in_file_check(const char *path, tern_in_kind kind, tern_error *err) {
    tern_error why = {0};
    const int fd = open_kind(path, kind, &why);
    if (fd < 0)
        return tern_fail(err, why.status, "%s", why.message);
    (void)close(fd); /* nothing was read */
    return TERN_OK;
}

/* ---- small files ----------------------------------------------------------------------------- */

typedef struct content {
    char *bytes;
    size_t size, capacity;
} content;

/* Zeros that the compiler may not leave out. explicit_bzero is newer than some C libraries that
 * tern runs on. */
static void wipe(char *bytes, size_t n) {
    memset(bytes, 0, n);
    __asm__ volatile("" : : "r"(bytes) : "memory");
}

static void drop(content *c) {
    if (c->bytes != NULL)
        wipe(c->bytes, c->capacity);
    free(c->bytes);
    *c = (content){0};
}

/* Room for more bytes and a terminator. No copy of what was read stays anywhere. */
static bool grow(content *c) {
    if (c->capacity > c->size + 1)
        return true;
    content larger = {.size = c->size, .capacity = 2 * c->capacity + 4096};
    larger.bytes = malloc(larger.capacity);
    if (larger.bytes == NULL)
        return false;
    if (c->size > 0)
        memcpy(larger.bytes, c->bytes, c->size);
    drop(c);
    *c = larger;
    return true;
}

static tern_status read_content(int fd, const char *path, size_t limit, content *c,
                                tern_error *err) {
    while (grow(c)) {
        const ssize_t n = read(fd, c->bytes + c->size, c->capacity - c->size - 1);
        if (n == 0)
            return TERN_OK;
        if (n < 0 && errno != EINTR)
            return tern_fail(err, TERN_ERR_IO, "%s: %s", path, strerror(errno));
        c->size += n > 0 ? (size_t)n : 0;
        if (c->size > limit)
            return tern_fail(err, TERN_ERR_IO, "%s: has more than %zu bytes", path, limit);
    }
    return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory to read it", path);
}

tern_status tern_in_file_read(const char *path, size_t limit, char **bytes, size_t *size,
                              tern_error *err) {
    content c = {0};
    tern_error why = {0};
    const int fd = open_kind(path, TERN_IN_FILE, &why);
    if (fd < 0)
        return tern_fail(err, why.status, "%s", why.message);
    const tern_status status = read_content(fd, path, limit, &c, err);
    (void)close(fd); /* only read */
    if (status != TERN_OK) {
        drop(&c);
        return status;
    }
    c.bytes[c.size] = '\0';
    *bytes = c.bytes;
    *size = c.size;
    return TERN_OK;
}

void tern_in_file_forget(char *bytes, size_t size) {
    drop(&(content){.bytes = bytes, .capacity = size});
}
