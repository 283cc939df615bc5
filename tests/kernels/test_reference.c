/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reference itself: float operations against double precision and libm, and the edge cases of
 * quantization. test_vectors.c has the published vectors.
 */

#include <math.h>
#include <string.h>

#include "kernels/half.h"
#include "kernels/reference.h"
#include "tests/support/check.h"

/* ---- quantization edges -------------------------------------------------------------------- */

static float token_scale(float x0, int8_t *q0) {
    int8_t q[64];
    float s;
    int32_t sum;

    tern_ref_quantize_token(&x0, 1, q, &s, &sum);
    assert_int_equal(sum, q[0]);
    for (size_t i = 1; i < sizeof q; i++)
        assert_int_equal(q[i], 0);
    *q0 = q[0];
    return s;
}

/* Comparing with the double 1e-5 or with the nearest float gives the same scale. */
static void test_token_floor(void **state) {
    int8_t q;

    (void)state;
    assert_true(token_scale(0.0f, &q) == 12700000.0f && q == 0);
    assert_true(token_scale(1e-7f, &q) == 12700000.0f && q == 1);
    float x = 1e-5f;
    for (int i = 0; i < 4; i++)
        x = nextafterf(x, 0.0f);
    for (int i = 0; i < 8; i++, x = nextafterf(x, 1.0f)) {
        const float floored = x > 1e-5f ? x : 1e-5f;
        assert_true(token_scale(x, &q) == 127.0f / floored);
        assert_int_equal(q, 127);
    }
}

/* (float)(127.0 / (double)a) equals 127.0f / a: a quotient of floats may be rounded twice. */
static void test_token_quotient(void **state) {
    check_rng rng = {1};
    int8_t q;

    (void)state;
    for (int i = 0; i < 200000; i++) {
        const float a = ldexpf(1.0f + (float)check_below(&rng, 1u << 23) * 0x1p-23f,
                               (int)check_below(&rng, 60) - 16);
        assert_true(token_scale(a, &q) == 127.0f / a);
        assert_int_equal(q, 127);
    }
}

static void test_ties_and_nan(void **state) {
    static const float x[] = {127.0f, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, 62.5f, NAN};
    static const int8_t token[] = {127, 0, 2, 2, 0, -2, -2, 62, -128};
    static const int8_t block[] = {127, 0, 2, 2, 0, -2, -2, 62, -127};
    int8_t q[64];
    float s;
    int32_t sum;

    (void)state;
    tern_ref_quantize_token(x, 9, q, &s, &sum);
    assert_memory_equal(q, token, 9);
    assert_true(s == 1.0f);
    assert_int_equal(sum, 127 + 62 - 128);
    tern_ref_quantize_block(x, 9, q, &s, &sum);
    assert_memory_equal(q, block, 9);
    assert_true(s == 1.0f);
    assert_int_equal(sum, 127 + 62 - 127);
    const float infinite[] = {INFINITY, 1.0f};
    tern_ref_quantize_token(infinite, 2, q, &s, &sum);
    assert_true(s == 0.0f);
    assert_int_equal(q[0], -128); /* infinity * 0 is NaN */
    assert_int_equal(q[1], 0);
}

static void test_block_scale(void **state) {
    float x[40];
    float d[2];
    int8_t q[64];
    int32_t sum[2];

    (void)state;
    for (int i = 0; i < 40; i++)
        x[i] = i < 32 ? 0.0f : -3.0f;
    tern_ref_quantize_block(x, 40, q, d, sum);
    assert_true(d[0] == 1e-30f / 127.0f);
    assert_true(d[1] == 3.0f / 127.0f);
    assert_int_equal(sum[0], 0);
    assert_int_equal(sum[1], -8 * 127);
    assert_int_equal(q[39], -127);
    for (int i = 40; i < 64; i++)
        assert_int_equal(q[i], 0);
}

/* ---- exp and what uses it ------------------------------------------------------------------ */

/* Bound on the relative error of the canonical exp, derived in docs/numerics.md. */
static const double exp_bound = 1.2e-7;

/* Every 97th float of [-87, 88]: normal results. */
static void test_exp_accuracy(void **state) {
    double worst = 0.0;

    (void)state;
    for (uint32_t bits = 0; bits <= 0x42b00000u; bits += 97)
        for (int negative = 0; negative < 2; negative++) {
            const float x = tern_f32_from_bits(bits | (negative ? 0x80000000u : 0));
            if (x < -87.0f)
                continue;
            const double want = exp((double)x);
            worst = fmax(worst, fabs((double)tern_ref_exp(x) - want) / want);
        }
    print_message("exp: largest relative error %.3g\n", worst);
    assert_true(worst < exp_bound);
}

