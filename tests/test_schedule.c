/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scheduling without a clock and without arithmetic. The test stands for the engine: "computing" a
 * position writes a number that depends on all tokens up to there, so that a page which does not
 * hold what its sequence needs is noticed. TERN_TEST_STEPS says how long the random walk is.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/engine/schedule.h"
#include "tests/check.h"

enum { MOST = 700, JOBS = 16, PAGES = 30 };

typedef struct sequence {
    tern_job job;
    int32_t tokens[MOST + 1];
    uint64_t sums[MOST + 2]; /* of the first i tokens */
    uint8_t space[TERN_SPACE_BYTES];
    uint32_t limit; /* tokens when it ends */
    bool is_there;
} sequence;

/* What the positions of pages hold, and which space wrote it. */
typedef struct memory {
    uint64_t sums[PAGES][TERN_PAGE];
    uint8_t spaces[PAGES][TERN_PAGE];
} memory;

typedef struct world {
    tern_schedule *schedule;
    tern_pass_costs costs;
    double gap;
    sequence *sequences;
    memory *memory;
    uint64_t numbers;
    size_t computed, shared, finished, set_aside;
} world;

static const tern_schedule_params small = {
    .n_pages = PAGES, .n_ctx = MOST, .n_jobs = 4, .n_queue = 8, .n_batch = 48};

static world open_world(tern_schedule_params params) {
    world w = {.sequences = calloc(JOBS, sizeof *w.sequences),
               .memory = calloc(1, sizeof *w.memory)};
    assert_int_equal(tern_schedule_new(&params, &w.schedule, NULL), TERN_OK);
    return w;
}

static void close_world(world *w) {
    tern_schedule_free(&w->schedule);
    free(w->sequences);
    free(w->memory);
}

static uint64_t mixed(uint64_t sum, int32_t token) {
    check_rng rng = {.state = sum ^ (uint64_t)(uint32_t)token};
    return check_random(&rng);
}

static void append(sequence *s, int32_t token) {
    tern_job *job = &s->job;
    s->tokens[job->n_tokens] = token;
    s->sums[job->n_tokens + 1] = mixed(s->sums[job->n_tokens], token);
    job->n_tokens++;
}

/* What follows the first n tokens of a sequence. */
static int32_t token_after(const sequence *s, uint32_t n) {
    return (int32_t)(s->sums[n] % 3);
}

/* A sequence of n tokens of a family that begin alike, which ends with `limit` tokens. */
static sequence *begin(world *w, size_t at, int32_t family, uint32_t n, uint32_t limit,
                       uint32_t ahead) {
    sequence *s = &w->sequences[at];
    *s = (sequence){.limit = limit, .is_there = true, .space = {(uint8_t)(family / 4)}};
    s->job = (tern_job){.number = w->numbers++,
                        .space = s->space,
                        .tokens = s->tokens,
                        .most = limit - 1,
                        .ahead = ahead};
    for (uint32_t i = 0; i < n; i++)
        append(s, i % 100 == 99 ? family % 4 + 3 : (int32_t)(i % 7));
    return s;
}

static void end(world *w, sequence *s) {
    tern_schedule_remove(w->schedule, &s->job);
    for (size_t i = 0; i < JOBS; i++)
        if (w->sequences[i].job.first == &s->job)
            w->sequences[i].job.first = NULL;
    s->is_there = false;
}

/* All positions before the span hold what they should, and its own are written. */
static void compute(world *w, const tern_plan_span *span) {
    const sequence *s = (const sequence *)span->job;
    const uint32_t *pages = span->job->pages;
    for (uint32_t i = 0; i < span->position; i++) {
        const uint32_t page = pages[i / TERN_PAGE], at = i % TERN_PAGE;
        if (w->memory->sums[page][at] != s->sums[i + 1] ||
            w->memory->spaces[page][at] != s->space[0])
            check_fail("position %u of sequence %llu does not hold its keys", i,
                       (unsigned long long)span->job->number);
    }
    uint64_t sum = s->sums[span->position];
    for (uint32_t i = span->position; i < span->position + span->n; i++) {
        const uint32_t page = pages[i / TERN_PAGE], at = i % TERN_PAGE;
        assert_int_equal(tern_pages_users(tern_schedule_pages(w->schedule), page), 1);
        sum = mixed(sum, s->tokens[i]);
        w->memory->sums[page][at] = sum;
        w->memory->spaces[page][at] = s->space[0];
    }
    w->computed += span->n;
}

