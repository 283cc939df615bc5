/* SPDX-License-Identifier: Apache-2.0 */
/* Foreign ternary tensors packed in ranges of rows give the same bytes as the same weights in
 * I2_S. */

#include <string.h>

#include "kernels/import.h"
#include "kernels/pack.h"
#include "kernels/reference_fill.h"
#include "tests/support/check.h"

static const tern_layout layouts[] = {
#define LAYOUT(NAME, ...) TERN_LAYOUT_##NAME,
    TERN_TERNARY_LAYOUT_LIST(LAYOUT)
#undef LAYOUT
};

/* A matrix in I2_S, and the same as a foreign tensor. */
typedef struct pair {
    size_t rows, cols;
    check_buffer i2s, file;
    tern_import how;
} pair;

static uint8_t code_at(const uint8_t *i2s, size_t e) {
    return i2s[e / 128 * 32 + e % 32] >> (6 - 2 * (e % 128 / 32)) & 3;
}

/* Writes the codes, mapped back, one after the other. */
static void write_sequential(pair *p) {
    const size_t n = p->rows * p->cols;
    uint8_t *file = p->file.data;
    memset(file, 0, n / 4);
    for (size_t e = 0; e < n; e++) {
        uint8_t code = 0;
        while (p->how.map[code] != code_at(p->i2s.data, e))
            code++;
        file[e / 4] = (uint8_t)(file[e / 4] | code << (6 - 2 * (e % 4)));
    }
    memcpy(file + n / 4, (const uint8_t *)p->i2s.data + n / 4, 4);
}

/* Rows of IQ2_BN: a scale, then byte j of 64 columns has columns j, j + 16, j + 32 and j + 48. */
static void write_rows(pair *p) {
    const size_t bytes = sizeof(float) + p->cols / 4;
    for (size_t r = 0; r < p->rows; r++) {
        uint8_t *row = (uint8_t *)p->file.data + r * bytes;
        const float scale = 0.5f + (float)r;
        memset(row, 0, bytes);
        memcpy(row, &scale, sizeof scale);
        for (size_t k = 0; k < p->cols; k++) {
            uint8_t *byte = row + sizeof scale + k / 64 * 16 + k % 16;
            *byte = (uint8_t)(*byte | code_at(p->i2s.data, r * p->cols + k) << 2 * (k % 64 / 16));
        }
    }
}

static pair make(tern_import how, size_t rows, size_t cols) {
    pair p = {.rows = rows, .cols = cols, .how = how};
    const size_t bytes = rows * cols / 4 + (how.bn != 0 ? rows * sizeof(float) : 32);
    uint64_t random = rows * 1000 + cols;
    p.i2s = check_buffer_new(rows * cols / 4 + 32, 1, CHECK_END);
    p.file = check_buffer_new(bytes, 1, CHECK_END);
    tern_ref_fill_weights(TERN_FORMAT_I2_S, TERN_REF_FILL_RANDOM, rows, cols, 0.5f, &random,
                          p.i2s.data);
    if (how.bn != 0)
        write_rows(&p);
    else if (how.kind == 0)
        write_sequential(&p);
    else
        assert_int_equal(
            tern_tl_export(how.kind, p.i2s.data, rows, cols, &how.tiles, p.file.data, NULL),
            TERN_OK);
    return p;
}

/* Packs the matrix in ranges of `step` rows, in any order. */
static void check_packed(const pair *p, tern_layout layout, size_t step) {
    const size_t bytes = tern_packed_bytes(layout, p->rows, p->cols);
    check_buffer expected = check_buffer_new(bytes, TERN_ALIGN, CHECK_END);
    check_buffer got = check_buffer_new(bytes, TERN_ALIGN, CHECK_END);
    memset(expected.data, 0, bytes);
    memset(got.data, 0, bytes);
    check_case("%zu x %zu, layout %s, %zu rows at a time", p->rows, p->cols,
               tern_layout_name(layout), step);
    assert_int_equal(tern_pack_rows(TERN_FORMAT_I2_S, p->i2s.data, p->rows, p->cols, layout, 0,
                                    p->rows, expected.data, NULL),
                     TERN_OK);
    for (size_t end = (p->rows + step - 1) / step * step; end > 0; end -= step) {
        const size_t last = end < p->rows ? end : p->rows;
        assert_int_equal(tern_import_pack(&p->how, p->file.data, p->rows, p->cols, layout,
                                          end - step, last, got.data, NULL),
                         TERN_OK);
    }
    check_bytes("packed", expected.data, got.data, bytes);
    check_buffer_free(&expected);
    check_buffer_free(&got);
}

