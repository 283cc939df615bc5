/* SPDX-License-Identifier: Apache-2.0 */
#include "authoring/convert/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file_map.h"
#include "base/json.h"

enum { LENGTH_BYTES = 8 /* of the header's length, in front of it */ };

struct safetensors {
    char *name;         /* owned */
    tern_file_map *map; /* NULL when parsed from memory */
    const uint8_t *data;
    uint64_t data_bytes;
    size_t n;
    safetensors_tensor *tensors; /* [n] sorted by name */
};

static const struct {
    const char *name;
    uint32_t bytes;
} types[SAFETENSORS_TYPE_COUNT] = {
#define TYPE_INFO(name, bytes) [SAFETENSORS_##name] = {#name, bytes},
    SAFETENSORS_TYPE_LIST(TYPE_INFO)
#undef TYPE_INFO
        [SAFETENSORS_UNKNOWN] = {"unknown", 0},
};

const char *safetensors_type_name(safetensors_type type) {
    return types[type].name;
}

/* ---- one tensor ------------------------------------------------------------------------------ */

static tern_status wrong_entry(const safetensors *file, const char *name, const char *what,
                               tern_error *err) {
    return tern_fail(err, TERN_ERR_JSON, "%s: tensor %s: %s", file->name, name, what);
}

static safetensors_type find_type(const tern_json_value *text) {
    for (int i = 0; i < SAFETENSORS_UNKNOWN; i++)
        if (tern_json_is_string(text, types[i].name))
            return (safetensors_type)i;
    return SAFETENSORS_UNKNOWN;
}

/* A number that is not negative. */
static bool read_size(const tern_json_value *v, uint64_t *out) {
    int64_t number;
    if (!tern_json_integer(v, &number) || number < 0)
        return false;
    *out = (uint64_t)number;
    return true;
}

static tern_status read_shape(const safetensors *file, const tern_json_value *shape,
                              safetensors_tensor *t, uint64_t *elements, tern_error *err) {
    if (shape == NULL || shape->type != TERN_JSON_ARRAY || shape->count > SAFETENSORS_MAX_DIMS)
        return wrong_entry(file, t->name, "'shape' is not a list of at most 8 numbers", err);
    t->n_dims = shape->count;
    *elements = 1;
    const tern_json_value *v = shape + 1;
    for (uint32_t i = 0; i < t->n_dims; i++, v += v->size) {
        if (!read_size(v, &t->shape[i]))
            return wrong_entry(file, t->name, "'shape' holds something else than sizes", err);
        if (__builtin_mul_overflow(*elements, t->shape[i], elements)) {
            return tern_fail(err, TERN_ERR_TENSOR_SHAPE,
                             "%s: tensor %s: more than 2^64 elements by the size %" PRIu64,
                             file->name, t->name, t->shape[i]);
        }
    }
    return TERN_OK;
}

static tern_status read_range(const safetensors *file, const tern_json_value *offsets,
                              safetensors_tensor *t, tern_error *err) {
    uint64_t begin, end;
    if (offsets == NULL || offsets->type != TERN_JSON_ARRAY || offsets->count != 2 ||
        !read_size(offsets + 1, &begin) || !read_size(offsets + 1 + (offsets + 1)->size, &end))
        return wrong_entry(file, t->name, "'data_offsets' is not a pair of offsets", err);
    if (begin > end || end > file->data_bytes) {
        return tern_fail(err, TERN_ERR_TENSOR_RANGE,
                         "%s: tensor %s: bytes %" PRIu64 " to %" PRIu64 " of %" PRIu64, file->name,
                         t->name, begin, end, file->data_bytes);
    }
    t->data = file->data + begin;
    t->bytes = end - begin;
    return TERN_OK;
}

