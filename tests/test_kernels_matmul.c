/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every matrix product of the kernel table against the reference, bit for bit. One loop over the
 * table: a new row is tested by being there. TERN_TEST_FILTER=text limits the rows by name,
 * TERN_TEST_EVERY=n takes every n-th shape only (for emulators).
 */

#include <stdlib.h>
#include <string.h>

#include "tests/matmul_case.h"
#include "tests/table.h"

enum { TOKENS_MAX = 33 };

/* Around every tile boundary: 1, 2, 4, 8, 16 rows or tokens and one more or less. */
static const size_t row_counts[] = {1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 48, 96, 100};
static const size_t col_counts[] = {1,  3,  4,  12,  15,  16,  20,  31,
                                    32, 64, 96, 100, 128, 132, 160, 256};
static const size_t token_counts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, TOKENS_MAX};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static bool is_matmul_of(const tern_kernel_row *row, tern_format format) {
    return (row->op == TERN_OP_GEMV || row->op == TERN_OP_GEMM) && row->format == format;
}

/* Calls `visit` for every runnable matmul row of a case's format. */
static void each_row(const matmul_case *c, const char *kind, check_rng *rng,
                     void (*visit)(const matmul_case *, const tern_kernel_row *, check_rng *)) {
    size_t count;
    const tern_kernel_row *rows = tern_kernel_rows(&count);

    for (size_t i = 0; i < count; i++) {
        if (!is_matmul_of(&rows[i], c->format) || !table_runnable(&rows[i]))
            continue;
        check_case("%s, %s, %zu x %zu, %zu tokens", rows[i].name, kind, c->rows, c->cols,
                   c->tokens);
        visit(c, &rows[i], rng);
    }
}

/* ---- shapes -------------------------------------------------------------------------------- */

static void check_token_counts(const matmul_case *c, const tern_kernel_row *row, check_rng *rng) {
    (void)rng;
    for (size_t i = 0; i < COUNT(token_counts); i++)
        if (token_counts[i] <= c->tokens)
            case_check_tile(c, row->fn.matmul, (tern_tile){0, token_counts[i], 0, c->rows},
                            i % 2 == 0 ? CHECK_END : CHECK_START);
}

/* Whether TERN_TEST_EVERY leaves out the next shape. */
static bool left_out(void) {
    static unsigned long shapes;
    const char *every = getenv("TERN_TEST_EVERY");
    const unsigned long n = every != NULL ? strtoul(every, NULL, 10) : 0;

    return n > 1 && shapes++ % n != 0;
}

static void check_shape(tern_format format, size_t rows, size_t cols, size_t tokens,
                        case_kind kind) {
    check_rng rng = {rows * 1000003 + cols * 1009 + (uint64_t)kind};
    const check_place place = (rows + cols) % 3 == 0 ? CHECK_START : CHECK_END;

    if (!case_possible(format, rows, cols) || left_out())
        return;
    check_case("%s %zu x %zu", tern_format_describe(format)->name, rows, cols);
    matmul_case c = case_new(format, rows, cols, tokens, kind, place, &rng);
    each_row(&c, case_kind_name(kind), &rng, check_token_counts);
    case_free(&c);
}

/* All shapes with random data; the other kinds of data on every third shape, in rotation. */
static void check_shapes(void **state) {
    const tern_format format = *(const tern_format *)*state;
    size_t shape = 0;

    for (size_t r = 0; r < COUNT(row_counts); r++) {
        for (size_t k = 0; k < COUNT(col_counts); k++, shape++) {
            check_shape(format, row_counts[r], col_counts[k], TOKENS_MAX, CASE_RANDOM);
            for (int kind = CASE_RANDOM + 1; kind < CASE_KIND_COUNT; kind++)
                if ((shape + (size_t)kind) % 3 == 0)
                    check_shape(format, row_counts[r], col_counts[k], 9, (case_kind)kind);
        }
    }
}

