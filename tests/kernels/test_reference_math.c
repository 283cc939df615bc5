/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reference's functions of one number against libm in double precision. docs/numerics.md
 * derives the bounds. exp is in test_reference.c.
 */

#include <math.h>

#include "kernels/half.h"
#include "kernels/reference.h"
#include "tests/support/check.h"

/* Relative error, for every float except the denormals, where tanh(x) is x. */
static const double tanh_bound = 2.7e-7;

static double tanh_error(float x) {
    const double want = tanh((double)x);
    const float got = tern_ref_tanh(x);
    if (!check_same_float(tern_ref_tanh(-x), -got))
        check_fail("tanh(-x) is not -tanh(x) at %a", (double)x);
    if (!(fabsf(got) <= 1.0f))
        check_fail("tanh(%a) is %a", (double)x, (double)got);
    return want == 0.0 ? 0.0 : fabs((double)got - want) / fabs(want);
}

/* Every 101st finite float of both signs. */
static void test_tanh_accuracy(void **state) {
    double worst = 0.0;
    float at = 0.0f;

    (void)state;
    for (uint32_t bits = 0; bits < 0x7f800000u; bits += 101) {
        const float x = tern_f32_from_bits(bits);
        const double error = tanh_error(x);
        at = error > worst ? x : at;
        worst = error > worst ? error : worst;
    }
    print_message("tanh: largest relative error %.3g, at %a\n", worst, (double)at);
    assert_true(worst < tanh_bound);
}

/* Every float near the points where the formula changes: steps of ln 2 / 2, and its clamps. */
static void test_tanh_thresholds(void **state) {
    enum { AROUND = 3000 };
    double worst = 0.0;

    (void)state;
    for (int halves = 1; halves <= 59; halves++) { /* -2x = -(n + 1/2) ln 2 */
        uint32_t bits = tern_f32_to_bits((float)(halves * 0.5 * log(2.0) / 2.0)) - AROUND;
        for (int i = 0; i < 2 * AROUND; i++, bits++)
            worst = fmax(worst, tanh_error(tern_f32_from_bits(bits)));
    }
    uint32_t bits = tern_f32_to_bits(10.0f) - AROUND;
    for (int i = 0; i < 2 * AROUND; i++, bits++)
        worst = fmax(worst, tanh_error(tern_f32_from_bits(bits)));
    print_message("tanh around its thresholds: largest relative error %.3g\n", worst);
    assert_true(worst < tanh_bound);
}

static void test_tanh_ends(void **state) {
    (void)state;
    assert_true(tern_ref_tanh(INFINITY) == 1.0f);
    assert_true(tern_ref_tanh(10.0f) == 1.0f);
    assert_true(tern_ref_tanh(8.0f) < 1.0f);
    assert_true(isnan(tern_ref_tanh(NAN)));
    assert_true(tern_ref_tanh(0.0f) == 0.0f && !signbit(tern_ref_tanh(0.0f)));
    assert_true(signbit(tern_ref_tanh(-0.0f)));
    for (uint32_t bits = 1; bits < 0x00800000u; bits += 7) { /* denormals */
        const float x = tern_f32_from_bits(bits);
        assert_true(tern_ref_tanh(x) == x);
    }
}

/* 0.5 z (1 + tanh(sqrt(2/pi) (z + 0.044715 z^3))), in the form that loses no precision. */
static double gelu_in_double(double z) {
    const double u = sqrt(2.0 / acos(-1.0)) * (z + 0.044715 * z * z * z);
    return 0.5 * z * (1.0 + tanh(u));
}

static void test_gelu_accuracy(void **state) {
    double worst = 0.0;

    (void)state;
    for (float z = -20.0f; z < 20.0f; z += 0.00013f) {
        const double error =
            fabs((double)tern_ref_activate(TERN_REF_GELU, z) - gelu_in_double((double)z));
        worst = fmax(worst, error / fmax(1.0, fabs((double)z)));
    }
    print_message("gelu: largest error %.3g of max(1, |z|)\n", worst);
    assert_true(worst < 2.5e-7);
    assert_true(tern_ref_activate(TERN_REF_GELU, 1e30f) == 1e30f);
    assert_true(tern_ref_activate(TERN_REF_GELU, -1e30f) == 0.0f);
}

