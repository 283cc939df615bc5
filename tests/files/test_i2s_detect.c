/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of tensors that are called I2_S, and the kind that follows from them. */

#include "runtime/files/gguf/i2s_detect.h"
#include "tests/support/check.h"

static tern_i2s_kind detect(uint64_t rows, uint64_t cols, uint64_t extent, uint32_t alignment,
                            bool last) {
    const tern_i2s_place place = {rows, cols, extent, alignment, last};
    check_case("%llu x %llu in %llu", (unsigned long long)rows, (unsigned long long)cols,
               (unsigned long long)extent);
    return tern_i2s_detect(&place);
}

/* The shapes of BitNet b1.58 2B4T, with the published size and with those of other programs. */
static void test_published_shapes(void **state) {
    static const uint64_t shapes[][3] = {
        {2560, 2560, 1638432}, {640, 2560, 409632}, {6912, 2560, 4423712}, {2560, 6912, 4423712}};
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const uint64_t rows = shapes[i][0], cols = shapes[i][1], n = rows * cols;
        assert_int_equal(detect(rows, cols, shapes[i][2], 32, false), TERN_I2S_ONE_SCALE);
        assert_int_equal(detect(rows, cols, n / 4, 32, false), TERN_I2S_NO_SCALE);
        assert_int_equal(detect(rows, cols, n / 32 * 10, 32, false), TERN_I2S_SCALE_32);
        assert_int_equal(detect(rows, cols, n / 256 * 66, 32, false), TERN_I2S_SCALE_256);
        assert_int_equal(detect(rows, cols, n / 4 + 64, 32, false), TERN_I2S_UNKNOWN);
        assert_int_equal(detect(rows, cols, n / 4 + 4, 32, false), TERN_I2S_UNKNOWN);
        assert_int_equal(detect(rows, cols, n / 4 - 32, 32, false), TERN_I2S_UNKNOWN);
    }
}

/* Padding after the last tensor is optional, and so are the bytes after its scale. */
static void test_last(void **state) {
    (void)state;
    assert_int_equal(detect(4, 96, 96 + 32, 32, true), TERN_I2S_ONE_SCALE);
    assert_int_equal(detect(4, 96, 96 + 4, 32, true), TERN_I2S_ONE_SCALE);
    assert_int_equal(detect(2, 4, 2 + 32, 32, true), TERN_I2S_ONE_SCALE);
    assert_int_equal(detect(2, 4, 64, 32, true), TERN_I2S_ONE_SCALE);
    assert_int_equal(detect(2, 4, 2 + 32, 32, false), TERN_I2S_UNKNOWN);
    assert_int_equal(detect(1, 256, 66, 32, true), TERN_I2S_SCALE_256);
    assert_int_equal(detect(1, 32, 10, 32, true), TERN_I2S_SCALE_32);
}

/* Ambiguous sizes: rows of whole 256 columns, large alignments that hide the scale's 32 bytes, and
 * small tensors. */
static void test_collisions(void **state) {
    (void)state;
    assert_int_equal(detect(128, 320, 128 * 512 / 4, 32, false), TERN_I2S_NO_SCALE);
    assert_int_equal(detect(128, 320, 128 * 320 / 4, 32, false), TERN_I2S_UNKNOWN);
    assert_int_equal(detect(16, 256, 1056, 32, false), TERN_I2S_ONE_SCALE);
    assert_int_equal(detect(256, 256, 16384 + 4096, 4096, false), TERN_I2S_ONE_SCALE);
    assert_int_equal(detect(256, 256, 16384, 4096, false), TERN_I2S_NO_SCALE);
}

static void test_texts(void **state) {
    (void)state;
    assert_string_equal(tern_i2s_kind_text(TERN_I2S_SCALE_32),
                        "blocks of 32 weights with a scale each");
    for (int kind = 0; kind <= TERN_I2S_UNKNOWN + 1; kind++)
        assert_non_null(tern_i2s_kind_text((tern_i2s_kind)kind));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_shapes),
        cmocka_unit_test(test_last),
        cmocka_unit_test(test_collisions),
        cmocka_unit_test(test_texts),
    };
    return cmocka_run_group_tests_name("what I2_S is", tests, NULL, NULL);
}
