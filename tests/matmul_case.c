/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/matmul_case.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/half.h"

const char *case_kind_name(case_kind kind) {
    static const char *const names[] = {
#define CASE_KIND_NAME(name) #name,
        CASE_KIND_LIST(CASE_KIND_NAME)
#undef CASE_KIND_NAME
    };
    return names[kind];
}

tern_layout case_layout(tern_format format) {
    switch (format) {
    case TERN_FORMAT_I2_S:
        return TERN_LAYOUT_T2R16;
    case TERN_FORMAT_Q4_0:
        return TERN_LAYOUT_Q4_0R16;
    case TERN_FORMAT_Q4_1:
        return TERN_LAYOUT_Q4_1R16;
    case TERN_FORMAT_Q8_0:
        return TERN_LAYOUT_Q8_0R16;
    default:
        return TERN_LAYOUT_ROWS;
    }
}

bool case_possible(tern_format format, size_t rows, size_t cols) {
    uint64_t bytes;
    return tern_format_bytes(format, rows, cols, &bytes) == TERN_OK;
}

/* ---- weights ------------------------------------------------------------------------------- */

/* Which of smallest, largest, random the code at `index` is. */
typedef enum extremity { SMALLEST, LARGEST, ANY } extremity;

static extremity weight_extremity(case_kind kind, size_t index) {
    switch (kind) {
    case CASE_MAX_MAX:
    case CASE_MAX_MIN:
        return LARGEST;
    case CASE_MIN_MAX:
    case CASE_MIN_MIN:
        return SMALLEST;
    case CASE_ALTERNATING:
        return index % 2 == 0 ? LARGEST : SMALLEST;
    default:
        return ANY;
    }
}

static uint8_t ternary_byte(case_kind kind, size_t index, check_rng *rng) {
    unsigned byte = 0;

    for (unsigned i = 0; i < 4; i++) {
        const extremity e = weight_extremity(kind, index);
        byte = byte << 2 | (e == LARGEST ? 2u : e == SMALLEST ? 0u : check_below(rng, 3));
    }
    return (uint8_t)byte;
}

/* A byte of two nibbles, or one signed byte. */
static uint8_t code_byte(tern_format format, case_kind kind, size_t index, check_rng *rng) {
    const extremity e = weight_extremity(kind, index);

    if (e == ANY)
        return (uint8_t)check_random(rng);
    if (format == TERN_FORMAT_Q8_0)
        return e == LARGEST ? 0x7f : 0x80;
    return e == LARGEST ? 0xff : 0x00;
}

static uint16_t half_scale(case_kind kind, check_rng *rng) {
    if (kind != CASE_EXTREME)
        return tern_f32_to_f16(0.02f * check_normal(rng));
    switch (check_below(rng, 4)) {
    case 0:
        return (uint16_t)(check_random(rng) & 0x83ffu); /* denormal or zero */
    case 1:
        return (uint16_t)(0x7bffu | (check_random(rng) & 0x8000u)); /* 65504 */
    default:
        return (uint16_t)(check_random(rng) & 0xbfffu); /* any below 2 */
    }
}

static float float_value(case_kind kind, size_t index, check_rng *rng) {
    switch (weight_extremity(kind, index)) {
    case LARGEST:
        return 1.984375f;
    case SMALLEST:
        return -1.984375f;
    default:
        return kind == CASE_EXTREME ? check_any_finite(rng) : check_normal(rng);
    }
}

static void fill_floats(tern_format format, case_kind kind, size_t n, uint8_t *file,
                        check_rng *rng) {
    for (size_t i = 0; i < n; i++) {
        const float value = float_value(kind, i, rng);
        const uint16_t half = format == TERN_FORMAT_F16 && kind == CASE_EXTREME
                                  ? (uint16_t)(check_random(rng) & 0xbfffu)
                                  : tern_f32_to_f16(value);
        const uint16_t brain = (uint16_t)(tern_f32_to_bits(value) >> 16);

        if (format == TERN_FORMAT_F32)
            memcpy(file + 4 * i, &value, 4);
        else
            memcpy(file + 2 * i, format == TERN_FORMAT_F16 ? &half : &brain, 2);
    }
}

