/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every matrix product of the kernel table against the reference, bit for bit. One loop runs over
 * the table, so a new kernel is tested automatically. TERN_TEST_FILTER=text limits the kernels by
 * name, TERN_TEST_EVERY=n takes only every n-th shape (for emulators).
 */

#include <stdlib.h>
#include <string.h>

#include "tests/kernels/matmul_case.h"
#include "tests/kernels/table.h"

enum { TOKENS_MAX = 33 };

/* Sizes around every tile boundary: 1, 2, 4, 8, 16 rows or tokens, plus and minus one. */
static const size_t row_counts[] = {1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 48, 96, 100};
static const size_t col_counts[] = {1,  3,  4,   12,  15,  16,  20,  31,  32,
                                    64, 96, 100, 128, 132, 160, 256, 512, 768};
static const size_t token_counts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, TOKENS_MAX, 65, 131};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static bool is_product_of(const tern_kernel_row *kernel, tern_format format, tern_layout layout) {
    return (kernel->op == TERN_OP_GEMV || kernel->op == TERN_OP_GEMM) && kernel->layout == layout &&
           (layout != TERN_LAYOUT_ROWS || kernel->format == format) && table_runnable(kernel);
}

/* True if the layout holds the format and a kernel reads it. Otherwise there is nothing to
 * compare. */
static bool has_rows(tern_format format, tern_layout layout) {
    size_t count;
    const tern_kernel_row *kernels = tern_kernel_rows(&count);

    const bool held =
        tern_layout_holds(layout, format) || tern_layout_sparse_format(layout) == format;

    for (size_t i = 0; i < count && held; i++)
        if (is_product_of(&kernels[i], format, layout))
            return true;
    return false;
}

/* Calls `visit` for every runnable product of a case's layout. */
static void each_row(const matmul_case *c, const char *kind, check_rng *rng,
                     void (*visit)(const matmul_case *, const tern_kernel_row *, check_rng *)) {
    size_t count;
    const tern_kernel_row *kernels = tern_kernel_rows(&count);

    for (size_t i = 0; i < count; i++) {
        if (!is_product_of(&kernels[i], c->format, c->matrix.layout))
            continue;
        check_case("%s, %s %s, %zu x %zu, %zu tokens", kernels[i].name,
                   tern_format_describe(c->format)->name, kind, c->rows, c->cols, c->tokens);
        visit(c, &kernels[i], rng);
    }
}

typedef void layout_visit(const matmul_case *, check_rng *);

/* Runs a random case in every layout that holds the format. */
static void each_layout(tern_format format, const case_shape *shape, layout_visit *visit,
                        check_rng *rng) {
    for (int l = 0; l < TERN_LAYOUT_COUNT; l++) {
        const tern_layout layout = (tern_layout)l;
        if (!has_rows(format, layout))
            continue;
        matmul_case c = case_new_layout(format, layout, shape, CASE_RANDOM, CHECK_END, rng);
        visit(&c, rng);
        case_free(&c);
    }
}

/* ---- shapes -------------------------------------------------------------------------------- */

static void check_token_counts(const matmul_case *c, const tern_kernel_row *kernel,
                               check_rng *rng) {
    (void)rng;
    for (size_t i = 0; i < COUNT(token_counts); i++)
        if (token_counts[i] <= c->tokens)
            case_check_tile(c, kernel->fn.matmul, (tern_tile){0, token_counts[i], 0, c->rows},
                            i % 2 == 0 ? CHECK_END : CHECK_START);
}

static void check_layout(tern_format format, tern_layout layout, const case_shape *shape,
                         case_kind kind) {
    check_rng rng = {shape->rows * 1000003 + shape->cols * 1009 + (uint64_t)kind};
    const check_place place = (shape->rows + shape->cols) % 3 == 0 ? CHECK_START : CHECK_END;

    if (!has_rows(format, layout) || table_left_out())
        return;
    check_case("%s as %s, %zu x %zu", tern_format_describe(format)->name, tern_layout_name(layout),
               shape->rows, shape->cols);
    matmul_case c = case_new_layout(format, layout, shape, kind, place, &rng);
    each_row(&c, case_kind_name(kind), &rng, check_token_counts);
    case_free(&c);
}