/* z / (1 + e^(-1.702 z)), and the gate that multiplies it by one more than the other factor. */
static void test_quick_accuracy(void **state) {
    const float g = 1.5f, u = -3.0f;
    double worst = 0.0;
    float y;

    (void)state;
    for (float z = -20.0f; z < 20.0f; z += 0.00013f) {
        const double exact = (double)z / (1.0 + exp(-1.702 * (double)z));
        const double error = fabs((double)tern_ref_activate(TERN_REF_QUICK, z) - exact);
        worst = fmax(worst, error / fmax(1.0, fabs((double)z)));
    }
    print_message("quick gelu: largest error %.3g of max(1, |z|)\n", worst);
    assert_true(worst < 2.5e-7);
    assert_true(tern_ref_activate(TERN_REF_QUICK, -1e30f) == 0.0f);
    tern_ref_gate(TERN_REF_QUICK, &g, &u, 1, &y);
    assert_true(y == -2.0f * tern_ref_activate(TERN_REF_QUICK, g));
}

static void test_bias(void **state) {
    static const float x[] = {1.0f, -3.0f, 0.5f, NAN};
    static const float b[] = {2.0f, 1.0f, -0.5f, 1.0f};
    float y[4];

    (void)state;
    tern_ref_bias(TERN_REF_RELU, x, b, 4, y);
    check_floats("relu", (const float[]){3.0f, 0.0f, 0.0f, 0.0f}, y, 4);
    tern_ref_bias(TERN_REF_RELU2, x, b, 4, y);
    check_floats("relu2", (const float[]){9.0f, 0.0f, 0.0f, 0.0f}, y, 4);
    for (int i = 0; i < 3; i++) {
        const double z = (double)(x[i] + b[i]);
        tern_ref_bias(TERN_REF_SILU, x + i, b + i, 1, y);
        assert_true(fabs((double)y[0] - z / (1.0 + exp(-z))) < 1e-6);
        tern_ref_bias(TERN_REF_TANH, x + i, b + i, 1, y);
        assert_true(fabs((double)y[0] - tanh(z)) < 3e-7);
    }
}

static void test_layernorm_accuracy(void **state) {
    enum { N = 777 };
    check_rng rng = {40};
    float x[N], g[N], b[N], y[N], plain[N];
    double mean = 0.0;
    double variance = 0.0;

    (void)state;
    for (int i = 0; i < N; i++) {
        x[i] = 3.0f + check_normal(&rng);
        g[i] = check_normal(&rng);
        b[i] = check_normal(&rng);
        mean += (double)x[i] / N;
    }
    for (int i = 0; i < N; i++)
        variance += ((double)x[i] - mean) * ((double)x[i] - mean) / N;
    tern_ref_layernorm(x, g, b, N, 1e-5f, y);
    tern_ref_layernorm(x, g, NULL, N, 1e-5f, plain);
    for (int i = 0; i < N; i++) {
        const double z = ((double)x[i] - mean) / sqrt(variance + (double)1e-5f) * (double)g[i];
        assert_true(fabs((double)plain[i] - z) < 2e-6 * (1.0 + fabs(z)));
        assert_true(fabs((double)y[i] - (z + (double)b[i])) < 3e-6 * (1.0 + fabs(z)));
    }
}

/* |x - q * d| for a stored Q8_0 row. numerics.md derives both bounds. */
static void test_q8_0_store_accuracy(void **state) {
    check_rng rng = {808};
    float x[TERN_BLOCK];
    float back[TERN_BLOCK];
    uint8_t block[34];

    (void)state;
    for (int trial = 0; trial < 100000; trial++) {
        const float size = ldexpf(1.0f, (int)check_below(&rng, 40) - 24);
        float largest = 0.0f;
        float d;
        for (int i = 0; i < TERN_BLOCK; i++) {
            x[i] = size * check_normal(&rng);
            largest = fmaxf(largest, fabsf(x[i]));
        }
        tern_ref_store(TERN_FORMAT_Q8_0, x, TERN_BLOCK, block);
        tern_ref_embed(TERN_FORMAT_Q8_0, block, TERN_BLOCK, back);
        tern_ref_embed(TERN_FORMAT_F16, block, 1, &d);
        const double rounded = (double)d / 2.0 * (1.0 + 0x1p-14);
        const double bound = largest >= 127 * 0x1p-14f ? rounded : fmax(rounded, 127 * 0x1p-25);
        for (int i = 0; i < TERN_BLOCK; i++)
            if (!(fabs((double)x[i] - (double)back[i]) <= bound))
                check_fail("%a became %a with d = %a", (double)x[i], (double)back[i], (double)d);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tanh_accuracy),      cmocka_unit_test(test_tanh_thresholds),
        cmocka_unit_test(test_tanh_ends),          cmocka_unit_test(test_gelu_accuracy),
        cmocka_unit_test(test_quick_accuracy),     cmocka_unit_test(test_bias),
        cmocka_unit_test(test_layernorm_accuracy), cmocka_unit_test(test_q8_0_store_accuracy),
    };
    return cmocka_run_group_tests_name("the reference's functions", tests, NULL, NULL);
}
