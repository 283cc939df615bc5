/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>

#include "runtime/files/gguf/internal.h"

enum {
    HEADER_BYTES = 24,
    MIN_VALUE_BYTES = 8 + 1 + 4 + 1 /* key length, one byte of key, type, smallest value */
};

static void skip(tern_gguf_cursor *c, size_t bytes) {
    c->at += bytes;
    c->left -= bytes;
}

static tern_status need(const tern_gguf_cursor *c, const char *what, size_t bytes) {
    if (c->left >= bytes)
        return TERN_OK;
    return tern_fail(c->err, TERN_ERR_TRUNCATED,
                     "%s: file ends after %zu bytes, in the middle of %s", c->file->name,
                     c->file->size, what);
}

tern_status tern_gguf_take_u32(tern_gguf_cursor *c, const char *what, uint32_t *out) {
    tern_status status = need(c, what, sizeof *out);
    if (status != TERN_OK)
        return status;
    *out = tern_load_u32(c->at);
    skip(c, sizeof *out);
    return TERN_OK;
}

tern_status tern_gguf_take_u64(tern_gguf_cursor *c, const char *what, uint64_t *out) {
    tern_status status = need(c, what, sizeof *out);
    if (status != TERN_OK)
        return status;
    *out = tern_load_u64(c->at);
    skip(c, sizeof *out);
    return TERN_OK;
}

tern_status tern_gguf_take_name(tern_gguf_cursor *c, const char *kind, uint64_t index, size_t max,
                                tern_span *out) {
    uint64_t length;
    tern_status status = tern_gguf_take_u64(c, kind, &length);
    if (status != TERN_OK)
        return status;
    if (length == 0 || length > max)
        return tern_fail(c->err, TERN_ERR_STRING,
                         "%s: %s %" PRIu64 ": name of %" PRIu64 " bytes, must be 1 to %zu",
                         c->file->name, kind, index, length, max);
    if (length > c->left)
        return tern_fail(c->err, TERN_ERR_STRING,
                         "%s: %s %" PRIu64 ": name of %" PRIu64 " bytes, only %zu are left",
                         c->file->name, kind, index, length, c->left);
    *out = (tern_span){(const char *)c->at, (size_t)length};
    skip(c, (size_t)length);
    return TERN_OK;
}

/*
 * Some converters wrote a header of 36 bytes: the u32 alignment at byte 24, the u64 offset of the
 * data at byte 28. In a real file byte 24 begins the first key's length, whose upper half is zero.
 */
static bool is_36_byte_header(const tern_gguf_cursor *c) {
    if (c->left < 12)
        return false;
    const uint32_t alignment = tern_load_u32(c->at);
    const uint64_t data_offset = tern_load_u64(c->at + 4);
    return alignment != 0 && (alignment & (alignment - 1)) == 0 &&
           alignment <= TERN_GGUF_MAX_ALIGNMENT && data_offset >= HEADER_BYTES + 12 &&
           data_offset <= c->file->size;
}

static tern_status check_count(const tern_gguf_cursor *c, const char *what, uint64_t count,
                               size_t min_bytes) {
    if (count > TERN_GGUF_MAX_RECORDS)
        return tern_fail(c->err, TERN_ERR_COUNT, "%s: %" PRIu64 " %s, at most %d are supported",
                         c->file->name, count, what, TERN_GGUF_MAX_RECORDS);
    if (count > c->left / min_bytes)
        return tern_fail(c->err, TERN_ERR_COUNT,
                         "%s: %" PRIu64 " %s do not fit in the %zu bytes that follow",
                         c->file->name, count, what, c->left);
    return TERN_OK;
}