/* What the engine does with a span: picks tokens as long as guesses were right. */
static void take_picks(world *w, const tern_plan_span *span) {
    sequence *s = (sequence *)span->job;
    const uint32_t before = span->job->n_tokens;
    uint32_t kept = span->n;
    for (uint32_t i = 0; i < span->picks; i++) {
        const int32_t guess = s->tokens[before + i];
        const int32_t token = token_after(s, before + i);
        append(s, token);
        kept = span->n - span->picks + i + 1;
        if (s->job.n_tokens == s->limit || (i + 1 < span->picks && token != guess))
            break;
    }
    tern_schedule_computed(w->schedule, span, kept);
    if (s->job.n_tokens == s->limit) {
        w->shared += span->job->n_shared;
        w->set_aside += span->job->set_aside;
        w->finished++;
        end(w, s);
    }
}

/* A pass; returns its rows. */
static uint32_t pass(world *w) {
    tern_plan_span spans[JOBS];
    uint32_t rows = 0;
    const size_t n = tern_schedule_plan(w->schedule, &w->costs, w->gap, spans);
    for (size_t i = 0; i < n; i++) {
        assert_true(spans[i].n > 0);
        rows += spans[i].n;
        compute(w, &spans[i]);
    }
    for (size_t i = 0; i < n; i++)
        take_picks(w, &spans[i]);
    assert_true(rows <= small.n_batch);
    return rows;
}

static void add(world *w, sequence *s) {
    assert_true(tern_schedule_add(w->schedule, &s->job));
}

/* ---- one thing at a time --------------------------------------------------------------------- */

static void test_in_order(void **state) {
    (void)state;
    world w = open_world(small);
    for (size_t i = 0; i < 6; i++)
        add(&w, begin(&w, i, (int32_t)i, 10, 14 + (uint32_t)i, 9));
    pass(&w);
    assert_int_equal(tern_schedule_running(w.schedule), 4);
    assert_int_equal(tern_schedule_waiting(w.schedule), 2);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(w.sequences[i].job.is_running, i < 4);
    sequence *urgent = begin(&w, 6, 6, 10, 14, 4);
    urgent->job.priority = 1;
    add(&w, urgent);
    while (!urgent->job.is_running)
        pass(&w);
    assert_false(w.sequences[0].is_there || w.sequences[4].job.is_running);
    while (pass(&w) > 0) {
    }
    assert_int_equal(w.finished, 7);
    close_world(&w);
}

/* What does not fit yet holds up what comes later, however small. */
static void test_no_overtaking(void **state) {
    (void)state;
    world w = open_world(small);
    add(&w, begin(&w, 0, 0, 600, 640, 40)); /* 10 pages each */
    add(&w, begin(&w, 1, 4, 600, 640, 40));
    pass(&w);
    add(&w, begin(&w, 2, 8, 690, 700, 10)); /* 11 pages: one more than there is */
    add(&w, begin(&w, 3, 12, 5, 9, 4));
    while (w.sequences[0].is_there && w.sequences[1].is_there) {
        assert_false(w.sequences[2].job.is_running || w.sequences[3].job.is_running);
        pass(&w);
    }
    pass(&w);
    assert_true(w.sequences[2].job.is_running && w.sequences[3].job.is_running);
    close_world(&w);
}

