/* SPDX-License-Identifier: Apache-2.0 */
/* The project's own log, exp, sine and cosine against libm's long double, and rope itself. */
#include <math.h>
#include <string.h>

#include "kernels/reference.h"
#include "runtime/model/config/rope.h"
#include "tests/kernels/table.h"
#include "tests/support/check.h"

enum { SAMPLES = 50000, MAX_HALF = 64 };

/* Uniform in [0, 1). */
static double uniform(check_rng *rng) {
    return (double)(check_random(rng) >> 11) * 0x1p-53;
}

/* Uniform in [low, low + 1), times 2^first to 2^(first + count - 1). */
static double random_scale(check_rng *rng, double low, int first, uint32_t count) {
    const double fraction = low + uniform(rng);
    return ldexp(fraction, first + (int)check_below(rng, count));
}

static void check_near(const char *what, double x, long double expected, double got,
                       long double bound) {
    const long double error = fabsl((long double)got - expected);
    if (!(error <= bound))
        check_fail("%s(%a) is %a, must be %La (error 2^%.1f)", what, x, got, expected,
                   log2((double)error));
}

/* ---- the functions --------------------------------------------------------------------------- */

static void check_log(double x) {
    const long double expected = logl((long double)x);
    check_near("log", x, expected, tern_log(x), fabsl(expected) * 0x1p-50L);
}

static void test_log(void **state) {
    check_rng rng = {1};
    (void)state;
    check_case("log");
    assert_true(tern_log(1.0) == 0.0);
    for (int i = 0; i < SAMPLES; i++) {
        check_log(random_scale(&rng, 1.0, -1021, 2044));
        check_log(0.5 + uniform(&rng)); /* both sides of 1 */
        check_log(1.0 + random_scale(&rng, -0.5, -39, 40));
    }
    for (double base = 1e-3; base < 1e13; base *= 10)
        check_log(base);
    check_log(0x1p-1022);
    check_log(0x1.fffffffffffffp+1023);
}

static void check_exp(double x) {
    const long double expected = expl((long double)x);
    check_near("exp", x, expected, tern_exp(x), expected * 0x1p-50L);
}

static void test_exp(void **state) {
    check_rng rng = {2};
    (void)state;
    check_case("exp");
    assert_true(tern_exp(0.0) == 1.0);
    for (int i = 0; i < SAMPLES; i++) {
        check_exp(1400.0 * (uniform(&rng) - 0.5));
        check_exp(4.0 * (uniform(&rng) - 0.5));
        check_exp(random_scale(&rng, -0.5, -59, 60));
    }
    for (int n = -1000; n <= 1000; n++) /* where the reduction changes its integer */
        check_exp((n + 0.5) * 0.34657359027997264);
    check_exp(700.0);
    check_exp(-700.0);
}

static void check_sincos(double x) {
    double sine;
    double cosine;
    tern_sincos(x, &sine, &cosine);
    check_near("sin", x, sinl((long double)x), sine, 0x1p-50L);
    check_near("cos", x, cosl((long double)x), cosine, 0x1p-50L);
}

static void test_sincos(void **state) {
    check_rng rng = {3};
    double sine;
    double cosine;
    (void)state;
    check_case("sincos");
    tern_sincos(0.0, &sine, &cosine);
    assert_true(sine == 0.0 && cosine == 1.0);
    for (int i = 0; i < SAMPLES; i++) {
        check_sincos((uniform(&rng) - 0.5) * 0x1p31);
        check_sincos((uniform(&rng) - 0.5) * 20.0);
        check_sincos(random_scale(&rng, 0.0, -59, 60));
        check_sincos((double)check_below(&rng, 1u << 29) * 1.5707963267948966); /* cancellation */
    }
    for (int n = 0; n < 4096; n++)
        check_sincos((double)n);
    check_sincos(0x1p30);
    check_sincos(-0x1p30);
}

