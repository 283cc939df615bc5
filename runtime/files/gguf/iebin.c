/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/files/gguf/iebin.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hex.h"
#include "base/word_list.h"
#include "runtime/files/gguf/dedup.h"
#include "runtime/files/gguf/iebin_internal.h"

enum { PATH_BYTES = 4096 };

/* ---- files ----------------------------------------------------------------------------------- */

tern_status tern_gguf_raw(const uint8_t *bytes, size_t size, tern_file_map *map, const char *name,
                          tern_gguf **out, tern_error *err) {
    tern_gguf *file = calloc(1, sizeof *file);
    char *copy = strdup(name);
    if (file == NULL || copy == NULL) {
        free(file);
        free(copy);
        tern_file_map_close(&map);
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory to open it", name);
    }
    *file = (tern_gguf){.name = copy,
                        .bytes = bytes,
                        .size = size,
                        .map = map,
                        .alignment = TERN_GGUF_DEFAULT_ALIGNMENT};
    *out = file;
    return TERN_OK;
}

static tern_status open_raw(const char *path, tern_gguf **out, tern_error *err) {
    tern_file_map *map = NULL;
    const tern_status status = tern_file_map_open(path, &map, err);
    if (status != TERN_OK)
        return status;
    return tern_gguf_raw(tern_file_map_bytes(map), tern_file_map_size(map), map, path, out, err);
}

/* True for the name of a file right beside the list that is not hidden. */
static bool is_bare(tern_span name) {
    return name.size > 0 && name.size <= TERN_IEBIN_MAX_NAME && name.data[0] != '.' &&
           memchr(name.data, '/', name.size) == NULL && memchr(name.data, 0, name.size) == NULL;
}

static bool is_named(const tern_gguf *file, tern_span name) {
    const char *own = file_base_name(file->name);
    return strlen(own) == name.size && memcmp(own, name.data, name.size) == 0;
}

static tern_status add_file(tern_iebin_reading *r, tern_span name, tern_error *err) {
    tern_gguf *file = r->file;
    char bare[TERN_IEBIN_MAX_NAME + 1];
    if (file->n_others == TERN_IEBIN_MAX_FILES)
        return tern_fail(err, TERN_ERR_COUNT, "%s: names more than %d files", file->name,
                         TERN_IEBIN_MAX_FILES);
    tern_gguf **grown = realloc(file->others, (file->n_others + 1) * sizeof(tern_gguf *));
    if (grown == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for %zu files", file->name,
                         file->n_others + 1);
    file->others = grown;
    memcpy(bare, name.data, name.size);
    bare[name.size] = '\0';
    const tern_status status = r->opener(r->user, bare, &file->others[file->n_others], err);
    file->n_others += status == TERN_OK;
    return status;
}

