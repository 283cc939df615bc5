/* SPDX-License-Identifier: Apache-2.0 */
/* Weights from floats: published vectors, definitions written out again, and refusals. */

#include <math.h>
#include <string.h>

#include "kernels/codes.h"
#include "kernels/facts.h"
#include "kernels/half.h"
#include "kernels/reference.h"
#include "kernels/reference_fill.h"
#include "tests/kernels/quantized.h"

#define TERN_PLAIN(NAME, name, ...) TERN_FORMAT_##NAME,
static const tern_format blocks_of_32[] = {
#include "gen/plain.inc"
    TERN_FORMAT_INT4};
static const tern_format by_rows[] = {
#include "gen/plain.inc"
    TERN_FORMAT_F32,  TERN_FORMAT_F16,   TERN_FORMAT_BF16,   TERN_FORMAT_Q4_K,
    TERN_FORMAT_Q5_K, TERN_FORMAT_Q6_K,  TERN_FORMAT_INT4,   TERN_FORMAT_Q1_0,
    TERN_FORMAT_Q2_0, TERN_FORMAT_PQ2_0, TERN_FORMAT_PTQ1_0, TERN_FORMAT_STQ1_0,
    TERN_FORMAT_Q2_K, TERN_FORMAT_Q3_K,  TERN_FORMAT_IQ4_XS, TERN_FORMAT_NVFP4};
#undef TERN_PLAIN
static const tern_format supers[] = {TERN_FORMAT_Q2_K, TERN_FORMAT_Q3_K, TERN_FORMAT_IQ4_XS,
                                     TERN_FORMAT_Q4_K, TERN_FORMAT_Q5_K, TERN_FORMAT_Q6_K};

static uint32_t lcg(uint32_t *state) {
    *state = (*state * 1103515245u + 12345u) & 0x7fffffffu;
    return *state >> 16;
}

/* Random numbers from -127 to 127, times 0.013. */
static void published_floats(float *x, size_t n) {
    uint32_t state = 54321;
    for (size_t i = 0; i < n; i++) {
        const int code = (int)(lcg(&state) & 255) - 128;
        x[i] = (float)(code == -128 ? -127 : code) * 0.013f;
    }
}

static void test_published_blocks(void **state) {
    float x[256];
    uint8_t file[272];

    (void)state;
    published_floats(x, 256);
    assert_false(quantize(TERN_FORMAT_Q4_0, x, 1, 256, file));
    assert_memory_equal(file, "\x9b\x32\x5e\x8e\xa6\xfe\x06\xc2", 8);
    assert_string_equal(check_hash(file, 144), "cc77c83e5b6da666");
    assert_false(quantize(TERN_FORMAT_Q8_0, x, 2, 128, file));
    assert_memory_equal(file, "\xa8\x22\x67\x5a\xdb\x5d\xdb\xa6", 8);
    assert_string_equal(check_hash(file, 272), "c7f5fbaa8f2c2e1b");
}

/* x = -8, -7.5, ..., 7.5. */
static void test_worked_blocks(void **state) {
    static const int8_t bytes[] = {-127, -119, -111, -103, -95, -87, -79, -71, -64, -56, -48};
    float x[32];
    uint8_t file[34];

    (void)state;
    for (int i = 0; i < 32; i++)
        x[i] = (float)(i - 16) / 2;
    assert_false(quantize(TERN_FORMAT_Q4_0, x, 1, 32, file));
    assert_memory_equal(
        file, "\x00\x3c\x80\x91\x91\xa2\xa2\xb3\xb3\xc4\xc4\xd5\xd5\xe6\xe6\xf7\xf7\xf8", 18);
    assert_false(quantize(TERN_FORMAT_Q8_0, x, 1, 32, file));
    assert_memory_equal(file, "\x08\x2c", 2);
    assert_memory_equal(file + 2, bytes, sizeof bytes);
    assert_int_equal((int8_t)file[2 + 31], 119);

    /* From -8 on in steps of a half, every value twice: 16 codes, d = 0.5, m = -8. */
    for (int i = 0; i < 32; i++)
        x[i] = (float)(i / 2) / 2 - 8;
    assert_true(quantize(TERN_FORMAT_Q4_1, x, 1, 32, file));
    assert_memory_equal(file, "\x00\x38\x00\xc8\x80\x80\x91\x91", 8);
    assert_int_equal(file[19], 0xf7);

    /* -16 to 15: d = 1, code i in column i; the fifth bit is set in the upper half. */
    for (int i = 0; i < 32; i++)
        x[i] = (float)(i - 16);
    assert_true(quantize(TERN_FORMAT_Q5_0, x, 1, 32, file));
    assert_memory_equal(file, "\x00\x3c\x00\x00\xff\xff\x00\x11\x22", 9);
    assert_int_equal(file[21], 0xff);
}

