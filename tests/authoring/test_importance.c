/* SPDX-License-Identifier: Apache-2.0 */
/* Importance of columns: both forms of its file, and quantizers that use it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "authoring/convert/int4.h"
#include "authoring/importance.h"
#include "kernels/quantize_important.h"
#include "tern/kernels.h"
#include "tests/support/check.h"
#include "tests/support/failing_malloc.h"
#include "tests/support/gguf_bytes.h"

/* ---- files ----------------------------------------------------------------------------------- */

static void add_number(gguf_bytes *b, int32_t x) {
    gguf_add(b, &x, sizeof x);
}

static void add_entry(gguf_bytes *b, const char *name, const float *sums, int32_t n) {
    add_number(b, (int32_t)strlen(name));
    gguf_add(b, name, strlen(name));
    add_number(b, 2);
    add_number(b, n);
    gguf_add(b, sums, (size_t)n * sizeof *sums);
}

/* A file of the older form with one entry of four columns; optional parts may follow. */
static gguf_bytes old_file(const float sums[4]) {
    gguf_bytes b = {NULL, 0};
    add_number(&b, 1);
    add_entry(&b, "blk.0.attn_q.weight", sums, 4);
    return b;
}

static const float sums_of_four[4] = {2.0f, 0.0f, 4.0f, 1.0f};

static tern_importance accept(const gguf_bytes *b) {
    tern_importance m = {.n = 0};
    tern_error err = {0};
    if (tern_importance_parse(b->data, b->size, "good", &m, &err) != TERN_OK)
        fail_msg("%s", err.message);
    return m;
}

static void refuse(gguf_bytes *b, tern_status wanted, const char *word) {
    tern_importance m = {.n = 77};
    tern_error err = {0};
    const tern_status status = tern_importance_parse(b->data, b->size, "bad.dat", &m, &err);
    if (status != wanted || strstr(err.message, word) == NULL)
        fail_msg("status %d, not %d: %s (wanted '%s')", status, wanted, err.message, word);
    assert_int_equal(m.n, 77);
    gguf_bytes_free(b);
}

static void test_old_form(void **state) {
    (void)state;
    gguf_bytes b = old_file(sums_of_four);
    for (int ends = 0; ends < 3; ends++) {
        tern_importance m = accept(&b);
        const tern_importance_entry *e = tern_importance_find(&m, "blk.0.attn_q.weight");
        assert_non_null(e);
        assert_int_equal(e->cols, 4);
        assert_int_equal(e->matrices, 1);
        assert_true(e->rows[0] == 2.0 && e->squares[2] == 4.0);
        assert_int_equal(m.chunks, ends > 0 ? 9 : 0);
        assert_null(tern_importance_find(&m, "blk.0.attn_k.weight"));
        tern_importance_free(&m);
        add_number(&b, ends == 0 ? 9 : 3); /* chunks, then the name of the text */
        if (ends == 1)
            gguf_add(&b, "abc", 3);
    }
    gguf_bytes_free(&b);
}

static void test_hostile_old_form(void **state) {
    (void)state;
    gguf_bytes b = old_file(sums_of_four);
    for (size_t size = 0; size < b.size; size++) {
        gguf_bytes cut = {NULL, 0};
        tern_importance m = {.n = 0};
        gguf_add(&cut, b.data, size);
        assert_int_not_equal(tern_importance_parse(cut.data, size, "cut", &m, NULL), TERN_OK);
        gguf_bytes_free(&cut);
    }
    gguf_bytes_free(&b);
    for (int i = 0; i < 3; i++) {
        const float bad[3] = {-1.0f, INFINITY, NAN};
        const float sums[4] = {1.0f, 1.0f, 1.0f, bad[i]};
        b = old_file(sums);
        refuse(&b, TERN_ERR_TENSOR_DATA, "column 3");
    }
    b = old_file(sums_of_four);
    memcpy(b.data, &(int32_t){2000000000}, 4);
    refuse(&b, TERN_ERR_MAGIC, "neither GGUF nor a list");
    b = old_file(sums_of_four);
    memcpy(b.data + 4, &(int32_t){-5}, 4);
    refuse(&b, TERN_ERR_TRUNCATED, "entry 0");
    b = old_file(sums_of_four);
    add_number(&b, 3);
    add_number(&b, 8);
    refuse(&b, TERN_ERR_TRUNCATED, "not a valid end");
    b = (gguf_bytes){NULL, 0};
    add_number(&b, 2);
    add_entry(&b, "a", sums_of_four, 4);
    add_entry(&b, "a", sums_of_four, 4);
    refuse(&b, TERN_ERR_TENSOR_DUPLICATE, "a is there twice");
}

