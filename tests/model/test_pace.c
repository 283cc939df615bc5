/* SPDX-License-Identifier: Apache-2.0 */
/* When runs say something new, when they contradict what the tuner chose, and which paces are
 * kept. */

#include "runtime/model/tune/pace.h"
#include "tests/support/check.h"

/* A thousandth is 1. */
enum { TABLE = 1000 };

static void test_a_clearly_shorter_time_is_new(void **state) {
    (void)state;
    tern_tune_pace p = {.threads = 2};
    assert_true(tern_tune_pace_note(&p, false, TABLE));
    assert_false(tern_tune_pace_note(&p, false, TABLE));
    assert_false(tern_tune_pace_note(&p, false, 990)); /* one hundredth less repeats as well */
    assert_int_equal(p.table_ns, TABLE);
    assert_true(tern_tune_pace_note(&p, false, 989));
    assert_int_equal(p.table_ns, 989);
    assert_int_equal(p.chosen_ns, 0);
    assert_int_equal(p.runs, 0);
}

static void test_runs_with_choices_are_counted(void **state) {
    (void)state;
    tern_tune_pace p = {.threads = 2};
    for (uint32_t i = 1; i <= TERN_TUNE_PACE_RUNS; i++) {
        assert_true(tern_tune_pace_note(&p, true, TABLE)); /* a count is news */
        assert_int_equal(p.runs, i);
    }
    assert_false(tern_tune_pace_note(&p, true, TABLE));
    assert_int_equal(p.runs, TERN_TUNE_PACE_RUNS);
    tern_tune_pace_renew(&p);
    assert_int_equal(p.runs, 0);
    assert_int_equal(p.chosen_ns, 0);
}

static void test_times_that_no_token_takes(void **state) {
    (void)state;
    tern_tune_pace p = {.threads = 2};
    assert_false(tern_tune_pace_note(&p, true, 0));
    assert_false(tern_tune_pace_note(&p, true, (uint64_t)TERN_TUNE_PACE_LIMIT));
    assert_int_equal(p.runs, 0);
    assert_true(tern_tune_pace_note(&p, true, (uint64_t)TERN_TUNE_PACE_LIMIT - 1));
}

static void test_what_contradicts_a_choice(void **state) {
    (void)state;
    tern_tune_pace p = {.table_ns = TABLE, .chosen_ns = 1030, .runs = TERN_TUNE_PACE_RUNS};
    assert_false(tern_tune_pace_disagrees(&p, 0)); /* in the range in which medians repeat */
    p.chosen_ns = 1031;
    assert_true(tern_tune_pace_disagrees(&p, 0));
    assert_true(tern_tune_pace_disagrees(&p, 30));
    assert_false(tern_tune_pace_disagrees(&p, 31)); /* no more than the tuner's noise */
    p.runs = TERN_TUNE_PACE_RUNS - 1;
    assert_false(tern_tune_pace_disagrees(&p, 0));
    p.runs = TERN_TUNE_PACE_RUNS;
    p.rechecks = TERN_TUNE_RECHECKS;
    assert_false(tern_tune_pace_disagrees(&p, 0));
    p.rechecks = TERN_TUNE_RECHECKS - 1;
    p.table_ns = 0; /* no run with the table's kernels */
    assert_false(tern_tune_pace_disagrees(&p, 0));
}

static void test_the_newest_paces_are_kept(void **state) {
    (void)state;
    tern_tune_paces paces = {.n = 0};
    for (uint32_t i = 0; i <= TERN_TUNE_PACES; i++)
        tern_tune_pace_keep(&paces, &(tern_tune_pace){.threads = 1 + i, .shape = 7, .runs = i});
    assert_int_equal(paces.n, TERN_TUNE_PACES);
    assert_null(tern_tune_pace_find(&paces, 1, 7)); /* the oldest */
    for (uint32_t i = 1; i <= TERN_TUNE_PACES; i++) {
        assert_non_null(tern_tune_pace_find(&paces, 1 + i, 7));
        assert_int_equal(tern_tune_pace_find(&paces, 1 + i, 7)->runs, i);
    }
    assert_null(tern_tune_pace_find(&paces, 2, 8));
    tern_tune_pace_keep(&paces, &(tern_tune_pace){.threads = 2, .shape = 7, .runs = 99});
    assert_int_equal(paces.n, TERN_TUNE_PACES);
    assert_int_equal(tern_tune_pace_find(&paces, 2, 7)->runs, 99);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_clearly_shorter_time_is_new),
        cmocka_unit_test(test_runs_with_choices_are_counted),
        cmocka_unit_test(test_times_that_no_token_takes),
        cmocka_unit_test(test_what_contradicts_a_choice),
        cmocka_unit_test(test_the_newest_paces_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