/* -2, 0 and 2 come back, and values between become the nearest of them. A block of zeros has d =
 * 0. */
static void test_tq(void **state) {
    static const tern_format formats[] = {TERN_FORMAT_TQ1_0, TERN_FORMAT_TQ2_0, TERN_FORMAT_Q2_0,
                                          TERN_FORMAT_PQ2_0, TERN_FORMAT_PTQ1_0};
    float x[512] = {0}, back[512];
    uint8_t file[8 * 18];

    (void)state;
    for (size_t i = 0; i < 256; i++)
        x[i] = (float)((int)(i * 7 % 3) - 1) * 2.0f;
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
        check_case("%s", tern_format_describe(formats[f])->name);
        assert_true(quantize(formats[f], x, 1, 512, file));
        tern_dequantize_row(formats[f], file, 512, 0, 1.0f, back);
        check_floats("weights", x, back, 512);
        x[3] = 0.999f;
        x[4] = -1.0f;
        assert_false(quantize(formats[f], x, 1, 512, file));
        tern_dequantize_row(formats[f], file, 512, 0, 1.0f, back);
        assert_true(back[3] == 0.0f && back[4] == -2.0f && back[5] == x[5]);
        x[3] = x[4] = -2.0f;
    }
}

/* Signs and the mean magnitude; 0 counts as positive. Different magnitudes become their mean. */
static void test_q1_0(void **state) {
    float x[128], back[128];
    uint8_t file[18];

    (void)state;
    for (size_t i = 0; i < 128; i++)
        x[i] = i % 3 == 0 ? 0.75f : -0.75f;
    assert_true(quantize(TERN_FORMAT_Q1_0, x, 1, 128, file));
    assert_memory_equal(file, "\x00\x3a\x49\x92\x24\x49", 6);
    x[1] = 0.0f;
    x[2] = -1.5f;
    assert_false(quantize(TERN_FORMAT_Q1_0, x, 1, 128, file));
    tern_dequantize_row(TERN_FORMAT_Q1_0, file, 128, 0, 1.0f, back);
    assert_true(back[0] == 0.75f && back[1] == 0.75f && back[2] == -0.75f && back[4] == -0.75f);
}

/* Weights with one zero in each quad, in any place and with any signs, keep their values. */
static void test_quads_kept(void **state) {
    float x[512], back[512];
    uint8_t file[2 * 42];

    (void)state;
    for (size_t i = 0; i < 512; i++) { /* 128 quads: all 32 patterns, by definition */
        const size_t quad = i / 64 * 16 + i % 16, lane = i % 64 / 16;
        const float d = i < 256 ? 0.75f : 0.375f;
        x[i] = lane == quad % 4 ? 0.0f : quad / 4 >> lane & 1 ? -d : d;
    }
    assert_true(quantize(TERN_FORMAT_STQ1_0, x, 1, 512, file));
    tern_dequantize_row(TERN_FORMAT_STQ1_0, file, 512, 0, 1.0f, back);
    for (size_t i = 0; i < 512; i++)
        if (back[i] != x[i])
            check_fail("element %zu: %g, was %g", i, (double)back[i], (double)x[i]);
    assert_memory_equal(file + 40, "\x00\x3a", 2);
    memset(x, 0, sizeof x);
    assert_true(quantize(TERN_FORMAT_STQ1_0, x, 1, 512, file));
    assert_memory_equal(file + 40, "\x00\x00", 2);
}