static void test_never_fits(void **state) {
    (void)state;
    tern_schedule_params params = small;
    params.n_pages = 5;
    world w = open_world(params);
    tern_error err = {0};
    assert_int_equal(tern_schedule_fits(w.schedule, 1, 320, &err), TERN_OK);
    assert_int_equal(tern_schedule_fits(w.schedule, 1, 321, &err), TERN_ERR_CONTEXT);
    assert_string_equal(err.message, "a request of 321 positions exceeds the cache of 320");
    assert_int_equal(tern_schedule_fits(w.schedule, 1, 701, &err), TERN_ERR_CONTEXT);
    assert_string_equal(err.message, "a request of 701 positions exceeds the context of 700");
    assert_int_equal(tern_schedule_fits(w.schedule, 0, 5, &err), TERN_ERR_EMPTY);
    close_world(&w);
}

static void test_queue_limit(void **state) {
    (void)state;
    world w = open_world(small);
    for (size_t i = 0; i < 8; i++)
        add(&w, begin(&w, i, 0, 10, 14, 4));
    assert_false(tern_schedule_add(w.schedule, &begin(&w, 8, 0, 10, 14, 4)->job));
    pass(&w);
    add(&w, &w.sequences[8]);
    close_world(&w);
}

/* A sequence finds what another one has computed, unless its name space is another one. */
static void test_sharing(void **state) {
    (void)state;
    world w = open_world(small);
    add(&w, begin(&w, 0, 0, 300, 400, 100));
    for (int i = 0; i < 8; i++)
        pass(&w);
    add(&w, begin(&w, 1, 0, 300, 310, 10)); /* while the first one runs */
    add(&w, begin(&w, 2, 1, 300, 310, 10)); /* differs at token 99 */
    add(&w, begin(&w, 3, 4, 300, 310, 10)); /* another space */
    pass(&w);
    assert_int_equal(w.sequences[1].job.n_shared, 256);
    assert_int_equal(w.sequences[2].job.n_shared, 64);
    assert_int_equal(w.sequences[3].job.n_shared, 0);
    while (pass(&w) > 0) {
    }
    add(&w, begin(&w, 4, 0, 257, 260, 3)); /* when all is over; the last token is computed anyway */
    add(&w, begin(&w, 5, 0, 256, 260, 4));
    pass(&w);
    assert_int_equal(w.sequences[4].job.n_shared, 256);
    assert_int_equal(w.sequences[5].job.n_shared, 192);
    close_world(&w);
}

/* Rows whose results are wanted are computed, not found, and told to be wanted. */
static void test_wanted(void **state) {
    (void)state;
    tern_plan_span spans[4];
    world w = open_world(small);
    add(&w, begin(&w, 0, 0, 300, 310, 10));
    while (pass(&w) > 0) {
    }
    sequence *s = begin(&w, 1, 0, 300, 310, 10);
    s->job.wants = true;
    s->job.wanted_from = 130;
    add(&w, s);
    for (uint32_t at = 128, n; at < 300; at += n) {
        assert_int_equal(tern_schedule_plan(w.schedule, &w.costs, 0.0, spans), 1);
        n = spans[0].n;
        assert_int_equal(spans[0].position, at);
        assert_int_equal(spans[0].wanted, at == 128 ? n - 2 : n);
        s->job.wanted_from = at + n;
        compute(&w, &spans[0]);
        if (at + n == 300)
            append(s, 1);
        tern_schedule_computed(w.schedule, &spans[0], n);
    }
    s->job.wants = false;
    assert_int_equal(tern_schedule_plan(w.schedule, &w.costs, 0.0, spans), 1);
    assert_int_equal(spans[0].wanted, 1);
    close_world(&w);
}

