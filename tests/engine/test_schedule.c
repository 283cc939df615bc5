/* SPDX-License-Identifier: Apache-2.0 */
/* The schedule: which sequences run, what a pass computes of them, and in which pages.
 * TERN_TEST_STEPS sets the length of the random walk. */
#include <stdlib.h>
#include <string.h>

#include "tests/engine/schedule_case.h"
#include "tests/support/check.h"

/* ---- one thing at a time --------------------------------------------------------------------- */

static void test_in_order(void **state) {
    (void)state;
    schedule_world w = schedule_case_open(schedule_case_small);
    for (size_t i = 0; i < 6; i++)
        schedule_case_add(&w, schedule_case_begin(&w, i, (int32_t)i, 10, 14 + (uint32_t)i, 9));
    schedule_case_pass(&w);
    assert_int_equal(tern_schedule_running(w.schedule), 4);
    assert_int_equal(tern_schedule_waiting(w.schedule), 2);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(w.sequences[i].job.is_running, i < 4);
    schedule_sequence *urgent = schedule_case_begin(&w, 6, 6, 10, 14, 4);
    urgent->job.priority = 1;
    schedule_case_add(&w, urgent);
    while (!urgent->job.is_running)
        schedule_case_pass(&w);
    assert_false(w.sequences[0].is_there || w.sequences[4].job.is_running);
    while (schedule_case_pass(&w) > 0) {
    }
    assert_int_equal(w.finished, 7);
    schedule_case_close(&w);
}

/* A sequence that does not fit yet delays all later ones, however small they are. */
static void test_no_overtaking(void **state) {
    (void)state;
    schedule_world w = schedule_case_open(schedule_case_small);
    schedule_case_add(&w, schedule_case_begin(&w, 0, 0, 600, 640, 40)); /* 10 pages each */
    schedule_case_add(&w, schedule_case_begin(&w, 1, 4, 600, 640, 40));
    schedule_case_pass(&w);
    schedule_case_add(
        &w, schedule_case_begin(&w, 2, 8, 690, 700, 10)); /* 11 pages: one more than is free */
    schedule_case_add(&w, schedule_case_begin(&w, 3, 12, 5, 9, 4));
    while (w.sequences[0].is_there && w.sequences[1].is_there) {
        assert_false(w.sequences[2].job.is_running || w.sequences[3].job.is_running);
        schedule_case_pass(&w);
    }
    schedule_case_pass(&w);
    assert_true(w.sequences[2].job.is_running && w.sequences[3].job.is_running);
    schedule_case_close(&w);
}

static void test_never_fits(void **state) {
    (void)state;
    tern_schedule_params params = schedule_case_small;
    params.n_pages = 5;
    schedule_world w = schedule_case_open(params);
    tern_error err = {0};
    assert_int_equal(tern_schedule_fits(w.schedule, 1, 320, &err), TERN_OK);
    assert_int_equal(tern_schedule_fits(w.schedule, 1, 321, &err), TERN_ERR_CONTEXT);
    assert_string_equal(err.message, "a request of 321 positions exceeds the cache of 320");
    assert_int_equal(tern_schedule_fits(w.schedule, 1, 701, &err), TERN_ERR_CONTEXT);
    assert_string_equal(err.message, "a request of 701 positions exceeds the context of 700");
    assert_int_equal(tern_schedule_fits(w.schedule, 0, 5, &err), TERN_ERR_EMPTY);
    schedule_case_close(&w);
}

static void test_queue_limit(void **state) {
    (void)state;
    schedule_world w = schedule_case_open(schedule_case_small);
    for (size_t i = 0; i < 8; i++)
        schedule_case_add(&w, schedule_case_begin(&w, i, 0, 10, 14, 4));
    assert_false(tern_schedule_add(w.schedule, &schedule_case_begin(&w, 8, 0, 10, 14, 4)->job));
    schedule_case_pass(&w);
    schedule_case_add(&w, &w.sequences[8]);
    schedule_case_close(&w);
}

