/* SPDX-License-Identifier: Apache-2.0 */
/* Weights from floats to formats with super-blocks, whose quantizers are searches. */

#include <math.h>
#include <string.h>

#include "kernels/codes.h"
#include "kernels/reference_fill.h"
#include "tests/kernels/quantized.h"

static const tern_format supers[] = {TERN_FORMAT_Q2_K, TERN_FORMAT_Q3_K, TERN_FORMAT_IQ4_XS,
                                     TERN_FORMAT_Q4_K, TERN_FORMAT_Q5_K, TERN_FORMAT_Q6_K};

/* The same for Q3_K and IQ4_XS: the first code of each run is the least, the last scale -32. */
static void make_signed_range(tern_format format, check_rng *rng, uint8_t *block) {
    const bool runs = format == TERN_FORMAT_Q3_K;
    const size_t d_at = runs ? TERN_Q3_K_D : 0, scales = runs ? 16 : 8;

    for (size_t i = 0; i < TERN_Q3_K_SCALES && runs; i += 16)
        block[i] = 0;
    for (size_t i = TERN_IQ4_XS_NIBBLES; i < 136 && !runs; i += 16)
        block[i] = 0;
    memset(block + (runs ? TERN_Q3_K_SCALES : 0), 0, runs ? 12 : TERN_IQ4_XS_NIBBLES);
    memcpy(block + d_at, "\x00\x28", 2); /* 1/32 */
    for (size_t i = 0; i < scales; i++) {
        const int scale = i + 1 == scales ? -32 : 1 + (int)check_below(rng, 31);
        if (runs)
            tern_q3_k_put_scale(block, i, scale);
        else
            tern_iq4_xs_put_scale(block, i, i % 2 != 0 || i + 1 == scales ? scale : -scale);
    }
}

/* The same for Q2_K: codes 0 and 3, scales 1 .. 15. */
static void make_twos_range(check_rng *rng, uint8_t *block) {
    for (size_t r = 0; r < 16; r++) {
        const unsigned scale = r == 3 ? 15 : 1 + (unsigned)check_below(rng, 15);
        block[r] = (uint8_t)(scale | (r == 9 ? 15 : (unsigned)check_below(rng, 16)) << 4);
    }
    for (size_t i = TERN_Q2_K_TWOS; i < TERN_Q2_K_D; i += 16) {
        block[i] = 0;
        block[i + 1] = 0xff;
    }
    memcpy(block + TERN_Q2_K_D, "\x00\x28\x00\x24", 4);
}

/* Codes that reach both ends in each run of 16, and scales that reach the largest magnitude. */
static void make_full_range(tern_format format, check_rng *rng, uint8_t *block) {
    const size_t bytes = tern_format_describe(format)->block_bytes;
    uint8_t scale[8], min[8];

    for (size_t i = 0; i < bytes; i++)
        block[i] = (uint8_t)check_below(rng, 256);
    if (format == TERN_FORMAT_Q2_K) {
        make_twos_range(rng, block);
        return;
    }
    if (format == TERN_FORMAT_Q3_K || format == TERN_FORMAT_IQ4_XS) {
        make_signed_range(format, rng, block);
        return;
    }
    for (size_t s = 0; s < 8; s++) {
        scale[s] = (uint8_t)(s == 2 ? 63 : 1 + check_below(rng, 63));
        min[s] = (uint8_t)(s == 5 ? 63 : check_below(rng, 64));
    }
    if (format != TERN_FORMAT_Q6_K) {
        memcpy(block, "\x00\x28\x00\x24", 4); /* 1/32, 1/64 */
        tern_k_put_scales(scale, min, block + TERN_K_SCALES);
        for (size_t i = TERN_K_SCALES + 12; i < bytes; i += 16) {
            block[i] = 0;
            block[i + 1] = 0xff;
        }
        return;
    }
    memcpy(block + TERN_Q6_K_D, "\x00\x28", 2);
    for (size_t i = 0; i < TERN_Q6_K_SCALES; i += 16)
        block[i] = 0; /* -32 in the first column of each run */
    for (size_t i = TERN_Q6_K_SCALES; i < TERN_Q6_K_D; i++)
        block[i] = (uint8_t)(i == TERN_Q6_K_D - 1 ? 0x80 : block[i] != 0 ? block[i] : 1);
}

/* Weights that a block can hold exactly come back as the same block. */
static void test_supers_are_kept(void **state) {
    check_rng rng = {31};
    uint8_t block[210], file[210];
    float x[TERN_SUPER];

    (void)state;
    for (size_t f = 0; f < sizeof supers / sizeof *supers; f++)
        for (int n = 0; n < 50; n++) {
            check_case("%s %d", tern_format_describe(supers[f])->name, n);
            make_full_range(supers[f], &rng, block);
            tern_dequantize_row(supers[f], block, TERN_SUPER, 0, 1.0f, x);
            assert_true(quantize(supers[f], x, 1, TERN_SUPER, file));
            check_bytes("block", block, file, tern_format_describe(supers[f])->block_bytes);
        }
}

/* Mean squared error of a format over 64 super-blocks of normal weights, relative to their
 * power. */
