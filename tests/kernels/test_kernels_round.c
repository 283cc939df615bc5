/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every kernel of the table that rounds a row of activations to another precision against the
 * reference, bit for bit; and the reference against values from the formats' definitions.
 */

#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/half.h"
#include "kernels/reference.h"
#include "tests/kernels/row_trial.h"
#include "tests/kernels/table.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const tern_op ops[] = {TERN_OP_ROUND_INT8, TERN_OP_ROUND_FP8, TERN_OP_ROUND_FP8_E5M2,
                              TERN_OP_ROUND_FP16, TERN_OP_ROUND_BF16};

/* ---- kernels against the reference --------------------------------------------------------- */

static void check_round(trial *t) {
    check_buffer x = trial_floats(t->n, t->kind, t->place, &t->rng);
    check_buffer want = check_buffer_new(x.bytes, sizeof(float), t->place);
    check_buffer y = check_buffer_new(x.bytes, sizeof(float), t->place);

    tern_ref_round(t->kernel->op, x.data, t->n, want.data);
    t->kernel->fn.tanh(x.data, t->n, y.data);
    check_floats("y", want.data, y.data, t->n);
    t->kernel->fn.tanh(x.data, t->n, x.data);
    check_floats("y in place", want.data, x.data, t->n);
    check_buffer_free(&x);
    check_buffer_free(&want);
    check_buffer_free(&y);
}

static void test_rows(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(ops); i++)
        trial_each(ops[i], 1, check_round);
}

/*
 * Every 4099th float of either sign, in rows of one binade each, so that scales of rows do not hide
 * small numbers. Ties, denormals, and overflow of halves and bfloat16 are among them.
 */
static void check_sweep(const tern_kernel_row *kernel) {
    enum { STEP = 4099, POINTS = 0x7f800000 / STEP * 2, ROW = 4096 };
    float *x = test_malloc(POINTS * sizeof *x), *want = test_malloc(POINTS * sizeof *want);

    check_case("%s, sweep", kernel->name);
    for (uint32_t i = 0; i < POINTS; i++) {
        const float value = tern_f32_from_bits(i / 2 * STEP);
        x[i] = i % 2 ? -value : value;
    }
    for (size_t i = 0; i < POINTS; i += ROW) {
        const size_t n = POINTS - i < ROW ? POINTS - i : ROW;
        tern_ref_round(kernel->op, x + i, n, want + i);
        kernel->fn.tanh(x + i, n, x + i);
    }
    check_floats("y", want, x, POINTS);
    test_free(x);
    test_free(want);
}

/* One row over the 24 binades below its largest number, down to denormals of both 8-bit formats. */
static void check_depths(const tern_kernel_row *kernel) {
    enum { STEP = 12289, FIRST = 0x33800000, POINTS = 0x0c000000 / STEP };
    static float x[POINTS], want[POINTS];

    check_case("%s, depths", kernel->name);
    for (uint32_t i = 0; i < POINTS; i++)
        x[i] = tern_f32_from_bits(FIRST + i * STEP) * (i % 2 ? -1.0f : 1.0f);
    tern_ref_round(kernel->op, x, POINTS, want);
    kernel->fn.tanh(x, POINTS, x);
    check_floats("y", want, x, POINTS);
}

static void test_sweep(void **state) {
    size_t count;
    const tern_kernel_row *kernels = tern_kernel_rows(&count);

    (void)state;
    for (size_t i = 0; i < COUNT(ops); i++)
        for (size_t r = 0; r < count; r++)
            if (kernels[r].op == ops[i] && table_runnable(&kernels[r])) {
                check_sweep(&kernels[r]);
                check_depths(&kernels[r]);
            }
}

/* ---- the reference against the formats' definitions ---------------------------------------- */

/* Checks that element 0 of a row of two rounds to `want`. The other element is the row's largest
 * number. */
static void expect(tern_op op, float x, float largest, float want) {
    const float row[2] = {x, largest};
    float y[2];

    check_case("%s, %a in a row up to %a", tern_op_name(op), (double)x, (double)largest);
    tern_ref_round(op, row, 2, y);
    check_floats("y", &want, y, 1);
}

