/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about formats and layouts: names, sizes, scales of rows, and the floats of a row. */

#include <math.h>
#include <string.h>

#include "tests/kernels/matmul_case.h"

/* ---- facts --------------------------------------------------------------------------------- */

static void test_describe(void **state) {
    (void)state;
    for (int i = 0; i < TERN_FORMAT_COUNT; i++) {
        const tern_format_info *info = tern_format_describe((tern_format)i);
        assert_non_null(info);
        assert_int_equal(tern_format_from_gguf(info->gguf_type),
                         info->gguf_type == TERN_NO_GGUF_TYPE ? (int)TERN_FORMAT_NONE : i);
    }
    assert_string_equal(tern_format_describe(TERN_FORMAT_Q4_1)->name, "q4_1");
    assert_int_equal(tern_format_describe(TERN_FORMAT_Q8_0)->block_bytes, 34);
    assert_null(tern_format_describe(TERN_FORMAT_NONE));
    assert_null(tern_format_describe((tern_format)-1));
    assert_int_equal(tern_format_from_gguf(38), TERN_FORMAT_NONE);
    assert_string_equal(tern_layout_name(TERN_LAYOUT_T2R16), "t2r16");
    assert_null(tern_layout_name(TERN_LAYOUT_COUNT));
    assert_string_equal(tern_op_name(TERN_OP_GATE_RELU2), "gate_relu2");
    assert_null(tern_op_name(TERN_OP_COUNT));
}

static uint64_t bytes_of(tern_format format, uint64_t rows, uint64_t cols) {
    uint64_t bytes = 0;
    assert_int_equal(tern_format_bytes(format, rows, cols, &bytes), TERN_OK);
    return bytes;
}

static void test_bytes(void **state) {
    (void)state;
    assert_int_equal(bytes_of(TERN_FORMAT_F32, 3, 5), 60);
    assert_int_equal(bytes_of(TERN_FORMAT_BF16, 3, 5), 30);
    assert_int_equal(bytes_of(TERN_FORMAT_Q4_0, 3, 64), 108);
    assert_int_equal(bytes_of(TERN_FORMAT_Q4_1, 3, 64), 120);
    assert_int_equal(bytes_of(TERN_FORMAT_Q5_0, 3, 64), 132);
    assert_int_equal(bytes_of(TERN_FORMAT_Q8_0, 3, 64), 204);
    assert_int_equal(bytes_of(TERN_FORMAT_I2_S, 6912, 2560), 4423712);
    assert_int_equal(bytes_of(TERN_FORMAT_I2_S, 32, 4), 64);
    assert_int_equal(bytes_of(TERN_FORMAT_TQ1_0, 3, 512), 6 * 54);
    assert_int_equal(bytes_of(TERN_FORMAT_TQ2_0, 3, 512), 6 * 66);
}

static void test_bytes_refused(void **state) {
    static const struct {
        tern_format format;
        uint64_t rows, cols;
    } bad[] = {
        {TERN_FORMAT_F32, 0, 4},
        {TERN_FORMAT_F32, 4, 0},
        {TERN_FORMAT_Q4_0, 4, 48},
        {TERN_FORMAT_Q8_0, 4, 31},
        {TERN_FORMAT_I2_S, 128, 1},
        {TERN_FORMAT_I2_S, 1, 64},
        {TERN_FORMAT_I2_S, 3, 2560 + 4},
        {TERN_FORMAT_I2_S, 128, 65536},
        {TERN_FORMAT_TQ1_0, 4, 128},
        {TERN_FORMAT_TQ2_0, 4, 65536},
        {TERN_FORMAT_F32, UINT64_C(1) << 32, UINT64_C(1) << 32},
        {TERN_FORMAT_F32, UINT64_C(1) << 61, 2},
        {TERN_FORMAT_Q8_0, UINT64_C(1) << 59, 32},
    };
    uint64_t bytes;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(tern_format_bytes(bad[i].format, bad[i].rows, bad[i].cols, &bytes),
                         TERN_ERR_TENSOR_SHAPE);
    assert_int_equal(tern_format_bytes(TERN_FORMAT_NONE, 4, 4, &bytes), TERN_ERR_ARG);
    assert_int_equal(tern_format_bytes(TERN_FORMAT_F32, 4, 4, NULL), TERN_ERR_NULL);
}