/* A sequence finds what another one has computed, if they share a name space. */
static void test_sharing(void **state) {
    (void)state;
    schedule_world w = schedule_case_open(schedule_case_small);
    schedule_case_add(&w, schedule_case_begin(&w, 0, 0, 300, 400, 100));
    for (int i = 0; i < 8; i++)
        schedule_case_pass(&w);
    schedule_case_add(&w, schedule_case_begin(&w, 1, 0, 300, 310, 10)); /* while the first runs */
    schedule_case_add(&w, schedule_case_begin(&w, 2, 1, 300, 310, 10)); /* differs at token 99 */
    schedule_case_add(&w, schedule_case_begin(&w, 3, 4, 300, 310, 10)); /* another space */
    schedule_case_pass(&w);
    assert_int_equal(w.sequences[1].job.n_shared, 256);
    assert_int_equal(w.sequences[2].job.n_shared, 64);
    assert_int_equal(w.sequences[3].job.n_shared, 0);
    while (schedule_case_pass(&w) > 0) {
    }
    schedule_case_add(
        &w, schedule_case_begin(&w, 4, 0, 257, 260,
                                3)); /* after all others; the last token is always computed */
    schedule_case_add(&w, schedule_case_begin(&w, 5, 0, 256, 260, 4));
    schedule_case_pass(&w);
    assert_int_equal(w.sequences[4].job.n_shared, 256);
    assert_int_equal(w.sequences[5].job.n_shared, 192);
    schedule_case_close(&w);
}

/* Rows with wanted results are computed, never taken from the cache, and marked as wanted. */
static void test_wanted(void **state) {
    (void)state;
    tern_plan_span spans[4];
    schedule_world w = schedule_case_open(schedule_case_small);
    schedule_case_add(&w, schedule_case_begin(&w, 0, 0, 300, 310, 10));
    while (schedule_case_pass(&w) > 0) {
    }
    schedule_sequence *s = schedule_case_begin(&w, 1, 0, 300, 310, 10);
    s->job.wants = true;
    s->job.wanted_from = 130;
    schedule_case_add(&w, s);
    for (uint32_t at = 128, n; at < 300; at += n) {
        assert_int_equal(tern_schedule_plan(w.schedule, &w.costs, 0.0, spans), 1);
        n = spans[0].n;
        assert_int_equal(spans[0].position, at);
        assert_int_equal(spans[0].wanted, at == 128 ? n - 2 : n);
        s->job.wanted_from = at + n;
        schedule_case_compute(&w, &spans[0]);
        if (at + n == 300)
            schedule_case_append(s, 1);
        tern_schedule_computed(w.schedule, &spans[0], n);
    }
    s->job.wants = false;
    assert_int_equal(tern_schedule_plan(w.schedule, &w.costs, 0.0, spans), 1);
    assert_int_equal(spans[0].wanted, 1);
    schedule_case_close(&w);
}

/* A branch waits until the prompt that it begins with has been read. Others do not wait. */
static void test_branches(void **state) {
    (void)state;
    schedule_world w = schedule_case_open(schedule_case_small);
    schedule_sequence *first = schedule_case_begin(&w, 0, 0, 200, 210, 10),
                      *branch = schedule_case_begin(&w, 1, 0, 200, 210, 10);
    branch->job.first = &first->job;
    schedule_case_add(&w, first);
    schedule_case_add(&w, branch);
    schedule_case_add(&w, schedule_case_begin(&w, 2, 1, 20, 40, 20));
    while (!first->job.has_read) {
        schedule_case_pass(&w);
        assert_false(branch->job.is_running);
        assert_true(w.sequences[2].job.is_running);
    }
    schedule_case_pass(&w);
    assert_int_equal(branch->job.n_shared, 192);
    while (schedule_case_pass(&w) > 0) {
    }
    assert_int_equal(w.finished, 3);
    schedule_case_close(&w);
}

