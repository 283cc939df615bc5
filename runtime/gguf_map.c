/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/gguf_internal.h"

/* Takes over the map (if it is one) whether it succeeds or not. */
static tern_status parse(const uint8_t *bytes, size_t size, bool mapped, const char *name,
                         tern_gguf **out, tern_error *err) {
    tern_status status = TERN_ERR_NOMEM;
    tern_gguf *file = calloc(1, sizeof *file);
    if (file == NULL) {
        if (mapped)
            munmap((void *)(uintptr_t)bytes, size);
        return tern_fail(err, status, "%s: no memory to open it", name);
    }
    file->bytes = bytes;
    file->size = size;
    file->mapped = mapped;
    file->name = strdup(name);
    if (file->name == NULL) {
        tern_fail(err, status, "%s: no memory to open it", name);
        goto fail;
    }
    tern_gguf_cursor cursor = {file, bytes, size, err};
    status = tern_gguf_parse_metadata(&cursor);
    if (status == TERN_OK)
        status = tern_gguf_parse_tensors(&cursor);
    if (status != TERN_OK)
        goto fail;
    *out = file;
    return TERN_OK;

fail:
    tern_gguf_close(&file);
    return status;
}

tern_status tern_gguf_parse(const void *bytes, size_t size, const char *name, tern_gguf **out,
                            tern_error *err) {
    if (bytes == NULL || name == NULL || out == NULL)
        return tern_fail(err, TERN_ERR_ARG, "tern_gguf_parse: NULL argument");
    return parse(bytes, size, false, name, out, err);
}

static tern_status check_file(const char *path, const struct stat *info, tern_error *err) {
    if (S_ISDIR(info->st_mode))
        return tern_fail(err, TERN_ERR_IO, "%s: is a directory", path);
    if (!S_ISREG(info->st_mode))
        return tern_fail(err, TERN_ERR_IO, "%s: not a regular file, cannot be mapped", path);
    if (info->st_size <= 0)
        return tern_fail(err, TERN_ERR_TRUNCATED, "%s: file is empty", path);
    if ((uintmax_t)info->st_size > SIZE_MAX)
        return tern_fail(err, TERN_ERR_IO, "%s: file is too large for this machine", path);
    return TERN_OK;
}

static tern_status map_file(const char *path, int fd, const uint8_t **bytes, size_t *size,
                            tern_error *err) {
    struct stat info;
    if (fstat(fd, &info) != 0)
        return tern_fail(err, TERN_ERR_IO, "%s: %s", path, strerror(errno));
    tern_status status = check_file(path, &info, err);
    if (status != TERN_OK)
        return status;
    void *map = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED)
        return tern_fail(err, TERN_ERR_IO, "%s: cannot be mapped: %s", path, strerror(errno));
    *bytes = map;
    *size = (size_t)info.st_size;
    return TERN_OK;
}

tern_status tern_gguf_open_file(const char *path, tern_gguf **out, tern_error *err) {
    /* O_NONBLOCK: opening a FIFO without a writer must not hang. */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return tern_fail(err, TERN_ERR_IO, "%s: %s", path, strerror(errno));
    const uint8_t *bytes = NULL;
    size_t size = 0;
    tern_status status = map_file(path, fd, &bytes, &size, err);
    close(fd); /* the map keeps the file */
    return status != TERN_OK ? status : parse(bytes, size, true, path, out, err);
}

tern_status tern_gguf_open(const char *path, tern_gguf **out, tern_error *err) {
    if (path == NULL || out == NULL)
        return tern_fail(err, TERN_ERR_ARG, "tern_gguf_open: NULL argument");
    tern_gguf *file;
    tern_status status = tern_gguf_open_file(path, &file, err);
    if (status == TERN_OK)
        status = tern_gguf_complete(&file, err);
    if (status == TERN_OK)
        *out = file;
    return status;
}

void tern_gguf_close(tern_gguf **file) {
    if (file == NULL || *file == NULL)
        return;
    tern_gguf *f = *file;
    for (size_t i = 0; i < f->n_others; i++)
        tern_gguf_close(&f->others[i]);
    free(f->others);
    if (f->mapped)
        munmap((void *)(uintptr_t)f->bytes, f->size);
    free(f->values);
    free(f->tensors);
    free(f->by_key);
    free(f->by_name);
    free(f->name);
    free(f);
    *file = NULL;
}

void tern_gguf_drop_pages(const tern_gguf *file, const tern_gguf_tensor *tensor) {
    if (!file->mapped)
        return;
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t first = ((uintptr_t)tensor->data + page - 1) / page * page;
    const uintptr_t end = ((uintptr_t)tensor->data + tensor->bytes) / page * page;
    if (first < end) /* advice only: a failure changes nothing that a caller could see */
        (void)madvise((void *)first, end - first, MADV_DONTNEED);
}
