/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/gguf_writer_internal.h"

enum {
    CHUNK_BYTES = 1 << 20, /* one write(2) */
    NAME_ATTEMPTS = 100    /* temporary names that may be taken by leftovers of killed programs */
};

static const uint8_t zeros[TERN_GGUF_MAX_ALIGNMENT];

static void fail_system(tern_gguf_writer *w, const char *what) {
    tern_fail(&w->error, TERN_ERR_IO, "%s: %s: %s", w->path, what, strerror(errno));
}

static tern_status report(const tern_gguf_writer *w, tern_error *err) {
    if (tern_gguf_writer_failed(w) && err != NULL)
        *err = w->error;
    return w->error.status;
}

/* ---- output -------------------------------------------------------------------------------- */

static void write_all(tern_gguf_writer *w, const uint8_t *bytes, size_t size) {
    while (size > 0 && !tern_gguf_writer_failed(w)) {
        const ssize_t n = write(w->fd, bytes, size);
        if (n < 0 && errno != EINTR)
            fail_system(w, "cannot be written");
        if (n > 0) {
            bytes += n;
            size -= (size_t)n;
        }
    }
}

static void flush(tern_gguf_writer *w) {
    write_all(w, w->chunk, w->chunk_used);
    w->chunk_used = 0;
}

static void output(tern_gguf_writer *w, const void *bytes, size_t size) {
    if (size > CHUNK_BYTES - w->chunk_used)
        flush(w);
    if (size >= CHUNK_BYTES) {
        write_all(w, bytes, size);
        return;
    }
    if (size > 0)
        memcpy(w->chunk + w->chunk_used, bytes, size);
    w->chunk_used += size;
}

static void output_padding(tern_gguf_writer *w, uint64_t bytes_before) {
    const uint64_t rest = bytes_before % w->alignment;
    if (rest != 0)
        output(w, zeros, (size_t)(w->alignment - rest));
}

/* Prepares for the next tensor, if there is one. Every tensor has at least one byte. */
static void start_tensor(tern_gguf_writer *w) {
    if (w->current < w->n_tensors)
        w->left = w->tensors[w->current].bytes;
}

tern_status tern_gguf_writer_begin(tern_gguf_writer *w, tern_error *err) {
    if (!tern_gguf_writer_failed(w) && w->begun)
        tern_fail(&w->error, TERN_ERR_ARG, "%s: begun twice", w->path);
    tern_gguf_append_descriptions(w);
    if (tern_gguf_writer_failed(w))
        return report(w, err);
    const uint32_t head[2] = {TERN_GGUF_MAGIC, 3};
    const uint64_t counts[2] = {w->n_tensors, w->n_values};
    output(w, head, sizeof head);
    output(w, counts, sizeof counts);
    output(w, w->metadata.bytes, w->metadata.size);
    output_padding(w, sizeof head + sizeof counts + w->metadata.size);
    w->begun = true;
    start_tensor(w);
    return report(w, err);
}

tern_status tern_gguf_writer_data(tern_gguf_writer *w, const void *bytes, size_t size,
                                  tern_error *err) {
    if (!tern_gguf_writer_failed(w) && (!w->begun || size > w->left))
        tern_fail(&w->error, TERN_ERR_ARG,
                  "%s: %zu bytes of data, tensor %zu of %zu takes %" PRIu64 " more", w->path, size,
                  w->current, w->n_tensors, w->left);
    if (tern_gguf_writer_failed(w) || size == 0)
        return report(w, err);
    output(w, bytes, size);
    w->left -= size;
    if (w->left == 0) {
        output_padding(w, w->tensors[w->current].bytes);
        w->current++;
        start_tensor(w);
    }
    return report(w, err);
}

/* ---- life ---------------------------------------------------------------------------------- */

/* rename(2) would replace a device or fail on a directory only after hours of work. */
static tern_status check_target(const char *path, tern_error *err) {
    struct stat info;
    if (stat(path, &info) != 0 || S_ISREG(info.st_mode))
        return TERN_OK;
    return tern_fail(err, TERN_ERR_IO, "%s: exists and is not a regular file", path);
}

/* Creates PATH.tmp-PID, or PATH.tmp-PID-N when that name is taken. */
static tern_status create_temporary(tern_gguf_writer *w, tern_error *err) {
    const size_t size = strlen(w->path) + 48;
    w->temporary = malloc(size);
    if (w->temporary == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory to write it", w->path);
    for (int i = 0; i < NAME_ATTEMPTS; i++) {
        int n = snprintf(w->temporary, size, "%s.tmp-%ld", w->path, (long)getpid());
        if (i > 0)
            snprintf(w->temporary + n, size - (size_t)n, "-%d", i);
        w->fd = open(w->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (w->fd >= 0)
            return TERN_OK;
        if (errno != EEXIST)
            break;
    }
    return tern_fail(err, TERN_ERR_IO, "%s: %s", w->temporary, strerror(errno));
}

static void writer_free(tern_gguf_writer *w) {
    for (size_t i = 0; i < w->n_tensors; i++)
        free(w->tensors[i].name);
    free(w->tensors);
    free(w->metadata.bytes);
    free(w->chunk);
    free(w->temporary);
    free(w->path);
    free(w);
}

tern_status tern_gguf_writer_new(const char *path, tern_gguf_writer **out, tern_error *err) {
    if (path == NULL || out == NULL)
        return tern_fail(err, TERN_ERR_ARG, "tern_gguf_writer_new: NULL argument");
    tern_status status = check_target(path, err);
    if (status != TERN_OK)
        return status;
    tern_gguf_writer *w = calloc(1, sizeof *w);
    if (w == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory to write it", path);
    w->fd = -1;
    w->alignment = TERN_GGUF_DEFAULT_ALIGNMENT;
    w->path = strdup(path);
    w->chunk = malloc(CHUNK_BYTES);
    if (w->path == NULL || w->chunk == NULL)
        status = tern_fail(err, TERN_ERR_NOMEM, "%s: no memory to write it", path);
    else
        status = create_temporary(w, err);
    if (status != TERN_OK) {
        writer_free(w);
        return status;
    }
    *out = w;
    return TERN_OK;
}

tern_status tern_gguf_writer_finish(tern_gguf_writer **writer, tern_error *err) {
    tern_gguf_writer *w = *writer;
    if (!tern_gguf_writer_failed(w) && (!w->begun || w->current < w->n_tensors))
        tern_fail(&w->error, TERN_ERR_TRUNCATED, "%s: data of tensor %zu of %zu is missing",
                  w->path, w->current, w->n_tensors);
    flush(w);
    const int closed = close(w->fd); /* some file systems report a full disk only here */
    w->fd = -1;
    if (closed != 0 && !tern_gguf_writer_failed(w))
        fail_system(w, "cannot be written");
    if (!tern_gguf_writer_failed(w) && rename(w->temporary, w->path) != 0)
        fail_system(w, "cannot be created");
    tern_status status = report(w, err);
    if (status != TERN_OK) {
        tern_gguf_writer_abort(writer);
        return status;
    }
    writer_free(w);
    *writer = NULL;
    return TERN_OK;
}

void tern_gguf_writer_abort(tern_gguf_writer **writer) {
    if (writer == NULL || *writer == NULL)
        return;
    tern_gguf_writer *w = *writer;
    if (w->fd >= 0)
        close(w->fd);
    unlink(w->temporary);
    writer_free(w);
    *writer = NULL;
}