static double error_of(tern_format format) {
    static float x[64 * TERN_SUPER], back[64 * TERN_SUPER];
    static uint8_t file[64 * TERN_SUPER * 2];
    uint64_t random = 9;
    double error = 0, power = 0;

    for (size_t i = 0; i < 64 * TERN_SUPER; i++)
        x[i] = 0.03f * tern_ref_normal(&random);
    quantize(format, x, 64, TERN_SUPER, file);
    tern_dequantize_row(format, file, 64 * TERN_SUPER, 0, 1.0f, back);
    for (size_t i = 0; i < 64 * TERN_SUPER; i++) {
        error += ((double)back[i] - (double)x[i]) * ((double)back[i] - (double)x[i]);
        power += (double)x[i] * (double)x[i];
    }
    return error / power;
}

/*
 * A range cut into equal steps has an error proportional to steps^-2. Q4_1 does that with 15 steps,
 * for the same 32 columns. The search must gain a tenth over it. Q6_K has no minimum, half the
 * columns, and 64 levels from -max to max; Q3_K has 8. IQ4_XS and IQ4_NL have levels that suit such
 * weights.
 */
static void test_supers_gain(void **state) {
    const double range = error_of(TERN_FORMAT_Q4_1);

    (void)state;
    print_message("Q4_1 %.3g, Q4_K %.3g, Q5_K %.3g, Q6_K %.3g\n", range, error_of(TERN_FORMAT_Q4_K),
                  error_of(TERN_FORMAT_Q5_K), error_of(TERN_FORMAT_Q6_K));
    print_message("Q2_K %.4g, Q3_K %.4g, IQ4_XS %.4g, IQ4_NL %.4g\n", error_of(TERN_FORMAT_Q2_K),
                  error_of(TERN_FORMAT_Q3_K), error_of(TERN_FORMAT_IQ4_XS),
                  error_of(TERN_FORMAT_IQ4_NL));
    assert_true(error_of(TERN_FORMAT_Q4_K) < 0.9 * range);
    assert_true(error_of(TERN_FORMAT_Q3_K) < 0.9 * range * 15 * 15 / (7 * 7));
    assert_true(error_of(TERN_FORMAT_Q2_K) < 0.9 * range * 15 * 15 / (3 * 3));
    assert_true(error_of(TERN_FORMAT_IQ4_NL) < 0.9 * range);
    assert_true(error_of(TERN_FORMAT_IQ4_XS) < 0.9 * range);
    assert_true(error_of(TERN_FORMAT_Q5_K) < 0.9 * range * 15 * 15 / (31 * 31));
    assert_true(error_of(TERN_FORMAT_Q6_K) < 0.9 * range * 15 * 15 / (63 * 63));
}

static void check_constant(tern_format format, float value) {
    uint8_t file[210];
    float x[TERN_SUPER], back[TERN_SUPER];

    check_case("%s, %g everywhere", tern_format_describe(format)->name, (double)value);
    for (size_t i = 0; i < TERN_SUPER; i++)
        x[i] = value;
    quantize(format, x, 1, TERN_SUPER, file);
    tern_dequantize_row(format, file, TERN_SUPER, 0, 1.0f, back);
    for (size_t i = 0; i < TERN_SUPER; i++) /* an f16 has 11 bits of precision */
        if (!(fabsf(back[i] - value) <= 0x1p-11f * fabsf(value)))
            check_fail("column %zu became %g", i, (double)back[i]);
}

/* Constant super-blocks. Only negative weights need a minimum; positive ones must do without. */
static void test_constant_supers(void **state) {
    static const float values[] = {0.0f, 1.0f, -1.0f, 0.7f, -0.5f, 1234.5f, -3e6f, 3e6f};

    (void)state;
    for (size_t f = 0; f < sizeof supers / sizeof *supers; f++)
        for (size_t v = 0; v < sizeof values / sizeof *values; v++)
            /* the four bits of a scale or minimum of Q2_K reach less far than f16 */
            check_constant(supers[f], supers[f] == TERN_FORMAT_Q2_K ? 0.2f * values[v] : values[v]);
}

/* Super-blocks with one weight far above the others, and with weights whose scales are 0 in f16. */
static void test_hostile_supers(void **state) {
    uint8_t file[210];
    float x[TERN_SUPER], back[TERN_SUPER];

    (void)state;
    for (size_t f = 0; f < sizeof supers / sizeof *supers; f++) {
        for (int i = 0; i < TERN_SUPER; i++)
            x[i] = (float)(i % 2 ? i : -i) * 0x1p-149f;
        quantize(supers[f], x, 1, TERN_SUPER, file);
        tern_dequantize_row(supers[f], file, TERN_SUPER, 0, 1.0f, back);
        for (int i = 0; i < TERN_SUPER; i++)
            assert_true(back[i] == 0.0f);
        x[100] = 1000.0f;
        if (supers[f] == TERN_FORMAT_IQ4_XS) /* none of its levels is 0 */
            continue;
        quantize(supers[f], x, 1, TERN_SUPER, file);
        tern_dequantize_row(supers[f], file, TERN_SUPER, 0, 1.0f, back);
        for (int i = 0; i < TERN_SUPER; i++)
            assert_true(fabsf(back[i] - x[i]) <= 0x1p-11f * fabsf(x[i]) + 0x1p-126f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_supers_are_kept),
        cmocka_unit_test(test_supers_gain),
        cmocka_unit_test(test_constant_supers),
        cmocka_unit_test(test_hostile_supers),
    };
    return cmocka_run_group_tests_name("super-blocks from floats", tests, NULL, NULL);
}