static void test_packed_bytes(void **state) {
    (void)state;
    assert_int_equal(tern_packed_bytes(TERN_LAYOUT_T2R16, 16, 16), 64);
    assert_int_equal(tern_packed_bytes(TERN_LAYOUT_T2R16, 17, 20), 2 * 2 * 64);
    assert_int_equal(tern_packed_bytes(TERN_LAYOUT_T5R16, 17, 41), 2 * 3 * 64);
    assert_int_equal(tern_packed_bytes(TERN_LAYOUT_Q4_0R16, 16, 64), 2 * 288);
    assert_int_equal(tern_packed_bytes(TERN_LAYOUT_Q4_1R16, 1, 64), 2 * 320);
    assert_int_equal(tern_packed_bytes(TERN_LAYOUT_Q5_0R16, 17, 96), 2 * 3 * 352);
    assert_int_equal(tern_packed_bytes(TERN_LAYOUT_Q8_0R16, 33, 32), 3 * 544);
    assert_int_equal(tern_packed_bytes(TERN_LAYOUT_ROWS, 16, 64), 0);
    assert_int_equal(tern_packed_bytes(TERN_LAYOUT_NONE, 16, 64), 0);
    assert_int_equal(tern_packed_bytes(TERN_LAYOUT_T2R16, SIZE_MAX, 1024), 0);
    assert_int_equal(tern_packed_bytes(TERN_LAYOUT_Q8_0R16, 16, SIZE_MAX), 0);
}

/* ---- one scale per row --------------------------------------------------------------------- */

enum { SCALE_ROWS = 4, SCALE_COLS = 512 };

static void set_scale(uint8_t *file, size_t row, size_t block, float scale) {
    tern_ref_store(TERN_FORMAT_F16, &scale, 1, file + (2 * row + block) * 66 + 64);
}

static void clear_block(uint8_t *file, size_t row, size_t block) {
    memset(file + (2 * row + block) * 66, 0x55, 64);
}

static void test_row_scales(void **state) {
    uint8_t file[SCALE_ROWS * 2 * 66];
    float scales[SCALE_ROWS];
    uint64_t random = 3;

    (void)state;
#define ROW_SCALES(to) tern_ternary_row_scales(TERN_FORMAT_TQ2_0, file, SCALE_ROWS, SCALE_COLS, to)
    tern_ref_fill_weights(TERN_FORMAT_TQ2_0, TERN_REF_FILL_RANDOM, SCALE_ROWS, SCALE_COLS, 1.0f,
                          &random, file);
    assert_false(ROW_SCALES(scales));
    for (size_t r = 0; r < SCALE_ROWS; r++) {
        set_scale(file, r, 0, 0.25f + (float)r);
        set_scale(file, r, 1, 0.25f + (float)r);
    }
    assert_true(ROW_SCALES(NULL) && ROW_SCALES(scales));
    for (size_t r = 0; r < SCALE_ROWS; r++)
        assert_true(scales[r] == 0.25f + (float)r);
    set_scale(file, 3, 1, 7.0f); /* the last block of the matrix */
    assert_false(ROW_SCALES(NULL));
    clear_block(file, 3, 1); /* zero weights suit any scale */
    assert_true(ROW_SCALES(scales) && scales[3] == 3.25f);
    set_scale(file, 2, 0, NAN);
    assert_false(ROW_SCALES(scales));
    clear_block(file, 2, 0);
    assert_true(ROW_SCALES(scales) && scales[2] == 2.25f);
    for (size_t b = 0; b < 2; b++) { /* rows of zeros before and after a row with a scale */
        clear_block(file, 0, b);
        clear_block(file, 2, b);
    }
    assert_true(ROW_SCALES(scales) && scales[0] == 1.25f && scales[2] == 1.25f);
#undef ROW_SCALES
    assert_false(tern_ternary_row_scales(TERN_FORMAT_Q4_0, file, 1, 32, scales));
    memset(file, 0x55, 64);
    memcpy(file + 32, "\x00\x00\x40\x3f", 4);
    assert_true(tern_ternary_row_scales(TERN_FORMAT_I2_S, file, 2, 64, scales));
    assert_true(scales[0] == 0.75f && scales[1] == 0.75f);
}
/* ---- dequantization ------------------------------------------------------------------------ */

static void test_dequantize(void **state) {
    check_rng rng = {13};
    float y[256];

    (void)state;
    for (int f = 0; f < TERN_FORMAT_COUNT; f++) {
        matmul_case c = case_new((tern_format)f, 5, 256, 1, CASE_EXTREME, CHECK_END, &rng);
        const tern_ref_matrix reference = case_reference(&c);
        const uint64_t before = tern_dequantize_calls();
        for (size_t row = 0; row < 5; row++) {
            tern_dequantize_row(c.format, c.file.data, 256, row, 0.75f, y);
            for (size_t k = 0; k < 256; k++) {
                const float weight = tern_ref_weight(&reference, row, k);
                const bool outer = c.format == TERN_FORMAT_I2_S || c.format == TERN_FORMAT_INT8;
                const float want = outer ? weight * 0.75f : weight;
                assert_true(check_same_float(want, y[k]));
            }
        }
        assert_int_equal(tern_dequantize_calls() - before, 5);
        case_free(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_describe),      cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_bytes_refused), cmocka_unit_test(test_packed_bytes),
        cmocka_unit_test(test_row_scales),    cmocka_unit_test(test_dequantize),
    };
    return cmocka_run_group_tests_name("formats", tests, NULL, NULL);
}