/* Only a GGUF file whose type is that of importance, letter by letter, is read as such. */
static void test_other_types(void **state) {
    static const char *const types[] = {NULL,       "",        "model",  "imatri",
                                        "imatrix2", "adapter", "Imatrix"};

    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        gguf_bytes b = {NULL, 0};
        gguf_add_header(&b, 3, 0, types[i] != NULL);
        if (types[i] != NULL)
            gguf_add_key_string(&b, "general.type", types[i]);
        refuse(&b, TERN_ERR_MAGIC, "none of importance");
    }
}

/* Both forms read back what was written; the older one keeps only the means. */
static void test_written(void **state) {
    (void)state;
    char folder[] = "/tmp/tern-importance-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    tern_importance m = {.chunks = 3, .chunk_tokens = 8, .text = "text.txt"};
    tern_importance_entry *e = tern_importance_add(&m, "blk.1.ffn_up.weight", 4, 1);
    e->rows[0] = 24.0;
    for (int i = 0; i < 4; i++)
        e->squares[i] = 3.0 * i;
    for (int old = 0; old < 2; old++) {
        tern_importance back = {.n = 0};
        tern_error err = {0};
        (void)snprintf(path, sizeof path, "%s/m.%s", folder, old ? "dat" : "gguf");
        assert_int_equal(tern_importance_write(&m, path, TERN_OUT_NEW, &err), TERN_OK);
        assert_int_equal(tern_importance_write(&m, path, TERN_OUT_NEW, &err), TERN_ERR_EXISTS);
        if (tern_importance_read(path, &back, &err) != TERN_OK)
            fail_msg("%s", err.message);
        assert_int_equal(back.n, 1);
        assert_int_equal(back.chunks, 3);
        assert_string_equal(back.entries[0].name, "blk.1.ffn_up.weight");
        for (int i = 0; i < 4; i++)
            assert_true(back.entries[0].squares[i] / back.entries[0].rows[0] == 3.0 * i / 24.0);
        tern_importance_free(&back);
        assert_int_equal(unlink(path), 0);
    }
    tern_importance_free(&m);
    assert_int_equal(rmdir(folder), 0);
}

/* Every allocation of the reader fails once. Nothing leaks, and no half-read result is left. */
static void test_short_memory(void **state) {
    (void)state;
    if (!ALLOCATIONS_CAN_FAIL)
        check_skip("a sanitizer has allocations of its own");
    gguf_bytes b = old_file(sums_of_four);
    bool failed = true;
    for (size_t n = 1; failed; n++) {
        tern_importance m = {.n = 0};
        const long before = allocations_live;
        allocations_asked = 0;
        allocation_that_fails = n;
        failed = tern_importance_parse(b.data, b.size, "old", &m, NULL) == TERN_ERR_NOMEM;
        allocation_that_fails = 0;
        tern_importance_free(&m);
        assert_int_equal(allocations_live, before);
    }
    gguf_bytes_free(&b);
}

static void test_weights(void **state) {
    (void)state;
    double squares[4] = {0.0, 1.0, 2.0, 5.0}, rows = 1.0;
    tern_importance_entry e = {.cols = 4, .matrices = 1, .rows = &rows, .squares = squares};
    float w[4];
    tern_importance_weights(&e, 4, 0, w);
    assert_true(w[0] == 0x1p-10f && w[2] == 1.0f + 0x1p-10f && w[3] == 2.5f + 0x1p-10f);
    memset(squares, 0, sizeof squares);
    tern_importance_weights(&e, 4, 0, w);
    assert_true(w[0] == 1.0f + 0x1p-10f);
}

/* ---- experts --------------------------------------------------------------------------------- */

/* Three experts of four columns each; the second one has no data. */
static tern_importance three_experts(void) {
    static const double sums[12] = {1, 1, 2, 4, 0, 0, 0, 0, 3, 1, 0, 4};
    tern_importance m = {.chunks = 2, .chunk_tokens = 8, .text = "text.txt"};
    tern_importance_entry *e = tern_importance_add(&m, "blk.1.ffn_up_exps.weight", 4, 3);
    assert_non_null(e);
    memcpy(e->squares, sums, sizeof sums);
    e->rows[0] = 4.0;
    e->rows[2] = 12.0;
    return m;
}

