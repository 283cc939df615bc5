/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "authoring/importance.h"
#include "base/file_map.h"
#include "runtime/files/gguf/gguf.h"

enum { COLS_MAX = 1 << 24 };

/* ---- shared by both forms -------------------------------------------------------------------- */

static int by_name(const void *a, const void *b) {
    return strcmp(((const tern_importance_entry *)a)->name,
                  ((const tern_importance_entry *)b)->name);
}

/* Sorts the entries; no two may have the same name. */
static tern_status check_names(const char *file, tern_importance *m, tern_error *err) {
    if (m->n == 0)
        return tern_fail(err, TERN_ERR_TENSOR_MISSING, "%s: says nothing of any matrix", file);
    qsort(m->entries, m->n, sizeof *m->entries, by_name);
    for (size_t i = 1; i < m->n; i++)
        if (by_name(&m->entries[i - 1], &m->entries[i]) == 0)
            return tern_fail(err, TERN_ERR_TENSOR_DUPLICATE, "%s: %s is there twice", file,
                             m->entries[i].name);
    return TERN_OK;
}

static float float_at(const uint8_t *bytes) {
    float x;
    memcpy(&x, bytes, sizeof x);
    return x;
}

/* The entry of a tensor in a file; names contain no byte 0. */
typedef struct found {
    tern_span name;
    size_t cols, matrices; /* their product is at most the number of floats in the file */
    const uint8_t *sums;   /* [matrices][cols] floats */
    const uint8_t *counts; /* [matrices] floats; NULL: `chunks` */
    double chunks;
} found;

static tern_status check_found(const char *file, const found *f, size_t number, tern_error *err) {
    const size_t size = f->name.size;
    if (size == 0 || size >= TERN_IMPORTANCE_NAME_BYTES || memchr(f->name.data, 0, size) != NULL)
        return tern_fail(err, TERN_ERR_STRING, "%s: entry %zu has a name of %zu bytes", file,
                         number, size);
    if (f->cols > COLS_MAX / f->matrices)
        return tern_fail(err, TERN_ERR_COUNT, "%s: %.*s has %zu x %zu columns, %d are the limit",
                         file, (int)size, f->name.data, f->matrices, f->cols, COLS_MAX);
    return TERN_OK;
}

/* Reads the numbers of rows, not all of which may be 0. */
static tern_status take_rows(const char *file, const found *f, tern_importance_entry *e,
                             tern_error *err) {
    double all = 0.0;
    for (size_t i = 0; i < e->matrices; i++) {
        const double rows =
            f->counts != NULL ? (double)float_at(f->counts + i * sizeof(float)) : f->chunks;
        if (!isfinite(rows) || rows < 0.0)
            return tern_fail(err, TERN_ERR_TENSOR_DATA, "%s: %s: sums %zu are of %g rows", file,
                             e->name, i, rows);
        e->rows[i] = rows;
        all += rows;
    }
    return all > 0.0
               ? TERN_OK
               : tern_fail(err, TERN_ERR_TENSOR_DATA, "%s: %s is the sum of 0 rows", file, e->name);
}

static tern_status add_entry(const char *file, tern_importance *m, const found *f,
                             tern_error *err) {
    char text[TERN_IMPORTANCE_NAME_BYTES];
    tern_status status = check_found(file, f, m->n, err);
    if (status != TERN_OK)
        return status;
    memcpy(text, f->name.data, f->name.size);
    text[f->name.size] = '\0';
    tern_importance_entry *e = tern_importance_add(m, text, f->cols, f->matrices);
    if (e == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for %zu x %zu columns", file,
                         f->matrices, f->cols);
    status = take_rows(file, f, e, err);
    for (size_t i = 0; status == TERN_OK && i < f->matrices * f->cols; i++) {
        e->squares[i] = (double)float_at(f->sums + i * sizeof(float));
        if (!isfinite(e->squares[i]) || e->squares[i] < 0.0)
            status = tern_fail(err, TERN_ERR_TENSOR_DATA,
                               "%s: %s: column %zu has a sum of squares of %g", file, text, i,
                               e->squares[i]);
    }
    return status;
}

/* ---- GGUF ------------------------------------------------------------------------------------ */

static bool has_ending(tern_span name, const char *ending) {
    const size_t n = strlen(ending);
    return name.size > n && memcmp(name.data + name.size - n, ending, n) == 0;
}

static uint64_t elements(const tern_gguf_tensor *t) {
    return t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];
}

/* The tensor that counts the rows of a matrix. */
static const tern_gguf_tensor *find_counts(const tern_gguf *f, tern_span name) {
    char text[TERN_IMPORTANCE_NAME_BYTES + sizeof ".counts"];
    if (name.size >= TERN_IMPORTANCE_NAME_BYTES)
        return NULL;
    (void)snprintf(text, sizeof text, "%.*s.counts", (int)name.size, name.data);
    return tern_gguf_find_tensor(f, text);
}

static tern_status read_tensor(const tern_gguf *f, const tern_gguf_tensor *t, tern_importance *m,
                               tern_error *err) {
    const char *file = tern_gguf_name(f);
    const tern_span name = {t->name.data, t->name.size - strlen(".in_sum2")};
    const int shown = (int)(name.size < 96 ? name.size : 96);
    const tern_gguf_tensor *counts = find_counts(f, name);
    if (counts == NULL)
        return tern_fail(err, TERN_ERR_TENSOR_MISSING, "%s: %.*s has sums and no counts", file,
                         shown, name.data);
    if (tern_gguf_format(t) != TERN_FORMAT_F32 || tern_gguf_format(counts) != TERN_FORMAT_F32)
        return tern_fail(err, TERN_ERR_TENSOR_TYPE, "%s: %.*s: sums and counts are f32", file,
                         shown, name.data);
    if (elements(t) / t->ne[0] != elements(counts))
        return tern_fail(
            err, TERN_ERR_TENSOR_SHAPE, "%s: %.*s has %llu counts for %llu x %llu sums", file,
            shown, name.data, (unsigned long long)elements(counts),
            (unsigned long long)(elements(t) / t->ne[0]), (unsigned long long)t->ne[0]);
    const found entry = {.name = name,
                         .cols = (size_t)t->ne[0],
                         .matrices = (size_t)elements(counts),
                         .sums = t->data,
                         .counts = counts->data};
    return add_entry(file, m, &entry, err);
}

