/* SPDX-License-Identifier: Apache-2.0 */
/* Results about the prompt itself: log-probabilities of its tokens, and logits. */
#include <string.h>

#include "base/logprob.h"
#include "base/sha256.h"
#include "runtime/engine/forward/runner.h"
#include "tests/engine/engine_case.h"
#include "tests/support/check.h"
#include "tests/support/tiny_model.h"

/* The logits at each position of the prompt, from a session. */
static const float *logits_of_prompt(tern_session *s) {
    static float all[PROMPT][512];
    assert_true(engine_case.info.n_vocab <= 512);
    for (size_t i = 0; i < PROMPT; i++)
        memcpy(all[i], tiny_eval(s, &engine_case.prompt[i], 1),
               engine_case.info.n_vocab * sizeof(float));
    return all[0];
}

static void check_prompt(const answer *a, size_t from, const float *all) {
    assert_int_equal(a->n_reported, PROMPT - 1 - from);
    for (size_t i = from + 1; i < PROMPT; i++) {
        const float *logits = all + (i - 1) * 512;
        const double sum = tern_log_sum_exp(logits, engine_case.info.n_vocab);
        assert_true(a->exact[i] == (double)logits[engine_case.prompt[i]] - sum);
        for (size_t j = 0; j < 4; j++)
            assert_true(a->prompt[i][j].logprob ==
                        (float)((double)logits[a->prompt[i][j].token] - sum));
        assert_int_equal(a->prompt[i][1].token, tern_argmax(logits, engine_case.info.n_vocab));
    }
}

/* Cached pages are used only for positions before the requested ones. The requested results are
 * right in passes of any size, and the answer stays the same. */
static void test_prompt_logprobs(void **state) {
    (void)state;
    tern_session *s = tiny_session(engine_case.model, (tern_session_params){.kv = TERN_FORMAT_F16});
    const float *all = logits_of_prompt(s);
    for (uint32_t batch = 7; batch < 200; batch += 33) {
        engine_case_open((tern_engine_params){
            .pool_bytes = 1 << 22, .n_batch = batch, .n_sequences = 7, .threads = 2});
        tern_request request = engine_case_request(5);
        const answer *plainly = engine_case_run(&request);
        request.prompt_logprobs = true;
        request.n_logprobs = 3;
        request.branches = 2;
        const size_t from[] = {0, 70, 149};
        for (size_t i = 0; i < 3; i++) {
            request.prompt_from = from[i];
            const answer *a = engine_case_run(&request);
            check_prompt(a, from[i], all);
            assert_int_equal(a->figures.n_shared, from[i] / 64 * 64);
            check_bytes("tokens", plainly->tokens, a->tokens, sizeof a->tokens);
            assert_int_equal(engine_case_answer(a->request, 1)->n_reported, 0);
            assert_int_equal(strcmp(plainly->digest, a->digest) == 0, i == 2);
        }
    }
    tern_session_free(&s);
}

/* Runs a request beside another one, which takes its last pages after its first token. */
static const answer *run_set_aside(const tern_request *request) {
    static const uint8_t another[TERN_SPACE_BYTES] = "another";
    tern_request first = engine_case_request(0);
    first.space = another;
    tern_engine_forget(engine_case.engine); /* so that everything is computed */
    (void)engine_case_submit(&first);
    const uint64_t id = engine_case_submit(request);
    const answer *a = engine_case_answer(id, 0);
    while (a->n == 0)
        engine_case_step();
    assert_int_equal(tern_engine_now(engine_case.engine).set_aside, 0);
    engine_case_finish();
    assert_true(a->figures.n_set_aside > 0 && a->figures.n_computed > PROMPT + 60);
    return a;
}

/* A request that is set aside after its first token is computed again, but the events of its prompt
 * come only once. They and its digest are those of the request alone. */