static tern_status parse_version(const tern_gguf_cursor *c) {
    tern_gguf *file = c->file;
    const uint32_t version = tern_load_u32(c->at + 4);
    if (tern_load_u32(c->at) != TERN_GGUF_MAGIC)
        return tern_fail(c->err, TERN_ERR_MAGIC,
                         "%s: not a GGUF file (begins with %02x %02x %02x %02x)", file->name,
                         c->at[0], c->at[1], c->at[2], c->at[3]);
    if (version == __builtin_bswap32(2) || version == __builtin_bswap32(3))
        return tern_fail(c->err, TERN_ERR_ENDIAN, "%s: big-endian GGUF file (version %" PRIu32 ")",
                         file->name, __builtin_bswap32(version));
    if (version != 2 && version != 3)
        return tern_fail(c->err, TERN_ERR_VERSION,
                         "%s: GGUF version %" PRIu32 ", only 2 and 3 are supported", file->name,
                         version);
    file->version = version;
    return TERN_OK;
}

static tern_status parse_header(tern_gguf_cursor *c) {
    tern_gguf *file = c->file;
    if (file->size < HEADER_BYTES)
        return tern_fail(c->err, TERN_ERR_TRUNCATED,
                         "%s: %zu bytes are less than a GGUF header of %d", file->name, file->size,
                         HEADER_BYTES);
    tern_status status = parse_version(c);
    if (status != TERN_OK)
        return status;
    const uint64_t n_tensors = tern_load_u64(c->at + 8);
    const uint64_t n_values = tern_load_u64(c->at + 16);
    skip(c, HEADER_BYTES);
    if (n_values + n_tensors != 0 && is_36_byte_header(c))
        return tern_fail(c->err, TERN_ERR_VERSION,
                         "%s: non-standard 36-byte header (alignment %" PRIu32
                         " at byte 24); convert the model with another tool",
                         file->name, tern_load_u32(c->at));
    status = check_count(c, "metadata keys", n_values, MIN_VALUE_BYTES);
    if (status == TERN_OK)
        status = check_count(c, "tensors", n_tensors, TERN_GGUF_MIN_TENSOR_BYTES);
    if (status != TERN_OK)
        return status;
    file->n_values = (size_t)n_values;
    file->n_tensors = (size_t)n_tensors;
    return TERN_OK;
}

static tern_status skip_string(tern_gguf_cursor *c, const tern_gguf_value *value, uint64_t i) {
    if (c->left < 8 || tern_load_u64(c->at) > c->left - 8)
        return tern_fail(c->err, TERN_ERR_STRING,
                         "%s: key '%.*s': string %" PRIu64 " does not end inside the file",
                         c->file->name, TERN_SPAN_ARG(value->key), i);
    skip(c, 8 + (size_t)tern_load_u64(c->at));
    return TERN_OK;
}

static tern_status check_bools(const tern_gguf_cursor *c, const tern_gguf_value *value) {
    for (uint64_t i = 0; i < value->count; i++)
        if (value->data[i] > 1)
            return tern_fail(c->err, TERN_ERR_KEY_RANGE, "%s: key '%.*s': %u is not a truth value",
                             c->file->name, TERN_SPAN_ARG(value->key), value->data[i]);
    return TERN_OK;
}

/* Moves past the value->count elements at the cursor, and checks each that has inner structure. */
static tern_status parse_elements(tern_gguf_cursor *c, tern_gguf_value *value) {
    const size_t size = tern_gguf_scalar_bytes(value->element);
    if (value->count > c->left / size)
        return tern_fail(c->err,
                         value->type == TERN_GGUF_ARRAY ? TERN_ERR_COUNT : TERN_ERR_TRUNCATED,
                         "%s: key '%.*s': %" PRIu64 " values of %zu bytes, only %zu bytes are left",
                         c->file->name, TERN_SPAN_ARG(value->key), value->count, size, c->left);
    value->data = c->at;
    if (value->element == TERN_GGUF_STRING) {
        for (uint64_t i = 0; i < value->count; i++) {
            tern_status status = skip_string(c, value, i);
            if (status != TERN_OK)
                return status;
        }
        return TERN_OK;
    }
    skip(c, (size_t)value->count * size); /* at most left, by the check above */
    return value->element == TERN_GGUF_BOOL ? check_bools(c, value) : TERN_OK;
}