tern_status tern_iebin_file(tern_iebin_reading *r, const tern_json_value *name, tern_gguf **out,
                            tern_error *err) {
    tern_gguf *file = r->file;
    if (name->type != TERN_JSON_STRING || !is_bare(name->text))
        return tern_fail(err, TERN_ERR_JSON,
                         "%s: line %" PRIu32 ": '%.*s' is not the name of a file "
                         "beside it",
                         file->name, name->line, TERN_SPAN_ARG(name->text));
    if (r->last >= file->n_others || !is_named(file->others[r->last], name->text)) {
        r->last = 0;
        while (r->last < file->n_others && !is_named(file->others[r->last], name->text))
            r->last++;
    }
    const tern_status status = r->last < file->n_others ? TERN_OK : add_file(r, name->text, err);
    if (status == TERN_OK)
        *out = file->others[r->last];
    return status;
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* The keys of the model become those of the list; their bytes stay in their file. */
static tern_status read_keys(tern_iebin_reading *r, tern_error *err) {
    const tern_json_value *name = tern_json_get(r->root, "keys");
    tern_gguf *file = r->file, *raw, *keys;
    if (name == NULL)
        return TERN_OK;
    tern_status status = tern_iebin_file(r, name, &raw, err);
    if (status == TERN_OK)
        status = tern_gguf_parse(raw->bytes, raw->size, raw->name, &keys, err);
    if (status != TERN_OK)
        return status;
    if (keys->n_tensors > 0) {
        status = tern_fail(err, TERN_ERR_PARTS,
                           "%s: holds %zu tensors, but must only hold the keys of %s", raw->name,
                           keys->n_tensors, file->name);
    } else {
        file->n_values = keys->n_values;
        file->values = keys->values;
        file->by_key = keys->by_key;
        keys->values = NULL;
        keys->by_key = NULL;
    }
    tern_gguf_close(&keys);
    return status;
}

/* ---- the list -------------------------------------------------------------------------------- */

/* Checks the version: 1 or 2, under any of its names. The fields of a list without one tell what it
 * is. */
static tern_status check_version(const tern_iebin_reading *r, tern_error *err) {
    static const char *const names[] = {"version", "schema", "schema_version"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const tern_json_value *v = tern_json_get(r->root, names[i]);
        int64_t version;
        if (v != NULL && (!tern_json_integer(v, &version) || version < 1 || version > 2))
            return tern_fail(
                err, TERN_ERR_VERSION, "%s: '%s' is %s%.*s, only 1 and 2 are supported",
                r->file->name, names[i], v->type == TERN_JSON_NUMBER ? "" : "no number",
                v->type == TERN_JSON_NUMBER ? (int)(v->text.size < 32 ? v->text.size : 32) : 0,
                v->type == TERN_JSON_NUMBER ? v->text.data : "");
    }
    return TERN_OK;
}

static int compare_places(const void *a, const void *b) {
    const tern_gguf_tensor *const *x = a, *const *y = b;
    const uintptr_t p = (uintptr_t)(*x)->data, q = (uintptr_t)(*y)->data;
    return (p > q) - (p < q);
}

/* Checks that no two tensors share a byte. Files lie apart in memory, so one order serves for
 * all. */
static tern_status check_places(tern_gguf *file, tern_error *err) {
    const tern_gguf_tensor **by_place = file->by_name; /* sorted by name afterwards */
    for (size_t i = 0; i < file->n_tensors; i++)
        by_place[i] = &file->tensors[i];
    qsort(by_place, file->n_tensors, sizeof by_place[0], compare_places);
    for (size_t i = 1; i < file->n_tensors; i++) {
        const tern_gguf_tensor *t = by_place[i - 1], *next = by_place[i];
        if (t->data != NULL && t->extent > (uintptr_t)next->data - (uintptr_t)t->data)
            return tern_fail(err, TERN_ERR_TENSOR_OVERLAP,
                             "%s: tensors '%.*s' and '%.*s' overlap in their file", file->name,
                             TERN_SPAN_ARG(t->name), TERN_SPAN_ARG(next->name));
    }
    return TERN_OK;
}

static tern_status read_tensors(tern_iebin_reading *r, tern_error *err) {
    tern_gguf *file = r->file;
    const tern_json_value *tensors = tern_json_get(r->root, "tensors");
    if (tensors == NULL || tensors->type != TERN_JSON_ARRAY)
        return tern_fail(err, TERN_ERR_JSON, "%s: 'tensors' is not a list", file->name);
    if (tensors->count > TERN_GGUF_MAX_RECORDS)
        return tern_fail(err, TERN_ERR_COUNT, "%s: %" PRIu32 " tensors, at most %d are supported",
                         file->name, tensors->count, TERN_GGUF_MAX_RECORDS);
    const size_t n = tensors->count;
    file->tensors = calloc(n + 1, sizeof *file->tensors); /* + 1: never of size 0 */
    file->by_name = calloc(n + 1, sizeof *file->by_name);
    if (file->tensors == NULL || file->by_name == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for %zu tensors", file->name, n);
    const tern_json_value *entry = tensors + 1;
    for (size_t i = 0; i < n; i++, entry += entry->size) {
        const tern_status status = tern_iebin_tensor(r, entry, i, &file->tensors[i], err);
        if (status != TERN_OK)
            return status;
    }
    file->n_tensors = n;
    const tern_status status = check_places(file, err);
    const tern_gguf_tensor *twice = tern_gguf_sort_names(file);
    if (status == TERN_OK && twice != NULL)
        return tern_fail(err, TERN_ERR_TENSOR_DUPLICATE, "%s: tensor '%.*s' occurs twice",
                         file->name, TERN_SPAN_ARG(twice->name));
    return status;
}

tern_status tern_iebin_text(tern_gguf *file, tern_json *json, tern_error *err) {
    if (file->size > TERN_IEBIN_MAX_BYTES)
        return tern_fail(err, TERN_ERR_COUNT, "%s: %zu bytes, at most %d are read", file->name,
                         file->size, TERN_IEBIN_MAX_BYTES);
    char *text = malloc(file->size + 1); /* + 1: never of size 0 */
    if (text == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory to read it", file->name);
    memcpy(text, file->bytes, file->size);
    return tern_json_parse(text, file->size, file->name, json, err);
}

tern_status tern_iebin_parse(tern_gguf *list, tern_iebin_opener *opener, void *user,
                             const tern_dedup_params *shared, tern_gguf **out, tern_error *err) {
    tern_json json = {.bytes = NULL};
    tern_status status = tern_iebin_text(list, &json, err);
    if (status == TERN_OK && json.values->type != TERN_JSON_OBJECT)
        status = tern_fail(err, TERN_ERR_JSON, "%s: is not an object", list->name);
    tern_iebin_reading r = {.file = list, .root = json.values, .opener = opener, .user = user};
    if (status == TERN_OK)
        status = check_version(&r, err);
    if (status == TERN_OK)
        status = read_keys(&r, err);
    if (status == TERN_OK)
        status = read_tensors(&r, err);
    if (status == TERN_OK)
        status = tern_dedup_apply(&r, shared, err);
    list->text = json.bytes;
    json.bytes = NULL;
    tern_json_free(&json);
    if (status != TERN_OK) {
        tern_gguf_close(&list);
        return status;
    }
    *out = list;
    return TERN_OK;
}

bool tern_iebin_sum(const tern_json_value *v, uint64_t *out) {
    *out = 0;
    if (v == NULL || v->type != TERN_JSON_STRING || v->text.size != 16)
        return false;
    for (size_t i = 0; i < 16; i++) {
        const int digit = hex_digit((unsigned char)v->text.data[i]);
        if (digit < 0)
            return false;
        *out = *out << 4 | (uint64_t)digit;
    }
    return true;
}

/* ---- folders --------------------------------------------------------------------------------- */

/* Writes the path of the list in a folder, or of the list itself. */
static bool list_path(const char *path, char list[PATH_BYTES]) {
    static const char ending[] = ".ie.json";
    const size_t n = strlen(path), e = sizeof ending - 1;
    struct stat info;
    const bool folder = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
    if (!folder && (n < e || strcmp(path + n - e, ending) != 0))
        return false;
    const int written = folder ? snprintf(list, PATH_BYTES, "%s/" TERN_IEBIN_LIST, path)
                               : snprintf(list, PATH_BYTES, "%s", path);
    return written > 0 && written < PATH_BYTES;
}

bool tern_iebin_is(const char *path) {
    char list[PATH_BYTES];
    struct stat info;
    return list_path(path, list) && stat(list, &info) == 0;
}

/* The path of a file beside the list; false when that is too long. */
static bool join_beside(const char *list, const char *name, char path[PATH_BYTES]) {
    const int folder = (int)(file_base_name(list) - list);
    return snprintf(path, PATH_BYTES, "%.*s%s", folder, list, name) < PATH_BYTES;
}

/* Writes the path of the index: for the real path out/x.masks.bin of a file with the ending
 * ".masks.bin", out/x.dedup.json. */
static bool index_of(const char *real, const char *ending, char path[PATH_BYTES]) {
    const int stem = (int)(strlen(real) - strlen(ending));
    return text_ends_with(real, ending) &&
           snprintf(path, PATH_BYTES, "%.*s.dedup.json", stem, real) < PATH_BYTES &&
           access(path, F_OK) == 0;
}

/*
 * Finds the index of shared bytes if it does not lie beside the list, but beside the target of a
 * link in the folder.
 */
static bool find_linked_index(const char *list, char path[PATH_BYTES]) {
    for (int i = 0; i < TERN_DEDUP_BASE; i++) {
        const char *ending = tern_dedup_names[i] + strlen("model");
        char *real = join_beside(list, tern_dedup_names[i], path) ? realpath(path, NULL) : NULL;
        const bool found = real != NULL && index_of(real, ending, path);
        free(real);
        if (found)
            return true;
    }
    return false;
}

/* Opens a file beside the list; `user` is the path of the list. */
static tern_status open_beside(void *user, const char *name, tern_gguf **out, tern_error *err) {
    const char *list = user;
    char path[PATH_BYTES], linked[PATH_BYTES];
    if (!join_beside(list, name, path))
        return tern_fail(err, TERN_ERR_IO, "%.64s...: the path is too long", list);
    const bool is_elsewhere = strcmp(name, TERN_DEDUP_INDEX) == 0 && access(path, F_OK) != 0 &&
                              find_linked_index(list, linked);
    return open_raw(is_elsewhere ? linked : path, out, err);
}

tern_status tern_iebin_open(const char *path, const tern_dedup_params *shared, tern_gguf **out,
                            tern_error *err) {
    char list[PATH_BYTES];
    tern_gguf *raw;
    if (!list_path(path, list))
        return tern_fail(err, TERN_ERR_IO, "%.64s: no folder with a list of tensors", path);
    const tern_status status = open_raw(list, &raw, err);
    return status == TERN_OK ? tern_iebin_parse(raw, open_beside, list, shared, out, err) : status;
}