/* When memory runs out, the youngest sequence is set aside, and later continues with the same
 * tokens. */
static void test_set_aside(void **state) {
    (void)state;
    schedule_world w = schedule_case_open(schedule_case_small);
    for (size_t i = 0; i < 3; i++)
        schedule_case_add(&w, schedule_case_begin(&w, i, (int32_t)(4 * i), 100, 690,
                                                  128)); /* 11 pages each in the end, of 30 */
    bool is_aside = false;
    while (w.sequences[0].is_there) {
        schedule_case_pass(&w);
        assert_true(w.sequences[0].job.is_running || !w.sequences[0].is_there);
        is_aside |= w.sequences[2].job.set_aside > 0;
        assert_true(tern_schedule_sound(w.schedule));
    }
    assert_true(is_aside);
    assert_int_equal(w.sequences[1].job.set_aside, 0);
    while (schedule_case_pass(&w) > 0) {
    }
    assert_int_equal(w.finished, 3);
    schedule_case_close(&w);
}

/* ---- pieces of prompts ----------------------------------------------------------------------- */

static void test_costs(void **state) {
    (void)state;
    tern_pass_costs c = {0};
    assert_int_equal(tern_pass_costs_rows(&c, 0.001, 128), 128);
    assert_int_equal(tern_pass_costs_rows(&c, 0.001, 1), 1);
    tern_pass_costs_add(&c, 1, 0.010);
    assert_int_equal(tern_pass_costs_rows(&c, 0.0455, 128), 4); /* only size 1 is known */
    assert_int_equal(tern_pass_costs_rows(&c, 0.009, 128), 0);
    tern_pass_costs_add(&c, 4, 0.020); /* 5 ms a row */
    assert_int_equal(tern_pass_costs_rows(&c, 0.0455, 128), 9);
    assert_int_equal(tern_pass_costs_rows(&c, 10.0, 100), 100);
    tern_pass_costs_add(&c, 4, 0.200); /* one slow pass: a quarter of it counts */
    assert_true(c.row_seconds[2] > 0.0162 && c.row_seconds[2] < 0.0163);
    tern_pass_costs_add(&c, 1, 0.010); /* forgotten once a smaller pass was quicker */
    assert_true(c.row_seconds[2] == c.row_seconds[0]);
    c = (tern_pass_costs){0};
    tern_pass_costs_add(&c, 64, 0.64); /* a smaller pass is assumed to take no longer */
    assert_int_equal(tern_pass_costs_rows(&c, 0.64, 4096), 64);
    assert_int_equal(tern_pass_costs_rows(&c, 0.63, 4096), 0);
    for (uint32_t rows = 1; rows <= 4096; rows++)
        tern_pass_costs_add(&c, rows, 0.01 + 0.002 * rows);
    for (uint32_t rows = 64; rows <= 4096; rows *= 2) {
        const uint32_t fit = tern_pass_costs_rows(&c, 0.01 + 0.002 * rows, 4096);
        assert_true(fit >= rows / 2 && fit <= rows + rows / 8);
    }
}

/* While others decode, a long prompt is read in pieces that fit the gap; otherwise all at once. */
static void test_pieces(void **state) {
    (void)state;
    schedule_world w = schedule_case_open(schedule_case_small);
    for (uint32_t rows = 1; rows <= 48; rows++)
        tern_pass_costs_add(&w.costs, rows, schedule_case_seconds(rows));
    w.gap = 0.100;
    schedule_case_add(&w, schedule_case_begin(&w, 0, 0, 5, 200, 195));
    schedule_case_add(&w, schedule_case_begin(&w, 1, 4, 5, 200, 195));
    schedule_case_pass(&w);
    schedule_case_add(&w, schedule_case_begin(&w, 2, 8, 600, 610, 10));
    uint32_t passes = 0;
    for (; !w.sequences[2].job.has_read; passes++) {
        const uint32_t rows = schedule_case_pass(&w);
        assert_true(rows > 2 && schedule_case_seconds(rows) <= w.gap + schedule_case_seconds(1));
        assert_int_equal(w.sequences[0].job.n_tokens, 7 + passes); /* each pass gives it a token */
    }
    assert_true(passes > 40 && passes < 80);
    w.gap = 0.001; /* less than any pass takes: each decoder still gets a row, and the prompt one */
    schedule_case_add(&w, schedule_case_begin(&w, 3, 12, 600, 610, 10));
    schedule_case_pass(&w);
    assert_int_equal(schedule_case_pass(&w), 4);
    for (size_t i = 0; i < 3; i++)
        schedule_case_end(&w, &w.sequences[i]);
    assert_int_equal(schedule_case_pass(&w), 48); /* nobody waits for a token */
    schedule_case_close(&w);
}

