/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>

#include "authoring/gguf_writer_internal.h"
#include "base/grow.h"

/* ---- metadata ------------------------------------------------------------------------------ */

static void append(tern_gguf_writer *w, const void *bytes, size_t size) {
    tern_byte_list *list = &w->metadata;
    if (tern_gguf_writer_failed(w) || size == 0)
        return;
    if (size > list->capacity - list->size) {
        /* Memory is far below 2^62 bytes, so neither the sum nor its double wraps. */
        const size_t capacity = 2 * (list->size + size);
        uint8_t *grown = realloc(list->bytes, capacity);
        if (grown == NULL) {
            tern_fail(&w->error, TERN_ERR_NOMEM, "%s: no memory for %zu bytes of metadata", w->path,
                      capacity);
            return;
        }
        list->bytes = grown;
        list->capacity = capacity;
    }
    memcpy(list->bytes + list->size, bytes, size);
    list->size += size;
}

static void append_u32(tern_gguf_writer *w, uint32_t value) {
    append(w, &value, sizeof value);
}

static void append_u64(tern_gguf_writer *w, uint64_t value) {
    append(w, &value, sizeof value);
}

static void append_string(tern_gguf_writer *w, const char *data, size_t size) {
    append_u64(w, size);
    append(w, data, size);
}

/* Appends key and type; false when the record must not be continued. */
static bool put_head(tern_gguf_writer *w, const char *key, size_t key_size, tern_gguf_type type) {
    if (tern_gguf_writer_failed(w))
        return false;
    if (w->begun || key_size == 0 || key_size > TERN_GGUF_MAX_KEY_BYTES) {
        tern_fail(&w->error, TERN_ERR_ARG, "%s: key of %zu bytes cannot be added %s", w->path,
                  key_size, w->begun ? "after the data has begun" : "to the metadata");
        return false;
    }
    append_string(w, key, key_size);
    append_u32(w, (uint32_t)type);
    w->n_values++;
    return !tern_gguf_writer_failed(w);
}

static void put_scalar(tern_gguf_writer *w, const char *key, tern_gguf_type type, const void *value,
                       size_t size) {
    if (put_head(w, key, strlen(key), type))
        append(w, value, size);
}

static void put_array_head(tern_gguf_writer *w, const char *key, tern_gguf_type element, size_t n) {
    if (!put_head(w, key, strlen(key), TERN_GGUF_ARRAY))
        return;
    append_u32(w, (uint32_t)element);
    append_u64(w, n);
}

static void set_alignment(tern_gguf_writer *w, uint32_t alignment) {
    if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > TERN_GGUF_MAX_ALIGNMENT)
        tern_fail(&w->error, TERN_ERR_ALIGNMENT,
                  "%s: general.alignment %" PRIu32 " is not a power of two up to %d", w->path,
                  alignment, TERN_GGUF_MAX_ALIGNMENT);
    else
        w->alignment = alignment;
}

void tern_gguf_put_u32(tern_gguf_writer *w, const char *key, uint32_t value) {
    put_scalar(w, key, TERN_GGUF_U32, &value, sizeof value);
    if (!tern_gguf_writer_failed(w) && strcmp(key, "general.alignment") == 0)
        set_alignment(w, value);
}

void tern_gguf_put_f32(tern_gguf_writer *w, const char *key, float value) {
    put_scalar(w, key, TERN_GGUF_F32, &value, sizeof value);
}

void tern_gguf_put_bool(tern_gguf_writer *w, const char *key, bool value) {
    const uint8_t byte = value ? 1 : 0;
    put_scalar(w, key, TERN_GGUF_BOOL, &byte, sizeof byte);
}

void tern_gguf_put_string(tern_gguf_writer *w, const char *key, const char *value) {
    tern_gguf_put_text(w, key, (tern_span){value, strlen(value)});
}

void tern_gguf_put_text(tern_gguf_writer *w, const char *key, tern_span value) {
    if (put_head(w, key, strlen(key), TERN_GGUF_STRING))
        append_string(w, value.data, value.size);
}

void tern_gguf_put_strings(tern_gguf_writer *w, const char *key, const tern_span *values,
                           size_t n) {
    put_array_head(w, key, TERN_GGUF_STRING, n);
    for (size_t i = 0; i < n && !tern_gguf_writer_failed(w); i++)
        append_string(w, values[i].data, values[i].size);
}

void tern_gguf_put_f32s(tern_gguf_writer *w, const char *key, const float *values, size_t n) {
    put_array_head(w, key, TERN_GGUF_F32, n);
    append(w, values, n * sizeof values[0]);
}

void tern_gguf_put_i32s(tern_gguf_writer *w, const char *key, const int32_t *values, size_t n) {
    put_array_head(w, key, TERN_GGUF_I32, n);
    append(w, values, n * sizeof values[0]);
}

