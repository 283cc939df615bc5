/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/engine/schedule_case.h"

#include <stdlib.h>

#include "tests/support/check.h"

const tern_schedule_params schedule_case_small = {
    .n_pages = PAGES, .n_ctx = MOST, .n_jobs = 4, .n_queue = 8, .n_batch = 48};

tern_schedule_params schedule_case_windowed(uint32_t window) {
    tern_schedule_params params = schedule_case_small;
    params.window = window;
    params.n_window_pages = WINDOW_PAGES;
    return params;
}

schedule_world schedule_case_open(tern_schedule_params params) {
    schedule_world w = {.sequences = calloc(JOBS, sizeof *w.sequences),
                        .memory = calloc(1, sizeof *w.memory),
                        .window_memory = calloc(1, sizeof *w.window_memory),
                        .window = params.window};
    assert_int_equal(tern_schedule_new(&params, &w.schedule, NULL), TERN_OK);
    return w;
}

void schedule_case_close(schedule_world *w) {
    check_freed(tern_schedule_free, w->schedule);
    free(w->sequences);
    free(w->memory);
    free(w->window_memory);
}

uint64_t schedule_case_mixed(uint64_t sum, int32_t token) {
    check_rng rng = {.state = sum ^ (uint64_t)(uint32_t)token};
    return check_random(&rng);
}

void schedule_case_append(schedule_sequence *s, int32_t token) {
    tern_job *job = &s->job;
    s->tokens[job->n_tokens] = token;
    s->sums[job->n_tokens + 1] = schedule_case_mixed(s->sums[job->n_tokens], token);
    job->n_tokens++;
}

int32_t schedule_case_token(const schedule_sequence *s, uint32_t n) {
    return (int32_t)(s->sums[n] % 3);
}

schedule_sequence *schedule_case_begin(schedule_world *w, size_t at, int32_t family, uint32_t n,
                                       uint32_t limit, uint32_t ahead) {
    schedule_sequence *s = &w->sequences[at];
    *s = (schedule_sequence){.limit = limit, .is_there = true, .space = {(uint8_t)(family / 4)}};
    s->job = (tern_job){.number = w->numbers++,
                        .space = s->space,
                        .tokens = s->tokens,
                        .most = limit - 1,
                        .ahead = ahead};
    for (uint32_t i = 0; i < n; i++)
        schedule_case_append(s, i % 100 == 99 ? family % 4 + 3 : (int32_t)(i % 7));
    return s;
}

void schedule_case_end(schedule_world *w, schedule_sequence *s) {
    tern_schedule_remove(w->schedule, &s->job);
    for (size_t i = 0; i < JOBS; i++)
        if (w->sequences[i].job.first == &s->job)
            w->sequences[i].job.first = NULL;
    s->is_there = false;
}

/* Checks what a span's positions see, from `first` on, and writes the span's own positions. */
static void compute_in(const tern_plan_span *span, const tern_pages *books, schedule_memory *m,
                       const uint32_t *pages, uint32_t first) {
    const schedule_sequence *s = (const schedule_sequence *)span->job;
    for (uint32_t i = first; i < span->position; i++) {
        const uint32_t page = pages[i / TERN_PAGE], at = i % TERN_PAGE;
        if (m->sums[page][at] != s->sums[i + 1] || m->spaces[page][at] != s->space[0])
            check_fail("position %u of sequence %llu does not hold its keys", i,
                       (unsigned long long)span->job->number);
    }
    uint64_t sum = s->sums[span->position];
    for (uint32_t i = span->position; i < span->position + span->n; i++) {
        const uint32_t page = pages[i / TERN_PAGE], at = i % TERN_PAGE;
        assert_int_equal(tern_pages_users(books, page), 1);
        sum = schedule_case_mixed(sum, s->tokens[i]);
        m->sums[page][at] = sum;
        m->spaces[page][at] = s->space[0];
    }
}

void schedule_case_compute(schedule_world *w, const tern_plan_span *span) {
    const uint32_t seen = span->position + 1;
    compute_in(span, tern_schedule_pages(w->schedule), w->memory, span->job->pages, 0);
    if (w->window > 0)
        compute_in(span, tern_schedule_window_pages(w->schedule), w->window_memory,
                   span->job->window.pages, seen > w->window ? seen - w->window : 0);
    w->computed += span->n;
}

/* Does what the engine does with a span: picks tokens as long as the guesses were right. */
static void take_picks(schedule_world *w, const tern_plan_span *span) {
    schedule_sequence *s = (schedule_sequence *)span->job;
    const uint32_t before = span->job->n_tokens;
    uint32_t kept = span->n;
    for (uint32_t i = 0; i < span->picks; i++) {
        const int32_t guess = s->tokens[before + i];
        const int32_t token = schedule_case_token(s, before + i);
        schedule_case_append(s, token);
        kept = span->n - span->picks + i + 1;
        if (s->job.n_tokens == s->limit || (i + 1 < span->picks && token != guess))
            break;
    }
    tern_schedule_computed(w->schedule, span, kept);
    if (s->job.n_tokens == s->limit) {
        w->shared += span->job->n_shared;
        w->set_aside += span->job->set_aside;
        w->finished++;
        schedule_case_end(w, s);
    }
}

