/* SPDX-License-Identifier: Apache-2.0 */
/* binary16 and bfloat16 conversions against their definitions, for every 16-bit pattern. */

#include <math.h>

#include "kernels/half.h"
#include "tests/support/check.h"

/* The value of a finite binary16, from the definition. */
static double half_value(uint16_t bits) {
    const int exponent = bits >> 10 & 31;
    const int fraction = bits & 1023;
    const double magnitude =
        exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25);
    return bits & 0x8000 ? -magnitude : magnitude;
}

static bool half_is_finite(uint16_t bits) {
    return (bits >> 10 & 31) != 31;
}

static void test_widen_every_half(void **state) {
    (void)state;
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        const uint16_t half = (uint16_t)bits;
        const float got = tern_f16_to_f32(half);

        assert_int_equal(signbit(got) != 0, half >> 15);
        if (half_is_finite(half)) {
            assert_true((double)got == half_value(half));
        } else if ((half & 0x3ff) == 0) {
            assert_true(isinf(got));
        } else { /* quiet, with the same payload */
            assert_true(isnan(got));
            assert_int_equal(tern_f32_to_bits(got) & 0x7fffff, (half & 0x3ffu) << 13 | 0x400000);
        }
        assert_true(check_same_float(tern_f16_load(&half), got));
    }
}

static void test_narrow_every_half(void **state) {
    (void)state;
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        const uint16_t half = (uint16_t)bits;
        const uint16_t quiet = half_is_finite(half) || (half & 0x3ff) == 0 ? 0 : 0x200;
        assert_int_equal(tern_f32_to_f16(tern_f16_to_f32(half)), half | quiet);
    }
}

/* Values between neighbours: below the middle, at the middle (ties to even), above the middle. */
static void test_narrow_between_halves(void **state) {
    (void)state;
    for (uint32_t bits = 0; bits < 0x7bff; bits++) {
        const uint16_t low = (uint16_t)bits;
        const uint16_t high = (uint16_t)(bits + 1);
        const float middle = (float)((half_value(low) + half_value(high)) / 2);

        assert_int_equal(tern_f32_to_f16(nextafterf(middle, 0.0f)), low);
        assert_int_equal(tern_f32_to_f16(middle), bits % 2 == 0 ? low : high);
        assert_int_equal(tern_f32_to_f16(nextafterf(middle, INFINITY)), high);
        assert_int_equal(tern_f32_to_f16(-middle), 0x8000 | (bits % 2 == 0 ? low : high));
    }
}

static void test_narrow_limits(void **state) {
    (void)state;
    assert_int_equal(tern_f32_to_f16(65504.0f), 0x7bff);
    assert_int_equal(tern_f32_to_f16(nextafterf(65520.0f, 0.0f)), 0x7bff);
    assert_int_equal(tern_f32_to_f16(65520.0f), 0x7c00);
    assert_int_equal(tern_f32_to_f16(-3.4e38f), 0xfc00);
    assert_int_equal(tern_f32_to_f16(INFINITY), 0x7c00);
    assert_int_equal(tern_f32_to_f16(0x1p-25f), 0x0000);
    assert_int_equal(tern_f32_to_f16(nextafterf(0x1p-25f, 1.0f)), 0x0001);
    assert_int_equal(tern_f32_to_f16(-0x1p-149f), 0x8000);
    assert_int_equal(tern_f32_to_f16(tern_f32_from_bits(0x7f800001u)), 0x7e00);
    assert_int_equal(tern_f32_to_f16(tern_f32_from_bits(0xffffffffu)), 0xffff);
}

static void test_bfloat(void **state) {
    (void)state;
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        const uint16_t brain = (uint16_t)bits;
        const float value = tern_bf16_to_f32(brain);
        const bool nan = isnan(value) != 0;

        assert_int_equal(tern_f32_to_bits(value), bits << 16);
        assert_true(check_same_float(tern_bf16_load(&brain), value));
        assert_int_equal(tern_f32_to_bf16(value), nan ? bits | 0x40 : bits);
        if (nan || isinf(value))
            continue;
        const uint16_t up = (uint16_t)(brain + 1);
        assert_int_equal(tern_f32_to_bf16(tern_f32_from_bits(bits << 16 | 0x7fff)), brain);
        assert_int_equal(tern_f32_to_bf16(tern_f32_from_bits(bits << 16 | 0x8000)),
                         brain % 2 == 0 ? brain : up);
        assert_int_equal(tern_f32_to_bf16(tern_f32_from_bits(bits << 16 | 0x8001)), up);
    }
}

/* Denormal ones too. */
static void test_every_power(void **state) {
    (void)state;
    for (int e = 0; e < 256; e++)
        assert_true(tern_power((uint8_t)e) == ldexpf(1.0f, e - 128));
}

/* Half of the number that sign 0, exponent and fraction stand for. */
static void test_every_e4m3(void **state) {
    (void)state;
    for (int bits = 0; bits < 128; bits++) {
        const int exponent = bits >> 3, fraction = bits & 7;
        const double want =
            exponent == 0 ? ldexp(fraction, -9) : ldexp(8 + fraction, exponent - 10);
        assert_true((double)tern_e4m3((uint8_t)bits) == want / 2);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_widen_every_half),
        cmocka_unit_test(test_narrow_every_half),
        cmocka_unit_test(test_narrow_between_halves),
        cmocka_unit_test(test_narrow_limits),
        cmocka_unit_test(test_bfloat),
        cmocka_unit_test(test_every_power),
        cmocka_unit_test(test_every_e4m3),
    };
    return cmocka_run_group_tests_name("half precision", tests, NULL, NULL);
}
