/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cancel at every possible moment. A schedule whose requests share pages, guess, branch and are
 * set aside runs once for each request and each step, with the request cancelled there: between two
 * steps, or by another thread in the middle of one. At every moment, the page accounts agree after
 * every step, the other sequences are unchanged, and the cancelled one has given a beginning of its
 * answer with the matching digest.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tern/engine.h"
#include "tests/support/check.h"
#include "tests/support/tiny_model.h"

enum { REQUESTS = 4, BRANCHES = 2, N_CTX = 200, PAGES = 7, MOST = 16, MOST_STEPS = 200 };
enum { NEVER = MOST_STEPS + 1, NOBODY = REQUESTS };

typedef enum moment { BETWEEN, WHILE_GUESSING, WHILE_PICKING, MOMENTS } moment;

typedef struct answer {
    int32_t tokens[MOST];
    size_t n;
    bool is_over;
    tern_end end;
    char digest[65];
} answer;

/* Which request is cancelled, and when. Hooks see it too. */
typedef struct plan {
    size_t request, step;
    moment moment;
} plan;

typedef struct world {
    tern_engine *engine;
    plan plan;
    size_t steps;
    bool was_cancelled, was_there;
    uint64_t ids[REQUESTS];
    answer answers[REQUESTS][BRANCHES];
} world;

typedef struct fixture {
    tern_model *model;
    int32_t prompts[REQUESTS][N_CTX];
    tern_request requests[REQUESTS];
    tern_sampler_params sampling;
    answer whole[REQUESTS][BRANCHES];
    char digests[REQUESTS][BRANCHES][MOST + 1]
                [65]; /* [n]: of the first n tokens; "" until it is needed */
    world *world;     /* the one that runs */
} fixture;

static fixture f;

/* ---- the schedule ---------------------------------------------------------------------------- */

static void *cancel(void *user) {
    world *w = user;
    w->was_there = tern_engine_cancel(w->engine, w->ids[w->plan.request]);
    return NULL;
}

