/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "authoring/importance.h"
#include "base/file_map.h"
#include "runtime/gguf/gguf.h"

enum { COLS_MAX = 1 << 24 };

/* ---- what both forms share ------------------------------------------------------------------- */

static int by_name(const void *a, const void *b) {
    return strcmp(((const tern_importance_entry *)a)->name,
                  ((const tern_importance_entry *)b)->name);
}

/* Sorts the entries, none of which may have the name of another. */
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

/* An entry with the sums at `bytes`, which are there; names have no byte 0. */
static tern_status add_entry(const char *file, tern_importance *m, tern_span name, size_t cols,
                             const uint8_t *bytes, double rows, tern_error *err) {
    char text[TERN_IMPORTANCE_NAME_BYTES];
    if (name.size == 0 || name.size >= sizeof text || memchr(name.data, 0, name.size) != NULL)
        return tern_fail(err, TERN_ERR_STRING, "%s: entry %zu has a name of %zu bytes", file, m->n,
                         name.size);
    memcpy(text, name.data, name.size);
    text[name.size] = '\0';
    if (cols > COLS_MAX)
        return tern_fail(err, TERN_ERR_COUNT, "%s: %s has %zu columns, %d are the limit", file,
                         text, cols, COLS_MAX);
    if (!isfinite(rows) || rows <= 0.0)
        return tern_fail(err, TERN_ERR_TENSOR_DATA, "%s: %s is the sum of %g rows", file, text,
                         rows);
    tern_importance_entry *e = tern_importance_add(m, text, cols);
    if (e == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for %zu columns", file, cols);
    e->rows = rows;
    for (size_t i = 0; i < cols; i++) {
        e->squares[i] = (double)float_at(bytes + i * sizeof(float));
        if (!isfinite(e->squares[i]) || e->squares[i] < 0.0)
            return tern_fail(err, TERN_ERR_TENSOR_DATA,
                             "%s: %s: column %zu has a sum of squares of %g", file, text, i,
                             e->squares[i]);
    }
    return TERN_OK;
}

/* ---- GGUF ------------------------------------------------------------------------------------ */

static bool has_ending(tern_span name, const char *ending) {
    const size_t n = strlen(ending);
    return name.size > n && memcmp(name.data + name.size - n, ending, n) == 0;
}

static uint64_t elements(const tern_gguf_tensor *t) {
    return t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];
}

/* The counts of a matrix. */
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
    if (elements(counts) != 1) /* of experts, which no model here has */
        return TERN_OK;
    if (elements(t) != t->ne[0])
        return tern_fail(err, TERN_ERR_TENSOR_SHAPE, "%s: %.*s has one count for %llu x %llu sums",
                         file, shown, name.data, (unsigned long long)(elements(t) / t->ne[0]),
                         (unsigned long long)t->ne[0]);
    return add_entry(file, m, name, (size_t)t->ne[0], t->data, (double)float_at(counts->data), err);
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

/* What is left of a file. */
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

/* A number that is at least `least`; false: there is none. */
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
        return tern_fail(err, TERN_ERR_TRUNCATED,
                         "%s: is no file of importance: entry %zu does not fit, %zu bytes are left",
                         file, m->n, c->left);
    return add_entry(file, m, (tern_span){(const char *)name, (size_t)size}, (size_t)cols, sums,
                     chunks, err);
}

/* Number of chunks and name of the text, which older files lack. */
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
                         "%s: is no file of importance: neither GGUF nor a list of entries", file);
    tern_status status = TERN_OK;
    for (int32_t i = 0; status == TERN_OK && i < n; i++)
        status = read_old_entry(file, &c, m, err);
    if (status == TERN_OK && !read_end(&c, m))
        status = tern_fail(err, TERN_ERR_TRUNCATED, "%s: %zu bytes after the entries are no end",
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