static double distance(const float *a, const float *b, size_t n) {
    double sum = 0.0;

    for (size_t i = 0; i < n; i++)
        sum += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    return sum;
}

/* No other pattern of a quad, and no neighbouring scale, is closer to the original weights. */
static void test_quads_nearest(void **state) {
    float x[256], back[256];
    uint8_t file[42];
    check_rng rng = {525};

    (void)state;
    for (size_t i = 0; i < 256; i++)
        x[i] = check_normal(&rng);
    assert_false(quantize(TERN_FORMAT_STQ1_0, x, 1, 256, file));
    tern_dequantize_row(TERN_FORMAT_STQ1_0, file, 256, 0, 1.0f, back);
    const double best = distance(x, back, 256);
    for (size_t quad = 0; quad < 64; quad++)
        for (unsigned change = 1; change < 32; change++) {
            uint8_t other[42];
            memcpy(other, file, sizeof other);
            other[quad / 2] ^= (uint8_t)((change & 15) << 4 * (quad % 2));
            other[32 + quad / 8] ^= (uint8_t)(change >> 4 << quad % 8);
            tern_dequantize_row(TERN_FORMAT_STQ1_0, other, 256, 0, 1.0f, back);
            assert_true(distance(x, back, 256) >= best);
        }
    for (int step = -1; step <= 1; step += 2) {
        uint8_t other[42];
        memcpy(other, file, sizeof other);
        other[40] = (uint8_t)(other[40] + step);
        assert_true(other[40] != (step < 0 ? 0xff : 0x00)); /* no carry */
        tern_dequantize_row(TERN_FORMAT_STQ1_0, other, 256, 0, 1.0f, back);
        assert_true(distance(x, back, 256) > best);
    }
}

/* Weights from 0.5 to 7.5 and -1 to 0: 0 is code 2, and the range is 8.5. INT8 by rows or at
 * once. */
static void test_worked_int(void **state) {
    const float rows[2][4] = {{0.5f, -127.0f, 3.49f, 0.0f}, {-0.0f, 2.0f, 1.0f, -4.0f}};
    static const int8_t by_row[8] = {1, -127, 3, 0, 0, 64, 32, -127};
    static const int8_t at_once[8] = {1, -127, 3, 0, 0, 2, 1, -4};
    float x[32] = {-1.0f, -0.5f, 0.0f, 0.5f, 7.5f};
    float scales[2];
    int8_t codes[8];
    uint8_t file[20];
    tern_error err;

    (void)state;
    x[16] = 1.0f;
    x[31] = 6.5f;
    assert_false(quantize(TERN_FORMAT_INT4, x, 1, 32, file)); /* 8.5 / 15 is not exact in f16 */
    assert_memory_equal(file, "\x89\x38\x02\x00\x40\x21\x22\x23\x2f\x22", 10);
    assert_int_equal(file[19], 0xd2);
    assert_int_equal(tern_quantize_int8(rows[0], 2, 4, true, codes, scales, &err), TERN_OK);
    assert_memory_equal(codes, by_row, 8);
    assert_true(scales[0] == 1.0f && scales[1] == 4.0f / 127.0f);
    assert_int_equal(tern_quantize_int8(rows[0], 2, 4, false, codes, scales, &err), TERN_OK);
    assert_memory_equal(codes, at_once, 8);
    assert_true(scales[0] == 1.0f);
    x[3] = NAN;
    assert_int_equal(tern_quantize_int8(x, 1, 32, true, codes, scales, &err), TERN_ERR_TENSOR_DATA);
    assert_int_equal(tern_quantize_int8(x, 0, 32, true, codes, scales, &err),
                     TERN_ERR_TENSOR_SHAPE);
    assert_int_equal(tern_quantize_int8(x, 1, 32, true, NULL, scales, &err), TERN_ERR_NULL);
}

