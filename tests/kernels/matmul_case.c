/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kernels/matmul_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/iebs.h"

const char *case_kind_name(case_kind kind) {
    static const char *const names[] = {
#define CASE_KIND_NAME(name) #name,
        CASE_KIND_LIST(CASE_KIND_NAME)
#undef CASE_KIND_NAME
    };
    return names[kind];
}

bool case_possible(tern_format format, size_t rows, size_t cols) {
    uint64_t bytes;
    return tern_format_bytes(format, rows, cols, &bytes) == TERN_OK;
}

static tern_ref_filling filling_of(case_kind kind) {
    switch (kind) {
    case CASE_MAX_MAX:
    case CASE_MAX_MIN:
        return TERN_REF_FILL_LARGEST;
    case CASE_MIN_MAX:
    case CASE_MIN_MIN:
        return TERN_REF_FILL_SMALLEST;
    case CASE_ALTERNATING:
        return TERN_REF_FILL_ALTERNATING;
    case CASE_EXTREME:
        return TERN_REF_FILL_EXTREME;
    default:
        return TERN_REF_FILL_RANDOM;
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

/* Codes of a token. -128 needs a product that is NaN, so the saturated ternary case writes it
 * directly. */
static void quantize_token(matmul_case *c, case_kind kind, size_t t) {
    const float *x = (const float *)c->x.data + t * c->x_stride;
    int8_t *q = (int8_t *)c->q.data + t * c->q_stride;
    float *s = (float *)c->s.data + t;
    int32_t *sum = (int32_t *)c->sum.data + t;

    if (tern_layout_input(c->matrix.layout) != TERN_INPUT_TOKEN) {
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

/* Strides are larger than necessary. The last row of each buffer has no room behind it. */
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
    return (tern_ref_matrix){.format = c->format,
                             .file = c->file.data,
                             .rows = c->rows,
                             .cols = c->cols,
                             .scale = c->scale,
                             .row_scale = c->matrix.row_scale,
                             .input = tern_layout_input(c->matrix.layout)};
}

/* The sides of blocks alternate. All blocks are stored. */
static tern_iebs sparse_form(tern_format format, size_t rows, size_t cols) {
    static const uint32_t sides[][2] = {{16, 64}, {4, 4}, {8, 8}, {32, 16}, {3, 5}};
    const size_t i = (rows + cols) % (format == TERN_FORMAT_I2_S ? 4 : 5);
    tern_iebs m = {.format = format,
                   .rows = (uint32_t)rows,
                   .cols = (uint32_t)cols,
                   .block_rows = sides[i][0],
                   .block_cols = sides[i][1],
                   .scale = 1.0f};
    m.blocks = (uint32_t)(tern_iebs_block_rows(&m) * tern_iebs_block_columns(&m));
    return m;
}

static bool pack_sparse(const matmul_case *c) {
    const tern_iebs m = sparse_form(c->format, c->rows, c->cols);
    bool *stored = malloc(m.blocks), sound = true;
    float *weights = malloc(c->rows * c->cols * sizeof *weights);

    assert_true(stored != NULL && weights != NULL);
    memset(stored, true, m.blocks);
    for (size_t r = 0; r < c->rows; r++)
        tern_dequantize_row(c->format, c->file.data, c->cols, r, 1.0f, weights + r * c->cols);
    for (size_t i = 0; i < c->rows * c->cols && c->format == TERN_FORMAT_I2_S; i++)
        sound = sound && fabsf(weights[i]) <= 1.0f; /* no code 3 */
    tern_iebs_write(&m, stored, weights, c->packed.data);
    free(weights);
    free(stored);
    return sound;
}

bool case_repack(const matmul_case *c, tern_error *err) {
    if (c->matrix.layout == TERN_LAYOUT_ROWS)
        return true;
    if (tern_layout_sparse_format(c->matrix.layout) != TERN_FORMAT_NONE)
        return pack_sparse(c);
    return tern_pack_rows(c->format, c->file.data, c->rows, c->cols, c->matrix.layout, 0, c->rows,
                          c->packed.data, err) == TERN_OK;
}

void case_pack(matmul_case *c) {
    tern_error err = {0};

    if (!case_repack(c, &err))
        check_fail("packing failed: %s", err.message);
}

static size_t case_packed_bytes(tern_layout layout, tern_format format, size_t rows, size_t cols) {
    const tern_iebs m = sparse_form(format, rows, cols);
    return tern_layout_sparse_format(layout) != TERN_FORMAT_NONE
               ? (size_t)tern_iebs_bytes(&m)
               : tern_packed_bytes(layout, rows, cols);
}

bool case_has_outer_scale(tern_layout layout) {
    return tern_layout_input(layout) == TERN_INPUT_TOKEN || layout == TERN_LAYOUT_INT8R16;
}

/* In every third case the rows' scales differ; then the tensor's own scale must not matter. */
static void new_row_scales(matmul_case *c, check_place place, check_rng *rng) {
    c->row_scale = check_buffer_new(c->rows * sizeof(float), 4, place);
    float *scales = c->row_scale.data;

    for (size_t r = 0; r < c->rows; r++)
        scales[r] = check_normal(rng);
    c->matrix.row_scale = scales;
    c->matrix.scale = NAN;
}

matmul_case case_new_layout(tern_format format, tern_layout layout, const case_shape *shape,
                            case_kind kind, check_place place, check_rng *rng) {
    const size_t rows = shape->rows, cols = shape->cols, tokens = shape->tokens;
    matmul_case c = {.format = format, .rows = rows, .cols = cols, .tokens = tokens};
    const bool in_place = layout == TERN_LAYOUT_ROWS;
    const size_t align = in_place ? tern_format_describe(format)->block_bytes : 1;
    uint64_t file_bytes;

    assert_int_equal(tern_format_bytes(format, rows, cols, &file_bytes), TERN_OK);
    c.scale = 0.0375f;
    c.file = check_buffer_new((size_t)file_bytes, align, place);
    tern_ref_fill_weights(format, filling_of(kind), rows, cols, c.scale, &rng->state, c.file.data);
    if (!in_place)
        c.packed =
            check_buffer_new(case_packed_bytes(layout, format, rows, cols), TERN_ALIGN, place);
    c.matrix = (tern_matrix){.format = format,
                             .layout = layout,
                             .rows = rows,
                             .cols = cols,
                             .scale = c.scale,
                             .data = in_place ? c.file.data : c.packed.data};
    if (case_has_outer_scale(layout) && (rows + cols / 4) % 3 == 0)
        new_row_scales(&c, place, rng);
    case_pack(&c);
    new_activations(&c, place);
    fill_activations(&c, kind, rng);

    const tern_ref_matrix reference = case_reference(&c);
    const tern_tile all = {0, tokens, 0, rows};
    c.expected = check_buffer_new(tokens * rows * sizeof(float), 4, CHECK_END);
    tern_ref_matmul(&reference, &c.activations, &all, c.expected.data, rows);
    return c;
}

matmul_case case_new(tern_format format, size_t rows, size_t cols, size_t tokens, case_kind kind,
                     check_place place, check_rng *rng) {
    const case_shape shape = {rows, cols, tokens};
    return case_new_layout(format, tern_format_layout(format), &shape, kind, place, rng);
}

void case_free(matmul_case *c) {
    check_buffer *const all[] = {&c->file, &c->packed, &c->row_scale, &c->x,         &c->q,
                                 &c->s,    &c->sum,    &c->d,         &c->block_sum, &c->expected};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        check_buffer_free(all[i]);
}

/* The floats of row t outside [tile.r0, tile.r1), and whole rows outside [tile.t0, tile.t1). */
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
