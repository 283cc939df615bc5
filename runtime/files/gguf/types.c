/* SPDX-License-Identifier: Apache-2.0 */
#include <strings.h>

#include "kernels/facts.h"
#include "runtime/files/gguf/internal.h"
#include "tern/kernels.h"

/*
 * Tensor types that tern does not compute with, but knows: a file that holds them is opened,
 * described and checked. A block size of 0 marks types whose size does not follow from the shape
 * alone, or that two projects use for two things.
 */
static const struct foreign_type {
    uint32_t id;
    uint16_t block_elements, block_bytes;
    uint16_t row_bytes; /* before the blocks of each row */
    const char *name;
} foreign_types[] = {
#include "gen/foreign.inc"
    {TERN_GGUF_U8_TYPE, 1, 1, 0, "u8"},
    {TERN_GGUF_INT4_TYPE, 0, 0, 0, "int4"},
    {TERN_GGUF_SPARSE_TYPE, 0, 0, 0, "iebs"},
};

static const struct foreign_type *foreign_find(uint32_t type) {
    for (size_t i = 0; i < sizeof foreign_types / sizeof foreign_types[0]; i++)
        if (foreign_types[i].id == type)
            return &foreign_types[i];
    return NULL;
}

const char *tern_gguf_type_name(uint32_t type) {
    if (type == TERN_GGUF_TL2) /* the bytes of a tensor tell: tl.c */
        return "tl2 or mxfp4";
    const tern_format_info *info = tern_format_describe(tern_format_from_gguf(type));
    if (info != NULL)
        return info->name;
    const struct foreign_type *foreign = foreign_find(type);
    return foreign != NULL ? foreign->name : "unknown";
}

bool tern_gguf_type_called(tern_span name, const char *known) {
    return strlen(known) == name.size && strncasecmp(name.data, known, name.size) == 0;
}

uint32_t tern_gguf_type_find(tern_span name) {
    if (tern_gguf_type_called(name, "tl2")) /* the number has two meanings, the name one */
        return TERN_GGUF_TL2;
    for (int i = 0; i < TERN_FORMAT_COUNT; i++) {
        const tern_format_info *info = tern_format_describe((tern_format)i);
        if (info->gguf_type != TERN_NO_GGUF_TYPE && tern_gguf_type_called(name, info->name))
            return info->gguf_type;
    }
    for (size_t i = 0; i < sizeof foreign_types / sizeof foreign_types[0]; i++)
        if (tern_gguf_type_called(name, foreign_types[i].name))
            return foreign_types[i].id;
    return TERN_GGUF_UNKNOWN_TYPE;
}

tern_status tern_gguf_type_bytes(uint32_t type, const uint64_t *ne, uint64_t *bytes) {
    /* The caller has checked that the product of all ne is at most 2^62. */
    const uint64_t rows = ne[1] * ne[2] * ne[3];
    const tern_format format = tern_format_from_gguf(type);
    *bytes = 0;
    if (type == TERN_GGUF_TL2) /* the extent tells which of two formats it is */
        return TERN_OK;
    if (format != TERN_FORMAT_NONE)
        return tern_format_bytes(format, rows, ne[0], bytes);

    const struct foreign_type *foreign = foreign_find(type);
    if (foreign == NULL || foreign->block_elements == 0)
        return TERN_OK;
    if (ne[0] % foreign->block_elements != 0)
        return TERN_ERR_TENSOR_SHAPE;
    uint64_t heads;
    const bool fits = !__builtin_mul_overflow(rows * (ne[0] / foreign->block_elements),
                                              foreign->block_bytes, bytes) &&
                      !__builtin_mul_overflow(rows, foreign->row_bytes, &heads) &&
                      !__builtin_add_overflow(*bytes, heads, bytes);
    return fits ? TERN_OK : TERN_ERR_TENSOR_SHAPE;
}

uint32_t tern_gguf_file_type(tern_format format) {
    return tern_format_facts_of(format)->file_type;
}

static const struct scalar_type {
    uint8_t bytes;
    const char *name;
} scalar_types[TERN_GGUF_TYPE_COUNT] = {
    [TERN_GGUF_U8] = {1, "u8"},         [TERN_GGUF_I8] = {1, "i8"},
    [TERN_GGUF_U16] = {2, "u16"},       [TERN_GGUF_I16] = {2, "i16"},
    [TERN_GGUF_U32] = {4, "u32"},       [TERN_GGUF_I32] = {4, "i32"},
    [TERN_GGUF_F32] = {4, "f32"},       [TERN_GGUF_BOOL] = {1, "bool"},
    [TERN_GGUF_STRING] = {8, "string"}, [TERN_GGUF_ARRAY] = {12, "array"},
    [TERN_GGUF_U64] = {8, "u64"},       [TERN_GGUF_I64] = {8, "i64"},
    [TERN_GGUF_F64] = {8, "f64"},
};

size_t tern_gguf_scalar_bytes(tern_gguf_type type) {
    return scalar_types[type].bytes;
}

const char *tern_gguf_value_type_name(tern_gguf_type type) {
    return scalar_types[type].name;
}

size_t tern_gguf_value_bytes(const tern_gguf_value *value) {
    if (value->element != TERN_GGUF_STRING)
        return (size_t)value->count * tern_gguf_scalar_bytes(value->element);
    const uint8_t *cursor = value->data;
    for (uint64_t i = 0; i < value->count; i++)
        tern_gguf_next_string(&cursor);
    return (size_t)(cursor - value->data);
}
