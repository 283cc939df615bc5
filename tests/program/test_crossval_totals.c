/* SPDX-License-Identifier: Apache-2.0 */
/* The totals of a cross-validation are the sums, maxima and counts of all its cases. */
#include "tests/support/check.h"
#include "tools/crossval/report.h"

static sum_figures pairs(size_t n, double cosine, double max_abs) {
    return (sum_figures){.pairs = n,
                         .elements = 10 * n,
                         .cosine_min = cosine,
                         .cosine_sum = cosine * (double)n,
                         .max_abs = max_abs,
                         .squares = 0.5 * (double)n,
                         .deviation = 2.0 * (double)n};
}

static void test_totals(void **state) {
    greedy_difference differences[] = {{.step = 1, .near_tie = true}, {.step = 3}};
    sum_figures keys[] = {pairs(4, 0.9, 0.5), pairs(4, 0.8, 0.25)};
    sum_figures values[] = {pairs(4, 1.0, 0.75), pairs(4, 1.0, 0.0)};
    case_result results[] = {
        {.logits = pairs(3, 1.0, 0.125),
         .whole = 3,
         .top1 = 2,
         .kl_sum = 0.5,
         .kl_max = 0.375,
         .steps = 6,
         .differences = differences,
         .n_differences = 2,
         .n_layer = 2,
         .keys = keys,
         .values = values},
        {.logits = pairs(2, 0.9995, 0.25),
         .whole = 2,
         .top1 = 2,
         .kl_sum = 0.25,
         .kl_max = 0.125,
         .steps = 4},
        {.logits = pairs(1, 1.0, 0.0),
         .whole = 1,
         .top1 = 0,
         .kl_sum = 0.0625,
         .kl_max = 0.4375,
         .steps = 1,
         .differences = differences,
         .n_differences = 1},
    };
    const crossval x = {.n = 3, .results = results, .tolerance = 0.999};

    (void)state;
    const crossval_total t = crossval_add_up(&x);
    assert_int_equal(t.logits.pairs, 6);
    assert_int_equal(t.logits.elements, 60);
    assert_true(t.logits.cosine_min == 0.9995 && t.logits.max_abs == 0.25);
    assert_true(t.logits.squares == 3.0 && t.logits.deviation == 12.0);
    assert_int_equal(t.whole, 6);
    assert_int_equal(t.top1, 4);
    assert_true(t.kl_sum == 0.8125 && t.kl_max == 0.4375);
    assert_int_equal(t.steps, 11);
    assert_int_equal(t.equal, 8);
    assert_int_equal(t.differences, 3);
    assert_int_equal(t.near_ties, 2);
    assert_int_equal(t.cache.pairs, 16);
    assert_true(t.cache.cosine_min == 0.8 && t.cache.max_abs == 0.75);
    assert_int_equal(t.passed, 2); /* the first has a difference that is no near-tie */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_totals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
