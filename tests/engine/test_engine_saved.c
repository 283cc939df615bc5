/* SPDX-License-Identifier: Apache-2.0 */
/* Saved sessions over the pages of an engine: loaded from a session, saved for a session, and
 * refused. */
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "authoring/synth.h"
#include "runtime/engine/internal.h"
#include "tests/engine/engine_case.h"
#include "tests/support/check.h"
#include "tests/support/tiny_model.h"

enum { WHOLE = PROMPT / 64 * 64 }; /* positions of the prompt's whole pages */

static const tern_format formats[] = {TERN_FORMAT_F16, TERN_FORMAT_F32, TERN_FORMAT_Q8_0};
static const uint8_t mine[TERN_SPACE_BYTES] = {7};

static tern_session *new_session(tern_format kv) {
    return tiny_session(engine_case.model, (tern_session_params){.n_ctx = 256, .kv = kv});
}

/* The prompt, as a session of this model saves it. */
static void save_prompt(const tern_model *model, tern_format kv, char path[TINY_PATH_BYTES]) {
    tern_session *s = tiny_session(model, (tern_session_params){.n_ctx = 256, .kv = kv});
    tiny_path(path);
    tiny_eval(s, engine_case.prompt, PROMPT);
    assert_int_equal(tern_session_save(s, path, NULL), TERN_OK);
    tern_session_free(&s);
}

static void check_load(const char *path, const uint8_t *space, size_t expected) {
    tern_error err = {0};
    size_t n = 99;
    if (tern_engine_load(engine_case.engine, path, space, &n, &err) != TERN_OK)
        check_fail("%s", err.message);
    assert_int_equal(n, expected);
}

static void check_save(const int32_t *tokens, size_t n, const uint8_t *space, const char *path,
                       size_t expected) {
    tern_error err = {0};
    size_t saved = 99;
    if (tern_engine_save(engine_case.engine, tokens, n, space, path, &saved, &err) != TERN_OK)
        check_fail("%s", err.message);
    assert_int_equal(saved, expected);
}

/* The accounts agree, and between requests this many pages are cached. */
static void check_cached(uint32_t cached) {
    const tern_engine_state s = tern_engine_now(engine_case.engine);
    assert_true(tern_schedule_sound(engine_case.engine->schedule));
    assert_int_equal(s.cached_pages, cached);
    assert_int_equal(s.used_pages, 0);
    assert_int_equal(s.free_pages, s.pages - cached);
}

static void check_same(const answer *want, const answer *got, size_t n_shared) {
    assert_int_equal(got->figures.n_shared, n_shared);
    assert_int_equal(got->n, want->n);
    check_bytes("tokens", want->tokens, got->tokens, sizeof want->tokens);
    assert_string_equal(want->digest, got->digest);
}

/* Pages that a session saved are found by requests of the same name space only. */
static void test_from_a_session(void **state) {
    (void)state;
    const tern_engine_params params = {.pool_bytes = 1 << 22, .n_batch = 37, .threads = 2};
    tern_request request = engine_case_request(20);
    for (size_t i = 0; i < 3; i++) {
        char path[TINY_PATH_BYTES];
        check_case("a cache of %s", tern_format_describe(formats[i])->name);
        save_prompt(engine_case.model, formats[i], path);
        engine_case_open_in(formats[i], params);
        const answer alone = *engine_case_run(&request);
        engine_case_open_in(formats[i], params);
        check_load(path, NULL, WHOLE);
        check_cached(2);
        check_load(path, NULL, WHOLE); /* again: no page is there twice */
        check_cached(2);
        request.space = mine;
        check_same(&alone, engine_case_run(&request), 0);
        tern_engine_forget(engine_case.engine);
        check_load(path, mine, WHOLE);
        check_same(&alone, engine_case_run(&request), WHOLE);
        request.space = NULL;
        check_same(&alone, engine_case_run(&request), 0);
        unlink(path);
    }
}

/* A session that restores what an engine saved continues with the same bits as one that read it
 * all. */
