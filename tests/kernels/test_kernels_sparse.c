/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every kernel of the block-sparse product (TERN_OP_GEMV_SPARSE) against the reference's dense
 * product, bit for bit: blocks of many sizes, with and without a bias, and parts of the rows. Also
 * products (gemv, gemm) of sparse blocks of f32, f16 and ternary weights, with none to all of them
 * stored; kernels_matmul tests these kernels too, with all blocks stored.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/iebs.h"
#include "kernels/reference.h"
#include "tests/kernels/sparse_case.h"
#include "tests/kernels/table.h"

typedef void check_row(const tern_kernel_row *kernel, const sparse_case *s, const float *want);

static void for_each_row(const sparse_case *s, check_row *check) {
    float want[SPARSE_ROWS];
    size_t count;
    const tern_kernel_row *kernels = tern_kernel_rows(&count);

    sparse_expect(s, want);
    for (size_t r = 0; r < count; r++)
        if (kernels[r].op == TERN_OP_GEMV_SPARSE && table_runnable(&kernels[r])) {
            check_case("%s, blocks of %u x %u, %s", kernels[r].name, s->w.block_rows,
                       s->w.block_cols, s->w.bias != NULL ? "a bias" : "no bias");
            check(&kernels[r], s, want);
        }
}

/* The weights and the activations end where memory ends: nothing beyond is read. */
static void check_whole(const tern_kernel_row *kernel, const sparse_case *s, const float *want) {
    const size_t height = s->w.block_rows ? s->w.block_rows : 16;
    const size_t width = s->w.block_cols ? s->w.block_cols : 16;
    const size_t blocks = s->start[(SPARSE_ROWS - 1) / height + 1];
    check_buffer weights =
        check_buffer_new(blocks * height * width * sizeof(float), sizeof(float), CHECK_END);
    check_buffer x = check_buffer_new(sizeof s->x, sizeof(float), CHECK_END);
    check_buffer y = check_buffer_new(SPARSE_ROWS * sizeof(float), sizeof(float), CHECK_END);
    tern_block_sparse w = s->w;

    memcpy(weights.data, s->blocks, weights.bytes);
    memcpy(x.data, s->x, x.bytes);
    w.blocks = weights.data;
    kernel->fn.gemv_sparse(&w, x.data, 0, SPARSE_ROWS, y.data);
    check_floats("y", want, y.data, SPARSE_ROWS);
    check_buffer_free(&weights);
    check_buffer_free(&x);
    check_buffer_free(&y);
}

static void test_sizes(void **state) {
    static const uint32_t sizes[][2] = {{16, 16}, {4, 4},   {1, 1},  {8, 32},  {32, 8}, {3, 5},
                                        {1, 90},  {37, 16}, {64, 4}, {5, 100}, {2, 48}, {7, 128}};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    static sparse_case s;

    (void)state;
    for (uint64_t seed = 0; seed < 8 * SIZES; seed++) {
        const uint32_t *size = sizes[seed % SIZES];
        check_rng rng = {seed};
        if (table_left_out())
            continue;
        sparse_fill(&s, size[0], size[1], &rng);
        s.w.bias = seed % 4 < 2 ? s.bias : NULL;
        for_each_row(&s, check_whole);
    }
}

/* The rows in two parts, cut anywhere. Each part writes its own rows, and the bits stay the
 * same. */
static void check_parts(const tern_kernel_row *kernel, const sparse_case *s, const float *want) {
    float y[SPARSE_ROWS], untouched[SPARSE_ROWS];

    check_canary_fill(untouched, sizeof untouched);
    for (size_t cut = 1; cut < SPARSE_ROWS; cut++) {
        memcpy(y, untouched, sizeof y);
        kernel->fn.gemv_sparse(&s->w, s->x, cut, SPARSE_ROWS, y);
        check_floats("rows before the part", untouched, y, cut);
        kernel->fn.gemv_sparse(&s->w, s->x, 0, cut, y);
        check_floats("y", want, y, SPARSE_ROWS);
    }
}

