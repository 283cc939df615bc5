/* SPDX-License-Identifier: Apache-2.0 */
#include <float.h>
#include <math.h>

#include "base/sha256.h"
#include "runtime/files/gguf/internal.h"

const char *tern_gguf_name(const tern_gguf *file) {
    return file->name;
}

uint32_t tern_gguf_version(const tern_gguf *file) {
    return file->version;
}

uint64_t tern_gguf_file_bytes(const tern_gguf *file) {
    uint64_t bytes = file->size;
    for (size_t i = 0; i < file->n_others; i++)
        bytes += file->others[i]->size;
    return bytes;
}

size_t tern_gguf_part_count(const tern_gguf *file) {
    return 1 + file->n_others;
}

tern_gguf_part tern_gguf_part_at(const tern_gguf *file, size_t index) {
    const tern_gguf *part = index == 0 ? file : file->others[index - 1];
    return (tern_gguf_part){part->name, part->size, part->n_own};
}

tern_status tern_gguf_part_sha256(const tern_gguf *file, size_t index, char hex[65],
                                  tern_error *err) {
    const tern_gguf *part = index == 0 ? file : file->others[index - 1];
    if (part->map != NULL)
        return tern_file_map_sha256(part->map, hex, err);
    tern_sha256 hash;
    tern_sha256_start(&hash);
    tern_sha256_add(&hash, part->bytes, part->size);
    tern_sha256_finish(&hash, hex);
    return TERN_OK;
}

size_t tern_gguf_value_count(const tern_gguf *file) {
    return file->n_values;
}

const tern_gguf_value *tern_gguf_value_at(const tern_gguf *file, size_t index) {
    return index < file->n_values ? &file->values[index] : NULL;
}

size_t tern_gguf_tensor_count(const tern_gguf *file) {
    return file->n_tensors;
}

const tern_gguf_tensor *tern_gguf_tensor_at(const tern_gguf *file, size_t index) {
    return index < file->n_tensors ? &file->tensors[index] : NULL;
}