/* A branch waits until the prompt that it begins with has been read, and others need not. */
static void test_branches(void **state) {
    (void)state;
    world w = open_world(small);
    sequence *first = begin(&w, 0, 0, 200, 210, 10), *branch = begin(&w, 1, 0, 200, 210, 10);
    branch->job.first = &first->job;
    add(&w, first);
    add(&w, branch);
    add(&w, begin(&w, 2, 1, 20, 40, 20));
    while (!first->job.has_read) {
        pass(&w);
        assert_false(branch->job.is_running);
        assert_true(w.sequences[2].job.is_running);
    }
    pass(&w);
    assert_int_equal(branch->job.n_shared, 192);
    while (pass(&w) > 0) {
    }
    assert_int_equal(w.finished, 3);
    close_world(&w);
}

/* Without memory to go on the youngest waits again, and later goes on with the same tokens. */
static void test_set_aside(void **state) {
    (void)state;
    world w = open_world(small);
    for (size_t i = 0; i < 3; i++)
        add(&w,
            begin(&w, i, (int32_t)(4 * i), 100, 690, 128)); /* 11 pages each at last, 30 there */
    bool is_aside = false;
    while (w.sequences[0].is_there) {
        pass(&w);
        assert_true(w.sequences[0].job.is_running || !w.sequences[0].is_there);
        is_aside |= w.sequences[2].job.set_aside > 0;
        assert_true(tern_schedule_sound(w.schedule));
    }
    assert_true(is_aside);
    assert_int_equal(w.sequences[1].job.set_aside, 0);
    while (pass(&w) > 0) {
    }
    assert_int_equal(w.finished, 3);
    close_world(&w);
}

/* ---- pieces of prompts ----------------------------------------------------------------------- */

static void test_costs(void **state) {
    (void)state;
    tern_pass_costs c = {0};
    assert_int_equal(tern_pass_costs_rows(&c, 0.001, 128), 128);
    assert_int_equal(tern_pass_costs_rows(&c, 0.001, 1), 1);
    tern_pass_costs_add(&c, 1, 0.010);
    assert_int_equal(tern_pass_costs_rows(&c, 0.0455, 128), 4); /* no size but 1 is known */
    assert_int_equal(tern_pass_costs_rows(&c, 0.009, 128), 0);
    tern_pass_costs_add(&c, 4, 0.020); /* 5 ms a row */
    assert_int_equal(tern_pass_costs_rows(&c, 0.0455, 128), 9);
    assert_int_equal(tern_pass_costs_rows(&c, 10.0, 100), 100);
    tern_pass_costs_add(&c, 4, 0.200); /* once slow: a quarter of it counts */
    assert_true(c.row_seconds[2] > 0.0162 && c.row_seconds[2] < 0.0163);
    tern_pass_costs_add(&c, 1, 0.010); /* and no longer than until a smaller pass was quicker */
    assert_true(c.row_seconds[2] == c.row_seconds[0]);
    c = (tern_pass_costs){0};
    tern_pass_costs_add(&c, 64, 0.64); /* a smaller pass takes no longer than the larger one */
    assert_int_equal(tern_pass_costs_rows(&c, 0.64, 4096), 64);
    assert_int_equal(tern_pass_costs_rows(&c, 0.63, 4096), 0);
    for (uint32_t rows = 1; rows <= 4096; rows++)
        tern_pass_costs_add(&c, rows, 0.01 + 0.002 * rows);
    for (uint32_t rows = 64; rows <= 4096; rows *= 2) {
        const uint32_t fit = tern_pass_costs_rows(&c, 0.01 + 0.002 * rows, 4096);
        assert_true(fit >= rows / 2 && fit <= rows + rows / 8);
    }
}

/* Seconds of a pass on the machine that the test thinks of. */
static double seconds_of(uint32_t rows) {
    return 0.030 + 0.005 * rows;
}