static void test_parts(void **state) {
    static sparse_case s;
    check_rng rng = {11};

    (void)state;
    sparse_fill(&s, 16, 16, &rng);
    s.w.bias = s.bias;
    for_each_row(&s, check_parts);
}

/* ---- products of sparse blocks --------------------------------------------------------------- */

enum { ROWS = 64, COLS = 92, TOKENS = 9, OUTPUTS = TOKENS * ROWS };

/* A matrix, dense and in blocks, and its product. */
typedef struct blocks_case {
    tern_iebs form;
    bool stored[ROWS * COLS];
    float weights[ROWS * COLS];
    uint8_t file[ROWS * COLS * sizeof(float)];
    check_buffer blocks, x, q;
    float s[TOKENS], want[OUTPUTS];
    int32_t sum[TOKENS];
    tern_matrix matrix;
    tern_activations input;
} blocks_case;

/* Stores `eighths` of eight blocks on average. Weights of other blocks are 0. */
static void fill_blocks(blocks_case *c, uint32_t eighths, check_rng *rng) {
    const size_t columns = tern_iebs_block_columns(&c->form);
    const size_t places = tern_iebs_block_rows(&c->form) * columns;

    c->form.blocks = 0;
    for (size_t i = 0; i < places; i++) {
        c->stored[i] = check_below(rng, 8) < eighths;
        c->form.blocks += c->stored[i];
    }
    for (size_t i = 0; i < ROWS * COLS; i++) {
        const size_t place =
            i / COLS / c->form.block_rows * columns + i % COLS / c->form.block_cols;
        const float weight = c->form.format == TERN_FORMAT_I2_S
                                 ? (float)((int)check_below(rng, 3) - 1)
                                 : (float)((int)check_below(rng, 4001) - 2000) * 0x1p-9f;
        c->weights[i] = c->stored[place] ? weight : 0.0f;
    }
    if (c->form.format == TERN_FORMAT_I2_S)
        c->weights[0] = c->stored[0] ? 1.0f : 0.0f; /* makes the scale 1 */
}

static void make_input(blocks_case *c, check_rng *rng) {
    enum { STRIDE = (COLS + TERN_Q_PAD - 1) / TERN_Q_PAD * TERN_Q_PAD };

    c->x = check_buffer_new(TOKENS * COLS * sizeof(float), sizeof(float), CHECK_END);
    c->q = check_buffer_new(TOKENS * STRIDE, TERN_ALIGN, CHECK_END);
    c->input = (tern_activations){.cols = COLS,
                                  .x = c->x.data,
                                  .x_stride = COLS,
                                  .q = c->q.data,
                                  .q_stride = STRIDE,
                                  .s = c->s,
                                  .sum = c->sum};
    for (size_t t = 0; t < TOKENS; t++) {
        float *x = (float *)c->x.data + t * COLS;
        for (size_t k = 0; k < COLS; k++)
            x[k] = k % 11 == 0 ? -0.0f : check_normal(rng);
        tern_ref_quantize_token(x, COLS, (int8_t *)c->q.data + t * STRIDE, c->s + t, c->sum + t);
    }
}

/* The reference's product of the dense weights. */
static void expect(blocks_case *c) {
    const tern_tile all = {0, TOKENS, 0, ROWS};
    const tern_ref_matrix dense = {.format = c->form.format,
                                   .file = c->file,
                                   .rows = ROWS,
                                   .cols = COLS,
                                   .scale = c->matrix.scale,
                                   .input = tern_layout_input(c->matrix.layout)};
    assert_int_equal(
        tern_quantize_weights(c->form.format, c->weights, ROWS, COLS, c->file, NULL, NULL),
        TERN_OK);
    tern_ref_matmul(&dense, &c->input, &all, c->want, ROWS);
}