/* Called in a hook, by the thread that makes the step: another thread cancels. */
static void cancel_from_elsewhere(moment now) {
    world *w = f.world;
    pthread_t thread;
    if (w->was_cancelled || w->plan.moment != now || w->steps < w->plan.step)
        return;
    w->was_cancelled = true;
    assert_int_equal(pthread_create(&thread, NULL, cancel, w), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* Every third guess is wrong. */
static size_t guess(void *user, const tern_progress *progress, int32_t *guesses, size_t most) {
    const answer *a = &f.whole[*(const size_t *)user][progress->branch];
    cancel_from_elsewhere(WHILE_GUESSING);
    size_t n = 0;
    for (size_t at = progress->n - progress->n_prompt; n < most && n < 3 && at < a->n; at++, n++)
        guesses[n] = a->tokens[at] + (at % 3 == 2);
    return n;
}

static bool allow_most(void *user, const tern_progress *progress, uint64_t *allowed, size_t words) {
    (void)user;
    cancel_from_elsewhere(WHILE_PICKING);
    allowed[progress->n % words] &= ~UINT64_C(0xff);
    return true;
}

/* Two requests grow until one of them has to make room, two are branches that begin like the first,
 * and one waits for its turn. */
static void make_requests(void) {
    static const size_t lengths[REQUESTS] = {185, 186, 75, 30}, most[REQUESTS] = {0, 0, 5, 6};
    static const size_t numbers[REQUESTS] = {0, 1, 2, 3};
    f.sampling = tern_sampler_params_default();
    f.sampling.temperature = 1.2F;
    for (size_t i = 0; i < REQUESTS; i++) {
        tiny_prompt(f.model, i == 2 ? 1 : 1 + i, f.prompts[i], lengths[i]);
        f.requests[i] = (tern_request){.tokens = f.prompts[i],
                                       .n_tokens = lengths[i],
                                       .sampling = &f.sampling,
                                       .branches = i == 2 ? BRANCHES : 1,
                                       .max_tokens = most[i],
                                       .ignore_end = true,
                                       .mask = allow_most,
                                       .guess = i % 2 == 0 ? guess : NULL,
                                       .user = (void *)(uintptr_t)&numbers[i]};
    }
}

static tern_engine *open_engine(const tern_model *model) {
    const tern_engine_params params = {.n_ctx = N_CTX,
                                       .pool_bytes =
                                           PAGES * tern_model_kv_bytes(model, 64, TERN_FORMAT_F16),
                                       .n_sequences = 3,
                                       .n_batch = 96,
                                       .n_ahead = 1,
                                       .kv = TERN_FORMAT_F16,
                                       .threads = 1};
    tern_error err = {0};
    tern_engine *e = NULL;
    if (tern_engine_new(model, &params, &e, &err) != TERN_OK)
        check_fail("%s", err.message);
    return e;
}

/* ---- running --------------------------------------------------------------------------------- */

static void note(world *w, const tern_event *event) {
    size_t i = 0;
    while (w->ids[i] != event->request)
        i++;
    answer *a = &w->answers[i][event->branch];
    assert_false(a->is_over);
    if (event->kind == TERN_EVENT_TOKEN) {
        assert_true(a->n < MOST);
        a->tokens[a->n++] = event->token;
        return;
    }
    assert_null(event->error);
    a->is_over = true;
    a->end = event->end;
    memcpy(a->digest, event->digest, sizeof a->digest);
}

/* Makes a step and checks the accounts. Returns false if there was nothing left to do. */
static bool step(world *w) {
    const tern_event *events;
    size_t n;
    assert_int_equal(tern_engine_step(w->engine, &events, &n, NULL), TERN_OK);
    for (size_t i = 0; i < n; i++)
        note(w, &events[i]);
    const tern_engine_state s = tern_engine_now(w->engine);
    assert_int_equal(s.pages, PAGES);
    assert_int_equal(s.free_pages + s.used_pages + s.cached_pages, PAGES);
    assert_true(++w->steps < MOST_STEPS);
    return s.waiting + s.running > 0;
}

static void cancel_between(world *w) {
    if (w->plan.moment == BETWEEN && w->steps == w->plan.step) {
        w->was_cancelled = true;
        cancel(w);
    }
}

/* The final state: nothing is in use, and nothing is lost. */
static void check_end(world *w) {
    tern_engine_state s = tern_engine_now(w->engine);
    assert_int_equal(s.used_pages, 0);
    tern_engine_forget(w->engine);
    s = tern_engine_now(w->engine);
    assert_int_equal(s.free_pages, PAGES);
    for (size_t i = 0; i < REQUESTS; i++)
        assert_false(tern_engine_cancel(w->engine, w->ids[i]));
}

/* A request that was cancelled between two steps is over after the next one, whatever it waited
 * for. */
static void check_it_is_over(const world *w) {
    if (!w->was_there || w->plan.moment != BETWEEN || w->steps <= w->plan.step)
        return;
    for (size_t j = 0; j < f.requests[w->plan.request].branches; j++)
        assert_true(w->answers[w->plan.request][j].is_over);
}

static tern_engine_state run(world *w, plan p) {
    *w = (world){.engine = open_engine(f.model), .plan = p};
    f.world = w;
    for (size_t i = 0; i < REQUESTS; i++)
        assert_int_equal(tern_engine_submit(w->engine, &f.requests[i], &w->ids[i], NULL), TERN_OK);
    cancel_between(w);
    while (step(w)) {
        check_it_is_over(w);
        cancel_between(w);
    }
    cancel_between(w);
    const tern_engine_state s = tern_engine_now(w->engine);
    check_end(w);
    tern_engine_free(&w->engine);
    return s;
}

/* ---- the results ----------------------------------------------------------------------------- */

/* The digest of the first n tokens of a branch, from a request of that length alone. */
static const char *digest_of(size_t request, size_t branch, size_t n) {
    char *digest = f.digests[request][branch][n];
    if (digest[0] != '\0' || n == 0)
        return digest;
    tern_sampler_params sampling = f.sampling;
    sampling.seed += branch;
    tern_request alone = f.requests[request];
    alone.sampling = &sampling;
    alone.branches = 1;
    alone.max_tokens = n;
    alone.guess = NULL;
    world w = {.engine = open_engine(f.model), .plan = {NOBODY, NEVER, BETWEEN}};
    f.world = &w;
    assert_int_equal(tern_engine_submit(w.engine, &alone, &w.ids[request], NULL), TERN_OK);
    while (step(&w)) {
    }
    tern_engine_free(&w.engine);
    memcpy(digest, w.answers[request][0].digest, 65);
    return digest;
}

static void check_answers(const world *w) {
    for (size_t i = 0; i < REQUESTS; i++)
        for (size_t j = 0; j < f.requests[i].branches; j++) {
            const answer *got = &w->answers[i][j], *whole = &f.whole[i][j];
            const bool cut = i == w->plan.request && got->end == TERN_END_CANCELLED;
            assert_true(got->is_over);
            assert_true(cut ? got->n <= whole->n : got->n == whole->n && got->end == whole->end);
            check_bytes("tokens", whole->tokens, got->tokens, got->n * sizeof *got->tokens);
            if (got->n > 0)
                assert_string_equal(got->digest, digest_of(i, j, got->n));
        }
}

/* A cancel returned true exactly if some of the request's events were still to come. */
static void check_cancelled(const world *w) {
    size_t cut = 0;
    for (size_t j = 0; j < f.requests[w->plan.request].branches; j++)
        cut += w->answers[w->plan.request][j].end == TERN_END_CANCELLED;
    if (w->plan.moment == BETWEEN)
        assert_int_equal(w->was_there, cut > 0);
    else
        assert_true(w->was_there || cut == 0); /* it may end by itself in that step */
}

/* ---- tests ----------------------------------------------------------------------------------- */

static int open_model(void **state) {
    (void)state;
    static world w;
    f.model = tiny_open("llama-tiny-f16", NULL);
    make_requests();
    f.requests[0].guess = f.requests[2].guess = NULL;
    const tern_engine_state s = run(&w, (plan){NOBODY, NEVER, BETWEEN});
    assert_true(s.set_aside > 0 && s.shared_tokens > 0);
    memcpy(f.whole, w.answers, sizeof f.whole);
    f.requests[0].guess = f.requests[2].guess = guess;
    return 0;
}

static int close_model(void **state) {
    (void)state;
    tern_model_free(&f.model);
    return 0;
}

static void check_every_step(moment now) {
    static world w;
    (void)run(&w, (plan){NOBODY, NEVER, BETWEEN});
    check_answers(&w);
    const size_t steps = w.steps;
    size_t cut = 0;
    for (size_t request = 0; request < REQUESTS; request++)
        for (size_t at = 0; at <= steps; at++) {
            check_case("request %zu, cancelled at step %zu, moment %d", request, at, (int)now);
            (void)run(&w, (plan){request, at, now});
            check_answers(&w);
            if (w.was_cancelled)
                check_cancelled(&w);
            cut += w.answers[request][0].end == TERN_END_CANCELLED;
        }
    print_message("%zu steps, %zu cancels of %zu came in time\n", steps, cut,
                  REQUESTS * (steps + 1));
    assert_true(cut > steps);
}

static void test_between_steps(void **state) {
    (void)state;
    check_every_step(BETWEEN);
}

static void test_before_a_plan(void **state) {
    (void)state;
    check_every_step(WHILE_GUESSING);
}

static void test_while_picking(void **state) {
    (void)state;
    check_every_step(WHILE_PICKING);
}

/* A thread that cancels at arbitrary moments, also where no hook is called. */
static void test_at_any_time(void **state) {
    (void)state;
    enum { TIMES = 40 };
    static world w;
    for (size_t i = 0; i < TIMES; i++) {
        pthread_t thread;
        check_case("time %zu", i);
        w = (world){.engine = open_engine(f.model), .plan = {i % REQUESTS, NEVER, BETWEEN}};
        f.world = &w;
        for (size_t k = 0; k < REQUESTS; k++)
            assert_int_equal(tern_engine_submit(w.engine, &f.requests[k], &w.ids[k], NULL),
                             TERN_OK);
        for (size_t k = 0; k < i / REQUESTS; k++)
            assert_true(step(&w));
        assert_int_equal(pthread_create(&thread, NULL, cancel, &w), 0);
        while (step(&w)) {
        }
        assert_int_equal(pthread_join(thread, NULL), 0);
        check_answers(&w);
        check_end(&w);
        tern_engine_free(&w.engine);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_between_steps),
        cmocka_unit_test(test_before_a_plan),
        cmocka_unit_test(test_while_picking),
        cmocka_unit_test(test_at_any_time),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