static void check_all(tern_import how, size_t rows, size_t cols) {
    pair p = make(how, rows, cols);
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        check_packed(&p, layouts[i], 16);
        check_packed(&p, layouts[i], 48);
        check_packed(&p, layouts[i], 1024);
    }
    check_buffer_free(&p.i2s);
    check_buffer_free(&p.file);
}

/* Ranges that end inside a unit or inside a group of rows, and a last group that is not full. */
static void test_i2s(void **state) {
    static const uint8_t maps[][4] = {{0, 1, 2, 3}, {1, 2, 0, 3}, {1, 2, 3, 0}};
    (void)state;
    for (size_t m = 0; m < 3; m++) {
        tern_import how = {.order = TERN_I2S_SEQUENTIAL};
        memcpy(how.map, maps[m], 4);
        check_all(how, 1, 128);
        check_all(how, 5, 384);
        check_all(how, 34, 64);
        check_all(how, 32, 20);
        check_all(how, 48, 24);
        check_all(how, 82, 64);
        check_all(how, 40, 48);
    }
}

static void test_tiled(void **state) {
    (void)state;
    check_all((tern_import){.kind = TERN_TL1, .tiles = {32, 16, 32}}, 96, 48);
    check_all((tern_import){.kind = TERN_TL1, .tiles = {64, 4, 64}}, 128, 12);
    check_all((tern_import){.kind = TERN_TL2, .tiles = {32, 96, 32}}, 96, 352);
    check_all((tern_import){.kind = TERN_TL2, .tiles = {64, 480, 32}}, 64, 256); /* only pairs */
    check_all((tern_import){.kind = TERN_TL2, .tiles = {64, 24, 32}}, 64, 264);  /* no pairs */
}

/* Rows with scales of their own, of which one is 0: its codes do not count. */
static void test_rows(void **state) {
    const tern_import how = {.bn = TERN_IQ2_BN, .map = {0, 1, 2, 3}};
    const float zero = 0.0f;
    float scales[6];
    uint8_t stream[TERN_STRIP_ROWS * 64 / 4];
    (void)state;
    check_all(how, 5, 384);
    check_all(how, 34, 64);
    check_all(how, 82, 128);
    pair p = make(how, 6, 64);
    memcpy(p.file.data, &zero, sizeof zero);
    assert_int_equal(tern_import_scales(&how, p.file.data, 6, 64, scales, NULL), TERN_OK);
    for (size_t r = 0; r < 6; r++)
        assert_true(scales[r] == (r == 0 ? 1.5f : 0.5f + (float)r));
    assert_int_equal(tern_import_rows(&how, p.file.data, 6, 64, 0, 6, stream, NULL), TERN_OK);
    for (size_t e = 0; e < 6 * 64; e++)
        assert_int_equal(code_at(stream, e), e < 64 ? 1 : code_at(p.i2s.data, e));
    assert_int_equal(tern_import_check(&how, p.file.data, 6, 96, NULL), TERN_ERR_TENSOR_SHAPE);
    check_buffer_free(&p.i2s);
    check_buffer_free(&p.file);
}

/* An invalid weight is reported by its place in the matrix, whatever the range of rows. */
static void test_places(void **state) {
    tern_import how = {.order = TERN_I2S_SEQUENTIAL, .map = {1, 2, 0, 3}};
    pair p = make(how, 64, 128);
    check_buffer out = check_buffer_new(tern_packed_bytes(layouts[0], 64, 128), 64, CHECK_END);
    tern_error err = {.status = TERN_OK};
    (void)state;
    ((uint8_t *)p.file.data)[50 * 32 + 3] |= 0x30; /* row 50, column 13 */
    assert_int_equal(
        tern_import_pack(&how, p.file.data, 64, 128, layouts[0], 0, 48, out.data, &err), TERN_OK);
    assert_int_equal(
        tern_import_pack(&how, p.file.data, 64, 128, layouts[0], 48, 64, out.data, &err),
        TERN_ERR_TENSOR_DATA);
    assert_string_equal(err.message, "a code that stands for no weight, at row 50, column 13");
    check_buffer_free(&p.i2s);
    check_buffer_free(&p.file);
    check_buffer_free(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_i2s),
        cmocka_unit_test(test_tiled),
        cmocka_unit_test(test_places),
    };
    return cmocka_run_group_tests_name("foreign ternary tensors", tests, NULL, NULL);
}
