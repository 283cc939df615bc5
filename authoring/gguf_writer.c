/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>

#include "authoring/gguf_writer_internal.h"
#include "runtime/files/gguf/iebin.h"

enum { CHUNK_BYTES = 1 << 20 }; /* one write(2) */

static const uint8_t zeros[TERN_GGUF_MAX_ALIGNMENT];

static tern_status report(const tern_gguf_writer *w, tern_error *err) {
    if (tern_gguf_writer_failed(w) && err != NULL)
        *err = w->error;
    return w->error.status;
}

/* ---- output -------------------------------------------------------------------------------- */

static void write_all(tern_gguf_writer *w, const uint8_t *bytes, size_t size) {
    if (!tern_gguf_writer_failed(w))
        w->error.status = tern_out_file_write(w->file, bytes, size, &w->error);
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

/* Prepares for the next tensor that has bytes, if there is one. */
static void start_tensor(tern_gguf_writer *w) {
    while (w->current < w->n_tensors && w->tensors[w->current].bytes == 0)
        w->current++;
    if (w->current < w->n_tensors)
        w->left = w->tensors[w->current].bytes;
}

/* Writes everything that precedes the data of a GGUF file. */
static void output_head(tern_gguf_writer *w) {
    const uint32_t head[2] = {TERN_GGUF_MAGIC, 3};
    tern_gguf_append_descriptions(w);
    const uint64_t counts[2] = {w->n_tensors, w->n_values};
    if (tern_gguf_writer_failed(w))
        return;
    output(w, head, sizeof head);
    output(w, counts, sizeof counts);
    output(w, w->metadata.bytes, w->metadata.size);
    output_padding(w, sizeof head + sizeof counts + w->metadata.size);
}

tern_status tern_gguf_writer_begin(tern_gguf_writer *w, tern_error *err) {
    if (!tern_gguf_writer_failed(w) && w->begun)
        tern_fail(&w->error, TERN_ERR_STATE, "%s: begun twice", w->path);
    if (w->iebin != NULL)
        w->alignment = TERN_IEBIN_ALIGNMENT; /* the file begins with the data */
    else
        output_head(w);
    if (tern_gguf_writer_failed(w))
        return report(w, err);
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

tern_gguf_writer *tern_gguf_writer_make(const char *path) {
    tern_gguf_writer *w = calloc(1, sizeof *w);
    if (w == NULL)
        return NULL;
    w->alignment = TERN_GGUF_DEFAULT_ALIGNMENT;
    w->path = strdup(path);
    w->chunk = malloc(CHUNK_BYTES);
    if (w->path == NULL || w->chunk == NULL)
        tern_gguf_writer_abort(&w);
    return w;
}

static void writer_free(tern_gguf_writer *w) {
    for (size_t i = 0; i < w->n_tensors; i++)
        free(w->tensors[i].name);
    free(w->tensors);
    free(w->metadata.bytes);
    free(w->chunk);
    free(w->path);
    free(w);
}

tern_status tern_gguf_writer_new(const char *path, tern_out_mode mode, tern_gguf_writer **out,
                                 tern_error *err) {
    if (path == NULL || out == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_gguf_writer_new: NULL argument");
    tern_gguf_writer *w = tern_gguf_writer_make(path);
    if (w == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory to write it", path);
    const tern_status status = tern_out_file_create(path, mode, &w->file, err);
    if (status != TERN_OK) {
        tern_gguf_writer_abort(&w);
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
    if (w->iebin != NULL)
        tern_iebin_finish(w);
    else if (!tern_gguf_writer_failed(w))
        w->error.status = tern_out_file_commit(&w->file, &w->error);
    const tern_status status = report(w, err);
    tern_gguf_writer_abort(writer);
    return status;
}

void tern_gguf_writer_abort(tern_gguf_writer **writer) {
    if (writer == NULL || *writer == NULL)
        return;
    tern_out_file_discard(&(*writer)->file);
    tern_iebin_discard(*writer);
    writer_free(*writer);
    *writer = NULL;
}