/* Each expert has its own weights. One without data gets the mean over all experts. */
static void test_weights_of_experts(void **state) {
    (void)state;
    static const float wanted[3][4] = {{.5f, .5f, 1, 2}, {1, .5f, .5f, 2}, {1.5f, .5f, 0, 2}};
    tern_importance m = three_experts();
    for (size_t i = 0; i < 3; i++) {
        float w[4];
        tern_importance_weights(&m.entries[0], 4, i, w);
        for (int k = 0; k < 4; k++)
            assert_true(w[k] == wanted[i][k] + 0x1p-10f);
    }
    tern_importance_free(&m);
}

static void test_fits(void **state) {
    (void)state;
    tern_importance m = three_experts();
    const tern_importance_entry *e = &m.entries[0];
    assert_true(tern_importance_fits(e, 4, 3));
    assert_false(tern_importance_fits(e, 4, 2));
    assert_false(tern_importance_fits(e, 4, 1));
    assert_false(tern_importance_fits(e, 3, 4));
    assert_false(tern_importance_fits(e, 2, 6));
    e = tern_importance_add(&m, "one for all, or three of four columns", 12, 1);
    assert_true(tern_importance_fits(e, 12, 1));
    assert_true(tern_importance_fits(e, 12, 7));
    assert_true(tern_importance_fits(e, 4, 3));
    assert_false(tern_importance_fits(e, 4, 2));
    tern_importance_free(&m);
}

/* Both forms preserve the weights of each expert. */
static void test_written_experts(void **state) {
    (void)state;
    char folder[] = "/tmp/tern-importance-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    tern_importance m = three_experts();
    for (int old = 0; old < 2; old++) {
        tern_importance back = {.n = 0};
        tern_error err = {0};
        (void)snprintf(path, sizeof path, "%s/m.%s", folder, old ? "dat" : "gguf");
        assert_int_equal(tern_importance_write(&m, path, TERN_OUT_NEW, &err), TERN_OK);
        if (tern_importance_read(path, &back, &err) != TERN_OK)
            fail_msg("%s", err.message);
        const tern_importance_entry *e = &back.entries[0];
        assert_int_equal(e->matrices, old ? 1 : 3);
        assert_int_equal(e->cols, old ? 12 : 4);
        assert_true(old || (e->rows[0] == 4.0 && e->rows[1] == 0.0 && e->rows[2] == 12.0));
        assert_true(tern_importance_fits(e, 4, 3));
        for (size_t i = 0; i < 3; i++) {
            float w[4], other[4];
            tern_importance_weights(&m.entries[0], 4, i, w);
            tern_importance_weights(e, 4, i, other);
            assert_memory_equal(w, other, sizeof w);
        }
        tern_importance_free(&back);
        assert_int_equal(unlink(path), 0);
    }
    tern_importance_free(&m);
    assert_int_equal(rmdir(folder), 0);
}

/* ---- weights that follow the importance ------------------------------------------------------ */

enum { COLS = 512 };

static uint32_t random_state;

static float random_part(void) {
    random_state = random_state * 1664525u + 1013904223u;
    return (float)(random_state >> 8) * 0x1p-24f;
}

/* Roughly normal values and importance weights, with a few large ones among each. */
static void fill(float x[COLS], float w[COLS]) {
    for (int i = 0; i < COLS; i++) {
        x[i] = random_part() + random_part() + random_part() - 1.5f;
        x[i] *= i % 37 == 5 ? 4.0f : 1.0f;
        w[i] = i % 7 == 3 ? 20.0f : 0.1f + random_part();
    }
}

static double error_of(const float *x, const float *w, const float *y) {
    double error = 0.0;
    for (int i = 0; i < COLS; i++)
        error += (double)w[i] * ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
    return error;
}

static bool is_weighed(tern_format f) {
    return tern_format_describe(f) != NULL && tern_format_weighs(f);
}

static bool is_written_without(tern_format f) {
    static uint8_t file[256 * sizeof(float)];
    static const float x[256];
    return tern_quantize_weights(f, x, 1, 256, file, NULL, NULL) == TERN_OK;
}

/* Importance lowers the weighted error of eight rows together, in every format that can be written
 * without it too. Where scales have few bits to choose from, it lowers it less. */