/* Near a multiple of pi/2, the smaller of the two also has a relative error below 2^-50. */
static void test_sincos_relative(void **state) {
    double sine;
    double cosine;
    (void)state;
    for (int n = 0; n < 2000000; n += 4) {
        const double x = (double)n * 1.5707963267948966;
        const long double expected = sinl((long double)x);
        tern_sincos(x, &sine, &cosine);
        check_near("sin", x, expected, sine, fabsl(expected) * 0x1p-50L);
    }
}

/* The bits are the same with every compiler, C library and processor: a hash of many results. */
static void test_fixed_bits(void **state) {
    enum { N = 4096 };
    static double values[4 * N];
    check_rng rng = {5};
    (void)state;
    check_case("bits of log, exp, sin and cos");
    for (size_t i = 0; i < N; i++) {
        values[4 * i] = tern_log(random_scale(&rng, 1.0, -40, 80));
        values[4 * i + 1] = tern_exp(80.0 * (uniform(&rng) - 0.5));
        tern_sincos((uniform(&rng) - 0.5) * 0x1p25, &values[4 * i + 2], &values[4 * i + 3]);
    }
    assert_string_equal(check_hash(values, sizeof values), "253ce8b0185d1659");
}

/* ---- frequencies and angles -------------------------------------------------------------------
 */

static void test_frequencies(void **state) {
    static const double bases[] = {10000, 500000, 100000, 1e6, 1};
    static const float factors[MAX_HALF] = {1.0f, 2.0f, 8.0f, 0.5f, 1.5f, 32.0f};
    double frequency[MAX_HALF];
    (void)state;
    for (size_t b = 0; b < sizeof bases / sizeof *bases; b++)
        for (size_t n_rot = 2; n_rot <= 2 * MAX_HALF; n_rot += 2)
            for (int scaled = 0; scaled < 2; scaled++) {
                const bool with_factors = n_rot == 12;
                const double scale = scaled ? 0.25 : 1.0;
                check_case("base %g, n_rot %zu, scale %g", bases[b], n_rot, scale);
                tern_rope_frequencies(bases[b], scale, with_factors ? factors : NULL, n_rot,
                                      frequency);
                for (size_t i = 0; i < n_rot / 2; i++) {
                    const long double exponent = -2.0L * (long double)i / (long double)n_rot;
                    const long double factor = with_factors ? (long double)factors[i] : 1.0L;
                    const long double expected =
                        powl((long double)bases[b], exponent) / factor * (long double)scale;
                    check_near("frequency", (double)i, expected, frequency[i], expected * 0x1p-47L);
                }
                assert_true(frequency[0] == scale / (with_factors ? (double)factors[0] : 1.0));
            }
}

/* Half a unit in the last place and a bit more: the rounding, and an error of 2^-48. */
static void check_nearest_float(const char *what, size_t position, double exact, float got) {
    const double ulp = fmax((double)fabsf(nextafterf(got, 2.0f) - got), 0x1p-149);
    check_near(what, (double)position, (long double)exact, (double)got,
               (long double)(ulp * (0.5 + 0x1p-16)));
}

static void test_angles(void **state) {
    static const size_t positions[] = {0, 1, 2, 3, 63, 64, 4095, 4096, 131071, (1 << 24) - 1};
    double frequency[MAX_HALF];
    float c[MAX_HALF];
    float s[MAX_HALF];
    (void)state;
    tern_rope_frequencies(500000.0, 1.0, NULL, 2 * MAX_HALF, frequency);
    for (size_t p = 0; p < sizeof positions / sizeof *positions; p++) {
        check_case("angles of position %zu", positions[p]);
        tern_rope_angles(frequency, 1.0, MAX_HALF, positions[p], c, s);
        for (size_t i = 0; i < MAX_HALF; i++) {
            const long double angle = (long double)((double)positions[p] * frequency[i]);
            check_nearest_float("cosine", positions[p], (double)cosl(angle), c[i]);
            check_nearest_float("sine", positions[p], (double)sinl(angle), s[i]);
        }
    }
    tern_rope_angles(frequency, 1.0, MAX_HALF, 0, c, s);
    for (size_t i = 0; i < MAX_HALF; i++)
        assert_true(c[i] == 1.0f && s[i] == 0.0f);
    /* A gain multiplies both before they are rounded. */
    tern_rope_angles(frequency, 1.25, MAX_HALF, 4095, c, s);
    for (size_t i = 0; i < MAX_HALF; i++) {
        double sine, cosine;
        tern_sincos(4095.0 * frequency[i], &sine, &cosine);
        assert_true(c[i] == (float)(cosine * 1.25) && s[i] == (float)(sine * 1.25));
    }
}