/* Every layout that holds the format. */
static void check_shape(tern_format format, size_t rows, size_t cols, size_t tokens,
                        case_kind kind) {
    const case_shape shape = {rows, cols, tokens};

    if (!case_possible(format, rows, cols))
        return;
    for (int layout = 0; layout < TERN_LAYOUT_COUNT; layout++)
        check_layout(format, (tern_layout)layout, &shape, kind);
}

/* 512 and 768 columns are for formats with blocks so long that other widths have no tails. */
static bool worthwhile(tern_format format, size_t cols) {
    return cols <= 256 || tern_format_describe(format)->block_elements > TERN_BLOCK;
}

/* All shapes with random data. The other kinds of data take turns, each on every third shape. */
static void check_shapes(void **state) {
    const tern_format format = *(const tern_format *)*state;
    size_t shape = 0;

    for (size_t r = 0; r < COUNT(row_counts); r++) {
        for (size_t k = 0; k < COUNT(col_counts); k++, shape++) {
            if (!worthwhile(format, col_counts[k]))
                continue;
            check_shape(format, row_counts[r], col_counts[k], TOKENS_MAX, CASE_RANDOM);
            for (int kind = CASE_RANDOM + 1; kind < CASE_KIND_COUNT; kind++)
                if ((shape + (size_t)kind) % 3 == 0)
                    check_shape(format, row_counts[r], col_counts[k], 9, (case_kind)kind);
        }
    }
}

/*
 * Long columns, where narrow accumulators would wrap. 2176 is the first multiple of 128 at which
 * 16-bit lanes that are flushed once per row go wrong, 6912 and 8640 are widths of real models, and
 * 65280 and 65408 are near the largest that ternary formats allow.
 */
static void check_long_columns(void **state) {
    static const size_t cols[] = {2048, 2176, 4096, 4128, 6912, 8640, 65280, 65408};
    const tern_format format = *(const tern_format *)*state;

    for (size_t k = 0; k < COUNT(cols); k++)
        for (int kind = 0; kind < CASE_KIND_COUNT; kind++)
            check_shape(format, cols[k] > 8640 ? 2 : 18, cols[k], cols[k] > 8640 ? 1 : 5,
                        (case_kind)kind);
}

/*
 * A few more tokens than any kernel takes at once; 20 rows are a group and a tail. The columns make
 * one part that is unpacked for all tokens, three parts, and a part and less than a chunk.
 */
static void check_many_tokens(void **state) {
    const tern_format format = *(const tern_format *)*state;

    for (int kind = 0; kind < CASE_KIND_COUNT; kind++)
        check_shape(format, 20, 256, kind == CASE_RANDOM ? 131 : 67, (case_kind)kind);
    check_shape(format, 20, 1536, 67, CASE_RANDOM);
    check_shape(format, 48, 648, 46, CASE_RANDOM);
}

/* ---- rectangles ---------------------------------------------------------------------------- */

static void check_rectangles(const matmul_case *c, const tern_kernel_row *kernel, check_rng *rng) {
    for (int i = 0; i < 40; i++) {
        tern_tile tile;
        tile.t0 = check_below(rng, (uint32_t)c->tokens);
        tile.t1 = tile.t0 + 1 + check_below(rng, (uint32_t)(c->tokens - tile.t0));
        tile.r0 = check_below(rng, (uint32_t)((c->rows + 15) / 16)) * 16;
        tile.r1 = tile.r0 + 16 + 16 * (size_t)check_below(rng, 4);
        if (tile.r1 > c->rows)
            tile.r1 = c->rows;
        case_check_tile(c, kernel->fn.matmul, tile, i % 2 == 0 ? CHECK_END : CHECK_START);
    }
    case_check_tile(c, kernel->fn.matmul, (tern_tile){3, 7, 32, 32}, CHECK_END); /* empty */
}

