/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every row of the block-sparse product (TERN_OP_GEMV_SPARSE) against the dense product of the
 * reference, bit for bit: blocks of many sizes, with and without a bias, and parts of the rows.
 */
#include <string.h>

#include "kernels/reference.h"
#include "tests/sparse_case.h"
#include "tests/table.h"

typedef void check_row(const tern_kernel_row *row, const sparse_case *s, const float *want);

static void for_each_row(const sparse_case *s, check_row *check) {
    float want[SPARSE_ROWS];
    size_t count;
    const tern_kernel_row *rows = tern_kernel_rows(&count);

    sparse_expect(s, want);
    for (size_t r = 0; r < count; r++)
        if (rows[r].op == TERN_OP_GEMV_SPARSE && table_runnable(&rows[r])) {
            check_case("%s, blocks of %u x %u, %s", rows[r].name, s->w.block_rows, s->w.block_cols,
                       s->w.bias != NULL ? "a bias" : "no bias");
            check(&rows[r], s, want);
        }
}

/* Where memory ends: neither weights nor activations are read past it. */
static void check_whole(const tern_kernel_row *row, const sparse_case *s, const float *want) {
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
    row->fn.gemv_sparse(&w, x.data, 0, SPARSE_ROWS, y.data);
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

/* Any cut of the rows into two parts: each writes its own, and the bits do not change. */
static void check_parts(const tern_kernel_row *row, const sparse_case *s, const float *want) {
    float y[SPARSE_ROWS], untouched[SPARSE_ROWS];

    check_canary_fill(untouched, sizeof untouched);
    for (size_t cut = 1; cut < SPARSE_ROWS; cut++) {
        memcpy(y, untouched, sizeof y);
        row->fn.gemv_sparse(&s->w, s->x, cut, SPARSE_ROWS, y);
        check_floats("rows before the part", untouched, y, cut);
        row->fn.gemv_sparse(&s->w, s->x, 0, cut, y);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_parts),
    };
    table_report();
    return cmocka_run_group_tests_name("block-sparse", tests, NULL, NULL);
}