static tern_status read_tensor(const safetensors *file, const tern_json_value *entry,
                               safetensors_tensor *t, tern_error *err) {
    uint64_t elements = 0, bytes;
    const tern_json_value *type = tern_json_get(entry, "dtype");
    if (type == NULL || type->type != TERN_JSON_STRING)
        return wrong_entry(file, t->name, "'dtype' is missing", err);
    t->type = find_type(type);
    t->file = file->name;
    tern_status status = read_shape(file, tern_json_get(entry, "shape"), t, &elements, err);
    if (status == TERN_OK)
        status = read_range(file, tern_json_get(entry, "data_offsets"), t, err);
    if (status != TERN_OK || t->type == SAFETENSORS_UNKNOWN)
        return status;
    if (__builtin_mul_overflow(elements, types[t->type].bytes, &bytes) || bytes != t->bytes) {
        return tern_fail(err, TERN_ERR_TENSOR_SHAPE,
                         "%s: tensor %s: %" PRIu64 " bytes, but its shape has %" PRIu64
                         " elements of type %s",
                         file->name, t->name, t->bytes, elements, types[t->type].name);
    }
    return TERN_OK;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Metadata must be an object whose values are texts. */
static tern_status check_metadata(const safetensors *file, const tern_json_value *metadata,
                                  tern_error *err) {
    const tern_json_value *v = metadata + 1;
    bool text = metadata->type == TERN_JSON_OBJECT;
    for (uint32_t i = 0; text && i < metadata->count; i++) {
        v += v->size; /* the name */
        text = v->type == TERN_JSON_STRING;
        v += v->size;
    }
    return text ? TERN_OK
                : tern_fail(err, TERN_ERR_JSON, "%s: '__metadata__' is not text by name",
                            file->name);
}

static bool is_metadata(tern_span key) {
    static const char name[] = "__metadata__";
    return key.size == sizeof name - 1 && memcmp(key.data, name, key.size) == 0;
}

static tern_status copy_name(const safetensors *file, tern_span key, char **out, tern_error *err) {
    if (key.size == 0 || memchr(key.data, 0, key.size) != NULL) {
        return tern_fail(err, TERN_ERR_STRING, "%s: a tensor's name is empty or has a zero byte",
                         file->name);
    }
    *out = strndup(key.data, key.size);
    return *out != NULL ? TERN_OK
                        : tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for a name", file->name);
}

static tern_status read_tensors(safetensors *file, const tern_json_value *root, tern_error *err) {
    if (root->type != TERN_JSON_OBJECT)
        return tern_fail(err, TERN_ERR_JSON, "%s: the header is not an object", file->name);
    if (root->count > SAFETENSORS_MAX_TENSORS) {
        return tern_fail(err, TERN_ERR_COUNT, "%s: %" PRIu32 " tensors, at most %d", file->name,
                         root->count, SAFETENSORS_MAX_TENSORS);
    }
    file->tensors = calloc((size_t)root->count + 1, sizeof *file->tensors); /* + 1: never 0 bytes */
    if (file->tensors == NULL) {
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for %" PRIu32 " tensors", file->name,
                         root->count);
    }
    tern_status status = TERN_OK;
    const tern_json_value *key = root + 1;
    for (uint32_t i = 0; status == TERN_OK && i < root->count; i++) {
        const tern_json_value *entry = key + key->size;
        if (is_metadata(key->text)) {
            status = check_metadata(file, entry, err);
        } else {
            safetensors_tensor *t = &file->tensors[file->n];
            status = copy_name(file, key->text, &t->name, err);
            file->n += status == TERN_OK;
            if (status == TERN_OK)
                status = read_tensor(file, entry, t, err);
        }
        key = entry + entry->size;
    }
    return status;
}

static int compare_names(const void *a, const void *b) {
    const safetensors_tensor *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static int compare_places(const void *a, const void *b) {
    const safetensors_tensor *x = a, *y = b;
    const uint64_t p = (uint64_t)(uintptr_t)x->data, q = (uint64_t)(uintptr_t)y->data;
    if (p != q)
        return p > q ? 1 : -1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes); /* empty ones first */
}

/* Tensors must follow each other without gaps, from the first byte of the data to the last. */
static tern_status check_places(safetensors *file, tern_error *err) {
    uint64_t end = 0;
    qsort(file->tensors, file->n, sizeof *file->tensors, compare_places);
    for (size_t i = 0; i < file->n; i++) {
        const safetensors_tensor *t = &file->tensors[i];
        const uint64_t begin = (uint64_t)(t->data - file->data);
        if (begin < end) {
            return tern_fail(err, TERN_ERR_TENSOR_OVERLAP,
                             "%s: tensors %s and %s overlap at byte %" PRIu64, file->name,
                             file->tensors[i - 1].name, t->name, begin);
        }
        if (begin > end) {
            return tern_fail(err, TERN_ERR_TENSOR_RANGE,
                             "%s: no tensor holds the bytes %" PRIu64 " to %" PRIu64
                             " in front of %s",
                             file->name, end, begin, t->name);
        }
        end = begin + t->bytes;
    }
    if (end != file->data_bytes) {
        return tern_fail(err, TERN_ERR_TENSOR_RANGE,
                         "%s: no tensor holds the last bytes, %" PRIu64 " to %" PRIu64, file->name,
                         end, file->data_bytes);
    }
    return TERN_OK;
}