/* No weight is further from its float than half a step (with a bias, one step at one end; with
 * levels, the widest step between two; with a power of two, what lies beyond the largest level). */
static void check_distances(tern_format format, const float *x, size_t n, const uint8_t *file) {
    const size_t bytes = tern_format_describe(format)->block_bytes;
    float back[256];

    tern_dequantize_row(format, file, n, 0, 1.0f, back);
    for (size_t i = 0; i < n; i++) {
        const uint8_t *block = file + i / 32 * bytes;
        const bool power = tern_format_facts_of(format)->plain.power;
        const float step = power ? tern_power(*block) : fabsf(tern_f16_load(block));
        const bool one_sided = tern_format_facts_of(format)->plain.bias > 0;
        const bool levels = tern_format_facts_of(format)->plain.levels != NULL;
        const float share = power ? 4.0f : levels ? 24.0f : one_sided ? 1.0f : 0.5f;
        if (!(fabsf(back[i] - x[i]) <= step * share + 2e-3f * fabsf(x[i]) + 2e-3f))
            check_fail("element %zu: %g became %g, step %g", i, (double)x[i], (double)back[i],
                       (double)step);
    }
}

static void test_distances(void **state) {
    uint64_t random = 7;
    float x[256];
    uint8_t file[272];

    (void)state;
    for (size_t f = 0; f < sizeof blocks_of_32 / sizeof *blocks_of_32; f++)
        for (int n = 0; n < 50; n++) {
            check_case("%s %d", tern_format_describe(blocks_of_32[f])->name, n);
            for (int i = 0; i < 256; i++)
                x[i] = tern_ref_normal(&random);
            assert_false(quantize(blocks_of_32[f], x, 1, 256, file));
            check_distances(blocks_of_32[f], x, 256, file);
        }
}

/* Single rows give the same bytes as in the whole matrix. */
static void test_rows_are_independent(void **state) {
    uint64_t random = 8;
    float x[3 * 288];
    uint8_t whole[3 * 288 * 4];
    uint8_t alone[288 * 4];

    (void)state;
    for (size_t i = 0; i < 3 * 288; i++)
        x[i] = tern_ref_normal(&random);
    for (size_t f = 0; f < sizeof by_rows / sizeof *by_rows; f++) {
        const tern_format_info *info = tern_format_describe(by_rows[f]);
        const size_t cols = info->block_elements > TERN_BLOCK ? TERN_SUPER : 288;
        uint64_t bytes;
        assert_int_equal(tern_format_bytes(by_rows[f], 1, cols, &bytes), TERN_OK);
        quantize(by_rows[f], x, 3, cols, whole);
        for (size_t row = 0; row < 3; row++) {
            check_case("%s row %zu", info->name, row);
            quantize(by_rows[f], x + row * cols, 1, cols, alone);
            check_bytes("row", whole + row * bytes, alone, bytes);
        }
    }
}

static void test_floats(void **state) {
    const float x[4] = {1.0f, 0x1.004p0f, -0.333333343f, 65504.0f};
    const float exact[2] = {0.5f, -0.0f};
    uint8_t file[16];
    float back[4];

    (void)state;
    assert_true(quantize(TERN_FORMAT_F32, x, 2, 2, file));
    assert_memory_equal(file, x, sizeof x);
    assert_false(quantize(TERN_FORMAT_F16, x, 1, 4, file));
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(file[2 * i] | file[2 * i + 1] << 8, tern_f32_to_f16(x[i]));
    assert_false(quantize(TERN_FORMAT_BF16, x, 1, 4, file));
    tern_dequantize_row(TERN_FORMAT_BF16, file, 4, 0, 1.0f, back);
    assert_true(back[0] == 1.0f && back[2] == -0.333984375f);
    assert_true(quantize(TERN_FORMAT_F16, exact, 1, 2, file));
    assert_true(quantize(TERN_FORMAT_BF16, exact, 1, 2, file));
}

