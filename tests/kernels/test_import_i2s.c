/* SPDX-License-Identifier: Apache-2.0 */
/* The four orders of codes in tensors called I2_S: worked bytes, all shapes, and refusals. */

#include <math.h>
#include <string.h>

#include "tern/kernels.h"
#include "tests/support/check.h"

enum { ROWS_MAX = 32, COLS_MAX = 256, BYTES_MAX = ROWS_MAX * COLS_MAX / 4 + 32 };

/* The tensor as each writer's loop leaves it, with the codes one after the other in file order. */
static void write_tensor(tern_i2s_order order, const uint8_t *codes, size_t rows, size_t cols,
                         float scale, uint8_t *file) {
    const size_t n = rows * cols;
    size_t out = 0;

    memset(file, 0, n / 4 + 32);
    if (order == TERN_I2S_ROWS_4) {
        for (size_t g = 0; g < rows; g += 4)
            for (size_t k = 0; k < cols; k++, out++)
                for (size_t r = 0; r < 4; r++)
                    file[out] = (uint8_t)(file[out] << 2 | codes[(g + r) * cols + k]);
    } else {
        const size_t step = order == TERN_I2S_UNITS_128 ? 32 : order == TERN_I2S_UNITS_64 ? 16 : 1;
        for (size_t unit = 0; unit < n; unit += 4 * step)
            for (size_t p = 0; p < step; p++, out++)
                for (size_t s = 0; s < 4; s++)
                    file[out] = (uint8_t)(file[out] << 2 | codes[unit + s * step + p]);
    }
    memcpy(file + n / 4, &scale, sizeof scale);
    memset(file + n / 4 + 4, 0xa5, 28); /* bytes after the scale have no meaning */
}

static void check_order(tern_i2s_order order, size_t rows, size_t cols, check_rng *rng) {
    uint8_t codes[ROWS_MAX * COLS_MAX], file[BYTES_MAX], i2s[BYTES_MAX], want[BYTES_MAX];
    tern_error err = {0};

    check_case("order %d, %zu x %zu", (int)order, rows, cols);
    for (size_t e = 0; e < rows * cols; e++)
        codes[e] = (uint8_t)check_below(rng, 3);
    write_tensor(order, codes, rows, cols, 0.75f, file);
    write_tensor(TERN_I2S_UNITS_128, codes, rows, cols, 0.75f, want);
    assert_int_equal(tern_i2s_import(order, file, rows, cols, i2s, &err), TERN_OK);
    check_bytes("codes and scale", want, i2s, rows * cols / 4 + 4);
    for (size_t i = rows * cols / 4 + 4; i < rows * cols / 4 + 32; i++)
        assert_int_equal(i2s[i], 0);
}

static void test_orders(void **state) {
    static const size_t shapes[][2] = {{1, 128}, {4, 32}, {4, 96}, {8, 48}, {12, 160}, {32, 256}};
    check_rng rng = {17};

    (void)state;
    for (int order = TERN_I2S_UNITS_128; order <= TERN_I2S_SEQUENTIAL; order++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            if (order != TERN_I2S_ROWS_4 || shapes[i][0] % 4 == 0)
                check_order((tern_i2s_order)order, shapes[i][0], shapes[i][1], &rng);
}

/* +1, 0, -1, +1 in one byte (0x92) stand for different elements in each order. */
static void test_worked(void **state) {
    static const size_t step[] = {32, 16, 128, 1}; /* between the four elements */
    uint8_t file[160], i2s[160], code[4];
    tern_error err;

    (void)state;
    for (int order = TERN_I2S_UNITS_128; order <= TERN_I2S_SEQUENTIAL; order++) {
        const float scale = 1.0f;
        check_case("order %d", order);
        memset(file, 0x55, sizeof file);
        file[0] = 0x92;
        memcpy(file + 128, &scale, sizeof scale);
        assert_int_equal(tern_i2s_import((tern_i2s_order)order, file, 4, 128, i2s, &err), TERN_OK);
        for (size_t i = 0; i < 4; i++) {
            const size_t e = i * step[order];
            code[i] = i2s[e / 128 * 32 + e % 32] >> (6 - 2 * (e % 128 / 32)) & 3;
        }
        assert_memory_equal(code, "\x02\x01\x00\x02", 4);
    }
}

static void test_refusals(void **state) {
    uint8_t file[64] = {0}, i2s[64];
    float scale = -1.0f;
    tern_error err;

    (void)state;
    file[20] = 0x0c; /* 64-code units: byte 4 of unit 1, bits 3:2, is element 64 + 32 + 4 */
    assert_int_equal(tern_i2s_import(TERN_I2S_UNITS_64, file, 1, 128, i2s, &err),
                     TERN_ERR_TENSOR_DATA);
    assert_string_equal(err.message, "code 3 at row 0, column 100");
    memcpy(file + 32, &scale, sizeof scale);
    assert_int_equal(tern_i2s_import(TERN_I2S_UNITS_64, file, 1, 128, i2s, &err),
                     TERN_ERR_TENSOR_DATA);
    assert_string_equal(err.message, "scale -1 at byte 32");
    assert_int_equal(tern_i2s_import(TERN_I2S_ROWS_4, file, 1, 128, i2s, &err),
                     TERN_ERR_TENSOR_SHAPE);
    assert_int_equal(tern_i2s_import(TERN_I2S_ROWS_4, file, 2, 64, i2s, &err),
                     TERN_ERR_TENSOR_SHAPE);
    assert_int_equal(tern_i2s_import(TERN_I2S_UNITS_64, file, 1, 64, i2s, &err),
                     TERN_ERR_TENSOR_SHAPE);
    assert_int_equal(tern_i2s_import((tern_i2s_order)4, file, 1, 128, i2s, &err), TERN_ERR_ARG);
    assert_int_equal(tern_i2s_import(TERN_I2S_UNITS_64, NULL, 1, 128, i2s, &err), TERN_ERR_NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_worked),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests_name("orders of I2_S", tests, NULL, NULL);
}