/* ---- rotation ----------------------------------------------------------------------------------
 */

static const double norm_example[4] = {-1.142640, 1.922076, 2.959851, 4.029800};
static const double neox_example[4] = {-1.984111, 1.959901, 2.462378, 4.019800};

static void check_example(const char *name, const float *x, const double *expected) {
    check_case("%s", name);
    for (size_t i = 0; i < 4; i++)
        check_near("rope", (double)i, (long double)expected[i], (double)x[i], 1e-6L);
}

/* Four dimensions, base 10000, position 1, x = 1 2 3 4, with every kernel that runs here. */
static void test_example(void **state) {
    double frequency[2];
    float c[2];
    float s[2];
    size_t count;
    size_t norm = 0;
    size_t neox = 0;
    const tern_kernel_row *kernels = tern_kernel_rows(&count);
    (void)state;
    tern_rope_frequencies(10000.0, 1.0, NULL, 4, frequency);
    tern_rope_angles(frequency, 1.0, 2, 1, c, s);
    for (size_t i = 0; i < count; i++) {
        const bool is_norm = kernels[i].op == TERN_OP_ROPE_NORM;
        float x[4] = {1, 2, 3, 4};
        if ((!is_norm && kernels[i].op != TERN_OP_ROPE_NEOX) || !table_runnable(&kernels[i]))
            continue;
        kernels[i].fn.rope(x, c, s, 2);
        check_example(kernels[i].name, x, is_norm ? norm_example : neox_example);
        norm += is_norm;
        neox += !is_norm;
    }
    assert_true(norm >= 1 && neox >= 1);

    float x[4] = {1, 2, 3, 4};
    tern_ref_rope(TERN_REF_PAIR_NEOX, x, c, s, 2);
    check_example("reference", x, neox_example);
}

/* NORM on permuted values equals NEOX on the original ones: the same rotation in another order. */
static void test_pairings_agree(void **state) {
    enum { HALF = 24 };
    double frequency[HALF];
    float c[HALF], s[HALF], neox[2 * HALF], norm[2 * HALF];
    check_rng rng = {4};
    const tern_kernel_row *const norm_kernel = tern_kernel_find("tern_rope_norm_scalar");
    const tern_kernel_row *const neox_kernel = tern_kernel_find("tern_rope_neox_scalar");
    (void)state;
    tern_rope_frequencies(10000.0, 1.0, NULL, 2 * HALF, frequency);
    tern_rope_angles(frequency, 1.0, HALF, 37, c, s);
    for (size_t i = 0; i < 2 * HALF; i++)
        neox[i] = check_normal(&rng);
    for (size_t i = 0; i < HALF; i++) {
        norm[2 * i] = neox[i];
        norm[2 * i + 1] = neox[i + HALF];
    }
    norm_kernel->fn.rope(norm, c, s, HALF);
    neox_kernel->fn.rope(neox, c, s, HALF);
    check_case("NORM and NEOX");
    for (size_t i = 0; i < HALF; i++) {
        assert_true(check_same_float(norm[2 * i], neox[i]));
        assert_true(check_same_float(norm[2 * i + 1], neox[i + HALF]));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_log),
        cmocka_unit_test(test_exp),
        cmocka_unit_test(test_sincos),
        cmocka_unit_test(test_sincos_relative),
        cmocka_unit_test(test_fixed_bits),
        cmocka_unit_test(test_frequencies),
        cmocka_unit_test(test_angles),
        cmocka_unit_test(test_example),
        cmocka_unit_test(test_pairings_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
