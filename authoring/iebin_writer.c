/* SPDX-License-Identifier: Apache-2.0 */
#include "authoring/iebin_writer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "authoring/gguf_writer_internal.h"
#include "base/json_tree/text.h"
#include "base/utf8.h"
#include "runtime/files/gguf/iebin.h"
#include "runtime/files/gguf/int4.h"

enum { DATA, KEYS, LIST };

const char *const tern_iebin_files[TERN_IEBIN_FILES] = {TERN_IEBIN_DATA, TERN_IEBIN_KEYS,
                                                        TERN_IEBIN_LIST};

struct tern_iebin_target {
    char *paths[TERN_IEBIN_FILES];
    tern_out_file *files[TERN_IEBIN_FILES]; /* the data file is w->file */
    tern_out_mode mode;
    bool made; /* this writer created the folder */
    char *folder;
};

/* ---- the list -------------------------------------------------------------------------------- */

/* The name by which the reader finds the type. Type 39 is MXFP4 if the bytes are, else TL2. */
static const char *type_name(const tern_gguf_described *t) {
    uint64_t rows = 1, bytes;
    if (t->type != TERN_GGUF_TL2)
        return tern_gguf_type_name(t->type);
    for (uint32_t d = 1; d < t->n_dims; d++)
        rows *= t->ne[d]; /* the writer's caller has such bytes: nothing overflows */
    const tern_status status = tern_format_bytes(TERN_FORMAT_MXFP4, rows, t->ne[0], &bytes);
    return status == TERN_OK && bytes == t->bytes + t->shared ? "mxfp4" : "tl2";
}

/* Adds all fields of INT4 that the reader requires. */
static void add_int4(const tern_gguf_described *t, text *out) {
    const tern_int4_rows *form = &t->int4;
    text_string(out, "scheme", form->zero_points ? "affine" : "symmetric");
    text_string(out, "nibble",
                form->zero_points       ? "unsigned"
                : form->twos_complement ? "twos_complement"
                                        : "biased");
    text_string(out, "nibble_order", form->high_first ? "high_first" : "low_first");
    text_name(out, "group");
    if (form->group == t->ne[0] && form->group != 32 && form->group != 64 && form->group != 128)
        text_print(out, "\"row\"");
    else
        text_print(out, "%" PRIu64, form->group);
    text_string(out, "scale_dtype", "f16");
    text_string(out, "zero_point", form->zero_points ? "u8" : "none");
    text_string(out, "scales", "after_each_row");
}

static void add_tensor(tern_gguf_writer *w, const tern_gguf_described *t, uint64_t offset,
                       text *out) {
    const char *type = type_name(t);
    if (!tern_utf8_is_valid(t->name, strlen(t->name))) {
        tern_fail(&w->error, TERN_ERR_STRING, "%s: tensor '%s': its name is not UTF-8", w->path,
                  t->name);
        return;
    }
    if (tern_gguf_type_find((tern_span){type, strlen(type)}) != t->type) {
        tern_fail(&w->error, TERN_ERR_TENSOR_TYPE, "%s: tensor '%s': IEBIN has no name for type %s",
                  w->path, t->name, type);
        return;
    }
    text_string(out, "name", t->name);
    text_string(out, "dtype", type);
    text_name(out, "shape");
    for (uint32_t d = t->n_dims; d-- > 0;)
        text_print(out, "%c%" PRIu64, d + 1 == t->n_dims ? '[' : ',', t->ne[d]);
    if (t->shared > 0)
        text_print(out, "],\"dedup\":true,\"nbytes\":%" PRIu64, t->shared);
    else
        text_print(out,
                   "],\"file\":\"" TERN_IEBIN_DATA "\",\"file_data_offset\":%" PRIu64
                   ",\"nbytes\":%" PRIu64,
                   offset, t->bytes);
    if (t->type == TERN_GGUF_INT4_TYPE)
        add_int4(t, out);
    if (t->replaces != 0)
        text_print(out, ",\"replaces_xxh64\":\"%016" PRIx64 "\"", t->replaces);
}

void tern_iebin_put_int4(tern_gguf_writer *w, const char *name, uint32_t n_dims, const uint64_t *ne,
                         const tern_int4_rows *form) {
    uint64_t rows = 1;
    for (uint32_t d = 1; d < n_dims && d < 4; d++)
        rows *= ne[d];
    const size_t before = w->n_tensors;
    tern_gguf_put_tensor(w, name, TERN_GGUF_INT4_TYPE, n_dims, ne,
                         rows * tern_int4_row_bytes(form, (size_t)ne[0]));
    if (!tern_gguf_writer_failed(w) && w->n_tensors > before)
        w->tensors[before].int4 = *form;
}

void tern_iebin_share_last(tern_gguf_writer *w) {
    if (tern_gguf_writer_failed(w) || w->n_tensors == 0)
        return;
    tern_gguf_described *t = &w->tensors[w->n_tensors - 1];
    t->shared = t->bytes;
    t->bytes = 0;
}

void tern_iebin_without_keys(tern_gguf_writer *w) {
    tern_out_file_discard(&w->iebin->files[KEYS]);
}

void tern_iebin_replaces_last(tern_gguf_writer *w, uint64_t hash) {
    if (!tern_gguf_writer_failed(w) && w->n_tensors > 0)
        w->tensors[w->n_tensors - 1].replaces = hash;
}

static bool has_keys(const tern_gguf_writer *w) {
    return w->iebin->files[KEYS] != NULL;
}

