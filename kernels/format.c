/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about formats, layouts and operations: what codegen/ made of the tables, as tables of C. */

#include <string.h>

#include "kernels/facts.h"
#include "kernels/ternary.h"

/* Largest ternary width: |sum of code*q| <= 2*128*65535 < 2^24 stays exact as a float. */
enum { TERNARY_COLS_MAX = 65535 };

static const tern_format_info formats[TERN_FORMAT_COUNT] = {
#define FORMAT_INFO(name, text, id, elements, bytes)                                               \
    [TERN_FORMAT_##name] = {text, id, elements, bytes},
    TERN_FORMAT_LIST(FORMAT_INFO)
#undef FORMAT_INFO
};

static const struct {
    const char *name;
    tern_input_form input;
} layouts[TERN_LAYOUT_COUNT] = {
#define LAYOUT_INFO(name, text, input) [TERN_LAYOUT_##name] = {text, TERN_INPUT_##input},
    TERN_LAYOUT_LIST(LAYOUT_INFO)
#undef LAYOUT_INFO
};

static const tern_format_facts format_facts[TERN_FORMAT_COUNT] = {
#include "gen/formats.inc"
};

static const tern_layout_facts layout_facts[TERN_LAYOUT_COUNT] = {
#include "gen/layouts.inc"
};

static const char *const op_names[TERN_OP_COUNT] = {
#define OP_NAME(name, text) [TERN_OP_##name] = text,
    TERN_OP_LIST(OP_NAME)
#undef OP_NAME
};

const tern_format_facts *tern_format_facts_of(tern_format format) {
    return &format_facts[format];
}

const tern_layout_facts *tern_layout_facts_of(tern_layout layout) {
    return &layout_facts[layout];
}

bool tern_format_is_ternary(tern_format format) {
    return (unsigned)format < TERN_FORMAT_COUNT && format_facts[format].ternary;
}

const tern_format_info *tern_format_describe(tern_format format) {
    return (unsigned)format < TERN_FORMAT_COUNT ? &formats[format] : NULL;
}

tern_format tern_format_from_gguf(uint32_t gguf_type) {
    for (int i = 0; i < TERN_FORMAT_COUNT; i++)
        if (formats[i].gguf_type == gguf_type && gguf_type != TERN_NO_GGUF_TYPE)
            return (tern_format)i;
    return TERN_FORMAT_NONE;
}

tern_status tern_format_bytes(tern_format format, uint64_t rows, uint64_t cols, uint64_t *bytes) {
    const tern_format_info *info = tern_format_describe(format);
    uint64_t elements;
    uint64_t total;

    if (bytes == NULL)
        return TERN_ERR_NULL;
    if (info == NULL)
        return TERN_ERR_ARG;
    if (rows == 0 || cols == 0 || cols % info->block_elements != 0)
        return TERN_ERR_TENSOR_SHAPE;
    if (__builtin_mul_overflow(rows, cols, &elements))
        return TERN_ERR_TENSOR_SHAPE;
    if (tern_format_is_ternary(format) && cols > TERNARY_COLS_MAX)
        return TERN_ERR_TENSOR_SHAPE;
    if (format == TERN_FORMAT_I2_S && elements % TERN_I2S_UNIT != 0)
        return TERN_ERR_TENSOR_SHAPE;
    if (__builtin_mul_overflow(elements / info->block_elements, info->block_bytes, &total))
        return TERN_ERR_TENSOR_SHAPE;
    if (format == TERN_FORMAT_I2_S)
        total += TERN_I2S_TRAILER_BYTES; /* total is at most 2^62 here */
    *bytes = total;
    return TERN_OK;
}

float tern_format_scale(tern_format format, const void *file, size_t rows, size_t cols) {
    float scale = 1.0f;

    if (format == TERN_FORMAT_I2_S)
        memcpy(&scale, (const uint8_t *)file + rows * cols / 4, sizeof scale);
    return scale;
}

const char *tern_layout_name(tern_layout layout) {
    return (unsigned)layout < TERN_LAYOUT_COUNT ? layouts[layout].name : NULL;
}

tern_input_form tern_layout_input(tern_layout layout) {
    return layouts[layout].input;
}

tern_layout tern_format_layout(tern_format format) {
    return (unsigned)format < TERN_FORMAT_COUNT ? format_facts[format].layout : TERN_LAYOUT_NONE;
}

tern_layout tern_format_sparse_layout(tern_format format) {
    for (int i = 0; i < TERN_LAYOUT_COUNT; i++)
        if (layout_facts[i].sparse == format && format != TERN_FORMAT_NONE)
            return (tern_layout)i;
    return TERN_LAYOUT_NONE;
}

tern_format tern_layout_sparse_format(tern_layout layout) {
    return (unsigned)layout < TERN_LAYOUT_COUNT ? layout_facts[layout].sparse : TERN_FORMAT_NONE;
}

const char *tern_op_name(tern_op op) {
    return (unsigned)op < TERN_OP_COUNT ? op_names[op] : NULL;
}