static void check_layout_rectangles(const matmul_case *c, check_rng *rng) {
    each_row(c, "rectangles", rng, check_rectangles);
}

static void check_partial(void **state) {
    const tern_format format = *(const tern_format *)*state;
    check_rng rng = {77};

    const size_t cols = case_possible(format, 100, 160) ? 160 : 256;
    each_layout(format, &(case_shape){100, cols, 19}, check_layout_rectangles, &rng);
}

/* ---- saturation ---------------------------------------------------------------------------- */

/* All codes are 2 and all q are 127, so raw is 2*127*K. With s = scale = 1 and sum = 0, y equals
 * it. */
static void check_saturated(const matmul_case *c, const tern_kernel_row *kernel, check_rng *rng) {
    const float want = 2.0f * 127.0f * (float)c->cols;
    float y[2][16];
    const tern_tile all = {0, 2, 0, 16};

    (void)rng;
    kernel->fn.matmul(&c->matrix, &c->activations, &all, &y[0][0], 16);
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
        c.matrix.row_scale = NULL;
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

enum { PROBE_ROWS = 33, PROBE_COLS = 256, PROBE_TOKENS = 2, PROBE_OUTPUTS = 33 * 2 };

static void run_probe(const matmul_case *c, const tern_kernel_row *kernel, float *y) {
    const tern_tile all = {0, PROBE_TOKENS, 0, PROBE_ROWS};
    kernel->fn.matmul(&c->matrix, &c->activations, &all, y, PROBE_ROWS);
}

static void run_reference(const matmul_case *c, float *y) {
    const tern_ref_matrix reference = case_reference(c);
    const tern_tile all = {0, PROBE_TOKENS, 0, PROBE_ROWS};
    tern_ref_matmul(&reference, &c->activations, &all, y, PROBE_ROWS);
}

/* Number of outputs whose bits differ. */
static size_t count_changed(const float *before, const float *after) {
    size_t changed = 0;
    for (size_t i = 0; i < PROBE_OUTPUTS; i++)
        changed += !check_same_float(before[i], after[i]);
    return changed;
}

static void check_probe(const matmul_case *c, const tern_kernel_row *kernel, check_rng *rng) {
    float y[PROBE_OUTPUTS];

    (void)rng;
    run_probe(c, kernel, y);
    check_floats("after a changed bit", c->expected.data, y, PROBE_OUTPUTS);
}

/*
 * Flips one bit of the file at a time (codes, scales, minima, whatever there is) in the first row,
 * the last row and anywhere. All kernels of the layout must agree with the reference, which is
 * computed once for all of them, and nearly every bit must change some output. So a kernel that
 * skips a nibble, a scale or a tail is noticed.
 */
static void check_weights_matter(const matmul_case *c, check_rng *rng) {
    const size_t bytes = tern_format_describe(c->format)->block_bytes * PROBE_ROWS * PROBE_COLS /
                         tern_format_describe(c->format)->block_elements;
    float before[PROBE_OUTPUTS], *expected = c->expected.data;
    uint8_t *file = c->file.data;
    const size_t part =
        table_thinned(300); /* bits at the front, as many at the end, twice as many anywhere */
    size_t tried = 0, seen = 0;

    run_reference(c, before);
    for (size_t i = 0; i < 4 * part; i++) {
        const size_t at = i < part       ? i % bytes
                          : i < 2 * part ? bytes - 1 - (i - part) % bytes
                                         : check_below(rng, (uint32_t)bytes);
        const uint8_t bit = (uint8_t)(1u << check_below(rng, 8));

        file[at] ^= bit;
        if (case_repack(c, NULL)) {
            run_reference(c, expected);
            each_row(c, "weights", rng, check_probe);
            seen += count_changed(before, expected) != 0;
            tried++;
        }
        file[at] ^= bit;
    }
    if (3 * tried < 4 * part || seen * 20 < tried * 17) /* a low bit may be rounded away */
        check_fail("of %zu changed bits only %zu change an output", tried, seen);
    if (!case_repack(c, NULL))
        check_fail("packing failed after the file was restored");
}

/* The scale of the tensor or of each row matters, if the layout keeps it outside the weights. */
static void check_scales_matter(const matmul_case *c, const tern_kernel_row *kernel,
                                check_rng *rng) {
    float before[PROBE_OUTPUTS], after[PROBE_OUTPUTS];
    float scales[PROBE_ROWS];
    matmul_case changed = *c;

    (void)rng;
    if (!case_has_outer_scale(c->matrix.layout))
        return;
    changed.matrix.row_scale = NULL;
    changed.matrix.scale = 0.5f;
    run_probe(&changed, kernel, before);
    for (size_t r = 0; r < PROBE_ROWS; r++)
        scales[r] = r % 2 == 0 ? 1.0f : -2.0f;
    changed.matrix.row_scale = scales;
    run_probe(&changed, kernel, after);
    for (size_t i = 0; i < PROBE_OUTPUTS; i++)
        assert_true(after[i] == before[i] * (i % PROBE_ROWS % 2 == 0 ? 2.0f : -4.0f));
}

/* Every single activation changes its token's outputs and no others. */
static void check_activations_matter(const matmul_case *c, const tern_kernel_row *kernel,
                                     check_rng *rng) {
    float before[PROBE_OUTPUTS], after[PROBE_OUTPUTS];
    int8_t *q = c->q.data;
    float *x = c->x.data;

    (void)rng;
    run_probe(c, kernel, before);
    for (size_t k = 0; k < PROBE_COLS; k++) {
        x[k] = -x[k];
        q[k] = (int8_t)(q[k] ^ 0x10); /* sums stay: the outputs must depend on the codes */
        run_probe(c, kernel, after);
        x[k] = -x[k];
        q[k] = (int8_t)(q[k] ^ 0x10);
        size_t changed = 0;
        for (size_t i = 0; i < PROBE_ROWS; i++)
            changed += before[i] != after[i];
        /* A third of ternary weights are 0, so 22 outputs change, with a deviation of 2.7; 5 would
         * be six deviations away. */
        if (changed < PROBE_ROWS / 6)
            check_fail("activation %zu changes only %zu outputs", k, changed);
        for (size_t i = PROBE_ROWS; i < PROBE_OUTPUTS; i++)
            assert_true(before[i] == after[i]);
    }
}

/* A code of 0 would hide its weight, so it becomes 1. The sums are then wrong, which does not
 * matter here. */
static void avoid_zero_codes(matmul_case *c) {
    int8_t *q = c->q.data;

    for (size_t i = 0; i < PROBE_TOKENS * PROBE_COLS; i++)
        q[i] = q[i] == 0 ? 1 : q[i];
}

static void check_activations(const matmul_case *c, const tern_kernel_row *kernel, check_rng *rng) {
    matmul_case changed = *c;

    avoid_zero_codes(&changed);
    check_activations_matter(&changed, kernel, rng);
}

static void check_everything_matters(const matmul_case *c, check_rng *rng) {
    check_weights_matter(c, rng);
    each_row(c, "scales", rng, check_scales_matter);
    each_row(c, "activations", rng, check_activations);
}

static void check_sensitivity(void **state) {
    const tern_format format = *(const tern_format *)*state;
    const case_shape shape = {PROBE_ROWS, PROBE_COLS, PROBE_TOKENS};
    check_rng rng = {99};

    if (!case_possible(format, PROBE_ROWS, PROBE_COLS))
        check_fail("the probe's shape does not suit the format");
    each_layout(format, &shape, check_everything_matters, &rng);
}

/* ---- the program --------------------------------------------------------------------------- */

#define FORMAT_TESTS(name, text, id, elements, bytes)                                              \
    {text " shapes", check_shapes, NULL, NULL, &formats[TERN_FORMAT_##name]},                      \
        {text " long columns", check_long_columns, NULL, NULL, &formats[TERN_FORMAT_##name]},      \
        {text " many tokens", check_many_tokens, NULL, NULL, &formats[TERN_FORMAT_##name]},        \
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