/* While others decode a long prompt comes in pieces of what the gap leaves; else all at once. */
static void test_pieces(void **state) {
    (void)state;
    world w = open_world(small);
    for (uint32_t rows = 1; rows <= 48; rows++)
        tern_pass_costs_add(&w.costs, rows, seconds_of(rows));
    w.gap = 0.100;
    add(&w, begin(&w, 0, 0, 5, 200, 195));
    add(&w, begin(&w, 1, 4, 5, 200, 195));
    pass(&w);
    add(&w, begin(&w, 2, 8, 600, 610, 10));
    uint32_t passes = 0;
    for (; !w.sequences[2].job.has_read; passes++) {
        const uint32_t rows = pass(&w);
        assert_true(rows > 2 && seconds_of(rows) <= w.gap + seconds_of(1));
        assert_int_equal(w.sequences[0].job.n_tokens, 7 + passes); /* each pass gives it a token */
    }
    assert_true(passes > 40 && passes < 80);
    w.gap = 0.001; /* less than any pass takes: still a row for each, and one of the prompt */
    add(&w, begin(&w, 3, 12, 600, 610, 10));
    pass(&w);
    assert_int_equal(pass(&w), 4);
    for (size_t i = 0; i < 3; i++)
        end(&w, &w.sequences[i]);
    assert_int_equal(pass(&w), 48); /* nobody waits for a token */
    close_world(&w);
}

enum { LONG = 4000, DECODING = 4 };

/* Machines that the test thinks of: seconds of a pass, by its rows and how far the prompt is. */
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

/* Jobs [0, DECODING) decode, the last one reads a long prompt; they share no page. */
static void make_jobs(tern_job jobs[DECODING + 1]) {
    static int32_t tokens[DECODING + 1][LONG + 2]; /* what they are does not matter */
    static const uint8_t spaces[DECODING + 1][TERN_SPACE_BYTES] = {{1}, {2}, {3}, {4}, {5}};
    for (uint32_t i = 0; i <= DECODING; i++)
        jobs[i] = (tern_job){.number = i,
                             .space = spaces[i],
                             .tokens = tokens[i],
                             .n_tokens = i < DECODING ? 1 : LONG,
                             .most = LONG + 1,
                             .ahead = 64};
}

/* Seconds of a pass, as `cost` has them; they are learnt from. All that decode get a token. */
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
    assert_true(n < LONG / 3); /* it is read in pieces of some size */
    tern_schedule_free(&s);
}

/* A long prompt arrives: p95 between tokens grows by the gap and a pass of one token at most. */
static void test_long_prompt(void **state) {
    (void)state;
    static double (*const machines[])(uint32_t, uint32_t) = {of_slow_memory, of_slow_arithmetic,
                                                             of_a_busy_machine};
    static const double gaps[] = {0.080, 0.100, 0.300};
    for (size_t i = 0; i < 9; i++)
        check_gap(gaps[i / 3], machines[i % 3]);
}

/* Guesses that are right save passes, wrong ones change nothing. */
static void test_guesses(void **state) {
    (void)state;
    world w = open_world(small);
    sequence *s = begin(&w, 0, 0, 50, 650, 500);
    add(&w, s);
    pass(&w);
    pass(&w);
    uint32_t passes = 0;
    for (uint32_t n = s->job.n_tokens; s->is_there; passes++, n = s->job.n_tokens) {
        uint64_t sum = s->sums[n];
        for (uint32_t i = 0; i < 4 && n + i < MOST; i++) { /* the third guess is mostly wrong */
            s->tokens[n + i] = i == 2 && n % 5 > 0 ? 9 : (int32_t)(sum % 3);
            sum = mixed(sum, s->tokens[n + i]);
        }
        s->job.n_guesses = 4;
        pass(&w);
        assert_true(tern_schedule_sound(w.schedule));
    }
    assert_true(passes < 220);
    for (uint32_t i = 50; i < s->limit; i++)
        assert_int_equal(s->tokens[i], token_after(s, i));
    close_world(&w);
}