int tern_span_compare(tern_span a, tern_span b) {
    const int order = memcmp(a.data, b.data, a.size < b.size ? a.size : b.size);
    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

const tern_gguf_value *tern_gguf_find_key(const tern_gguf *file, tern_span wanted) {
    for (size_t low = 0, high = file->n_values; low < high;) {
        const size_t middle = low + (high - low) / 2;
        const int order = tern_span_compare(wanted, file->by_key[middle]->key);
        if (order == 0)
            return file->by_key[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

const tern_gguf_value *tern_gguf_find(const tern_gguf *file, const char *key) {
    return tern_gguf_find_key(file, (tern_span){key, strlen(key)});
}

const tern_gguf_tensor *tern_gguf_find_name(const tern_gguf *file, tern_span wanted) {
    for (size_t low = 0, high = file->n_tensors; low < high;) {
        const size_t middle = low + (high - low) / 2;
        const int order = tern_span_compare(wanted, file->by_name[middle]->name);
        if (order == 0)
            return file->by_name[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

const tern_gguf_tensor *tern_gguf_find_tensor(const tern_gguf *file, const char *name) {
    return tern_gguf_find_name(file, (tern_span){name, strlen(name)});
}

static tern_status require(const tern_gguf *file, const char *key, const tern_gguf_value **out,
                           tern_error *err) {
    *out = tern_gguf_find(file, key);
    if (*out == NULL)
        return tern_fail(err, TERN_ERR_KEY_MISSING, "%s: key '%s' is missing", file->name, key);
    return TERN_OK;
}

static tern_status wrong_type(const tern_gguf *file, const char *key, tern_gguf_type type,
                              const char *wanted, tern_error *err) {
    return tern_fail(err, TERN_ERR_KEY_TYPE, "%s: key '%s' has type %s, must be %s", file->name,
                     key, tern_gguf_value_type_name(type), wanted);
}

/* Element i as a signed 64-bit number; u64 above that range is clipped to it. */
static bool load_integer(const tern_gguf_value *value, uint64_t i, int64_t *out) {
#define LOAD(tag, ctype)                                                                           \
    case TERN_GGUF_##tag: {                                                                        \
        ctype v;                                                                                   \
        memcpy(&v, value->data + i * sizeof v, sizeof v);                                          \
        *out = (int64_t)v;                                                                         \
        return true;                                                                               \
    }
    switch (value->element) {
        LOAD(U8, uint8_t)
        LOAD(I8, int8_t)
        LOAD(U16, uint16_t)
        LOAD(I16, int16_t)
        LOAD(U32, uint32_t)
        LOAD(I32, int32_t)
        LOAD(I64, int64_t)
    case TERN_GGUF_U64: {
        const uint64_t v = tern_load_u64(value->data + i * 8);
        *out = v < INT64_MAX ? (int64_t)v : INT64_MAX;
        return true;
    }
    default:
        return false;
    }
#undef LOAD
}

bool tern_gguf_element_u32(const tern_gguf_value *value, uint64_t i, uint32_t *out) {
    int64_t v;
    if (i >= value->count || !load_integer(value, i, &v) || v < 0 || v > UINT32_MAX)
        return false;
    *out = (uint32_t)v;
    return true;
}

tern_status tern_gguf_u32(const tern_gguf *file, const char *key, uint32_t *out, tern_error *err) {
    const tern_gguf_value *value;
    tern_status status = require(file, key, &value, err);
    if (status != TERN_OK)
        return status;
    int64_t v;
    if (value->type == TERN_GGUF_ARRAY || !load_integer(value, 0, &v))
        return wrong_type(file, key, value->type, "an integer", err);
    if (v < 0 || v > UINT32_MAX)
        return tern_fail(err, TERN_ERR_KEY_RANGE, "%s: key '%s': %lld is not 0 to 4294967295",
                         file->name, key, (long long)v);
    *out = (uint32_t)v;
    return TERN_OK;
}

tern_status tern_gguf_f32(const tern_gguf *file, const char *key, float *out, tern_error *err) {
    const tern_gguf_value *value;
    tern_status status = require(file, key, &value, err);
    if (status != TERN_OK)
        return status;
    if (value->type == TERN_GGUF_F32) {
        memcpy(out, value->data, sizeof *out);
        return TERN_OK;
    }
    if (value->type != TERN_GGUF_F64)
        return wrong_type(file, key, value->type, "f32 or f64", err);
    double v;
    memcpy(&v, value->data, sizeof v);
    if (isfinite(v) && fabs(v) > (double)FLT_MAX)
        return tern_fail(err, TERN_ERR_KEY_RANGE, "%s: key '%s': %g does not fit in f32",
                         file->name, key, v);
    *out = (float)v;
    return TERN_OK;
}

tern_status tern_gguf_bool(const tern_gguf *file, const char *key, bool *out, tern_error *err) {
    const tern_gguf_value *value;
    tern_status status = require(file, key, &value, err);
    if (status != TERN_OK)
        return status;
    if (value->type != TERN_GGUF_BOOL)
        return wrong_type(file, key, value->type, "bool", err);
    *out = value->data[0] != 0;
    return TERN_OK;
}

tern_status tern_gguf_string(const tern_gguf *file, const char *key, tern_span *out,
                             tern_error *err) {
    const tern_gguf_value *value;
    tern_status status = require(file, key, &value, err);
    if (status != TERN_OK)
        return status;
    if (value->type != TERN_GGUF_STRING)
        return wrong_type(file, key, value->type, "a string", err);
    const uint8_t *cursor = value->data;
    *out = tern_gguf_next_string(&cursor);
    return TERN_OK;
}

tern_status tern_gguf_array(const tern_gguf *file, const char *key, tern_gguf_type element,
                            const tern_gguf_value **out, tern_error *err) {
    const tern_gguf_value *value;
    tern_status status = require(file, key, &value, err);
    if (status != TERN_OK)
        return status;
    if (value->type != TERN_GGUF_ARRAY)
        return wrong_type(file, key, value->type, "an array", err);
    if (value->element != element)
        return tern_fail(err, TERN_ERR_KEY_TYPE, "%s: key '%s' is an array of %s, must be of %s",
                         file->name, key, tern_gguf_value_type_name(value->element),
                         tern_gguf_value_type_name(element));
    *out = value;
    return TERN_OK;
}

tern_span tern_gguf_next_string(const uint8_t **cursor) {
    const size_t size = (size_t)tern_load_u64(*cursor);
    const tern_span span = {(const char *)*cursor + 8, size};
    *cursor += 8 + size;
    return span;
}