/* ---- ternary ------------------------------------------------------------------------------- */

static void test_ternary_is_kept(void **state) {
    static const uint8_t scale[32] = {0x00, 0x00, 0x40, 0x3f};
    uint32_t lcg_state = 12345;
    float x[1024];
    float back[256];
    uint8_t file[256 + 32];

    (void)state;
    for (size_t i = 0; i < 1024; i++)
        x[i] = (float)((int)(lcg(&lcg_state) % 3) - 1) * 0.75f;
    assert_true(quantize(TERN_FORMAT_I2_S, x, 4, 256, file));
    assert_string_equal(check_hash(file, 256), "1b145e38bb894280");
    assert_memory_equal(file + 256, scale, sizeof scale);
    assert_true(tern_format_scale(TERN_FORMAT_I2_S, file, 4, 256) == 0.75f);
    assert_true(tern_format_scale(TERN_FORMAT_Q8_0, file, 4, 256) == 1.0f);
    for (size_t row = 0; row < 4; row++) {
        tern_dequantize_row(TERN_FORMAT_I2_S, file, 256, row, 0.75f, back);
        check_floats("row", x + row * 256, back, 256);
    }
    x[1000] = 0.5f;
    assert_false(quantize(TERN_FORMAT_I2_S, x, 4, 256, file));
}

static void test_ternary_of_zeros(void **state) {
    const float x[128] = {0.0f, -0.0f};
    uint8_t file[64];

    (void)state;
    assert_true(quantize(TERN_FORMAT_I2_S, x, 1, 128, file));
    for (int i = 0; i < 32; i++)
        assert_int_equal(file[i], 0x55);
    assert_true(tern_format_scale(TERN_FORMAT_I2_S, file, 1, 128) == 1.0f);
}

/* The mean magnitude is 1. 0.5 is halfway and becomes 0, values above become 1, and 2.5 is clipped
 * to 1. */
static void test_ternary_rounds(void **state) {
    static const float part[8] = {0.5f, -0.5f, 0.50001f, -0.50001f, 1.0f, -1.0f, 1.49998f, 2.5f};
    static const float want[8] = {0, 0, 1, -1, 1, -1, 1, 1};
    float x[128];
    float back[128];
    uint8_t file[64];

    (void)state;
    for (int i = 0; i < 128; i++)
        x[i] = part[i % 8];
    assert_false(quantize(TERN_FORMAT_I2_S, x, 1, 128, file));
    assert_true(tern_format_scale(TERN_FORMAT_I2_S, file, 1, 128) == 1.0f);
    tern_dequantize_row(TERN_FORMAT_I2_S, file, 128, 0, 1.0f, back);
    for (int i = 0; i < 128; i++)
        assert_true(back[i] == want[i % 8]);
}

/* ---- refusals ------------------------------------------------------------------------------ */

static void check_refused(tern_format format, const float *x, size_t rows, size_t cols,
                          tern_status want, const char *text) {
    static uint8_t file[4096];
    tern_error err = {0};

    assert_int_equal(tern_quantize_weights(format, x, rows, cols, file, NULL, &err), want);
    assert_int_equal(err.status, want);
    if (strstr(err.message, text) == NULL)
        check_fail("'%s' does not contain '%s'", err.message, text);
}

