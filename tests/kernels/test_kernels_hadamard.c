/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every kernel of the Walsh-Hadamard transform against the reference, bit for bit, for every block
 * size and both places of the factors; and the reference against the matrix of the definition.
 */

#include <math.h>

#include "kernels/reference.h"
#include "tests/kernels/row_trial.h"
#include "tests/kernels/table.h"

enum { LARGEST_BLOCK = 4096 };

/* ---- kernels against the reference --------------------------------------------------------- */

static void fill_signs(float *signs, size_t n, check_rng *rng) {
    for (size_t i = 0; i < n; i++)
        signs[i] = check_below(rng, 2) == 0 ? -1.0f : 1.0f;
}

static void check_block(trial *t, size_t block, const float *before, const float *after) {
    check_buffer x = trial_floats(t->n, t->kind, t->place, &t->rng);
    check_buffer want = check_buffer_new(x.bytes, sizeof(float), t->place);
    check_buffer y = check_buffer_new(x.bytes, sizeof(float), t->place);

    check_case("%s, %zu elements in blocks of %zu", t->kernel->name, t->n, block);
    tern_ref_hadamard(x.data, before, after, t->n, block, want.data);
    t->kernel->fn.hadamard(x.data, before, after, t->n, block, y.data);
    check_floats("y", want.data, y.data, t->n);
    t->kernel->fn.hadamard(x.data, before, after, t->n, block, x.data);
    check_floats("y in place", want.data, x.data, t->n);
    check_buffer_free(&x);
    check_buffer_free(&want);
    check_buffer_free(&y);
}

/* Lengths are multiples of 16. The blocks are all powers of two that divide them. */
static void check_hadamard(trial *t) {
    check_buffer signs = check_buffer_new(t->n * sizeof(float), sizeof(float), t->place);

    fill_signs(signs.data, t->n, &t->rng);
    for (size_t block = TERN_LANES; t->n % block == 0 && block <= LARGEST_BLOCK; block *= 2) {
        check_block(t, block, NULL, NULL);
        check_block(t, block, signs.data, NULL);
        check_block(t, block, NULL, signs.data);
    }
    check_buffer_free(&signs);
}

static void test_kernels(void **state) {
    (void)state;
    trial_each(TERN_OP_HADAMARD, TERN_LANES, check_hadamard);
}

/* ---- the reference against the definition -------------------------------------------------- */

/* Element k of a block: the sum over j of x[j], negated where j & k has an odd number of ones,
 * divided by sqrt(block). */
static double by_definition(const float *x, size_t block, size_t k) {
    double sum = 0.0;

    for (size_t j = 0; j < block; j++)
        sum += __builtin_parityll(j & k) ? -(double)x[j] : (double)x[j];
    return sum / sqrt((double)block);
}

static void test_definition(void **state) {
    static float x[2 * LARGEST_BLOCK], y[2 * LARGEST_BLOCK], signed_x[2 * LARGEST_BLOCK];
    static float signs[2 * LARGEST_BLOCK];
    check_rng rng = {31};

    (void)state;
    for (size_t block = 16; block <= LARGEST_BLOCK; block *= 4) {
        fill_signs(signs, 2 * block, &rng);
        for (size_t i = 0; i < 2 * block; i++) {
            x[i] = check_normal(&rng);
            signed_x[i] = signs[i] * x[i];
        }
        tern_ref_hadamard(x, signs, NULL, 2 * block, block, y);
        for (size_t k = 0; k < 2 * block; k += 1 + block / 64) {
            const double want = by_definition(signed_x + k / block * block, block, k % block);
            assert_true(fabs((double)y[k] - want) < 1e-5);
        }
    }
}

/* The transform is its own inverse, without error for integers in blocks of 4^k. */
static void test_inverse(void **state) {
    float x[1024], y[1024], signs[1024];
    check_rng rng = {32};

    (void)state;
    fill_signs(signs, 1024, &rng);
    for (size_t i = 0; i < 1024; i++)
        x[i] = (float)check_below(&rng, 255) - 127.0f;
    tern_ref_hadamard(x, signs, NULL, 1024, 1024, y);
    tern_ref_hadamard(y, NULL, signs, 1024, 1024, y);
    for (size_t i = 0; i < 1024; i++)
        assert_true(y[i] == x[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels),
        cmocka_unit_test(test_definition),
        cmocka_unit_test(test_inverse),
    };
    table_report();
    return cmocka_run_group_tests_name("Walsh-Hadamard transform", tests, NULL, NULL);
}