static void make_blocks(blocks_case *c, tern_layout layout, const uint32_t *sides, uint32_t eighths,
                        check_rng *rng) {
    tern_iebs read;

    c->form = (tern_iebs){.format = tern_layout_sparse_format(layout),
                          .rows = ROWS,
                          .cols = COLS,
                          .block_rows = sides[0],
                          .block_cols = sides[1],
                          .scale = 0.75f};
    fill_blocks(c, eighths, rng);
    c->blocks = check_buffer_new((size_t)tern_iebs_bytes(&c->form), TERN_ALIGN, CHECK_END);
    tern_iebs_write(&c->form, c->stored, c->weights, c->blocks.data);
    assert_int_equal(tern_iebs_check(c->blocks.data, c->blocks.bytes, &read, NULL), TERN_OK);
    assert_int_equal(tern_iebs_values(&read, 0, tern_iebs_block_rows(&read), NULL), TERN_OK);
    c->matrix = (tern_matrix){.format = c->form.format,
                              .layout = layout,
                              .rows = ROWS,
                              .cols = COLS,
                              .scale = read.scale,
                              .data = c->blocks.data};
    make_input(c, rng);
    expect(c);
}

/* Checks the whole product, and a rectangle whose surroundings must stay. */
static void check_blocks(const blocks_case *c, const tern_kernel_row *kernel) {
    const tern_tile all = {0, TOKENS, 0, ROWS}, part = {1, 6, 16, 48};
    float y[OUTPUTS];

    kernel->fn.matmul(&c->matrix, &c->input, &all, y, ROWS);
    check_floats("y", c->want, y, OUTPUTS);
    check_canary_fill(y, sizeof y);
    kernel->fn.matmul(&c->matrix, &c->input, &part, y, ROWS);
    for (size_t t = 0; t < TOKENS; t++)
        for (size_t r = 0; r < ROWS; r++)
            if (t >= 1 && t < 6 && r >= 16 && r < 48)
                check_floats("y of a part", c->want + t * ROWS + r, y + t * ROWS + r, 1);
            else
                assert_true(check_canary_intact(y + t * ROWS + r, sizeof *y));
}

static void check_layout(tern_layout layout, const uint32_t *sides, uint32_t eighths,
                         check_rng *rng) {
    static blocks_case c;
    size_t count;
    const tern_kernel_row *kernels = tern_kernel_rows(&count);

    if (!tern_iebs_holds(tern_layout_sparse_format(layout), sides[0], sides[1]))
        return;
    make_blocks(&c, layout, sides, eighths, rng);
    for (size_t i = 0; i < count; i++) {
        if (kernels[i].layout != layout || !table_runnable(&kernels[i]))
            continue;
        check_case("%s, blocks of %u x %u, %u of 8 stored", kernels[i].name, sides[0], sides[1],
                   eighths);
        check_blocks(&c, &kernels[i]);
    }
    check_buffer_free(&c.blocks);
    check_buffer_free(&c.x);
    check_buffer_free(&c.q);
}

static void test_products(void **state) {
    static const uint32_t sides[][2] = {{16, 64}, {4, 4},    {8, 8}, {16, 16},
                                        {32, 16}, {64, 128}, {3, 7}};
    static const uint32_t eighths[] = {0, 2, 5, 8};
    check_rng rng = {23};

    (void)state;
    for (int layout = 0; layout < TERN_LAYOUT_COUNT; layout++)
        for (size_t i = 0; i < sizeof sides / sizeof *sides; i++)
            for (size_t k = 0; k < sizeof eighths / sizeof *eighths; k++)
                if (tern_layout_sparse_format((tern_layout)layout) != TERN_FORMAT_NONE)
                    check_layout((tern_layout)layout, sides[i], eighths[k], &rng);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_products),
    };
    table_report();
    return cmocka_run_group_tests_name("block-sparse", tests, NULL, NULL);
}