/*
 * Long columns, where narrow accumulators would wrap: 2176 is the first multiple of 128 at which
 * 16-bit lanes that are flushed once a row go wrong, 6912 and 8640 are widths of real models, and
 * 65408 is near the largest that I2_S admits.
 */
static void check_long_columns(void **state) {
    static const size_t cols[] = {2048, 2176, 4096, 4128, 6912, 8640, 65408};
    const tern_format format = *(const tern_format *)*state;

    for (size_t k = 0; k < COUNT(cols); k++)
        for (int kind = 0; kind < CASE_KIND_COUNT; kind++)
            check_shape(format, cols[k] > 8640 ? 2 : 18, cols[k], cols[k] > 8640 ? 1 : 5,
                        (case_kind)kind);
}

/* ---- rectangles ---------------------------------------------------------------------------- */

static void check_rectangles(const matmul_case *c, const tern_kernel_row *row, check_rng *rng) {
    for (int i = 0; i < 40; i++) {
        tern_tile tile;
        tile.t0 = check_below(rng, (uint32_t)c->tokens);
        tile.t1 = tile.t0 + 1 + check_below(rng, (uint32_t)(c->tokens - tile.t0));
        tile.r0 = check_below(rng, (uint32_t)((c->rows + 15) / 16)) * 16;
        tile.r1 = tile.r0 + 16 + 16 * (size_t)check_below(rng, 4);
        if (tile.r1 > c->rows)
            tile.r1 = c->rows;
        case_check_tile(c, row->fn.matmul, tile, i % 2 == 0 ? CHECK_END : CHECK_START);
    }
    case_check_tile(c, row->fn.matmul, (tern_tile){3, 7, 32, 32}, CHECK_END); /* empty */
}

static void check_partial(void **state) {
    const tern_format format = *(const tern_format *)*state;
    check_rng rng = {77};

    matmul_case c = case_new(format, 100, 160, 19, CASE_RANDOM, CHECK_END, &rng);
    each_row(&c, "rectangles", &rng, check_rectangles);
    case_free(&c);
}

/* ---- saturation ---------------------------------------------------------------------------- */

/* All codes 2 and all q = 127: raw is 2*127*K, so with s = scale = 1 and sum = 0 y says so. */
static void check_saturated(const matmul_case *c, const tern_kernel_row *row, check_rng *rng) {
    const float want = 2.0f * 127.0f * (float)c->cols;
    float y[2][16];
    const tern_tile all = {0, 2, 0, 16};

    (void)rng;
    row->fn.matmul(&c->matrix, &c->activations, &all, &y[0][0], 16);
    for (int r = 0; r < 16; r++) {
        assert_true(y[0][r] == want);
        assert_true(y[1][r] == -want);
    }
}

static void check_ternary_saturation(void **state) {
    static const size_t cols[] = {2048, 2176, 4096, 6912};
    check_rng rng = {5};

    (void)state;
    for (size_t k = 0; k < COUNT(cols); k++) {
        matmul_case c = case_new(TERN_FORMAT_I2_S, 16, cols[k], 2, CASE_MAX_MAX, CHECK_END, &rng);
        c.matrix.scale = 1.0f;
        memset((int8_t *)c.q.data + c.q_stride, -127, c.cols);
        for (int t = 0; t < 2; t++) {
            ((float *)c.s.data)[t] = 1.0f;
            ((int32_t *)c.sum.data)[t] = 0;
        }
        each_row(&c, "saturated", &rng, check_saturated);
        case_free(&c);
    }
}

/* ---- sensitivity --------------------------------------------------------------------------- */

enum { PROBE_ROWS = 33, PROBE_COLS = 128, PROBE_TOKENS = 2 };

static void run_probe(const matmul_case *c, const tern_kernel_row *row, float *y) {
    const tern_tile all = {0, PROBE_TOKENS, 0, PROBE_ROWS};
    row->fn.matmul(&c->matrix, &c->activations, &all, y, PROBE_ROWS);
}

