/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An engine whose model has layers with a window: the memory of its pool, what is found again, and
 * saved sessions, each compared with an answer alone.
 */
#include <string.h>
#include <unistd.h>

#include "runtime/engine/internal.h"
#include "runtime/engine/session.h"
#include "tests/engine/engine_case.h"
#include "tests/support/check.h"
#include "tests/support/tiny_model.h"

enum { CONTEXT = 512, BATCH = 16, QUOTA = 2, WHOLE = PROMPT / 64 * 64, ROUNDS = 120, FILES = 3 };

static int begin(void **state) {
    (void)state;
    engine_case.model = tiny_open("gemma3-tiny", NULL); /* windows of 6 in one of two layers */
    tern_model_describe(engine_case.model, &engine_case.info);
    tiny_prompt(engine_case.model, 4, engine_case.prompt, PROMPT);
    return 0;
}

/* Parameters for n sequences, with memory for this many positions. */
static tern_engine_params params_for(uint32_t n, uint64_t positions) {
    tern_engine_params p = {
        .n_ctx = CONTEXT, .n_batch = BATCH, .n_sequences = n, .threads = 2, .kv = TERN_FORMAT_F16};
    assert_int_equal(tern_engine_pool_bytes(engine_case.model, &p, positions, &p.pool_bytes, NULL),
                     TERN_OK);
    return p;
}