static void test_error_is_smaller(void **state) {
    (void)state;
    for (tern_format f = 0; f < TERN_FORMAT_COUNT; f++) {
        if (!is_weighed(f) || !is_written_without(f))
            continue;
        const double most = f == TERN_FORMAT_Q6_K ? 0.97 : 0.9;
        double sums[2] = {0.0, 0.0};
        random_state = 5;
        for (int row = 0; row < 8; row++) {
            float x[COLS], w[COLS], y[COLS];
            static uint8_t file[COLS * sizeof(float)];
            double errors[2];
            fill(x, w);
            assert_int_equal(tern_quantize_weights(f, x, 1, COLS, file, NULL, NULL), TERN_OK);
            tern_dequantize_row(f, file, COLS, 0, 1.0f, y);
            errors[0] = error_of(x, w, y);
            assert_true(tern_quantize_important(f, NULL, x, w, COLS, file));
            tern_dequantize_row(f, file, COLS, 0, 1.0f, y);
            errors[1] = error_of(x, w, y);
            sums[0] += errors[0];
            sums[1] += errors[1];
        }
        if (sums[1] > most * sums[0])
            fail_msg("%s: %g, without importance %g", tern_format_describe(f)->name, sums[1],
                     sums[0]);
    }
}

static void test_int4(void **state) {
    (void)state;
    static const tern_int4_rows forms[] = {
        {.group = 32}, {.group = 128}, {.group = COLS}, {.group = 64, .zero_points = true}};
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        double sums[2] = {0.0, 0.0};
        random_state = 9;
        for (int row = 0; row < 8; row++) {
            float x[COLS], w[COLS], y[COLS];
            uint8_t file[COLS];
            fill(x, w);
            for (int weighed = 0; weighed < 2; weighed++) {
                assert_true(convert_int4_encode(&forms[f], x, weighed ? w : NULL, COLS, file));
                convert_int4_decode(&forms[f], file, COLS, y);
                sums[weighed] += error_of(x, w, y);
            }
        }
        if (sums[1] > 0.85 * sums[0])
            fail_msg("form %zu: %g, without importance %g", f, sums[1], sums[0]);
    }
}

static const tern_format grids[] = {TERN_FORMAT_IQ1_S,  TERN_FORMAT_IQ1_M, TERN_FORMAT_IQ2_XXS,
                                    TERN_FORMAT_IQ2_XS, TERN_FORMAT_IQ2_S, TERN_FORMAT_IQ3_XXS,
                                    TERN_FORMAT_IQ3_S};
enum { GRIDS = sizeof grids / sizeof *grids };
static tern_grid_search searches[GRIDS];

static double relative_error(tern_format format, const uint8_t *file, const float *x, size_t n) {
    float y[COLS];
    double error = 0.0, all = 0.0;
    tern_dequantize_row(format, file, n, 0, 1.0f, y);
    for (size_t i = 0; i < n; i++) {
        error += ((double)x[i] - (double)y[i]) * ((double)x[i] - (double)y[i]);
        all += (double)x[i] * (double)x[i];
    }
    return error / all;
}

/* Weights of a block come back, nearly, when all factors are the largest: then d is found at once.
 */
static void test_grids_exact(void **state) {
    (void)state;
    for (size_t f = 0; f < GRIDS; f++) {
        const tern_grid *grid = tern_grid_of(grids[f]);
        const size_t bytes = tern_format_describe(grids[f])->block_bytes;
        random_state = 3;
        for (int round = 0; round < 5; round++) {
            uint8_t block[128], file[128], codes[TERN_GRID_BLOCK], factors[TERN_GRID_HALVES];
            float x[256], w[256];
            for (size_t i = 0; i < bytes; i++)
                block[i] = (uint8_t)(random_part() * 256.0f);
            for (size_t run = 0; run < 256u / grid->run; run++)
                tern_grid_codes(grid, block, run, codes + run * grid->run);
            memset(factors, 2 * (1 << grid->scales.bits) - 1, sizeof factors);
            memset(block, 0, bytes);
            tern_grid_write(grid, factors, codes, block);
            tern_grid_put_d(grids[f], 0x3400, block); /* 0.25 */
            tern_dequantize_row(grids[f], block, 256, 0, 1.0f, x);
            for (int i = 0; i < 256; i++)
                w[i] = 0.5f + random_part();
            assert_true(tern_quantize_important(grids[f], &searches[f], x, w, 256, file));
            const double error = relative_error(grids[f], file, x, 256);
            if (error > 1e-2)
                fail_msg("%s, round %d: relative error %g", tern_format_describe(grids[f])->name,
                         round, error);
        }
    }
}