static void test_refused(void **state) {
    static float x[512];

    (void)state;
    check_refused(TERN_FORMAT_Q8_0, x, 2, 33, TERN_ERR_TENSOR_SHAPE, "2 x 33");
    check_refused(TERN_FORMAT_I2_S, x, 1, 64, TERN_ERR_TENSOR_SHAPE, "1 x 64");
    check_refused(TERN_FORMAT_F16, x, 0, 64, TERN_ERR_TENSOR_SHAPE, "0 x 64");
    check_refused(TERN_FORMAT_NONE, x, 1, 64, TERN_ERR_ARG, "format");
    check_refused(TERN_FORMAT_F16, NULL, 1, 64, TERN_ERR_NULL, "no weights");
    x[300] = 1e5f;
    check_refused(TERN_FORMAT_F16, x, 2, 256, TERN_ERR_TENSOR_DATA, "row 1, column 44");
    x[300] = 3e38f;
    check_refused(TERN_FORMAT_Q4_0, x, 2, 256, TERN_ERR_TENSOR_DATA, "row 1, column 32");
    x[301] = -3e38f;
    check_refused(TERN_FORMAT_Q4_1, x, 2, 256, TERN_ERR_TENSOR_DATA, "row 1, column 32");
    for (size_t f = 0; f < sizeof supers / sizeof *supers; f++)
        check_refused(supers[f], x, 2, 256, TERN_ERR_TENSOR_DATA, "row 1, column");
    check_refused(TERN_FORMAT_Q4_K, x, 2, 128, TERN_ERR_TENSOR_SHAPE, "2 x 128");
    x[300] = NAN;
    check_refused(TERN_FORMAT_F32, x, 2, 256, TERN_ERR_TENSOR_DATA, "row 1, column 44 is");
    x[300] = INFINITY;
    check_refused(TERN_FORMAT_I2_S, x, 2, 256, TERN_ERR_TENSOR_DATA, "row 1, column 44 is inf");
}

/* Blocks with weights so small that their scale is 0 in f16. */
static void test_tiny_blocks(void **state) {
    float x[32];
    float back[32];
    uint8_t file[34];

    (void)state;
    for (int i = 0; i < 32; i++)
        x[i] = (float)(i - 16) * 0x1p-149f;
    for (size_t f = 0; f < sizeof blocks_of_32 / sizeof *blocks_of_32; f++) {
        assert_false(quantize(blocks_of_32[f], x, 1, 32, file));
        tern_dequantize_row(blocks_of_32[f], file, 32, 0, 1.0f, back);
        for (int i = 0; i < 32; i++)
            assert_true(back[i] == 0.0f);
    }
}

/* ---- accuracy ------------------------------------------------------------------------------ */

static void test_accuracy(void **state) {
    const float reference[4] = {1, 2, 3, 4};
    float output[4] = {1, 2, 3, 4};
    tern_error err = {0};
    double mse = -1;

    (void)state;
    assert_int_equal(tern_validate_accuracy(reference, output, 4, 0, &mse, &err), TERN_OK);
    assert_true(mse == 0);
    output[1] = 2.5f;
    assert_int_equal(tern_validate_accuracy(reference, output, 4, 0.0625, &mse, &err), TERN_OK);
    assert_true(mse == 0.0625);
    mse = 0;
    assert_int_equal(tern_validate_accuracy(reference, output, 4, 0.0624, &mse, &err),
                     TERN_ERR_ACCURACY);
    assert_true(mse == 0.0625);
    assert_non_null(strstr(err.message, "0.0625 of 4 values is above 0.0624"));
    output[3] = NAN;
    assert_int_equal(tern_validate_accuracy(reference, output, 4, 1, &mse, NULL),
                     TERN_ERR_ACCURACY);
    assert_int_equal(tern_validate_accuracy(reference, output, 0, 1, NULL, NULL), TERN_ERR_EMPTY);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_blocks),
        cmocka_unit_test(test_worked_blocks),
        cmocka_unit_test(test_worked_int),
        cmocka_unit_test(test_tq),
        cmocka_unit_test(test_q1_0),
        cmocka_unit_test(test_quads_kept),
        cmocka_unit_test(test_quads_nearest),
        cmocka_unit_test(test_distances),
        cmocka_unit_test(test_floats),
        cmocka_unit_test(test_rows_are_independent),
        cmocka_unit_test(test_ternary_is_kept),
        cmocka_unit_test(test_ternary_of_zeros),
        cmocka_unit_test(test_ternary_rounds),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_tiny_blocks),
        cmocka_unit_test(test_accuracy),
    };
    return cmocka_run_group_tests_name("weights from floats", tests, NULL, NULL);
}