static void describe(tern_gguf_writer *w, text *out) {
    uint64_t offset = 0;
    text_print(out,
               "{\"format\":\"tern_iebin\",\"version\":2,\"weights_bin\":\"" TERN_IEBIN_DATA
               "\",%s\"tensors\":[",
               has_keys(w) ? "\"keys\":\"" TERN_IEBIN_KEYS "\"," : "");
    for (size_t i = 0; i < w->n_tensors && !tern_gguf_writer_failed(w); i++) {
        text_print(out, "%s\n{", i > 0 ? "," : "");
        add_tensor(w, &w->tensors[i], offset, out);
        text_print(out, "}");
        offset = tern_gguf_next_offset(w, i, offset);
    }
    text_print(out, "\n]}\n");
    if (out->failed && !tern_gguf_writer_failed(w))
        tern_fail(&w->error, TERN_ERR_NOMEM, "%s: no memory for its list", w->path);
}

/* ---- the files ------------------------------------------------------------------------------- */

static void write_file(tern_gguf_writer *w, int which, const void *bytes, size_t size) {
    if (!tern_gguf_writer_failed(w) && size > 0)
        w->error.status = tern_out_file_write(w->iebin->files[which], bytes, size, &w->error);
}

static void write_keys(tern_gguf_writer *w) {
    const uint32_t head[2] = {TERN_GGUF_MAGIC, 3};
    const uint64_t counts[2] = {0, w->n_values};
    if (!has_keys(w))
        return;
    write_file(w, KEYS, head, sizeof head);
    write_file(w, KEYS, counts, sizeof counts);
    write_file(w, KEYS, w->metadata.bytes, w->metadata.size);
}

/* Refuses to write no tensors: the data file would be empty, and no reader can map it. */
static void check_data(tern_gguf_writer *w) {
    if (!tern_gguf_writer_failed(w) && w->n_tensors == 0)
        tern_fail(&w->error, TERN_ERR_EMPTY, "%s: no tensors to write", w->path);
}

void tern_iebin_finish(tern_gguf_writer *w) {
    tern_iebin_target *t = w->iebin;
    text list = {.bytes = NULL};
    const bool keys = has_keys(w);
    int done = 0;
    check_data(w);
    write_keys(w);
    describe(w, &list);
    write_file(w, LIST, list.bytes, list.size);
    text_free(&list);
    if (!tern_gguf_writer_failed(w) && t->mode == TERN_OUT_REPLACE && unlink(t->paths[LIST]) != 0 &&
        errno != ENOENT)
        tern_fail(&w->error, TERN_ERR_IO, "%s: cannot be replaced: %s", t->paths[LIST],
                  strerror(errno));
    for (; done < TERN_IEBIN_FILES && !tern_gguf_writer_failed(w); done++) {
        tern_out_file **file = done == DATA ? &w->file : &t->files[done];
        if (done != KEYS || keys)
            w->error.status = tern_out_file_commit(file, &w->error);
    }
    if (!tern_gguf_writer_failed(w)) {
        t->made = false; /* it stays */
        return;
    }
    for (int i = 0; i + 1 < done; i++)
        if (i != KEYS || keys)
            (void)unlink(t->paths[i]); /* nothing half-written stays */
}

void tern_iebin_discard(tern_gguf_writer *w) {
    tern_iebin_target *t = w->iebin;
    if (t == NULL)
        return;
    for (int i = 0; i < TERN_IEBIN_FILES; i++) {
        tern_out_file_discard(&t->files[i]);
        free(t->paths[i]);
    }
    if (t->made)
        (void)rmdir(t->folder); /* fails if another program has written into it */
    free(t->folder);
    free(t);
    w->iebin = NULL;
}

static tern_status make_folder(tern_iebin_target *t, tern_error *err) {
    t->made = mkdir(t->folder, 0777) == 0;
    return t->made || errno == EEXIST
               ? TERN_OK
               : tern_fail(err, TERN_ERR_IO, "%s: %s", t->folder, strerror(errno));
}

static tern_status open_target(tern_gguf_writer *w, const char *folder, tern_error *err) {
    tern_iebin_target *t = w->iebin;
    bool memory = (t->folder = strdup(folder)) != NULL;
    for (int i = 0; i < TERN_IEBIN_FILES; i++)
        if (!memory || asprintf(&t->paths[i], "%s/%s", folder, tern_iebin_files[i]) < 0) {
            t->paths[i] = NULL;
            memory = false;
        }
    if (!memory)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory to write it", folder);
    tern_status status = make_folder(t, err);
    for (int i = 0; status == TERN_OK && i < TERN_IEBIN_FILES; i++)
        status =
            tern_out_file_create(t->paths[i], t->mode, i == DATA ? &w->file : &t->files[i], err);
    return status;
}

tern_status tern_iebin_writer_new(const char *folder, tern_out_mode mode, tern_gguf_writer **out,
                                  tern_error *err) {
    if (folder == NULL || out == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_iebin_writer_new: NULL argument");
    tern_gguf_writer *w = tern_gguf_writer_make(folder);
    tern_iebin_target *t = calloc(1, sizeof *t);
    if (w == NULL || t == NULL) {
        free(t);
        tern_gguf_writer_abort(&w);
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory to write it", folder);
    }
    t->mode = mode;
    w->iebin = t;
    const tern_status status = open_target(w, folder, err);
    if (status != TERN_OK) {
        tern_gguf_writer_abort(&w);
        return status;
    }
    *out = w;
    return TERN_OK;
}