static tern_status sort_names(safetensors *file, tern_error *err) {
    qsort(file->tensors, file->n, sizeof *file->tensors, compare_names);
    for (size_t i = 1; i < file->n; i++) {
        if (strcmp(file->tensors[i - 1].name, file->tensors[i].name) == 0) {
            return tern_fail(err, TERN_ERR_TENSOR_DUPLICATE, "%s: tensor %s occurs twice",
                             file->name, file->tensors[i].name);
        }
    }
    return TERN_OK;
}

/* ---- the file -------------------------------------------------------------------------------- */

static tern_status read_header(safetensors *file, const uint8_t *bytes, size_t size,
                               tern_json *json, tern_error *err) {
    uint64_t length;
    if (size < LENGTH_BYTES) {
        return tern_fail(err, TERN_ERR_TRUNCATED, "%s: %zu bytes are not a safetensors file",
                         file->name, size);
    }
    memcpy(&length, bytes, sizeof length);
    if (length > SAFETENSORS_MAX_HEADER) {
        return tern_fail(err, TERN_ERR_COUNT, "%s: a header of %" PRIu64 " bytes, at most %d",
                         file->name, length, SAFETENSORS_MAX_HEADER);
    }
    if (length > size - LENGTH_BYTES) {
        return tern_fail(err, TERN_ERR_TRUNCATED,
                         "%s: a header of %" PRIu64 " bytes in a file of %zu", file->name, length,
                         size);
    }
    char *text = malloc((size_t)length + 1); /* + 1: never 0 bytes */
    if (text == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for its header", file->name);
    memcpy(text, bytes + LENGTH_BYTES, (size_t)length);
    file->data = bytes + LENGTH_BYTES + length;
    file->data_bytes = size - LENGTH_BYTES - length;
    return tern_json_parse(text, (size_t)length, file->name, json, err);
}

/* Takes ownership of the map, if there is one, also on failure. */
static tern_status parse(tern_file_map *map, const uint8_t *bytes, size_t size, const char *name,
                         safetensors **out, tern_error *err) {
    tern_json json = {.bytes = NULL};
    safetensors *file = calloc(1, sizeof *file);
    if (file == NULL) {
        tern_file_map_close(&map);
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory to open it", name);
    }
    file->map = map;
    file->name = strdup(name);
    tern_status status = TERN_OK;
    if (file->name == NULL)
        status = tern_fail(err, TERN_ERR_NOMEM, "%s: no memory to open it", name);
    if (status == TERN_OK)
        status = read_header(file, bytes, size, &json, err);
    if (status == TERN_OK)
        status = read_tensors(file, json.values, err);
    if (status == TERN_OK)
        status = check_places(file, err);
    if (status == TERN_OK)
        status = sort_names(file, err);
    tern_json_free(&json);
    if (status != TERN_OK) {
        safetensors_close(&file);
        return status;
    }
    *out = file;
    return TERN_OK;
}

tern_status safetensors_parse(const uint8_t *bytes, size_t size, const char *name,
                              safetensors **out, tern_error *err) {
    return parse(NULL, bytes, size, name, out, err);
}

tern_status safetensors_open(const char *path, safetensors **out, tern_error *err) {
    tern_file_map *map = NULL;
    const tern_status status = tern_file_map_open(path, &map, err);
    return status != TERN_OK
               ? status
               : parse(map, tern_file_map_bytes(map), tern_file_map_size(map), path, out, err);
}

void safetensors_close(safetensors **file) {
    if (file == NULL || *file == NULL)
        return;
    safetensors *f = *file;
    for (size_t i = 0; i < f->n; i++)
        free(f->tensors[i].name);
    free(f->tensors);
    tern_file_map_close(&f->map);
    free(f->name);
    free(f);
    *file = NULL;
}

size_t safetensors_count(const safetensors *file) {
    return file->n;
}

const safetensors_tensor *safetensors_at(const safetensors *file, size_t index) {
    return &file->tensors[index];
}

const safetensors_tensor *safetensors_find(const safetensors *file, const char *name) {
    safetensors_tensor wanted = {.name = (char *)(uintptr_t)name};
    return bsearch(&wanted, file->tensors, file->n, sizeof wanted, compare_names);
}