static tern_status read_gguf(const tern_gguf *f, tern_importance *m, tern_error *err) {
    tern_span type = {"", 0};
    tern_status status = TERN_OK;
    (void)tern_gguf_string(f, "general.type", &type, NULL);
    if (type.size != strlen("imatrix") || memcmp(type.data, "imatrix", type.size) != 0)
        return tern_fail(err, TERN_ERR_MAGIC, "%s: is a GGUF file, but none of importance",
                         tern_gguf_name(f));
    (void)tern_gguf_u32(f, "imatrix.chunk_count", &m->chunks, NULL);
    (void)tern_gguf_u32(f, "imatrix.chunk_size", &m->chunk_tokens, NULL);
    for (size_t i = 0; status == TERN_OK && i < tern_gguf_tensor_count(f); i++)
        if (has_ending(tern_gguf_tensor_at(f, i)->name, ".in_sum2"))
            status = read_tensor(f, tern_gguf_tensor_at(f, i), m, err);
    return status;
}

/* ---- the older form -------------------------------------------------------------------------- */

/* The unread rest of a file. */
typedef struct cursor {
    const uint8_t *at;
    size_t left;
} cursor;

static const uint8_t *take(cursor *c, size_t n) {
    const uint8_t *at = c->at;
    if (n > c->left)
        return NULL;
    c->at += n;
    c->left -= n;
    return at;
}

/* Reads a number that is at least `least`; false: there is none. */
static bool take_number(cursor *c, int32_t least, int32_t *number) {
    const uint8_t *at = take(c, sizeof *number);
    if (at != NULL)
        memcpy(number, at, sizeof *number);
    return at != NULL && *number >= least;
}

static tern_status read_old_entry(const char *file, cursor *c, tern_importance *m,
                                  tern_error *err) {
    int32_t size, chunks, cols;
    const uint8_t *name = NULL, *sums = NULL;
    if (take_number(c, 1, &size))
        name = take(c, (size_t)size);
    if (name != NULL && take_number(c, 1, &chunks) && take_number(c, 1, &cols))
        sums = take(c, (size_t)cols * sizeof(float));
    if (sums == NULL)
        return tern_fail(
            err, TERN_ERR_TRUNCATED,
            "%s: is not a file of importance: entry %zu does not fit, %zu bytes are left", file,
            m->n, c->left);
    const found entry = {.name = {(const char *)name, (size_t)size},
                         .cols = (size_t)cols,
                         .matrices = 1,
                         .sums = sums,
                         .chunks = chunks};
    return add_entry(file, m, &entry, err);
}

/* Reads the number of chunks and the text's name, which older files lack. */
static bool read_end(cursor *c, tern_importance *m) {
    int32_t chunks, size;
    if (c->left == 0)
        return true;
    if (!take_number(c, 0, &chunks))
        return false;
    m->chunks = (uint32_t)chunks;
    if (c->left == 0)
        return true;
    return take_number(c, 0, &size) && take(c, (size_t)size) != NULL && c->left == 0;
}

static tern_status read_old(const char *file, const uint8_t *bytes, size_t size, tern_importance *m,
                            tern_error *err) {
    enum { ENTRY_BYTES = 17 }; /* at least */
    cursor c = {bytes, size};
    int32_t n;
    if (!take_number(&c, 1, &n) || (size_t)n > c.left / ENTRY_BYTES)
        return tern_fail(err, TERN_ERR_MAGIC,
                         "%s: is not a file of importance: neither GGUF nor a list of entries",
                         file);
    tern_status status = TERN_OK;
    for (int32_t i = 0; status == TERN_OK && i < n; i++)
        status = read_old_entry(file, &c, m, err);
    if (status == TERN_OK && !read_end(&c, m))
        status = tern_fail(err, TERN_ERR_TRUNCATED, "%s: %zu bytes after the last entry are not a valid end",
                           file, c.left);
    return status;
}

/* ---- entry ----------------------------------------------------------------------------------- */

tern_status tern_importance_parse(const uint8_t *bytes, size_t size, const char *name,
                                  tern_importance *out, tern_error *err) {
    tern_importance m = {.n = 0};
    tern_gguf *f = NULL;
    tern_status status;
    if (size >= 4 && memcmp(bytes, "GGUF", 4) == 0) {
        status = tern_gguf_parse(bytes, size, name, &f, err);
        if (status == TERN_OK)
            status = read_gguf(f, &m, err);
    } else {
        status = read_old(name, bytes, size, &m, err);
    }
    if (status == TERN_OK)
        status = check_names(name, &m, err);
    tern_gguf_close(&f);
    if (status != TERN_OK) {
        tern_importance_free(&m);
        return status;
    }
    *out = m;
    return TERN_OK;
}

tern_status tern_importance_read(const char *path, tern_importance *out, tern_error *err) {
    tern_file_map *map = NULL;
    tern_status status = tern_file_map_open(path, &map, err);
    if (status == TERN_OK)
        status = tern_importance_parse(tern_file_map_bytes(map), tern_file_map_size(map), path, out,
                                       err);
    tern_file_map_close(&map);
    return status;
}