static tern_status parse_array_head(tern_gguf_cursor *c, tern_gguf_value *value) {
    uint32_t element;
    tern_status status = tern_gguf_take_u32(c, "an array", &element);
    if (status == TERN_OK)
        status = tern_gguf_take_u64(c, "an array", &value->count);
    if (status != TERN_OK)
        return status;
    if (element >= TERN_GGUF_TYPE_COUNT || element == TERN_GGUF_ARRAY)
        return tern_fail(c->err, TERN_ERR_KEY_TYPE, "%s: key '%.*s': array of type %" PRIu32,
                         c->file->name, TERN_SPAN_ARG(value->key), element);
    value->element = (tern_gguf_type)element;
    return TERN_OK;
}

static tern_status parse_value(tern_gguf_cursor *c, uint64_t index, tern_gguf_value *value) {
    tern_status status = tern_gguf_take_name(c, "key", index, TERN_GGUF_MAX_KEY_BYTES, &value->key);
    if (status != TERN_OK)
        return status;
    uint32_t type;
    status = tern_gguf_take_u32(c, "a metadata key", &type);
    if (status != TERN_OK)
        return status;
    if (type >= TERN_GGUF_TYPE_COUNT)
        return tern_fail(c->err, TERN_ERR_KEY_TYPE, "%s: key '%.*s': unknown type %" PRIu32,
                         c->file->name, TERN_SPAN_ARG(value->key), type);
    value->type = value->element = (tern_gguf_type)type;
    value->count = 1;
    if (type == TERN_GGUF_ARRAY)
        status = parse_array_head(c, value);
    return status != TERN_OK ? status : parse_elements(c, value);
}

static int compare_keys(const void *a, const void *b) {
    const tern_gguf_value *const *x = a, *const *y = b;
    return tern_span_compare((*x)->key, (*y)->key);
}

static tern_status index_values(const tern_gguf_cursor *c) {
    tern_gguf *file = c->file;
    for (size_t i = 0; i < file->n_values; i++)
        file->by_key[i] = &file->values[i];
    qsort(file->by_key, file->n_values, sizeof file->by_key[0], compare_keys);
    for (size_t i = 1; i < file->n_values; i++)
        if (tern_span_compare(file->by_key[i - 1]->key, file->by_key[i]->key) == 0)
            return tern_fail(c->err, TERN_ERR_KEY_DUPLICATE, "%s: key '%.*s' occurs twice",
                             file->name, TERN_SPAN_ARG(file->by_key[i]->key));
    return TERN_OK;
}

static tern_status read_alignment(const tern_gguf_cursor *c) {
    tern_gguf *file = c->file;
    file->alignment = TERN_GGUF_DEFAULT_ALIGNMENT;
    const tern_gguf_value *value = tern_gguf_find(file, "general.alignment");
    if (value == NULL)
        return TERN_OK;
    if (value->type != TERN_GGUF_U32)
        return tern_fail(c->err, TERN_ERR_ALIGNMENT,
                         "%s: key 'general.alignment' has type %s, must be u32", file->name,
                         tern_gguf_value_type_name(value->type));
    const uint32_t alignment = tern_load_u32(value->data);
    if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > TERN_GGUF_MAX_ALIGNMENT)
        return tern_fail(c->err, TERN_ERR_ALIGNMENT,
                         "%s: general.alignment %" PRIu32 " is not a power of two up to %d",
                         file->name, alignment, TERN_GGUF_MAX_ALIGNMENT);
    file->alignment = alignment;
    return TERN_OK;
}

tern_status tern_gguf_parse_metadata(tern_gguf_cursor *c) {
    tern_status status = parse_header(c);
    if (status != TERN_OK)
        return status;
    tern_gguf *file = c->file;
    file->values = calloc(file->n_values + 1, sizeof *file->values); /* + 1: never of size 0 */
    file->by_key = calloc(file->n_values + 1, sizeof *file->by_key);
    if (file->values == NULL || file->by_key == NULL)
        return tern_fail(c->err, TERN_ERR_NOMEM, "%s: no memory for %zu keys", file->name,
                         file->n_values);
    for (size_t i = 0; i < file->n_values; i++) {
        status = parse_value(c, i, &file->values[i]);
        if (status != TERN_OK)
            return status;
    }
    status = index_values(c);
    return status != TERN_OK ? status : read_alignment(c);
}
