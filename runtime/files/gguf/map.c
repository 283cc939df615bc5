/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <sys/mman.h>

#include "base/os/os.h"
#include "runtime/files/gguf/iebin.h"
#include "runtime/files/gguf/internal.h"

/* Takes over the map (if there is one) whether it succeeds or not. */
static tern_status parse(const uint8_t *bytes, size_t size, tern_file_map *map, const char *name,
                         tern_gguf **out, tern_error *err) {
    tern_status status = TERN_ERR_NOMEM;
    tern_gguf *file = calloc(1, sizeof *file);
    if (file == NULL) {
        tern_file_map_close(&map);
        return tern_fail(err, status, "%s: no memory to open it", name);
    }
    file->bytes = bytes;
    file->size = size;
    file->map = map;
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
        return tern_fail(err, TERN_ERR_NULL, "tern_gguf_parse: NULL argument");
    return parse(bytes, size, NULL, name, out, err);
}

tern_status tern_gguf_open_file(const char *path, tern_gguf **out, tern_error *err) {
    tern_file_map *map = NULL;
    const tern_status status = tern_file_map_open(path, &map, err);
    if (status != TERN_OK)
        return status;
    return parse(tern_file_map_bytes(map), tern_file_map_size(map), map, path, out, err);
}

/* Opens a list as a model, which needs keys. Weights alone are for the converter, which knows what
 * lies beside them. */
static tern_status open_list(const char *path, const tern_dedup_params *params, tern_gguf **out,
                             tern_error *err) {
    tern_gguf *file;
    const tern_status status = tern_iebin_open(path, params, &file, err);
    if (status != TERN_OK)
        return status;
    if (file->n_values == 0) {
        const bool sparse = file->n_tensors > 0 && file->tensors[0].replaces != 0;
        const tern_status none = tern_fail(
            err, TERN_ERR_KEY_MISSING,
            sparse ? "%s: these are sparse layers of a GGUF file, which is the model: name that one"
                   : "%s: 'keys' names no file with the model's keys, so these are weights alone; "
                     "with config.json beside them `tern convert FOLDER OUT` makes a model of them",
            file->name);
        tern_gguf_close(&file);
        return none;
    }
    *out = file;
    return TERN_OK;
}

tern_status tern_gguf_open(const char *path, tern_gguf **out, tern_error *err) {
    return tern_gguf_open_shared(path, NULL, out, err);
}

tern_dedup_info tern_gguf_dedup(const tern_gguf *file) {
    return file->dedup.info;
}

tern_status tern_gguf_open_shared(const char *path, const tern_dedup_params *params,
                                  tern_gguf **out, tern_error *err) {
    if (path == NULL || out == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_gguf_open: NULL argument");
    if (tern_iebin_is(path))
        return open_list(path, params, out, err);
    if (params != NULL && params->use == TERN_DEDUP_STRICT)
        return tern_fail(
            err, TERN_ERR_STRICT,
            "strict: %s: is not a folder with a list of tensors, so it shares no bytes", path);
    tern_gguf *file;
    tern_status status = tern_gguf_open_file(path, &file, err);
    if (status == TERN_OK)
        status = tern_gguf_complete(&file, err);
    if (status == TERN_OK)
        *out = file;
    return status;
}

tern_status tern_gguf_unchanged(const tern_gguf *file, tern_error *err) {
    tern_status status = file->map != NULL ? tern_file_map_unchanged(file->map, err) : TERN_OK;
    for (size_t i = 0; status == TERN_OK && i < file->n_others; i++)
        status = tern_gguf_unchanged(file->others[i], err);
    return status;
}

bool tern_gguf_stamp(const tern_gguf *file, tern_hash64 *hash, int64_t *newest) {
    bool known = file->map != NULL && tern_file_map_stamp(file->map, hash, newest);
    for (size_t i = 0; known && i < file->n_others; i++)
        known = tern_gguf_stamp(file->others[i], hash, newest);
    return known;
}

void tern_gguf_close(tern_gguf **file) {
    if (file == NULL || *file == NULL)
        return;
    tern_gguf *f = *file;
    for (size_t i = 0; i < f->n_others; i++)
        tern_gguf_close(&f->others[i]);
    free(f->others);
    tern_file_map_close(&f->map);
    free(f->values);
    free(f->tensors);
    free(f->by_key);
    free(f->by_name);
    free(f->text);
    free(f->pieces);
    tern_dedup_store_free(&f->dedup);
    free(f->name);
    free(f);
    *file = NULL;
}

void tern_gguf_drop_pages(const tern_gguf *file, const tern_gguf_tensor *tensor) {
    tern_gguf_drop_range(file, tensor->data, tensor->bytes);
}

void tern_gguf_drop_range(const tern_gguf *file, const void *data, uint64_t bytes) {
    const uintptr_t memory = (uintptr_t)file->dedup.memory;
    if (file->map == NULL || (uintptr_t)data - memory < file->dedup.memory_bytes)
        return; /* memory of its own cannot be read again from a file */
    tern_file_map_drop(data, bytes);
}

void tern_gguf_expect_parts(const tern_gguf *file) {
    if (file->map != NULL) /* advice only */
        tern_os_use_small_pages((void *)(uintptr_t)file->bytes, file->size);
    for (size_t i = 0; i < file->n_others; i++)
        tern_gguf_expect_parts(file->others[i]);
}
