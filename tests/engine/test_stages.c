/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stages by a clock of the test. Every moment is counted once, for the right worker and stage, to
 * the nanosecond; in passes of a model, for every worker. Results do not change.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/metrics.h"
#include "runtime/engine/session.h"
#include "tests/support/check.h"
#include "tests/support/tiny_model.h"

enum { THREADS = 3, PROMPT = 20, ANSWER = 6 };

/* ---- one thread, step by step ---------------------------------------------------------------- */

static uint64_t told(void *user) {
    return *(const uint64_t *)user;
}

typedef struct steps {
    uint64_t *now;
    tern_stages *stages;
} steps;

/* EMBED takes 3; QKV takes 5 and a barrier, twice; 7 are left for the last stage. */
static void step_body(tern_worker worker, void *argument) {
    const steps *s = argument;
    *s->now += 3;
    tern_stage_end(s->stages, worker, TERN_STAGE_EMBED);
    for (int i = 0; i < 2; i++) {
        *s->now += 5;
        tern_stage_meet(s->stages, worker, TERN_STAGE_QKV);
    }
    *s->now += 7;
}

static void test_one_worker(void **state) {
    (void)state;
    uint64_t now = 1000;
    tern_stages *stages = NULL;
    tern_team *team = NULL;
    assert_int_equal(tern_team_new(1, &team, NULL), TERN_OK);
    assert_int_equal(tern_stages_new(1, told, &now, &stages, NULL), TERN_OK);
    now = 5000; /* time before the beginning does not count */
    tern_stages_begin(stages);
    now += 11;
    steps s = {.now = &now, .stages = stages};
    tern_stages_run(stages, team, step_body, &s, TERN_STAGE_NORM);
    now += 13;
    tern_stages_run(stages, team, step_body, &s, TERN_STAGE_SCAN);
    static const struct {
        tern_stage stage;
        double work;
    } expected[] = {{TERN_STAGE_ALONE, 24}, {TERN_STAGE_EMBED, 6}, {TERN_STAGE_QKV, 20},
                    {TERN_STAGE_NORM, 7},   {TERN_STAGE_SCAN, 7},  {TERN_STAGE_ROPE, 0}};
    double sum = 0.0;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        assert_true(tern_stages_work(stages, expected[i].stage) == expected[i].work);
        sum += expected[i].work;
    }
    assert_true(sum == (double)(now - 5000)); /* the other stages have nothing */
    for (tern_stage i = 0; i < TERN_STAGE_COUNT; i++)
        assert_true(tern_stages_wait(stages, i) == 0.0);
    tern_stages_begin(stages);
    assert_true(tern_stages_work(stages, TERN_STAGE_QKV) == 0.0);
    tern_stages_free(&stages);
    tern_team_free(&team);
}

/* ---- several workers ------------------------------------------------------------------------- */

/* A clock that the test moves while all other workers stand at a barrier. */
typedef struct turns {
    atomic_uint_least64_t now;
    tern_stages *stages;
} turns;

static uint64_t atomic_told(void *user) {
    return atomic_load(&((turns *)user)->now);
}

/* All but worker 0 end the stage at once. Worker 0 works 30 more after they reach the barrier. */
static void late_body(tern_worker worker, void *argument) {
    turns *t = argument;
    if (worker.index > 0)
        tern_stage_end(t->stages, worker, TERN_STAGE_DOWN);
    tern_team_barrier(worker);
    if (worker.index == 0) {
        atomic_fetch_add(&t->now, 30);
        tern_stage_end(t->stages, worker, TERN_STAGE_DOWN);
    }
    tern_team_barrier(worker);
    tern_stages_note_wait(t->stages, worker.index, TERN_STAGE_DOWN);
}