uint32_t schedule_case_pass(schedule_world *w) {
    tern_plan_span spans[JOBS];
    uint32_t rows = 0;
    const size_t n = tern_schedule_plan(w->schedule, &w->costs, w->gap, spans);
    for (size_t i = 0; i < n; i++) {
        assert_true(spans[i].n > 0);
        rows += spans[i].n;
        schedule_case_compute(w, &spans[i]);
    }
    for (size_t i = 0; i < n; i++)
        take_picks(w, &spans[i]);
    assert_true(rows <= schedule_case_small.n_batch);
    return rows;
}

void schedule_case_add(schedule_world *w, schedule_sequence *s) {
    assert_true(tern_schedule_add(w->schedule, &s->job));
}

/* ---- a random walk --------------------------------------------------------------------------- */

double schedule_case_seconds(uint32_t rows) {
    return 0.030 + 0.005 * rows;
}

size_t schedule_case_steps(void) {
    const char *steps = getenv("TERN_TEST_STEPS");
    return steps != NULL ? strtoul(steps, NULL, 10) : 100000;
}

static void arrive(schedule_world *w, check_rng *rng, size_t at) {
    const uint32_t n = 1 + check_below(rng, check_below(rng, 3) == 0 ? 600 : 150);
    const uint32_t limit = n + 1 + check_below(rng, MOST - n);
    const uint32_t ahead = check_below(rng, 2) == 0 ? MOST : 1 + check_below(rng, 100);
    schedule_sequence *s =
        schedule_case_begin(w, at, (int32_t)check_below(rng, 8), n, limit, ahead);
    s->job.priority = check_below(rng, 20) == 0;
    const schedule_sequence *other = &w->sequences[check_below(rng, JOBS)];
    if (other != s && other->is_there && other->job.first == NULL && check_below(rng, 4) == 0 &&
        other->job.priority >= s->job.priority)
        s->job.first = &other->job;
    tern_error err = {0};
    if (tern_schedule_fits(w->schedule, n, limit - 1, &err) != TERN_OK)
        check_fail("%s", err.message);
    if (!tern_schedule_add(w->schedule, &s->job))
        s->is_there = false;
}

static void guess(check_rng *rng, schedule_sequence *s) {
    tern_job *job = &s->job;
    if (!job->is_running || job->computed + 1 != job->n_tokens || check_below(rng, 2) == 0)
        return;
    uint64_t sum = s->sums[job->n_tokens];
    for (; job->n_guesses < check_below(rng, 6) && job->n_tokens + job->n_guesses < MOST;
         job->n_guesses++) {
        const int32_t token = check_below(rng, 5) == 0 ? 8 : (int32_t)(sum % 3);
        s->tokens[job->n_tokens + job->n_guesses] = token;
        sum = schedule_case_mixed(sum, token);
    }
}

static void step(schedule_world *w, check_rng *rng) {
    const size_t at = check_below(rng, JOBS);
    schedule_sequence *s = &w->sequences[at];
    if (!s->is_there && check_below(rng, 6) == 0)
        arrive(w, rng, at);
    else if (s->is_there && check_below(rng, 60) == 0)
        schedule_case_end(w, s); /* cancelled, whatever its state */
    if (check_below(rng, 1000) == 0)
        tern_schedule_forget(w->schedule);
    w->gap = check_below(rng, 3) == 0 ? 0.0 : 0.050 + 0.001 * check_below(rng, 200);
    for (size_t i = 0; i < JOBS; i++)
        if (w->sequences[i].is_there)
            guess(rng, &w->sequences[i]);
    const uint32_t rows = schedule_case_pass(w);
    if (rows > 0)
        tern_pass_costs_add(&w->costs, rows, schedule_case_seconds(rows));
    else
        assert_int_equal(tern_schedule_waiting(w->schedule), 0);
    if (!tern_schedule_sound(w->schedule))
        check_fail("the books are not in order");
}

void schedule_case_soak(tern_schedule_params params, size_t steps) {
    schedule_world w = schedule_case_open(params);
    check_rng rng = {15 + params.window};
    for (size_t i = 0; i < steps; i++) {
        check_case("windows of %u, step %zu", params.window, i);
        step(&w, &rng);
    }
    print_message("%zu steps: %zu finished, %zu set aside, %zu tokens computed, %zu shared\n",
                  steps, w.finished, w.set_aside, w.computed, w.shared);
    assert_true(w.finished > 0 && w.set_aside > 0 && w.shared > 0);
    schedule_case_close(&w);
}
