/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of layers with a window: which ones a sequence holds, which it leaves, and what is found
 * again. TERN_TEST_STEPS sets the total length of the random walks. */
#include "tests/engine/schedule_case.h"
#include "tests/support/check.h"

static tern_page_counts window_counts(const schedule_world *w) {
    return tern_pages_count(tern_schedule_window_pages(w->schedule));
}

/* However long a sequence grows, it holds only the pages that its window sees. */
static void test_window(void **state) {
    (void)state;
    schedule_world w = schedule_case_open(schedule_case_windowed(100));
    schedule_sequence *s = schedule_case_begin(&w, 0, 0, 300, 690, MOST);
    schedule_case_add(&w, s);
    while (schedule_case_pass(&w), s->is_there) {
        const uint32_t at = s->job.computed, first = at >= 100 ? (at - 99) / 64 : 0;
        const tern_page_counts c = window_counts(&w);
        assert_int_equal(c.used, tern_pages_of(at) - first);
        assert_int_equal(c.reserved, 4 - c.used);
        assert_int_equal(c.cached, first < WINDOW_PAGES - 4 ? first : WINDOW_PAGES - 4);
        assert_int_equal(tern_pages_count(tern_schedule_pages(w.schedule)).used, tern_pages_of(at));
        assert_true(tern_schedule_sound(w.schedule));
    }
    assert_int_equal(window_counts(&w).used, 0);
    assert_int_equal(window_counts(&w).reserved, 0);
    schedule_case_close(&w);
}

/* Computes a sequence alone from beginning to end. Returns how many tokens it found. */
static uint32_t run_alone(schedule_world *w, int32_t family, uint32_t n, uint32_t limit) {
    schedule_sequence *s = schedule_case_begin(w, 0, family, n, limit, MOST);
    schedule_case_add(w, s);
    schedule_case_pass(w);
    const uint32_t shared = s->job.n_shared;
    while (schedule_case_pass(w) > 0)
        assert_true(tern_schedule_sound(w->schedule));
    return shared;
}

/* A common beginning is found as far as its window is still cached. Other sequences evict the
 * window pages that were left longest ago, while the pages of all positions are still known. */
static void test_window_sharing(void **state) {
    (void)state;
    schedule_world w = schedule_case_open(schedule_case_windowed(100));
    assert_int_equal(run_alone(&w, 0, 300, 310), 0);
    assert_int_equal(run_alone(&w, 0, 300, 310), 256);
    assert_int_equal(run_alone(&w, 0, 150, 160), 128); /* inside what the first one left */
    (void)run_alone(&w, 4, 690, 700);                  /* 11 pages */
    assert_int_equal(run_alone(&w, 0, 300, 310), 256);
    (void)run_alone(&w, 8, 690, 700);
    (void)run_alone(&w, 12, 430, 440);
    assert_int_equal(tern_pages_count(tern_schedule_pages(w.schedule)).all, PAGES);
    const uint32_t shared = run_alone(&w, 0, 300, 310);
    assert_true(shared < 256);
    assert_int_equal(run_alone(&w, 0, 300, 310), 256);
    schedule_case_close(&w);
}

/* Sequences that share a window and leave it one by one never lack a page. */
static void test_window_quotas(void **state) {
    (void)state;
    tern_schedule_params params = schedule_case_windowed(100);
    params.n_window_pages = 8; /* enough for two sequences */
    schedule_world w = schedule_case_open(params);
    for (size_t i = 0; i < 4; i++)
        schedule_case_add(&w, schedule_case_begin(&w, i, 0, 200, 260, 60));
    w.sequences[1].job.first = &w.sequences[0].job;
    w.sequences[2].job.first = &w.sequences[0].job;
    for (size_t at = 0; schedule_case_pass(&w) > 0; at++) {
        assert_true(tern_schedule_sound(w.schedule));
        assert_true(tern_schedule_running(w.schedule) <= 2);
        assert_true(at < 1000);
    }
    assert_int_equal(w.finished, 4);
    assert_true(w.shared > 0);
    schedule_case_close(&w);
}

/* Pages that are filled from elsewhere: those of the last window. Known ones are not lent again. */
static void test_window_lent(void **state) {
    (void)state;
    uint32_t pages[4], window_pages[4];
    schedule_world w = schedule_case_open(schedule_case_windowed(100));
    const schedule_sequence *s = schedule_case_begin(&w, 0, 0, 256, 300, 40);
    tern_job job = {.space = s->space,
                    .tokens = s->tokens,
                    .n_tokens = 256,
                    .pages = pages,
                    .window.pages = window_pages};
    assert_int_equal(tern_schedule_find(w.schedule, &job), 0);
    assert_true(tern_schedule_lend(w.schedule, &job));
    assert_int_equal(job.window.first, 2); /* positions from 157 on */
    assert_int_equal(job.window.end, 4);
    assert_int_equal(window_counts(&w).used, 2);
    tern_schedule_take_back(w.schedule, &job, false);
    assert_int_equal(window_counts(&w).free, WINDOW_PAGES);
    assert_int_equal(tern_schedule_find(w.schedule, &job), 0);
    assert_true(tern_schedule_lend(w.schedule, &job));
    tern_schedule_take_back(w.schedule, &job, true);
    assert_int_equal(window_counts(&w).cached, 2);
    assert_int_equal(tern_schedule_find(w.schedule, &job), 4);
    assert_int_equal(job.window.first, 2);
    assert_true(tern_schedule_lend(w.schedule, &job)); /* again: no page is there twice */
    tern_schedule_take_back(w.schedule, &job, true);
    assert_int_equal(window_counts(&w).cached, 2);
    assert_int_equal(window_counts(&w).reserved, 0);
    job.n_tokens = 192; /* its window is not cached */
    assert_int_equal(tern_schedule_find(w.schedule, &job), 0);
    schedule_case_close(&w);
}

/* There must be enough pages for the window of one sequence. */
static void test_window_refused(void **state) {
    (void)state;
    tern_schedule *s = NULL;
    tern_error err = {0};
    tern_schedule_params params = schedule_case_windowed(100);
    params.n_window_pages = 3;
    assert_int_equal(tern_schedule_new(&params, &s, &err), TERN_ERR_ARG);
    assert_string_equal(err.message, "3 pages for windows of 100 positions");
    params = schedule_case_windowed(100);
    params.whole = true;
    params.n_batch = params.n_ctx;
    assert_int_equal(tern_schedule_new(&params, &s, &err), TERN_ERR_ARG);
    assert_null(s);
}

static void test_window_soak(void **state) {
    static const uint32_t windows[] = {1, 64, 65, 100, 140};
    (void)state;
    for (size_t i = 0; i < 5; i++)
        schedule_case_soak(schedule_case_windowed(windows[i]), schedule_case_steps() / 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_window),         cmocka_unit_test(test_window_sharing),
        cmocka_unit_test(test_window_quotas),  cmocka_unit_test(test_window_lent),
        cmocka_unit_test(test_window_refused), cmocka_unit_test(test_window_soak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