/* Random weights lose so much of their energy, and less in important columns. */
static void test_grids_error(void **state) {
    static const double most[GRIDS] = {0.30, 0.23, 0.165, 0.115, 0.095, 0.046, 0.03};
    (void)state;
    for (size_t f = 0; f < GRIDS; f++) {
        const char *name = tern_format_describe(grids[f])->name;
        float x[COLS], w[COLS], flat[COLS], y[COLS];
        uint8_t file[2 * 128];
        random_state = 11;
        fill(x, w);
        for (int i = 0; i < COLS; i++)
            flat[i] = 1.0f;
        assert_true(tern_quantize_important(grids[f], &searches[f], x, flat, COLS, file));
        const double error = relative_error(grids[f], file, x, COLS);
        if (error > most[f])
            fail_msg("%s: relative error %g", name, error);
        tern_dequantize_row(grids[f], file, COLS, 0, 1.0f, y);
        const double plain = error_of(x, w, y);
        assert_true(tern_quantize_important(grids[f], &searches[f], x, w, COLS, file));
        tern_dequantize_row(grids[f], file, COLS, 0, 1.0f, y);
        if (error_of(x, w, y) > 0.7 * plain)
            fail_msg("%s: %g, without importance %g", name, error_of(x, w, y), plain);
    }
}

/* Digits that are no entry have neighbours in the grid. */
static void test_grid(void **state) {
    (void)state;
    for (size_t f = 0; f < GRIDS; f++) {
        const tern_grid *grid = tern_grid_of(grids[f]);
        const int all = grid->base == 3 ? 6561 : 4096;
        int entries = 0;
        for (int number = 0; number < all; number++) {
            entries += searches[f].is_entry[number];
            for (int i = 0; !searches[f].is_entry[number] && i < TERN_GRID_NEAR; i++)
                assert_in_range(searches[f].near[number][i], 0, grid->count - 1);
        }
        assert_int_equal(entries, grid->count);
    }
}

static void check_extremes(tern_format format) {
    const tern_grid_search *search = NULL;
    float x[256] = {0.0f}, w[256], y[256];
    uint8_t file[256 * sizeof(float)];
    for (size_t f = 0; f < GRIDS; f++)
        search = grids[f] == format ? &searches[f] : search;
    for (int i = 0; i < 256; i++)
        w[i] = 1.0f;
    assert_true(tern_format_weighs(format));
    assert_true(tern_quantize_important(format, search, x, w, 256, file));
    tern_dequantize_row(format, file, 256, 0, 1.0f, y);
    for (int i = 0; i < 256; i++)
        assert_true(y[i] == 0.0f);
    for (int i = 0; i < 256; i++)
        x[i] = i % 2 ? 1e30f : -1e30f;
    if (tern_quantize_important(format, search, x, w, 256, file))
        fail_msg("%s takes 1e30", tern_format_describe(format)->name);
}

/* Zeros stay 0. Values beyond the reach of an f16 scale are refused. */
static void test_extremes(void **state) {
    (void)state;
    for (tern_format f = 0; f < TERN_FORMAT_COUNT; f++)
        if (is_weighed(f))
            check_extremes(f);
    assert_false(tern_format_weighs(TERN_FORMAT_Q8_0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_old_form),
        cmocka_unit_test(test_hostile_old_form),
        cmocka_unit_test(test_other_types),
        cmocka_unit_test(test_written),
        cmocka_unit_test(test_short_memory),
        cmocka_unit_test(test_weights),
        cmocka_unit_test(test_weights_of_experts),
        cmocka_unit_test(test_fits),
        cmocka_unit_test(test_written_experts),
        cmocka_unit_test(test_error_is_smaller),
        cmocka_unit_test(test_int4),
        cmocka_unit_test(test_grids_exact),
        cmocka_unit_test(test_grids_error),
        cmocka_unit_test(test_grid),
        cmocka_unit_test(test_extremes),
    };
    for (size_t f = 0; f < GRIDS; f++)
        tern_grid_search_init(&searches[f], grids[f]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