enum { LONG = 4000, DECODING = 4 };

/* Imagined machines: the seconds of a pass, by its rows and the position in the prompt. */
static double of_slow_memory(uint32_t rows, uint32_t position) {
    return 0.050 + 0.001 * rows + 1e-7 * position;
}
static double of_slow_arithmetic(uint32_t rows, uint32_t position) {
    return 0.016 + 0.006 * rows + 1e-6 * position * rows / 16;
}
static double of_a_busy_machine(uint32_t rows, uint32_t position) {
    return (0.020 + 0.003 * rows) * (position % 7 == 0 ? 1.2 : 1.0);
}

static int by_size(const void *a, const void *b) {
    return *(const double *)a < *(const double *)b ? -1 : 1;
}

static double p95(double *seconds, size_t n) {
    qsort(seconds, n, sizeof *seconds, by_size);
    return seconds[(n * 95 + 99) / 100 - 1];
}

/* Jobs [0, DECODING) decode, the last one reads a long prompt. They share no page. */
static void make_jobs(tern_job jobs[DECODING + 1]) {
    static int32_t tokens[DECODING + 1][LONG + 2]; /* the values do not matter */
    static const uint8_t spaces[DECODING + 1][TERN_SPACE_BYTES] = {{1}, {2}, {3}, {4}, {5}};
    for (uint32_t i = 0; i <= DECODING; i++)
        jobs[i] = (tern_job){.number = i,
                             .space = spaces[i],
                             .tokens = tokens[i],
                             .n_tokens = i < DECODING ? 1 : LONG,
                             .most = LONG + 1,
                             .ahead = 64};
}

/* Makes a pass and returns its seconds, by `cost`, from which the schedule learns. All decoding
 * jobs must get a token. */
static double timed_pass(tern_schedule *s, const tern_job *jobs, tern_pass_costs *costs, double gap,
                         double (*cost)(uint32_t rows, uint32_t position)) {
    tern_plan_span spans[DECODING + 1];
    const uint32_t position = jobs[DECODING].computed;
    const size_t n = tern_schedule_plan(s, costs, gap, spans);
    uint32_t rows = 0, decoding = 0;
    for (size_t i = 0; i < n; i++) {
        rows += spans[i].n;
        decoding += spans[i].job != &jobs[DECODING];
        spans[i].job->n_tokens += spans[i].picks;
        tern_schedule_computed(s, &spans[i], spans[i].n);
    }
    assert_int_equal(decoding, DECODING);
    const double seconds = cost(rows, position);
    tern_pass_costs_add(costs, rows, seconds);
    return seconds;
}