static void test_exp_ends(void **state) {
    (void)state;
    assert_true(tern_ref_exp(0.0f) == 1.0f);
    assert_true(tern_ref_exp(-0.0f) == 1.0f);
    assert_true(tern_ref_exp(-104.0f) == 0.0f);
    assert_true(tern_ref_exp(-INFINITY) == 0.0f);
    assert_true(tern_ref_exp(NAN) == 0.0f);
    assert_true(isinf(tern_ref_exp(89.0f)));
    assert_true(isinf(tern_ref_exp(INFINITY)));
    for (float x = -103.9f; x < -87.0f; x += 0.01f) { /* denormal: rounded once more, to 2^-149 */
        const double want = exp((double)x);
        assert_true(fabs((double)tern_ref_exp(x) - want) <= 0x1p-150 + exp_bound * want);
    }
}

static void test_softmax_accuracy(void **state) {
    check_rng rng = {2};
    float x[1000];
    double want[1000];
    double sum = 0.0;
    double worst = 0.0;

    (void)state;
    for (int i = 0; i < 1000; i++)
        x[i] = 4.0f * check_normal(&rng);
    float largest = x[0];
    for (int i = 0; i < 1000; i++)
        largest = fmaxf(largest, x[i]);
    for (int i = 0; i < 1000; i++) { /* the difference is rounded as in the float operation */
        const float difference = x[i] - largest;
        want[i] = exp((double)difference);
        sum += want[i];
    }
    tern_ref_softmax(x, 1000);
    for (int i = 0; i < 1000; i++)
        worst = fmax(worst, fabs((double)x[i] - want[i] / sum) / (want[i] / sum));
    print_message("softmax of 1000: largest relative error %.3g\n", worst);
    assert_true(worst < 1e-6); /* exp, a sum of 63 additions a lane, one division */
}

static void test_silu_accuracy(void **state) {
    const float one = 1.0f;
    double worst = 0.0;

    (void)state;
    for (float g = -80.0f; g < 80.0f; g += 0.0103f) {
        const double want = (double)g / (1.0 + exp(-(double)g));
        float y;
        tern_ref_gate(TERN_REF_SILU, &g, &one, 1, &y);
        worst = fmax(worst, fabs((double)y - want) / fabs(want));
    }
    print_message("silu: largest relative error %.3g\n", worst);
    assert_true(worst < exp_bound + 2 * 0x1p-24); /* exp, one addition, one division */
}

static void test_relu2(void **state) {
    static const float g[] = {-1.0f, 3.0f, 300.0f, -0.0f, NAN};
    static const float u[] = {5.0f, 2.0f, 2.0f, 1.0f, 1.0f};
    static const float want[] = {0.0f, 18.0f, 180000.0f, 0.0f, 0.0f};
    float y[5];

    (void)state;
    tern_ref_gate(TERN_REF_RELU2, g, u, 5, y);
    check_floats("y", want, y, 5);
}

/* ---- the other operations, in double ------------------------------------------------------- */

/* The order of the lanes. If 1e8 and -1e8 meet in one lane or in the tree, what was added between
 * is lost. */
static void test_lane_order(void **state) {
    float w[48] = {0};
    float x[48];
    float y;
    const tern_activations a = {.cols = 48, .x = x, .x_stride = 48};
    const tern_ref_matrix m = {.format = TERN_FORMAT_F32, .file = w, .rows = 1, .cols = 48};
    const tern_tile all = {0, 1, 0, 1};

    (void)state;
    for (int i = 0; i < 48; i++)
        x[i] = 1.0f;
    w[3] = 1e8f, w[19] = 1.0f, w[35] = -1e8f; /* one lane: the 1 is lost */
    tern_ref_matmul(&m, &a, &all, &y, 1);
    assert_true(y == 0.0f);
    w[19] = 0.0f, w[20] = 1.0f; /* another lane: it survives */
    tern_ref_matmul(&m, &a, &all, &y, 1);
    assert_true(y == 1.0f);
    memset(w, 0, sizeof w);
    w[0] = 1e8f, w[8] = -1e8f, w[4] = 1.0f; /* 0 meets 8 first, then 4 */
    tern_ref_matmul(&m, &a, &all, &y, 1);
    assert_true(y == 1.0f);
    w[8] = 0.0f, w[4] = -1e8f, w[12] = 1.0f; /* 4 meets 12 first: the 1 is lost */
    tern_ref_matmul(&m, &a, &all, &y, 1);
    assert_true(y == 0.0f);
}

static void test_rmsnorm_accuracy(void **state) {
    check_rng rng = {4};
    float x[777];
    float g[777];
    float y[777];
    double squares = 0.0;

    (void)state;
    for (int i = 0; i < 777; i++) {
        x[i] = check_normal(&rng);
        g[i] = check_normal(&rng);
        squares += (double)x[i] * (double)x[i];
    }
    tern_ref_rmsnorm(x, g, 777, 1e-5f, y);
    for (int i = 0; i < 777; i++) {
        const double want = (double)x[i] * (double)g[i] / sqrt(squares / 777 + (double)1e-5f);
        assert_true(fabs((double)y[i] - want) <= 1e-6 * fabs(want));
    }
}

