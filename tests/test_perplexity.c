/* SPDX-License-Identifier: Apache-2.0 */
/* Logarithms of probabilities against libm, and the windows of a perplexity. */

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/logprob.h"
#include "tools/eval/perplexity.h"

static void test_exp(void **state) {
    (void)state;
    double worst = 0.0;
    for (double x = -700.0; x < 700.0; x += 0.00713) {
        worst = fmax(worst, fabs(tern_double_exp(x) / exp(x) - 1.0));
    }
    assert_true(worst < 4e-16);
    assert_true(tern_double_exp(0.0) == 1.0);
    assert_true(tern_double_exp(-745.1) == 0.0 && tern_double_exp(-1e300) == 0.0 &&
                tern_double_exp(-INFINITY) == 0.0);
    assert_true(tern_double_exp(710.5) == INFINITY && tern_double_exp(INFINITY) == INFINITY);
    assert_true(isnan(tern_double_exp((double)NAN)));
}

static void test_log(void **state) {
    (void)state;
    double worst = 0.0;
    for (double x = 1e-6; x < 1e6; x *= 1.000013) {
        worst = fmax(worst, fabs(tern_double_log(x) - log(x)) / fmax(1.0, fabs(log(x))));
    }
    assert_true(worst < 4e-16);
    assert_true(tern_double_log(1.0) == 0.0);
    assert_true(fabs(tern_double_log(DBL_MAX) - log(DBL_MAX)) < 1e-12);
}

static void test_log_sum_exp(void **state) {
    (void)state;
    const float equal[] = {2.0F, 2.0F, 2.0F, 2.0F};
    assert_true(fabs(tern_log_sum_exp(equal, 4) - (2.0 + log(4.0))) < 1e-15);
    const float far[] = {-3e38F, 3e38F, 0.0F}; /* no overflow on the way */
    assert_true(tern_log_sum_exp(far, 3) == (double)3e38F);
    const float one[] = {-7.5F};
    assert_true(tern_log_sum_exp(one, 1) == -7.5);
    const float broken[] = {0.0F, NAN};
    assert_true(isnan(tern_log_sum_exp(broken, 2)));
}

/* Which tokens are scored, counted by hand. */
static void test_windows(void **state) {
    (void)state;
    const perplexity_params side_by_side = {.ctx = 512, .stride = 512, .bos = -1};
    assert_int_equal(perplexity_scored(&side_by_side), 255);
    assert_int_equal(perplexity_windows(&side_by_side, 511), 0);
    assert_int_equal(perplexity_windows(&side_by_side, 512), 1);
    assert_int_equal(perplexity_windows(&side_by_side, 1023), 1);
    assert_int_equal(perplexity_windows(&side_by_side, 1024), 2);
    const perplexity_params sliding = {.ctx = 10, .stride = 3, .max_windows = 2, .bos = -1};
    assert_int_equal(perplexity_scored(&sliding), 3);
    assert_int_equal(perplexity_windows(&sliding, 12), 1);
    assert_int_equal(perplexity_windows(&sliding, 13), 2);
    assert_int_equal(perplexity_windows(&sliding, 100), 2); /* max_windows */
    const perplexity_params wide = {.ctx = 10, .stride = 8, .bos = -1};
    assert_int_equal(perplexity_scored(&wide), 4); /* never with less than half a window in front */
    const perplexity_params smallest = {.ctx = PERPLEXITY_MIN_CTX, .stride = 1, .bos = -1};
    assert_int_equal(perplexity_scored(&smallest), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exp),
        cmocka_unit_test(test_log),
        cmocka_unit_test(test_log_sum_exp),
        cmocka_unit_test(test_windows),
    };
    return cmocka_run_group_tests_name("perplexity", tests, NULL, NULL);
}
