/* SPDX-License-Identifier: Apache-2.0 */
#include "authoring/convert/hf_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "runtime/files/gguf/iebin.h"

static const char prefix[] = "model.";
enum { INDEX_BYTES = 1 << 28, PATH_BYTES = 4096, MAX_FILES = 10000, FILE_NAME_BYTES = 256 };

static tern_status join_path(const char *folder, const char *name, char path[PATH_BYTES],
                             tern_error *err) {
    return snprintf(path, PATH_BYTES, "%s/%s", folder, name) < PATH_BYTES
               ? TERN_OK
               : tern_fail(err, TERN_ERR_IO, "%.64s...: the path is too long", folder);
}

static tern_status add_file(hf_files *f, const char *path, tern_error *err) {
    safetensors **grown = realloc(f->files, (f->n_files + 1) * sizeof(safetensors *));
    if (grown == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory to open it", path);
    f->files = grown;
    const tern_status status = safetensors_open(path, &f->files[f->n_files], err);
    f->n_files += status == TERN_OK;
    return status;
}

/* ---- the index ------------------------------------------------------------------------------- */

/* Opens the file unless it is open already; *out is its index. */
static tern_status open_named(hf_files *f, const char *folder, const char *index, tern_span name,
                              size_t *out, tern_error *err) {
    char plain[FILE_NAME_BYTES], path[PATH_BYTES];
    if (name.size == 0 || name.size >= sizeof plain || name.data[0] == '.' ||
        memchr(name.data, '/', name.size) != NULL || memchr(name.data, 0, name.size) != NULL) {
        return tern_fail(err, TERN_ERR_JSON, "%s: '%.*s' is not the name of a file beside it",
                         index, (int)(name.size < 64 ? name.size : 64), name.data);
    }
    memcpy(plain, name.data, name.size);
    plain[name.size] = '\0';
    tern_status status = join_path(folder, plain, path, err);
    if (status != TERN_OK)
        return status;
    for (size_t i = 0; i < f->n_files; i++) {
        if (safetensors_count(f->files[i]) > 0 &&
            strcmp(safetensors_at(f->files[i], 0)->file, path) == 0) {
            *out = i;
            return TERN_OK;
        }
    }
    if (f->n_files == MAX_FILES)
        return tern_fail(err, TERN_ERR_COUNT, "%s: more than %d files", index, MAX_FILES);
    *out = f->n_files;
    return add_file(f, path, err);
}

static tern_status open_indexed(hf_files *f, const char *folder, const char *index,
                                const tern_json_value *root, tern_error *err) {
    const tern_json_value *map = tern_json_get(root, "weight_map");
    if (map == NULL || map->type != TERN_JSON_OBJECT)
        return tern_fail(err, TERN_ERR_JSON, "%s: \"weight_map\" is missing", index);
    tern_status status = TERN_OK;
    const tern_json_value *key = map + 1;
    for (uint32_t i = 0; status == TERN_OK && i < map->count; i++) {
        const tern_json_value *file = key + key->size;
        char name[1024];
        size_t number = 0;
        if (file->type != TERN_JSON_STRING || key->text.size >= sizeof name)
            return tern_fail(err, TERN_ERR_JSON, "%s: \"weight_map\" is not names by names", index);
        memcpy(name, key->text.data, key->text.size);
        name[key->text.size] = '\0';
        status = open_named(f, folder, index, file->text, &number, err);
        if (status == TERN_OK && safetensors_find(f->files[number], name) == NULL) {
            status = tern_fail(err, TERN_ERR_TENSOR_MISSING, "%s: tensor %s is not in %.*s", index,
                               name, (int)file->text.size, file->text.data);
        }
        key = file + file->size;
    }
    return status;
}

/* ---- model.ie.json --------------------------------------------------------------------------- */

static safetensors_type type_of(uint32_t type) {
    switch (type) {
    case 0:
        return SAFETENSORS_F32;
    case 1:
        return SAFETENSORS_F16;
    case 30:
        return SAFETENSORS_BF16;
    case TERN_GGUF_U8_TYPE:
        return SAFETENSORS_U8;
    default:
        return SAFETENSORS_UNKNOWN;
    }
}

/* A list has the dimensions of a shape in GGUF's order, so they are reversed. */
static tern_status name_tensor(const tern_gguf *list, const tern_gguf_tensor *t,
                               safetensors_tensor *out, tern_error *err) {
    *out = (safetensors_tensor){.name = strndup(t->name.data, t->name.size),
                                .type = type_of(t->type),
                                .n_dims = t->n_dims,
                                .bytes = t->extent,
                                .data = t->data,
                                .file = tern_gguf_name(list)};
    for (uint32_t i = 0; i < t->n_dims; i++)
        out->shape[i] = t->ne[t->n_dims - 1 - i];
    return out->name != NULL
               ? TERN_OK
               : tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for a name", out->file);
}

static tern_status open_list(hf_files *f, const char *path, tern_error *err) {
    tern_status status = tern_iebin_open(path, NULL, &f->list, err);
    if (status != TERN_OK)
        return status;
    const size_t n = tern_gguf_tensor_count(f->list);
    f->named = calloc(n + 1, sizeof *f->named); /* + 1: never 0 bytes */
    if (f->named == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for %zu tensors", path, n);
    for (; status == TERN_OK && f->n_named < n; f->n_named += status == TERN_OK)
        status = name_tensor(f->list, tern_gguf_tensor_at(f->list, f->n_named),
                             &f->named[f->n_named], err);
    return status;
}

/* ---- all tensors ----------------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b) {
    const safetensors_tensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static tern_status list_tensors(hf_files *f, tern_error *err) {
    size_t total = f->n_named;
    for (size_t i = 0; i < f->n_files; i++)
        total += safetensors_count(f->files[i]);
    f->tensors = calloc(total + 1, sizeof(safetensors_tensor *)); /* + 1: never 0 bytes */
    f->used = calloc(total + 1, sizeof *f->used);
    if (f->tensors == NULL || f->used == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for %zu tensors", total);
    for (size_t i = 0; i < f->n_files; i++)
        for (size_t k = 0; k < safetensors_count(f->files[i]); k++)
            f->tensors[f->n++] = safetensors_at(f->files[i], k);
    for (size_t i = 0; i < f->n_named; i++)
        f->tensors[f->n++] = &f->named[i];
    qsort(f->tensors, f->n, sizeof(safetensors_tensor *), compare_names);
    f->bare = true;
    for (size_t i = 0; i < f->n; i++)
        f->bare = f->bare && strncmp(f->tensors[i]->name, prefix, strlen(prefix)) != 0;
    for (size_t i = 1; i < f->n; i++) {
        if (strcmp(f->tensors[i - 1]->name, f->tensors[i]->name) == 0) {
            return tern_fail(err, TERN_ERR_TENSOR_DUPLICATE, "%s: tensor %s is also in %s",
                             f->tensors[i]->file, f->tensors[i]->name, f->tensors[i - 1]->file);
        }
    }
    return TERN_OK;
}

/* Opens the only file of a folder without an index. */
static tern_status open_one(const char *folder, hf_files *f, char path[PATH_BYTES],
                            tern_error *err) {
    char list[PATH_BYTES];
    tern_status status = join_path(folder, "model.safetensors", path, err);
    if (status == TERN_OK)
        status = join_path(folder, TERN_IEBIN_LIST, list, err);
    if (status != TERN_OK)
        return status;
    return access(path, F_OK) != 0 && access(list, F_OK) == 0 ? open_list(f, list, err)
                                                              : add_file(f, path, err);
}

static tern_status open_all(const char *folder, hf_files *f, tern_error *err) {
    char path[PATH_BYTES];
    tern_json json = {.bytes = NULL};
    tern_status status = join_path(folder, "model.safetensors.index.json", path, err);
    if (status != TERN_OK)
        return status;
    if (access(path, F_OK) == 0) {
        status = tern_json_read(path, INDEX_BYTES, &json, err);
        if (status == TERN_OK)
            status = open_indexed(f, folder, path, json.values, err);
        tern_json_free(&json);
    } else {
        status = open_one(folder, f, path, err);
    }
    return status == TERN_OK ? list_tensors(f, err) : status;
}

tern_status hf_files_open(const char *folder, hf_files *out, tern_error *err) {
    hf_files f = {.n = 0};
    const tern_status status = open_all(folder, &f, err);
    if (status != TERN_OK) {
        hf_files_close(&f);
        return status;
    }
    *out = f;
    return TERN_OK;
}

void hf_files_close(hf_files *f) {
    for (size_t i = 0; i < f->n_files; i++)
        safetensors_close(&f->files[i]);
    for (size_t i = 0; i < f->n_named; i++)
        free(f->named[i].name);
    free(f->named);
    tern_gguf_close(&f->list);
    free(f->files);
    free(f->tensors);
    free(f->used);
    *f = (hf_files){.n = 0};
}

static const safetensors_tensor *find_exactly(hf_files *f, const char *name) {
    const safetensors_tensor key = {.name = (char *)(uintptr_t)name};
    const safetensors_tensor *wanted = &key;
    const safetensors_tensor **found =
        bsearch(&wanted, f->tensors, f->n, sizeof(safetensors_tensor *), compare_names);
    if (found == NULL)
        return NULL;
    f->used[found - f->tensors] = true;
    return *found;
}

const safetensors_tensor *hf_files_find(hf_files *f, const char *name) {
    char whole[FILE_NAME_BYTES];
    if (f->bare && strncmp(name, prefix, strlen(prefix)) == 0)
        name += strlen(prefix);
    const safetensors_tensor *found = find_exactly(f, name);
    if (found != NULL || f->within == NULL ||
        snprintf(whole, sizeof whole, "%s%s", f->within, name) >= (int)sizeof whole)
        return found;
    return find_exactly(f, whole);
}