static void test_prompt_set_aside(void **state) {
    (void)state;
    engine_case_open((tern_engine_params){
        .n_ctx = PROMPT + 60,
        .pool_bytes = 6 * tern_model_kv_bytes(engine_case.model, 64, TERN_FORMAT_F16),
        .n_batch = 96,
        .n_sequences = 2,
        .n_ahead = 1,
        .threads = 2});
    tern_request request = engine_case_request(0); /* no page is reserved before it is needed */
    request.prompt_logprobs = request.logprobs = true;
    request.n_logprobs = 3;
    const answer *alone = engine_case_run(&request);
    const answer *aside = run_set_aside(&request);
    assert_int_equal(alone->figures.n_set_aside, 0);
    assert_int_equal(aside->n_reported, PROMPT - 1);
    assert_int_equal(aside->n, 60);
    check_bytes("log-probabilities", alone->exact, aside->exact, sizeof alone->exact);
    check_bytes("likeliest", alone->prompt, aside->prompt, sizeof alone->prompt);
    check_bytes("tokens", alone->tokens, aside->tokens, sizeof alone->tokens);
    check_bytes("their likeliest", alone->first, aside->first, sizeof alone->first);
    assert_string_equal(alone->digest, aside->digest);
}

/* The digest of the runner's rows, beginning at a position of the prompt. */
static void digest_prompt(uint32_t from, char hex[65]) {
    const tern_runner_params params = {
        .threads = 1, .n_batch = PROMPT, .n_ctx = PROMPT, .n_picks = 1};
    const uint32_t pages[] = {0, 1, 2};
    const tern_pass_span span = {
        .pages = pages, .tokens = engine_case.prompt, .n = PROMPT, .wanted = PROMPT - from};
    tern_runner *runner;
    tern_pool pool;
    tern_sha256 digest;
    int refused = 0;
    assert_int_equal(tern_runner_new(engine_case.model, &params, &runner, NULL), TERN_OK);
    assert_int_equal(tern_pool_open(engine_case.model, TERN_FORMAT_F16,
                                    (tern_pool_size){.pages = 3}, &pool, &refused, NULL),
                     TERN_OK);
    tern_runner_run(runner, &pool, &span, 1);
    tern_sha256_start(&digest);
    for (size_t i = 0; i < span.wanted; i++)
        tern_sha256_add(&digest, tern_runner_hidden(runner, i),
                        engine_case.info.n_embd * sizeof(float));
    tern_sha256_finish(&digest, hex);
    tern_runner_free(&runner);
    tern_pool_close(&pool);
}

typedef struct seen {
    const float *all; /* logits of the prompt */
    size_t next;
} seen;

static void see(void *user, const tern_progress *progress, size_t position, const float *logits) {
    seen *s = user;
    assert_int_equal(position, s->next++);
    assert_true(position < progress->n && progress->n_prompt == PROMPT);
    if (position < PROMPT)
        check_bytes("logits", s->all + position * 512, logits,
                    engine_case.info.n_vocab * sizeof(float));
    else
        assert_true(progress->n == position + 1);
}

/* Logits come in order. A prompt without an answer may fill the context, and ends without a
 * token. */
static void test_prompt_only(void **state) {
    (void)state;
    char hex[65];
    tern_session *session =
        tiny_session(engine_case.model, (tern_session_params){.kv = TERN_FORMAT_F16});
    seen s = {.all = logits_of_prompt(session), .next = 70};
    tern_session_free(&session);
    engine_case_open((tern_engine_params){.n_ctx = PROMPT, .n_batch = 37});
    tern_request request = engine_case_request(0);
    request.prompt_only = true;
    request.prompt_from = 70;
    request.logits = see;
    request.user = &s;
    const answer *a = engine_case_run(&request);
    digest_prompt(70, hex);
    assert_true(a->n == 0 && a->n_reported == 0 && a->end == TERN_END_LENGTH && s.next == PROMPT);
    assert_string_equal(a->digest, hex);
    request.logits = NULL;
    a = engine_case_run(&request);
    assert_int_equal(a->figures.n_shared, 128);
    digest_prompt(PROMPT - 1, hex);
    assert_string_equal(a->digest, hex);
    engine_case_open((tern_engine_params){.threads = 2});
    request = engine_case_request(6);
    request.logits = see;
    request.user = &s;
    s.next = 0;
    (void)engine_case_run(&request);
    assert_int_equal(s.next, PROMPT + 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prompt_only),
        cmocka_unit_test(test_prompt_logprobs),
        cmocka_unit_test(test_prompt_set_aside),
    };
    return cmocka_run_group_tests(tests, engine_case_begin, engine_case_end);
}