static void check_gap(double gap, double (*cost)(uint32_t rows, uint32_t position)) {
    const tern_schedule_params params = {
        .n_pages = 400, .n_ctx = LONG + 1, .n_jobs = DECODING + 1, .n_queue = 8, .n_batch = 128};
    tern_schedule *s = NULL;
    tern_job jobs[DECODING + 1];
    tern_pass_costs costs = {.row_seconds = {0}};
    double before[100], during[LONG];
    size_t n = 0;
    make_jobs(jobs);
    assert_int_equal(tern_schedule_new(&params, &s, NULL), TERN_OK);
    for (size_t i = 0; i < DECODING; i++)
        assert_true(tern_schedule_add(s, &jobs[i]));
    for (size_t i = 0; i < 100; i++)
        before[i] = timed_pass(s, jobs, &costs, gap, cost);
    assert_true(tern_schedule_add(s, &jobs[DECODING]));
    while (!jobs[DECODING].has_read)
        during[n++] = timed_pass(s, jobs, &costs, gap, cost);
    assert_true(p95(during, n) - p95(before, 100) <= gap + cost(1, 0));
    assert_true(n < LONG / 3); /* the pieces are not too small */
    tern_schedule_free(&s);
}

/* When a long prompt arrives, p95 between tokens grows at most by the gap and a pass of one
 * token. */
static void test_long_prompt(void **state) {
    (void)state;
    static double (*const machines[])(uint32_t, uint32_t) = {of_slow_memory, of_slow_arithmetic,
                                                             of_a_busy_machine};
    static const double gaps[] = {0.080, 0.100, 0.300};
    for (size_t i = 0; i < 9; i++)
        check_gap(gaps[i / 3], machines[i % 3]);
}

/* Right guesses save passes, wrong ones change nothing. */
static void test_guesses(void **state) {
    (void)state;
    schedule_world w = schedule_case_open(schedule_case_small);
    schedule_sequence *s = schedule_case_begin(&w, 0, 0, 50, 650, 500);
    schedule_case_add(&w, s);
    schedule_case_pass(&w);
    schedule_case_pass(&w);
    uint32_t passes = 0;
    for (uint32_t n = s->job.n_tokens; s->is_there; passes++, n = s->job.n_tokens) {
        uint64_t sum = s->sums[n];
        for (uint32_t i = 0; i < 4 && n + i < MOST; i++) { /* the third guess is usually wrong */
            s->tokens[n + i] = i == 2 && n % 5 > 0 ? 9 : (int32_t)(sum % 3);
            sum = schedule_case_mixed(sum, s->tokens[n + i]);
        }
        s->job.n_guesses = 4;
        schedule_case_pass(&w);
        assert_true(tern_schedule_sound(w.schedule));
    }
    assert_true(passes < 220);
    for (uint32_t i = 50; i < s->limit; i++)
        assert_int_equal(s->tokens[i], schedule_case_token(s, i));
    schedule_case_close(&w);
}

static void test_refusals(void **state) {
    (void)state;
    tern_schedule *s = NULL;
    tern_error err = {0};
    tern_schedule_params params = schedule_case_small;
    params.n_jobs = params.n_batch + 1;
    assert_int_equal(tern_schedule_new(&params, &s, &err), TERN_ERR_ARG);
    assert_string_equal(err.message, "49 sequences at once exceed the 48 rows of a pass");
    params = schedule_case_small;
    params.n_queue = 0;
    assert_int_equal(tern_schedule_new(&params, &s, &err), TERN_ERR_ARG);
    params = schedule_case_small;
    params.n_pages = 0;
    assert_int_equal(tern_schedule_new(&params, &s, &err), TERN_ERR_ARG);
    assert_null(s);
}

/* ---- a random walk --------------------------------------------------------------------------- */

static void test_soak(void **state) {
    (void)state;
    schedule_case_soak(schedule_case_small, schedule_case_steps());
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_order),    cmocka_unit_test(test_no_overtaking),
        cmocka_unit_test(test_never_fits),  cmocka_unit_test(test_queue_limit),
        cmocka_unit_test(test_sharing),     cmocka_unit_test(test_wanted),
        cmocka_unit_test(test_branches),    cmocka_unit_test(test_set_aside),
        cmocka_unit_test(test_costs),       cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_long_prompt), cmocka_unit_test(test_guesses),
        cmocka_unit_test(test_refusals),    cmocka_unit_test(test_soak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