static void check_restored(const char *path, const int32_t *tokens, uint32_t n, tern_format kv) {
    tern_session *restored = new_session(kv), *fresh = new_session(kv);
    assert_int_equal(tern_session_restore(restored, path, NULL), TERN_OK);
    assert_int_equal(tern_session_position(restored), n);
    check_bytes("tokens", tokens, tern_session_tokens(restored), n * sizeof *tokens);
    const float *want = tiny_eval(fresh, tokens, n + 3);
    const float *got = tiny_eval(restored, tokens + n, 3);
    check_floats("logits", want, got, engine_case.info.n_vocab);
    tiny_same_cache(fresh, restored, n + 3);
    tern_session_free(&restored);
    tern_session_free(&fresh);
}

static void test_to_a_session(void **state) {
    (void)state;
    int32_t tokens[PROMPT + MOST];
    const tern_request request = engine_case_request(MOST);
    for (size_t i = 0; i < 3; i++) {
        char path[TINY_PATH_BYTES];
        check_case("a cache of %s", tern_format_describe(formats[i])->name);
        tiny_path(path);
        engine_case_open_in(formats[i], (tern_engine_params){.pool_bytes = 1 << 22});
        const answer *a = engine_case_run(&request);
        memcpy(tokens, engine_case.prompt, sizeof engine_case.prompt);
        memcpy(tokens + PROMPT, a->tokens, sizeof a->tokens);
        check_save(tokens, PROMPT + MOST, NULL, path, 192);
        check_restored(path, tokens, 192, formats[i]);
        check_save(tokens, 191, NULL, path, 128);
        check_restored(path, tokens, 128, formats[i]);
        tokens[127] ^= 1;
        check_save(tokens, PROMPT, NULL, path, 64);
        tokens[127] ^= 1;
        check_restored(path, tokens, 64, formats[i]);
        check_cached(3);
        unlink(path);
        check_save(tokens, PROMPT, mine, path, 0);
        check_save(tokens, 63, NULL, path, 0);
        check_save(NULL, 0, NULL, path, 0);
        assert_int_not_equal(access(path, F_OK), 0);
    }
}

static void check_refused(const char *path, tern_status expected, const char *text) {
    tern_error err = {0};
    size_t n = 99;
    const tern_status status = tern_engine_load(engine_case.engine, path, mine, &n, &err);
    if (status != expected || strstr(err.message, text) == NULL)
        check_fail("status %d, message: %s", (int)status, err.message);
    assert_int_equal(n, 0);
    check_cached(2);
}

/* A file that does not fit changes nothing: the engine keeps all cached pages. */
static void test_refused(void **state) {
    (void)state;
    char path[TINY_PATH_BYTES], other_path[TINY_PATH_BYTES];
    tern_model *other = NULL;
    const tern_request request = engine_case_request(20);
    engine_case_open((tern_engine_params){.n_ctx = 192});
    const answer alone = *engine_case_run(&request);
    save_prompt(engine_case.model, TERN_FORMAT_F32, path);
    check_refused(path, TERN_ERR_SESSION_MODEL, "values as f32, this engine as f16");
    unlink(path);
    tiny_path(other_path);
    assert_int_equal(
        tern_synth("llama-tiny-f16", other_path, TERN_OUT_REPLACE, 2, NULL, NULL, NULL), TERN_OK);
    assert_int_equal(tern_model_open(other_path, NULL, &other, NULL), TERN_OK);
    unlink(other_path);
    save_prompt(other, TERN_FORMAT_F16, path);
    check_refused(path, TERN_ERR_SESSION_MODEL, "another model: identity");
    tern_model_free(&other);
    unlink(path);
    check_refused(path, TERN_ERR_IO, "No such file");
    save_prompt(engine_case.model, TERN_FORMAT_F16, path);
    assert_int_equal(truncate(path, 5000), 0);
    check_refused(path, TERN_ERR_SESSION, "ends after 5000 of");
    check_same(&alone, engine_case_run(&request), WHOLE);
    unlink(path);
    save_prompt(engine_case.model, TERN_FORMAT_F16, path);
    engine_case_open((tern_engine_params){.n_ctx = PROMPT - 1});
    size_t n;
    assert_int_equal(tern_engine_load(engine_case.engine, path, NULL, &n, NULL), TERN_ERR_CONTEXT);
    assert_int_equal(tern_engine_load(NULL, path, NULL, &n, NULL), TERN_ERR_NULL);
    assert_int_equal(tern_engine_load(engine_case.engine, NULL, NULL, &n, NULL), TERN_ERR_NULL);
    assert_int_equal(tern_engine_load(engine_case.engine, path, NULL, NULL, NULL), TERN_ERR_NULL);
    assert_int_equal(tern_engine_save(NULL, NULL, 0, NULL, path, &n, NULL), TERN_ERR_NULL);
    assert_int_equal(tern_engine_save(engine_case.engine, NULL, 1, NULL, path, &n, NULL),
                     TERN_ERR_NULL);
    unlink(path);
}