static void test_rope(void **state) {
    static const float c[] = {0.0f, 0.5f};
    static const float s[] = {1.0f, 0.25f};
    float norm[] = {1, 2, 3, 4};
    float neox[] = {1, 2, 3, 4};

    (void)state;
    tern_ref_rope(TERN_REF_PAIR_NORM, norm, c, s, 2);
    check_floats("norm", (const float[]){-2.0f, 1.0f, 0.5f, 2.75f}, norm, 4);
    tern_ref_rope(TERN_REF_PAIR_NEOX, neox, c, s, 2);
    check_floats("neox", (const float[]){-3.0f, 0.0f, 1.0f, 2.5f}, neox, 4);
}

enum { ATTEND_POSITIONS = 200, ATTEND_DIM = 48 };

/*
 * Attention over a cache of the format, compared with sums in double of the same cached numbers,
 * which lie within +-5. `bound` limits the error of their weighted mean. A sink has a weight, and
 * the value 0.
 */
static void check_attend_accuracy(tern_format cache, size_t row_bytes, const float *sink,
                                  double bound) {
    static uint8_t k[ATTEND_POSITIONS * ATTEND_DIM * 4];
    static uint8_t v[ATTEND_POSITIONS * ATTEND_DIM * 4];
    static float values[ATTEND_POSITIONS][ATTEND_DIM];
    check_rng rng = {6};
    float q[ATTEND_DIM];
    float row[ATTEND_DIM];
    float out[ATTEND_DIM];
    double e[ATTEND_POSITIONS];
    double sum = sink != NULL ? exp((double)*sink) : 0.0;

    for (int i = 0; i < ATTEND_DIM; i++)
        q[i] = check_normal(&rng);
    for (size_t j = 0; j < ATTEND_POSITIONS; j++) {
        double score = 0.0;
        for (int i = 0; i < ATTEND_DIM; i++) {
            row[i] = 2.0f * check_normal(&rng);
            values[j][i] = check_normal(&rng);
        }
        tern_ref_store(cache, row, ATTEND_DIM, k + j * row_bytes);
        tern_ref_embed(cache, k + j * row_bytes, ATTEND_DIM, row);
        tern_ref_store(cache, values[j], ATTEND_DIM, v + j * row_bytes);
        tern_ref_embed(cache, v + j * row_bytes, ATTEND_DIM, values[j]);
        for (int i = 0; i < ATTEND_DIM; i++)
            score += (double)q[i] * (double)row[i];
        e[j] = exp(score * 0.125);
        sum += e[j];
    }
    const tern_attend_args args = {.heads = {.positions = ATTEND_POSITIONS,
                                             .tokens = 1,
                                             .group = 1,
                                             .dim = ATTEND_DIM,
                                             .sinks = sink},
                                   .q = q,
                                   .k = k,
                                   .v = v,
                                   .page_stride = TERN_ATTEND_CHUNK * row_bytes,
                                   .scale = 0.125f};
    tern_ref_attend(cache, &args, out, ATTEND_DIM);
    for (int i = 0; i < ATTEND_DIM; i++) {
        double want = 0.0;
        for (int j = 0; j < ATTEND_POSITIONS; j++)
            want += e[j] / sum * (double)values[j][i];
        assert_true(fabs((double)out[i] - want) < bound);
    }
}

/*
 * The bounds: f16 has steps of 2^-13 of each query and weight; q8_0 has steps of 2^-15 of the
 * largest query, and of the largest weight of a chunk.
 */
static void test_attend_accuracy(void **state) {
    static const float sinks[] = {6.0f, -3.0f, 60.0f}; /* the largest score is near 5 */
    (void)state;
    for (size_t i = 0; i <= sizeof sinks / sizeof *sinks; i++) {
        const float *sink = i > 0 ? &sinks[i - 1] : NULL;
        check_attend_accuracy(TERN_FORMAT_F16, ATTEND_DIM * 2, sink, 2e-4);
        check_attend_accuracy(TERN_FORMAT_F32, ATTEND_DIM * 4, sink, 2e-6);
        check_attend_accuracy(TERN_FORMAT_Q8_0, (ATTEND_DIM + 31) / 32 * 34, sink, 1e-4);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_token_floor),
        cmocka_unit_test(test_token_quotient),
        cmocka_unit_test(test_ties_and_nan),
        cmocka_unit_test(test_block_scale),
        cmocka_unit_test(test_exp_accuracy),
        cmocka_unit_test(test_exp_ends),
        cmocka_unit_test(test_softmax_accuracy),
        cmocka_unit_test(test_silu_accuracy),
        cmocka_unit_test(test_relu2),
        cmocka_unit_test(test_lane_order),
        cmocka_unit_test(test_rmsnorm_accuracy),
        cmocka_unit_test(test_rope),
        cmocka_unit_test(test_attend_accuracy),
    };
    return cmocka_run_group_tests_name("the reference", tests, NULL, NULL);
}