/* Fails unless exactly the outputs of `r` changed, for every token. */
static void expect_row_changed(const float *before, const float *after, size_t r, const char *what,
                               size_t where) {
    for (size_t t = 0; t < PROBE_TOKENS; t++)
        for (size_t i = 0; i < PROBE_ROWS; i++)
            if ((before[t * PROBE_ROWS + i] != after[t * PROBE_ROWS + i]) != (i == r))
                check_fail("changing %s %zu of row %zu: output %zu of token %zu is wrong", what,
                           where, r, i, t);
}

/* The byte of the file that holds element (r, k), and a bit of it that changes the weight. */
static uint8_t *weight_byte(const matmul_case *c, size_t r, size_t k, uint8_t *bit) {
    const tern_format_info *info = tern_format_describe(c->format);
    const size_t e = r * c->cols + k;
    uint8_t *file = c->file.data;

    if (c->format == TERN_FORMAT_I2_S) {
        uint8_t *byte = file + e / 128 * 32 + e % 32;
        const unsigned shift = 6 - 2 * (unsigned)(e % 128 / 32);
        /* 0 <-> 1 by the low bit, 2 -> 0 by the high bit: never 3 */
        *bit = (uint8_t)((*byte >> shift & 3) == 2 ? 2 << shift : 1 << shift);
        return byte;
    }
    uint8_t *block = file + e / info->block_elements * info->block_bytes;
    const size_t j = e % info->block_elements;
    *bit = 0x01;
    switch (c->format) {
    case TERN_FORMAT_Q4_0:
    case TERN_FORMAT_Q4_1:
        *bit = j < 16 ? 0x01 : 0x10;
        return block + info->block_bytes - 16 + j % 16;
    case TERN_FORMAT_Q8_0:
        return block + 2 + j;
    default: /* the top byte of a float: sign */
        *bit = 0x80;
        return block + info->block_bytes - 1;
    }
}

/* One weight at a time, of every column in one row and of every row in the last column. */
static void check_weights_matter(const matmul_case *c, const tern_kernel_row *row, check_rng *rng) {
    float before[PROBE_TOKENS * PROBE_ROWS];
    float after[PROBE_TOKENS * PROBE_ROWS];
    matmul_case changed = *c;

    run_probe(c, row, before);
    for (size_t i = 0; i < PROBE_COLS + PROBE_ROWS; i++) {
        const size_t r = i < PROBE_COLS ? check_below(rng, PROBE_ROWS) : i - PROBE_COLS;
        const size_t k = i < PROBE_COLS ? i : PROBE_COLS - 1;
        uint8_t bit;
        uint8_t *byte = weight_byte(c, r, k, &bit);

        *byte ^= bit;
        case_pack(&changed);
        run_probe(&changed, row, after);
        *byte ^= bit;
        expect_row_changed(before, after, r, "weight", k);
    }
    case_pack(&changed);
}

/* Every f16 scale (and minimum) of one row; for I2_S the tensor's. */
static void check_scales_matter(const matmul_case *c, const tern_kernel_row *row, check_rng *rng) {
    const tern_format_info *info = tern_format_describe(c->format);
    float before[PROBE_TOKENS * PROBE_ROWS];
    float after[PROBE_TOKENS * PROBE_ROWS];
    matmul_case changed = *c;

    run_probe(c, row, before);
    if (c->format == TERN_FORMAT_I2_S) {
        changed.matrix.scale *= 2.0f;
        run_probe(&changed, row, after);
        for (size_t i = 0; i < PROBE_TOKENS * PROBE_ROWS; i++)
            assert_true(after[i] == 2.0f * before[i]);
        return;
    }
    const size_t fields = (c->format == TERN_FORMAT_Q4_1 ? 2 : 1) * PROBE_COLS / TERN_BLOCK;
    for (size_t f = 0; f < fields; f++) {
        const size_t r = check_below(rng, PROBE_ROWS);
        const size_t block = r * PROBE_COLS / TERN_BLOCK + f % (PROBE_COLS / TERN_BLOCK);
        uint8_t *field = (uint8_t *)c->file.data + block * info->block_bytes +
                         2 * (f / (PROBE_COLS / TERN_BLOCK));
        field[1] ^= 0x80; /* the sign */
        case_pack(&changed);
        run_probe(&changed, row, after);
        field[1] ^= 0x80;
        expect_row_changed(before, after, r, "scale", f);
    }
    case_pack(&changed);
}