static void test_refusals(void **state) {
    (void)state;
    tern_schedule *s = NULL;
    tern_error err = {0};
    tern_schedule_params params = small;
    params.n_jobs = params.n_batch + 1;
    assert_int_equal(tern_schedule_new(&params, &s, &err), TERN_ERR_ARG);
    assert_string_equal(err.message, "49 sequences at once exceed the 48 rows of a pass");
    params = small;
    params.n_queue = 0;
    assert_int_equal(tern_schedule_new(&params, &s, &err), TERN_ERR_ARG);
    params = small;
    params.n_pages = 0;
    assert_int_equal(tern_schedule_new(&params, &s, &err), TERN_ERR_ARG);
    assert_null(s);
}

/* ---- a random walk --------------------------------------------------------------------------- */

static size_t steps_wanted(void) {
    const char *steps = getenv("TERN_TEST_STEPS");
    return steps != NULL ? strtoul(steps, NULL, 10) : 100000;
}

static void arrive(world *w, check_rng *rng, size_t at) {
    const uint32_t n = 1 + check_below(rng, check_below(rng, 3) == 0 ? 600 : 150);
    const uint32_t limit = n + 1 + check_below(rng, MOST - n);
    const uint32_t ahead = check_below(rng, 2) == 0 ? MOST : 1 + check_below(rng, 100);
    sequence *s = begin(w, at, (int32_t)check_below(rng, 8), n, limit, ahead);
    s->job.priority = check_below(rng, 20) == 0;
    const sequence *other = &w->sequences[check_below(rng, JOBS)];
    if (other != s && other->is_there && other->job.first == NULL && check_below(rng, 4) == 0 &&
        other->job.priority >= s->job.priority)
        s->job.first = &other->job;
    tern_error err = {0};
    if (tern_schedule_fits(w->schedule, n, limit - 1, &err) != TERN_OK)
        check_fail("%s", err.message);
    if (!tern_schedule_add(w->schedule, &s->job))
        s->is_there = false;
}

static void guess(check_rng *rng, sequence *s) {
    tern_job *job = &s->job;
    if (!job->is_running || job->computed + 1 != job->n_tokens || check_below(rng, 2) == 0)
        return;
    uint64_t sum = s->sums[job->n_tokens];
    for (; job->n_guesses < check_below(rng, 6) && job->n_tokens + job->n_guesses < MOST;
         job->n_guesses++) {
        const int32_t token = check_below(rng, 5) == 0 ? 8 : (int32_t)(sum % 3);
        s->tokens[job->n_tokens + job->n_guesses] = token;
        sum = mixed(sum, token);
    }
}

static void step(world *w, check_rng *rng) {
    const size_t at = check_below(rng, JOBS);
    sequence *s = &w->sequences[at];
    if (!s->is_there && check_below(rng, 6) == 0)
        arrive(w, rng, at);
    else if (s->is_there && check_below(rng, 60) == 0)
        end(w, s); /* cancelled, whatever it does */
    if (check_below(rng, 1000) == 0)
        tern_schedule_forget(w->schedule);
    w->gap = check_below(rng, 3) == 0 ? 0.0 : 0.050 + 0.001 * check_below(rng, 200);
    for (size_t i = 0; i < JOBS; i++)
        if (w->sequences[i].is_there)
            guess(rng, &w->sequences[i]);
    const uint32_t rows = pass(w);
    if (rows > 0)
        tern_pass_costs_add(&w->costs, rows, seconds_of(rows));
    else
        assert_int_equal(tern_schedule_waiting(w->schedule), 0);
    if (!tern_schedule_sound(w->schedule))
        check_fail("the books are not in order");
}

static void test_soak(void **state) {
    (void)state;
    world w = open_world(small);
    check_rng rng = {15};
    const size_t steps = steps_wanted();
    for (size_t i = 0; i < steps; i++) {
        check_case("step %zu", i);
        step(&w, &rng);
    }
    print_message("%zu steps: %zu finished, %zu set aside, %zu tokens computed, %zu shared\n",
                  steps, w.finished, w.set_aside, w.computed, w.shared);
    assert_true(w.finished > 0 && w.set_aside > 0 && w.shared > 0);
    close_world(&w);
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