void tern_gguf_put_value(tern_gguf_writer *w, const tern_gguf_value *value) {
    static const char alignment_key[] = "general.alignment";
    if (!put_head(w, value->key.data, value->key.size, value->type))
        return;
    if (value->type == TERN_GGUF_ARRAY) {
        append_u32(w, (uint32_t)value->element);
        append_u64(w, value->count);
    }
    append(w, value->data, tern_gguf_value_bytes(value));
    if (tern_span_compare(value->key, (tern_span){alignment_key, sizeof alignment_key - 1}) == 0)
        set_alignment(w, value->type == TERN_GGUF_U32 ? tern_load_u32(value->data) : 0);
}

/* ---- tensor descriptions ------------------------------------------------------------------- */

/* The description must be one that the reader accepts. */
static tern_status check_description(tern_gguf_writer *w, const tern_gguf_described *t) {
    uint64_t elements = 1, bytes = 0;
    const size_t length = strlen(t->name);
    if (w->begun || length == 0 || length > TERN_GGUF_MAX_NAME_BYTES || t->bytes == 0)
        return tern_fail(&w->error, TERN_ERR_ARG,
                         "%s: tensor '%s' of %" PRIu64 " bytes cannot be added", w->path, t->name,
                         t->bytes);
    if (w->iebin == NULL && t->type >= TERN_GGUF_FIRST_OWN_TYPE)
        return tern_fail(
            &w->error, TERN_ERR_TENSOR_TYPE,
            "%s: tensor '%s': GGUF has no number for type %s; an IEBIN folder holds it", w->path,
            t->name, tern_gguf_type_name(t->type));
    for (uint32_t i = 0; i < 4; i++)
        if (t->ne[i] == 0 || __builtin_mul_overflow(elements, t->ne[i], &elements) ||
            elements > UINT64_C(1) << 62)
            return tern_fail(&w->error, TERN_ERR_TENSOR_SHAPE,
                             "%s: tensor '%s': extent %" PRIu64 " of dimension %" PRIu32
                             " is not usable",
                             w->path, t->name, t->ne[i], i);
    if (tern_gguf_type_bytes(t->type, t->ne, &bytes) != TERN_OK ||
        (bytes != 0 && bytes != t->bytes))
        return tern_fail(&w->error, TERN_ERR_TENSOR_SHAPE,
                         "%s: tensor '%s': %" PRIu64 " bytes do not suit %" PRIu64 " x %" PRIu64
                         " of type %" PRIu32 " (%s)",
                         w->path, t->name, t->bytes, t->ne[0], t->ne[1], t->type,
                         tern_gguf_type_name(t->type));
    return TERN_OK;
}

static tern_gguf_described *next_tensor(tern_gguf_writer *w) {
    const bool fits = tern_grow((void **)&w->tensors, &w->tensors_capacity, w->n_tensors,
                                sizeof *w->tensors, SIZE_MAX / sizeof *w->tensors);
    return fits ? &w->tensors[w->n_tensors] : NULL;
}

void tern_gguf_put_tensor(tern_gguf_writer *w, const char *name, uint32_t type, uint32_t n_dims,
                          const uint64_t *ne, uint64_t bytes) {
    if (tern_gguf_writer_failed(w))
        return;
    if (n_dims < 1 || n_dims > 4) {
        tern_fail(&w->error, TERN_ERR_TENSOR_SHAPE, "%s: tensor '%s' has %" PRIu32 " dimensions",
                  w->path, name, n_dims);
        return;
    }
    tern_gguf_described *t = next_tensor(w);
    char *copy = t != NULL ? strdup(name) : NULL;
    if (copy == NULL) {
        tern_fail(&w->error, TERN_ERR_NOMEM, "%s: no memory for tensor %zu", w->path, w->n_tensors);
        return;
    }
    *t = (tern_gguf_described){
        .name = copy, .type = type, .n_dims = n_dims, .ne = {1, 1, 1, 1}, .bytes = bytes};
    memcpy(t->ne, ne, n_dims * sizeof ne[0]);
    w->n_tensors++;                /* from now on the writer owns the name */
    (void)check_description(w, t); /* an error is remembered */
}

uint64_t tern_gguf_next_offset(tern_gguf_writer *w, size_t i, uint64_t offset) {
    uint64_t end;
    if (__builtin_add_overflow(offset, w->tensors[i].bytes, &end) ||
        __builtin_add_overflow(end, w->alignment - 1, &end))
        tern_fail(&w->error, TERN_ERR_TENSOR_SHAPE, "%s: tensor '%s': data exceeds 2^64 bytes",
                  w->path, w->tensors[i].name);
    return end & ~(uint64_t)(w->alignment - 1);
}

void tern_gguf_append_descriptions(tern_gguf_writer *w) {
    uint64_t offset = 0;
    for (size_t i = 0; i < w->n_tensors && !tern_gguf_writer_failed(w); i++) {
        const tern_gguf_described *t = &w->tensors[i];
        append_string(w, t->name, strlen(t->name));
        append_u32(w, t->n_dims);
        for (uint32_t d = 0; d < t->n_dims; d++)
            append_u64(w, t->ne[d]);
        append_u32(w, t->type);
        append_u64(w, offset);
        offset = tern_gguf_next_offset(w, i, offset);
    }
}
