/* SPDX-License-Identifier: Apache-2.0 */
#include <strings.h>

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
    const char *name;
} foreign_types[] = {
    {4, 0, 0, "q4_2, retired"},
    {5, 0, 0, "q4_3, retired"},
    {7, 32, 24, "q5_1"},
    {9, 32, 36, "q8_1"},
    {10, 256, 84, "q2_k"},
    {11, 256, 110, "q3_k"},
    {15, 256, 292, "q8_k"},
    {16, 256, 66, "iq2_xxs"},
    {17, 256, 74, "iq2_xs"},
    {18, 256, 98, "iq3_xxs"},
    {19, 256, 50, "iq1_s"},
    {20, 32, 18, "iq4_nl"},
    {21, 256, 110, "iq3_s"},
    {23, 256, 136, "iq4_xs"},
    {24, 1, 1, "i8"},
    {25, 1, 2, "i16"},
    {26, 1, 4, "i32"},
    {27, 1, 8, "i64"},
    {28, 1, 8, "f64"},
    {29, 256, 56, "iq1_m"},
    {31, 32, 18, "q4_0_4_4"},
    {32, 32, 18, "q4_0_4_8"},
    {33, 32, 18, "q4_0_8_8"},
    {37, 1, 1, "i8_s"},
    {38, 0, 0, "tl1"},
    {39, 0, 0, "tl2 or mxfp4"},
    {40, 0, 0, "nvfp4"},
    {133, 0, 0, "q6_0"},
    {134, 0, 0, "iq1_bn"},
    {135, 0, 0, "iq2_bn"},
    {335, 0, 0, "iq2_bn_r4"},
    {TERN_GGUF_U8_TYPE, 1, 1, "u8"},
    {TERN_GGUF_INT4_TYPE, 0, 0, "int4"},
    {TERN_GGUF_SPARSE_TYPE, 0, 0, "iebs"},
};

static const struct foreign_type *foreign_find(uint32_t type) {
    for (size_t i = 0; i < sizeof foreign_types / sizeof foreign_types[0]; i++)
        if (foreign_types[i].id == type)
            return &foreign_types[i];
    return NULL;
}

const char *tern_gguf_type_name(uint32_t type) {
    const tern_format_info *info = tern_format_describe(tern_format_from_gguf(type));
    if (info != NULL)
        return info->name;
    const struct foreign_type *foreign = foreign_find(type);
    return foreign != NULL ? foreign->name : "unknown";
}

static bool is_called(tern_span name, const char *known) {
    return strlen(known) == name.size && strncasecmp(name.data, known, name.size) == 0;
}

uint32_t tern_gguf_type_find(tern_span name) {
    if (is_called(name, "tl2")) /* the number has two meanings, the name one */
        return TERN_GGUF_TL2;
    for (int i = 0; i < TERN_FORMAT_COUNT; i++) {
        const tern_format_info *info = tern_format_describe((tern_format)i);
        if (info->gguf_type != TERN_NO_GGUF_TYPE && is_called(name, info->name))
            return info->gguf_type;
    }
    for (size_t i = 0; i < sizeof foreign_types / sizeof foreign_types[0]; i++)
        if (is_called(name, foreign_types[i].name))
            return foreign_types[i].id;
    return TERN_GGUF_UNKNOWN_TYPE;
}

tern_status tern_gguf_type_bytes(uint32_t type, const uint64_t *ne, uint64_t *bytes) {
    /* The caller has checked that the product of all ne is at most 2^62. */
    const uint64_t rows = ne[1] * ne[2] * ne[3];
    const tern_format format = tern_format_from_gguf(type);
    if (format != TERN_FORMAT_NONE)
        return tern_format_bytes(format, rows, ne[0], bytes);

    *bytes = 0;
    const struct foreign_type *foreign = foreign_find(type);
    if (foreign == NULL || foreign->block_elements == 0)
        return TERN_OK;
    if (ne[0] % foreign->block_elements != 0)
        return TERN_ERR_TENSOR_SHAPE;
    if (__builtin_mul_overflow(rows * (ne[0] / foreign->block_elements), foreign->block_bytes,
                               bytes))
        return TERN_ERR_TENSOR_SHAPE;
    return TERN_OK;
}

uint32_t tern_gguf_file_type(tern_format format) {
    static const uint32_t types[TERN_FORMAT_COUNT] = {
        [TERN_FORMAT_F32] = 0,     [TERN_FORMAT_F16] = 1,     [TERN_FORMAT_BF16] = 32,
        [TERN_FORMAT_Q4_0] = 2,    [TERN_FORMAT_Q4_1] = 3,    [TERN_FORMAT_Q5_0] = 8,
        [TERN_FORMAT_Q8_0] = 7,    [TERN_FORMAT_Q4_K] = 15,   [TERN_FORMAT_Q5_K] = 17,
        [TERN_FORMAT_Q6_K] = 18,   [TERN_FORMAT_I2_S] = 40,   [TERN_FORMAT_TQ1_0] = 36,
        [TERN_FORMAT_TQ2_0] = 37,  [TERN_FORMAT_IQ2_S] = 28,  [TERN_FORMAT_Q1_0] = 40,
        [TERN_FORMAT_Q2_0] = 41,   [TERN_FORMAT_PQ2_0] = 141, [TERN_FORMAT_PTQ1_0] = 143,
        [TERN_FORMAT_STQ1_0] = 42,
    };
    return types[format];
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