static void check_state(uint32_t used, uint32_t cached, uint32_t window_cached) {
    const tern_engine_state s = tern_engine_now(engine_case.engine);
    assert_true(tern_schedule_sound(engine_case.engine->schedule));
    assert_int_equal(s.used_pages, used);
    assert_int_equal(s.cached_pages, cached);
    assert_int_equal(s.cached_window_pages, window_cached);
    assert_int_equal(s.free_window_pages + s.used_window_pages + s.cached_window_pages,
                     s.window_pages);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Window layers have pages for the running sequences, and a page for each 8 others. */
static void test_pool(void **state) {
    (void)state;
    const tern_model_info *info = &engine_case.info;
    const uint64_t page = tern_model_kv_bytes(engine_case.model, 64, TERN_FORMAT_F16);
    tern_error err = {0};
    for (uint32_t n = 1; n <= 4; n++) {
        tern_engine_params p = params_for(n, 32 * 64);
        assert_int_equal(p.pool_bytes, 32 * page / 2 + (n * QUOTA + 4) * page / 2);
        engine_case_open(p);
        const tern_engine_state s = tern_engine_now(engine_case.engine);
        assert_int_equal(s.pages, 32);
        assert_int_equal(s.window_pages, n * QUOTA + 4);
        assert_int_equal(engine_case.engine->own_pool.arena.size, p.pool_bytes);
        p.pool_bytes--;
        engine_case_open(p);
        assert_int_equal(tern_engine_now(engine_case.engine).pages, 31);
    }
    assert_int_equal(info->n_layer, 2);
    engine_case_open(params_for(4, 3 * 64)); /* never more than other pages */
    assert_int_equal(tern_engine_now(engine_case.engine).window_pages, 3);
    tern_engine_params small = params_for(4, 3 * 64);
    small.n_ctx = 128; /* nearly the whole context: no window pages */
    engine_case_open(small);
    assert_int_equal(tern_engine_now(engine_case.engine).window_pages, 0);
    assert_int_equal(tern_engine_now(engine_case.engine).pages, 3);
    small.pool_bytes = page - 1;
    assert_int_equal(tern_engine_new(engine_case.model, &small, &engine_case.engine, &err),
                     TERN_ERR_ARG);
    assert_int_equal(
        tern_engine_pool_bytes(engine_case.model, &small, UINT64_MAX, &small.pool_bytes, NULL),
        TERN_ERR_ARG);
    assert_int_equal(tern_engine_pool_bytes(NULL, &small, 1, &small.pool_bytes, NULL),
                     TERN_ERR_NULL);
}

/* If all layers have a window, only window pages take memory; the other pages exist as books
 * only. */
static void test_all_windows(void **state) {
    (void)state;
    tern_model *model = tiny_open("mistral-tiny", NULL), *before = engine_case.model;
    tern_model_info info;
    engine_case.model = model;
    tern_model_describe(model, &info);
    const uint64_t page = tern_model_kv_bytes(model, 64, TERN_FORMAT_F16);
    tern_engine_params p = params_for(3, 3 * CONTEXT);
    assert_int_equal(p.pool_bytes, 3 * QUOTA * page);
    engine_case_open(p);
    assert_int_equal(tern_engine_now(engine_case.engine).pages, 3 * 8);
    assert_int_equal(tern_engine_now(engine_case.engine).window_pages, 3 * QUOTA);
    const tern_request request = engine_case_request(MOST);
    const answer first = *engine_case_run(&request);
    const answer *again = engine_case_run(&request);
    assert_int_equal(again->n, first.n);
    check_bytes("tokens", first.tokens, again->tokens, sizeof first.tokens);
    assert_string_equal(first.digest, again->digest);
    p.pool_bytes = page; /* room for one sequence of one page */
    engine_case_open(p);
    assert_int_equal(tern_engine_now(engine_case.engine).n_ctx, 64);
    tern_engine_free(&engine_case.engine);
    tern_model_free(&model);
    engine_case.model = before;
}

/* ---- what is found again --------------------------------------------------------------------- */

static void check_same(const answer *want, const answer *got, size_t n_shared) {
    assert_int_equal(got->figures.n_shared, n_shared);
    assert_int_equal(got->n, want->n);
    check_bytes("tokens", want->tokens, got->tokens, sizeof want->tokens);
    assert_string_equal(want->digest, got->digest);
}

/* An answered prompt is found as long as the window at its end is cached. */
static void test_found_again(void **state) {
    (void)state;
    tern_request request = engine_case_request(40);
    int32_t others[PROMPT];
    engine_case_open(params_for(1, 16 * 64)); /* 4 window pages */
    const answer alone = *engine_case_run(&request);
    check_state(0, 2, 2);
    check_same(&alone, engine_case_run(&request), WHOLE);
    memcpy(others, engine_case.prompt, sizeof others);
    for (int i = 0; i < 4; i++) { /* each takes one window page and two others */
        others[70]++;
        const tern_request other = {.tokens = others, .n_tokens = PROMPT, .prompt_only = true};
        (void)engine_case_run(&other);
    }
    assert_true(tern_engine_now(engine_case.engine).cached_pages >= 6);
    assert_true(engine_case_run(&request)->figures.n_shared < WHOLE);
    check_same(&alone, engine_case_run(&request), WHOLE);
    tern_engine_forget(engine_case.engine);
    check_state(0, 0, 0);
    check_same(&alone, engine_case_run(&request), 0);
}

/* ---- saved sessions -------------------------------------------------------------------------- */

static size_t load(const char *path) {
    size_t n = 99;
    tern_error err = {0};
    if (tern_engine_load(engine_case.engine, path, NULL, &n, &err) != TERN_OK)
        check_fail("%s", err.message);
    assert_true(tern_schedule_sound(engine_case.engine->schedule));
    return n;
}

static size_t save(const int32_t *tokens, size_t n, const char *path) {
    size_t saved = 99;
    tern_error err = {0};
    if (tern_engine_save(engine_case.engine, tokens, n, NULL, path, &saved, &err) != TERN_OK)
        check_fail("%s", err.message);
    return saved;
}

static tern_session *new_session(uint32_t batch, bool keep_all) {
    return tiny_session(engine_case.model, (tern_session_params){.n_ctx = CONTEXT,
                                                                 .n_batch = batch,
                                                                 .threads = 2,
                                                                 .kv = TERN_FORMAT_F16,
                                                                 .keep_all = keep_all});
}

/* An engine continues from a session's file as if it had read the tokens itself. */
static void check_from_session(bool keep_all) {
    char path[TINY_PATH_BYTES];
    int32_t tokens[2 * PROMPT];
    tiny_path(path);
    tern_session *s = new_session(9, keep_all);
    const tern_request request = engine_case_request(40);
    engine_case_open(params_for(2, 16 * 64));
    const answer alone = *engine_case_run(&request);
    tern_engine_forget(engine_case.engine);
    tiny_eval(s, engine_case.prompt, PROMPT);
    assert_int_equal(tern_session_save(s, path, NULL), TERN_OK);
    assert_int_equal(load(path), WHOLE);
    check_state(0, 2, 1);
    assert_int_equal(load(path), WHOLE); /* again: no page is there twice */
    check_state(0, 2, 1);
    check_same(&alone, engine_case_run(&request), WHOLE);
    for (size_t i = 0; i < PROMPT; i++)
        tokens[i] = tokens[PROMPT + i] = engine_case.prompt[i];
    assert_int_equal(tern_session_rewind(s, 0, NULL), TERN_OK);
    tiny_eval(s, tokens, 2 * PROMPT);
    assert_int_equal(s->sequence.kept, keep_all ? 0 : 2);
    assert_int_equal(tern_session_save(s, path, NULL), TERN_OK);
    assert_int_equal(load(path), 256);
    tern_session_free(&s);
    unlink(path);
}

static void test_from_session(void **state) {
    (void)state;
    check_from_session(false);
    check_from_session(true);
}

/* A file is of no use if its window does not reach the end of its whole pages, or if the engine
 * keeps all positions. */
static void test_of_no_use(void **state) {
    (void)state;
    char path[TINY_PATH_BYTES];
    tiny_path(path);
    tern_session *s = new_session(9, false);
    engine_case_open(params_for(2, 16 * 64));
    for (size_t i = 0; i < 3; i++)
        tiny_eval(s, engine_case.prompt, 100 + 40 * (i == 2));
    assert_int_equal(s->sequence.kept, 3); /* of 340: the window before 320 is there */
    assert_int_equal(tern_session_save(s, path, NULL), TERN_OK);
    assert_int_equal(load(path), 320);
    s->sequence.kept = 5; /* as if page 4 were gone: 340 has its window, 320 has not */
    assert_int_equal(tern_session_save(s, path, NULL), TERN_OK);
    assert_int_equal(load(path), 0);
    s->sequence.kept = 3;
    assert_int_equal(tern_session_save(s, path, NULL), TERN_OK);
    tern_engine_params p = params_for(2, 16 * 64);
    p.n_ctx = 380;
    p.n_batch = 380; /* passes see the whole context: no window pages */
    engine_case_open(p);
    assert_int_equal(tern_engine_now(engine_case.engine).window_pages, 0);
    assert_int_equal(load(path), 0);
    tern_session_free(&s);
    unlink(path);
}

/* Sessions continue from an engine's file, whether they keep all positions or not, and step
 * back. */
static void test_to_session(void **state) {
    (void)state;
    char path[TINY_PATH_BYTES];
    int32_t tokens[PROMPT + MOST];
    const tern_request request = engine_case_request(MOST);
    tiny_path(path);
    engine_case_open(params_for(2, 16 * 64));
    const answer *a = engine_case_run(&request);
    memcpy(tokens, engine_case.prompt, sizeof engine_case.prompt);
    memcpy(tokens + PROMPT, a->tokens, sizeof a->tokens);
    assert_int_equal(save(tokens, PROMPT + MOST, path), 192);
    for (int i = 0; i < 2; i++) {
        tern_session *restored = new_session(9, i == 0), *fresh = new_session(100, true);
        assert_int_equal(tern_session_restore(restored, path, NULL), TERN_OK);
        assert_int_equal(tern_session_position(restored), 192);
        assert_null(tern_session_kv(restored, false, 0, 0, 127)); /* the layer with a window */
        assert_non_null(tern_session_kv(restored, false, 1, 0, 127));
        const float *want = tiny_eval(fresh, tokens, 195);
        check_floats("logits", want, tiny_eval(restored, tokens + 192, 3),
                     engine_case.info.n_vocab);
        assert_int_equal(tern_session_rewind(restored, 70, NULL), TERN_OK);
        check_floats("logits", want, tiny_eval(restored, tokens + 70, 125),
                     engine_case.info.n_vocab);
        tern_session_free(&restored);
        tern_session_free(&fresh);
    }
    unlink(path);
}

/* ---- at random ------------------------------------------------------------------------------- */

/* Checks an answer against that of its family alone, which the first call records. */
static void check_answer(const answer *got, size_t family) {
    static answer alone[8];
    if (alone[family].n == 0)
        alone[family] = *got;
    const size_t n = got->n;
    assert_true(n > 0 || got->end == TERN_END_CANCELLED);
    check_bytes("tokens", alone[family].tokens, got->tokens, n * sizeof *got->tokens);
    if (got->end != TERN_END_CANCELLED)
        assert_string_equal(alone[family].digest, got->digest);
}

/* The state of random rounds. */
typedef struct rounds {
    check_rng rng;
    int32_t prompts[8][PROMPT];
    char paths[FILES][TINY_PATH_BYTES];
    bool there[FILES];
    uint64_t ids[8];
    size_t families[8];
    size_t shared, loaded;
} rounds;

static tern_request request_of(const rounds *r, size_t family) {
    return (tern_request){
        .tokens = r->prompts[family], .n_tokens = PROMPT, .max_tokens = MOST, .ignore_end = true};
}

/* Between steps: may cancel a request, save computed pages, or load a file. */
static void disturb(rounds *r, size_t n) {
    const size_t file = check_below(&r->rng, FILES);
    size_t got = 0;
    if (check_below(&r->rng, 40) == 0)
        (void)tern_engine_cancel(engine_case.engine, r->ids[check_below(&r->rng, (uint32_t)n)]);
    if (check_below(&r->rng, 10) == 0 &&
        save(r->prompts[check_below(&r->rng, 8)], PROMPT, r->paths[file]) > 0)
        r->there[file] = true;
    if (check_below(&r->rng, 10) == 0 && r->there[file] &&
        tern_engine_load(engine_case.engine, r->paths[file], NULL, &got, NULL) == TERN_OK)
        r->loaded += got > 0;
}

/* Runs some requests at once and checks their answers. */
static void run_round(rounds *r) {
    const size_t n = 1 + check_below(&r->rng, 5);
    engine_case.n = 0;
    for (size_t i = 0; i < n; i++) {
        r->families[i] = check_below(&r->rng, 8);
        tern_request request = request_of(r, r->families[i]);
        request.draft = check_below(&r->rng, 2) == 0 ? TERN_DRAFT_ALWAYS : TERN_DRAFT_NEVER;
        r->ids[i] = engine_case_submit(&request);
    }
    while (!engine_case_is_idle()) {
        engine_case_step();
        disturb(r, n);
        assert_true(tern_schedule_sound(engine_case.engine->schedule));
    }
    for (size_t i = 0; i < n; i++) {
        const answer *a = engine_case_answer(r->ids[i], 0);
        check_answer(a, r->families[i]);
        r->shared += a->figures.n_shared;
    }
}

/* Prompts that begin alike, some of them cancelled, with files saved and loaded in between, and
 * memory for few of them. First each runs alone in an engine of its own. */
static void test_random(void **state) {
    (void)state;
    static rounds r = {.rng = {12}};
    for (size_t i = 0; i < FILES; i++)
        tiny_path(r.paths[i]);
    for (size_t i = 0; i < 8; i++) {
        memcpy(r.prompts[i], engine_case.prompt, sizeof r.prompts[i]);
        r.prompts[i][i % 4 * 40 + 5] = (int32_t)(i + 7);
        const tern_request request = request_of(&r, i);
        engine_case_open(params_for(1, CONTEXT));
        check_answer(engine_case_run(&request), i);
    }
    for (size_t round = 0; round < ROUNDS; round++) {
        check_case("round %zu", round);
        if (round % 20 == 0)
            engine_case_open(params_for(3, 14 * 64));
        run_round(&r);
        if (check_below(&r.rng, 6) == 0)
            tern_engine_forget(engine_case.engine);
        check_state(0, tern_engine_now(engine_case.engine).cached_pages,
                    tern_engine_now(engine_case.engine).cached_window_pages);
    }
    assert_true(r.shared > 0 && r.loaded > 0);
    for (size_t i = 0; i < FILES; i++)
        unlink(r.paths[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pool),        cmocka_unit_test(test_all_windows),
        cmocka_unit_test(test_found_again), cmocka_unit_test(test_from_session),
        cmocka_unit_test(test_of_no_use),   cmocka_unit_test(test_to_session),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, begin, engine_case_end);
}