/* Each of the 256 codes of a format is one of its values, and middles go to even codes. */
static void check_codes(tern_op op, int fraction, int bias, float top) {
    const int steps = 1 << fraction;
    float before = 0.0f;

    for (int code = 1; before < top; code++) {
        const int exponent = code / steps;
        const float value = exponent == 0
                                ? ldexpf((float)code, 1 - bias - fraction)
                                : ldexpf((float)(steps + code % steps), exponent - bias - fraction);
        const float middle = 0.5f * (before + value);
        expect(op, value, top, value);
        expect(op, -value, top, -value);
        expect(op, middle, top, code % 2 == 0 ? value : before);
        expect(op, nextafterf(middle, INFINITY), top, value);
        expect(op, nextafterf(middle, 0.0f), top, before);
        before = value;
    }
    assert_true(before == top);
}

static void test_fp8_values(void **state) {
    (void)state;
    check_codes(TERN_OP_ROUND_FP8, 3, 7, 448.0f);
    check_codes(TERN_OP_ROUND_FP8_E5M2, 2, 15, 57344.0f);
}

/* The scale is the least sufficient power of two: one step beyond the largest value doubles it. */
static void test_fp8_scales(void **state) {
    (void)state;
    expect(TERN_OP_ROUND_FP8, 0x1p-9f, 448.0f, 0x1p-9f);
    expect(TERN_OP_ROUND_FP8, 0x1p-9f, nextafterf(448.0f, INFINITY), 0.0f);
    expect(TERN_OP_ROUND_FP8, 0x1p-9f, 224.0f, 0x1p-9f);
    expect(TERN_OP_ROUND_FP8, 0x1p-10f, 224.0f, 0x1p-10f);
    expect(TERN_OP_ROUND_FP8, 0x1p-10f, 448.0f, 0.0f);
    expect(TERN_OP_ROUND_FP8_E5M2, 0x1p-16f, 57344.0f, 0x1p-16f);
    expect(TERN_OP_ROUND_FP8_E5M2, 0x1p-16f, 57345.0f, 0.0f);
    expect(TERN_OP_ROUND_FP8, -0.0f, 0.0f, -0.0f);
    expect(TERN_OP_ROUND_FP8, 1.0f, NAN, 1.0f);
    expect(TERN_OP_ROUND_FP8, NAN, 1.0f, NAN);
    expect(TERN_OP_ROUND_FP8, -INFINITY, 1.0f, -INFINITY);
    expect(TERN_OP_ROUND_FP8, 1.0f, INFINITY, 0.0f);
    expect(TERN_OP_ROUND_FP8, FLT_MAX, 1.0f, INFINITY); /* rounds to 2^128 */
}

/* Rounding to halves and bfloat16 gives the same as storing them. */
static void test_halves(void **state) {
    (void)state;
    for (uint32_t bits = 0; bits < 0x10000; bits += 3) {
        const float half = tern_f16_to_f32((uint16_t)bits), x = half * (1.0f + 0x1p-11f);
        const float brain = tern_bf16_to_f32((uint16_t)bits), z = brain * (1.0f + 0x1p-8f);
        expect(TERN_OP_ROUND_FP16, half, 1.0f, half);
        expect(TERN_OP_ROUND_FP16, x, 1.0f, tern_f16_to_f32(tern_f32_to_f16(x)));
        expect(TERN_OP_ROUND_BF16, brain, 1.0f, brain);
        expect(TERN_OP_ROUND_BF16, z, 1.0f, tern_bf16_to_f32(tern_f32_to_bf16(z)));
    }
    expect(TERN_OP_ROUND_FP16, 65519.996f, 1.0f, 65504.0f);
    expect(TERN_OP_ROUND_FP16, 65520.0f, 1.0f, INFINITY);
    expect(TERN_OP_ROUND_BF16, -FLT_MAX, 1.0f, -INFINITY);
}

static void test_int8(void **state) {
    (void)state;
    expect(TERN_OP_ROUND_INT8, 63.5f, 127.0f, 64.0f);
    expect(TERN_OP_ROUND_INT8, 62.5f, 127.0f, 62.0f);
    expect(TERN_OP_ROUND_INT8, -1.0f, 254.0f, 0.0f); /* the integer 0 has no sign */
    expect(TERN_OP_ROUND_INT8, -3.0f, 254.0f, -4.0f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),       cmocka_unit_test(test_sweep),
        cmocka_unit_test(test_fp8_values), cmocka_unit_test(test_fp8_scales),
        cmocka_unit_test(test_halves),     cmocka_unit_test(test_int8),
    };
    table_report();
    return cmocka_run_group_tests_name("precisions of activations", tests, NULL, NULL);
}