static void fill_file(matmul_case *c, case_kind kind, check_rng *rng) {
    const tern_format_info *info = tern_format_describe(c->format);
    const size_t blocks = c->rows * c->cols / info->block_elements;
    const size_t scales = c->format == TERN_FORMAT_Q4_1 ? 2 : 1;
    uint8_t *file = c->file.data;

    if (case_layout(c->format) == TERN_LAYOUT_ROWS) {
        fill_floats(c->format, kind, blocks, file, rng);
        return;
    }
    if (c->format == TERN_FORMAT_I2_S) {
        for (size_t i = 0; i < blocks; i++)
            file[i] = ternary_byte(kind, i, rng);
        memcpy(file + blocks, &c->scale, sizeof c->scale);
        memset(file + blocks + 4, 0xee, 28); /* the trailer's garbage must not matter */
        return;
    }
    for (size_t b = 0; b < blocks; b++, file += info->block_bytes) {
        for (size_t i = 0; i < scales; i++) {
            const uint16_t half = half_scale(kind, rng);
            memcpy(file + 2 * i, &half, 2);
        }
        for (size_t j = 2 * scales; j < info->block_bytes; j++)
            file[j] = code_byte(c->format, kind, j, rng);
    }
}

/* ---- activations --------------------------------------------------------------------------- */

static float activation(case_kind kind, size_t k, size_t hot, check_rng *rng) {
    switch (kind) {
    case CASE_MAX_MAX:
    case CASE_MIN_MAX:
        return 3.25f;
    case CASE_MAX_MIN:
    case CASE_MIN_MIN:
        return -3.25f;
    case CASE_ONE_HOT:
        return k == hot ? check_normal(rng) : 0.0f;
    case CASE_ZEROS:
        return k % 3 == 0 ? -0.0f : 0.0f;
    case CASE_ALTERNATING:
        return k % 2 == 0 ? 3.25f : -3.25f;
    case CASE_EXTREME:
        return check_any_finite(rng);
    default:
        return check_normal(rng);
    }
}

/* Codes of a token. -128 needs a NaN product, so the saturated ternary case writes it directly. */
static void quantize_token(matmul_case *c, case_kind kind, size_t t) {
    const float *x = (const float *)c->x.data + t * c->x_stride;
    int8_t *q = (int8_t *)c->q.data + t * c->q_stride;
    float *s = (float *)c->s.data + t;
    int32_t *sum = (int32_t *)c->sum.data + t;

    if (c->format != TERN_FORMAT_I2_S) {
        tern_ref_quantize_block(x, c->cols, q, (float *)c->d.data + t * c->d_stride,
                                (int32_t *)c->block_sum.data + t * c->d_stride);
        return;
    }
    tern_ref_quantize_token(x, c->cols, q, s, sum);
    if (kind == CASE_MAX_MIN || kind == CASE_MIN_MIN) {
        memset(q, -128, c->cols);
        *sum = -128 * (int32_t)c->cols;
    }
}

static void fill_activations(matmul_case *c, case_kind kind, check_rng *rng) {
    for (size_t t = 0; t < c->tokens; t++) {
        const size_t hot = t % 2 == 0 ? c->cols - 1 - t % c->cols : t % c->cols;
        float *x = (float *)c->x.data + t * c->x_stride;

        for (size_t k = 0; k < c->cols; k++)
            x[k] = activation(kind, k, hot, rng);
        quantize_token(c, kind, t);
    }
}

/* Strides are larger than they need be; the last row of each buffer has no room behind it. */
static void new_activations(matmul_case *c, check_place place) {
    const size_t last = c->tokens - 1;
    const size_t blocks = (c->cols + TERN_BLOCK - 1) / TERN_BLOCK;

    c->x_stride = c->cols + 3;
    c->q_stride = (c->cols + TERN_Q_PAD - 1) / TERN_Q_PAD * TERN_Q_PAD;
    c->d_stride = blocks + 1;
    c->x = check_buffer_new((last * c->x_stride + c->cols) * sizeof(float), 4, place);
    c->q = check_buffer_new(c->tokens * c->q_stride, TERN_ALIGN, place);
    c->s = check_buffer_new(c->tokens * sizeof(float), 4, place);
    c->sum = check_buffer_new(c->tokens * sizeof(int32_t), 4, place);
    c->d = check_buffer_new((last * c->d_stride + blocks) * sizeof(float), 4, place);
    c->block_sum = check_buffer_new((last * c->d_stride + blocks) * sizeof(int32_t), 4, place);
    c->activations =
        (tern_activations){c->cols,   c->x.data,   c->x_stride, c->q.data,         c->q_stride,
                           c->s.data, c->sum.data, c->d.data,   c->block_sum.data, c->d_stride};
}