static void test_waits(void **state) {
    (void)state;
    turns t = {.now = 100};
    tern_stages *stages = NULL;
    tern_team *team = NULL;
    assert_int_equal(tern_team_new(THREADS, &team, NULL), TERN_OK);
    assert_int_equal(tern_stages_new(THREADS, atomic_told, &t, &stages, NULL), TERN_OK);
    t.stages = stages;
    atomic_fetch_add(&t.now, 9); /* the caller alone */
    tern_stages_run(stages, team, late_body, &t, TERN_STAGE_NORM);
    assert_int_equal(stages->records[0].work[TERN_STAGE_ALONE], 9);
    assert_int_equal(stages->records[0].wait[TERN_STAGE_ALONE], 0);
    assert_int_equal(stages->records[0].work[TERN_STAGE_DOWN], 30);
    assert_int_equal(stages->records[0].wait[TERN_STAGE_DOWN], 0);
    for (uint32_t i = 1; i < THREADS; i++) {
        assert_int_equal(stages->records[i].work[TERN_STAGE_ALONE], 0);
        assert_int_equal(stages->records[i].wait[TERN_STAGE_ALONE], 9);
        assert_int_equal(stages->records[i].work[TERN_STAGE_DOWN], 0);
        assert_int_equal(stages->records[i].wait[TERN_STAGE_DOWN], 30);
    }
    assert_true(tern_stages_work(stages, TERN_STAGE_DOWN) == 10.0); /* the mean of three */
    assert_true(tern_stages_wait(stages, TERN_STAGE_DOWN) == 20.0);
    assert_true(tern_stages_wait(stages, TERN_STAGE_ALONE) == 6.0);
    tern_stages_free(&stages);
    tern_team_free(&team);
}

/* ---- passes of a model ----------------------------------------------------------------------- */

/* A clock that advances one nanosecond per reading, so that times count readings. */
static uint64_t ticking(void *user) {
    return atomic_fetch_add((atomic_uint_least64_t *)user, 1);
}

/* A prompt and greedy tokens after it. */
static void answer(tern_session *s, tern_sampler *sampler, int32_t *tokens) {
    int32_t prompt[PROMPT];
    tiny_prompt(tern_session_model(s), 5, prompt, PROMPT);
    assert_int_equal(tern_session_eval(s, prompt, PROMPT, TERN_LOGITS_NONE, NULL, NULL), TERN_OK);
    for (size_t i = 0; i < ANSWER; i++) {
        assert_int_equal(tern_session_pick(s, sampler, &tokens[i], NULL), TERN_OK);
        assert_int_equal(tern_session_eval(s, &tokens[i], 1, TERN_LOGITS_NONE, NULL, NULL),
                         TERN_OK);
    }
}

static uint64_t time_of(const tern_stage_record *r) {
    uint64_t sum = 0;
    for (tern_stage i = 0; i < TERN_STAGE_COUNT; i++)
        sum += r->work[i] + r->wait[i];
    return sum;
}

/* True if such an answer spends work in the stage. */
static bool has(const tern_model *m, tern_stage stage) {
    const bool scans = tern_head_is_imaged(&m->image);
    switch (stage) {
    case TERN_STAGE_START:
        return false; /* it is waiting only */
    case TERN_STAGE_HEAD:
        return !scans;
    case TERN_STAGE_SCAN:
    case TERN_STAGE_ROWS:
        return scans;
    default:
        return true;
    }
}

/* True if some worker waits after the stage: a barrier or a region ends it in some pass. */
static bool is_waited_for(const tern_model *m, tern_stage stage, uint32_t threads) {
    switch (stage) {
    case TERN_STAGE_START:
        return true;
    case TERN_STAGE_EMBED:
        return false;
    case TERN_STAGE_ALONE:
        return threads > 1;
    case TERN_STAGE_OUT: /* the norm beside it does not read its results */
        return !m->config.arch->parallel;
    default:
        return has(m, stage);
    }
}