/* A running request keeps its pages. Loading a file that contains them takes no further memory. */
static void test_memory(void **state) {
    (void)state;
    char path[TINY_PATH_BYTES];
    size_t bytes, n = 99;
    tern_error err = {0};
    const tern_request request = engine_case_request(20);
    save_prompt(engine_case.model, TERN_FORMAT_F16, path);
    assert_int_equal(tern_pool_bytes(engine_case.model, TERN_FORMAT_F16,
                                     (tern_pool_size){.pages = 4}, &bytes, NULL),
                     TERN_OK);
    engine_case_open((tern_engine_params){.pool_bytes = bytes, .n_ctx = 192});
    const answer alone = *engine_case_run(&request);
    const uint64_t id = engine_case_submit(&request);
    engine_case_step();
    engine_case_step();
    const tern_engine_state before = tern_engine_now(engine_case.engine);
    assert_int_equal(before.used_pages, 3);
    assert_int_equal(tern_engine_load(engine_case.engine, path, mine, &n, &err),
                     TERN_ERR_CACHE_MEMORY);
    assert_non_null(strstr(err.message, "holds 2 pages of 64 positions, the cache of 4"));
    const tern_engine_state after = tern_engine_now(engine_case.engine);
    check_bytes("state", &before, &after, offsetof(tern_engine_state, refused)); /* no padding */
    check_load(path, NULL, WHOLE);
    assert_true(tern_schedule_sound(engine_case.engine->schedule));
    assert_int_equal(tern_engine_now(engine_case.engine).used_pages, 3);
    engine_case_finish();
    check_same(&alone, engine_case_answer(id, 0), WHOLE);
    check_cached(2);
    check_load(path, mine, WHOLE); /* takes free pages before the least recently used ones */
    check_cached(4);
    unlink(path);
}

/* Pages that were lent and not filled are of no use to anyone. */
static void test_not_filled(void **state) {
    (void)state;
    uint32_t pages[2];
    const tern_request request = engine_case_request(1);
    tern_job job = {.space = mine, .tokens = engine_case.prompt, .n_tokens = WHOLE, .pages = pages};
    engine_case_open((tern_engine_params){.pool_bytes = 1 << 22});
    (void)engine_case_run(&request);
    assert_true(tern_schedule_lend(engine_case.engine->schedule, &job));
    assert_int_equal(job.n_known, 0);
    assert_int_equal(job.n_pages, 2);
    tern_schedule_take_back(engine_case.engine->schedule, &job, false);
    assert_int_equal(tern_schedule_find(engine_case.engine->schedule, &job), 0);
    tern_engine_show(engine_case.engine);
    check_cached(2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_from_a_session), cmocka_unit_test(test_to_a_session),
        cmocka_unit_test(test_refused),        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_not_filled),
    };
    return cmocka_run_group_tests(tests, engine_case_begin, engine_case_end);
}