/* ---- the case ------------------------------------------------------------------------------ */

tern_ref_matrix case_reference(const matmul_case *c) {
    return (tern_ref_matrix){c->format, c->file.data, c->rows, c->cols, c->scale};
}

void case_pack(matmul_case *c) {
    tern_error err = {0};

    if (c->matrix.layout == TERN_LAYOUT_ROWS)
        return;
    if (tern_pack_rows(c->format, c->file.data, c->rows, c->cols, c->matrix.layout, 0, c->rows,
                       c->packed.data, &err) != TERN_OK)
        check_fail("packing failed: %s", err.message);
}

matmul_case case_new(tern_format format, size_t rows, size_t cols, size_t tokens, case_kind kind,
                     check_place place, check_rng *rng) {
    const tern_layout layout = case_layout(format);
    matmul_case c = {.format = format, .rows = rows, .cols = cols, .tokens = tokens};
    const size_t align = layout == TERN_LAYOUT_ROWS ? tern_format_describe(format)->block_bytes : 1;
    uint64_t file_bytes;

    assert_int_equal(tern_format_bytes(format, rows, cols, &file_bytes), TERN_OK);
    c.scale = format == TERN_FORMAT_I2_S ? 0.0375f : 1.0f;
    c.file = check_buffer_new((size_t)file_bytes, align, place);
    fill_file(&c, kind, rng);
    if (layout != TERN_LAYOUT_ROWS)
        c.packed = check_buffer_new(tern_packed_bytes(layout, rows, cols), TERN_ALIGN, place);
    c.matrix = (tern_matrix){
        format, layout,  rows,
        cols,   c.scale, layout == TERN_LAYOUT_ROWS ? c.file.data : (const void *)c.packed.data};
    case_pack(&c);
    new_activations(&c, place);
    fill_activations(&c, kind, rng);

    const tern_ref_matrix reference = case_reference(&c);
    const tern_tile all = {0, tokens, 0, rows};
    c.expected = check_buffer_new(tokens * rows * sizeof(float), 4, CHECK_END);
    tern_ref_matmul(&reference, &c.activations, &all, c.expected.data, rows);
    return c;
}

void case_free(matmul_case *c) {
    check_buffer *const all[] = {&c->file, &c->packed, &c->x,         &c->q,       &c->s,
                                 &c->sum,  &c->d,      &c->block_sum, &c->expected};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        check_buffer_free(all[i]);
}

/* Floats of row t outside [tile.r0, tile.r1), and whole rows outside [tile.t0, tile.t1). */
static bool outside_untouched(const float *y, size_t t, size_t columns, const tern_tile *tile) {
    if (t < tile->t0 || t >= tile->t1)
        return check_canary_intact(y, columns * sizeof *y);
    if (!check_canary_intact(y, tile->r0 * sizeof *y))
        return false;
    return check_canary_intact(y + tile->r1, (columns - tile->r1) * sizeof *y);
}

void case_check_tile(const matmul_case *c, tern_matmul_fn *fn, tern_tile tile, check_place place) {
    const size_t stride = c->rows + 5;
    const float *expected = c->expected.data;
    check_buffer out =
        check_buffer_new(((tile.t1 - 1) * stride + c->rows) * sizeof(float), 4, place);
    const float *y = out.data;

    fn(&c->matrix, &c->activations, &tile, out.data, stride);
    for (size_t t = 0; t < tile.t1; t++) {
        const size_t columns = t + 1 < tile.t1 ? stride : c->rows;
        if (!outside_untouched(y + t * stride, t, columns, &tile))
            check_fail("token %zu: written outside rows [%zu, %zu) of tokens [%zu, %zu)", t,
                       tile.r0, tile.r1, tile.t0, tile.t1);
        if (t >= tile.t0)
            check_floats("y", expected + t * c->rows + tile.r0, y + t * stride + tile.r0,
                         tile.r1 - tile.r0);
    }
    check_buffer_free(&out);
}