static void check_passes(const char *preset, uint32_t threads) {
    check_case("%s, %u threads", preset, threads);
    tern_model *model = tiny_open(preset, NULL);
    const tern_session_params params = {.n_ctx = 64, .threads = threads, .n_batch = 16};
    const tern_sampler_params greedy = tern_sampler_params_default();
    tern_session *s = tiny_session(model, params);
    tern_session *watched = tiny_session(model, params);
    tern_sampler *sampler = NULL;
    int32_t tokens[ANSWER], same[ANSWER];
    atomic_uint_least64_t now = 77;
    tern_stages *stages = NULL;
    assert_int_equal(tern_sampler_new(&greedy, model->config.n_vocab, &sampler, NULL), TERN_OK);
    answer(s, sampler, tokens);
    assert_int_equal(tern_stages_new(tern_session_threads(watched), ticking, &now, &stages, NULL),
                     TERN_OK);
    assert_int_equal(tern_session_watch(watched, stages, NULL), TERN_OK);
    tern_stages_begin(stages);
    const uint64_t begin = stages->records[0].mark;
    answer(watched, sampler, same);
    const uint64_t end = atomic_load(&now) - 1; /* the last reading, after the last pass */
    assert_int_equal(tern_session_watch(watched, NULL, NULL), TERN_OK);
    assert_memory_equal(tokens, same, sizeof tokens);
    tiny_same_cache(s, watched, PROMPT + ANSWER);
    for (uint32_t i = 0; i < stages->count; i++)
        assert_int_equal(time_of(&stages->records[i]), end - begin);
    for (tern_stage i = 0; i < TERN_STAGE_COUNT; i++) {
        assert_true((tern_stages_work(stages, i) > 0.0) == has(model, i));
        assert_true((tern_stages_wait(stages, i) > 0.0) == is_waited_for(model, i, threads));
    }
    tern_stages_free(&stages);
    tern_sampler_free(&sampler);
    tern_session_free(&s);
    tern_session_free(&watched);
    tern_model_free(&model);
}

static void test_passes(void **state) {
    (void)state;
    for (size_t i = 0; tiny_presets()[i] != NULL; i++)
        for (uint32_t threads = 1; threads <= THREADS; threads++)
            check_passes(tiny_presets()[i], threads);
}

/* ---- the stage of each product --------------------------------------------------------------- */

typedef struct slow_products {
    const tern_model *model;
    uint64_t now;
} slow_products;

/* Each matrix of a layer takes its own time: matrix i of tern_layer_linear takes 10^i, the head
 * 5. */
static void take_time(void *user, const tern_linear *linear, const tern_activations *x, size_t rows,
                      const tern_product_routes *routes) {
    slow_products *p = user;
    (void)x, (void)rows, (void)routes;
    if (linear->tensor == p->model->own.head.tensor)
        p->now += 5;
    for (uint32_t n = 0; n < p->model->config.n_layer; n++) {
        uint64_t time = 1;
        for (size_t i = 0; i < tern_block_linears(p->model->config.arch, 0); i++, time *= 10)
            p->now +=
                linear->tensor == tern_layer_linear(&p->model->layers[n], i)->tensor ? time : 0;
    }
}

static uint64_t slow_time(void *user) {
    return ((slow_products *)user)->now;
}

static void test_products(void **state) {
    (void)state;
    tern_model *model = tiny_open("bitnet-tiny", NULL);
    const tern_session_params params = {.n_ctx = 64, .threads = 1};
    tern_session *s = tiny_session(model, params);
    slow_products clock = {.model = model, .now = 3};
    tern_stages *stages = NULL;
    int32_t tokens[PROMPT];
    assert_int_equal(tern_stages_new(1, slow_time, &clock, &stages, NULL), TERN_OK);
    tern_session_observe(s, take_time, &clock);
    assert_int_equal(tern_session_watch(s, stages, NULL), TERN_OK);
    tiny_prompt(model, 5, tokens, PROMPT);
    tiny_eval(s, tokens, PROMPT);
    tiny_eval(s, tokens, 1);
    const double passes = 2.0;
    const double layers = passes * model->config.n_layer;
    assert_true(tern_stages_work(stages, TERN_STAGE_QKV) == layers * 111);
    assert_true(tern_stages_work(stages, TERN_STAGE_OUT) == layers * 1000);
    assert_true(tern_stages_work(stages, TERN_STAGE_GATE_UP) == layers * 110000);
    assert_true(tern_stages_work(stages, TERN_STAGE_DOWN) == layers * 1000000);
    assert_true(tern_stages_work(stages, TERN_STAGE_HEAD) == passes * 5);
    assert_int_equal(time_of(&stages->records[0]), clock.now - 3);
    assert_int_equal(tern_session_watch(s, NULL, NULL), TERN_OK);
    tern_stages_free(&stages);
    tern_session_free(&s);
    tern_model_free(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_worker),
        cmocka_unit_test(test_waits),
        cmocka_unit_test(test_passes),
        cmocka_unit_test(test_products),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