/* Every activation, by itself, changes its token's outputs and no others. */
static void check_activations_matter(const matmul_case *c, const tern_kernel_row *row,
                                     check_rng *rng) {
    float before[PROBE_TOKENS * PROBE_ROWS];
    float after[PROBE_TOKENS * PROBE_ROWS];
    int8_t *q = c->q.data;
    float *x = c->x.data;

    (void)rng;
    run_probe(c, row, before);
    for (size_t k = 0; k < PROBE_COLS; k++) {
        x[k] = -x[k];
        q[k] = (int8_t)(q[k] ^ 0x10); /* sums stay: the outputs must see the codes themselves */
        run_probe(c, row, after);
        x[k] = -x[k];
        q[k] = (int8_t)(q[k] ^ 0x10);
        size_t changed = 0;
        for (size_t i = 0; i < PROBE_ROWS; i++)
            changed += before[i] != after[i];
        if (changed < PROBE_ROWS / 3) /* a weight may be 0 */
            check_fail("activation %zu changes only %zu outputs", k, changed);
        for (size_t i = PROBE_ROWS; i < PROBE_TOKENS * PROBE_ROWS; i++)
            assert_true(before[i] == after[i]);
    }
}

/* A code of 0 would hide its weight: make it 1. The sums no longer fit, which changes nothing here.
 */
static void avoid_zero_codes(matmul_case *c) {
    int8_t *q = c->q.data;

    for (size_t i = 0; i < PROBE_TOKENS * PROBE_COLS; i++)
        q[i] = q[i] == 0 ? 1 : q[i];
}

static void check_sensitivity(void **state) {
    const tern_format format = *(const tern_format *)*state;
    check_rng rng = {99};

    if (!case_possible(format, PROBE_ROWS, PROBE_COLS))
        check_fail("the probe's shape does not suit the format");
    matmul_case c =
        case_new(format, PROBE_ROWS, PROBE_COLS, PROBE_TOKENS, CASE_RANDOM, CHECK_END, &rng);
    avoid_zero_codes(&c);
    each_row(&c, "weights", &rng, check_weights_matter);
    if (case_layout(format) != TERN_LAYOUT_ROWS)
        each_row(&c, "scales", &rng, check_scales_matter);
    each_row(&c, "activations", &rng, check_activations_matter);
    case_free(&c);
}

/* ---- the program --------------------------------------------------------------------------- */

#define FORMAT_TESTS(name, text, id, elements, bytes)                                              \
    {text " shapes", check_shapes, NULL, NULL, &formats[TERN_FORMAT_##name]},                      \
        {text " long columns", check_long_columns, NULL, NULL, &formats[TERN_FORMAT_##name]},      \
        {text " rectangles", check_partial, NULL, NULL, &formats[TERN_FORMAT_##name]},             \
        {text " sensitivity", check_sensitivity, NULL, NULL, &formats[TERN_FORMAT_##name]},

int main(void) {
    static tern_format formats[TERN_FORMAT_COUNT];
    for (int i = 0; i < TERN_FORMAT_COUNT; i++)
        formats[i] = (tern_format)i;

    const struct CMUnitTest tests[] = {cmocka_unit_test(check_ternary_saturation),
                                       TERN_FORMAT_LIST(FORMAT_TESTS)};
    table_report();
    return cmocka_run_group_tests_name("matrix products", tests, NULL, NULL);
}
