/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a request, one at a time. test_engine_schedules.c mixes them. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/logprob.h"
#include "base/sha256.h"
#include "runtime/engine/forward/runner.h"
#include "runtime/files/gguf/internal.h"
#include "tests/engine/engine_case.h"
#include "tests/support/check.h"
#include "tests/support/tiny_model.h"

/* ---- what is computed ------------------------------------------------------------------------ */

/* The digest covers the hidden states from which tokens were picked, here computed one by one. */
static void test_digest(void **state) {
    (void)state;
    enum { TOKENS = 9, PAGES = 3 };
    engine_case_open((tern_engine_params){.threads = 2});
    const tern_request request = engine_case_request(TOKENS);
    const answer *a = engine_case_run(&request);
    const tern_runner_params params = {.threads = 1, .n_batch = PROMPT, .n_ctx = 192, .n_picks = 1};
    const uint32_t pages[PAGES] = {2, 0, 1};
    tern_runner *runner;
    tern_pool pool;
    tern_sha256 digest;
    char hex[65];
    int refused = 0;
    assert_int_equal(a->n, TOKENS);
    assert_int_equal(tern_runner_new(engine_case.model, &params, &runner, NULL), TERN_OK);
    assert_int_equal(tern_pool_open(engine_case.model, TERN_FORMAT_F16,
                                    (tern_pool_size){.pages = PAGES}, &pool, &refused, NULL),
                     TERN_OK);
    tern_sha256_start(&digest);
    for (uint32_t i = 0; i < TOKENS; i++) {
        const tern_pass_span span = {.pages = pages,
                                     .position = i == 0 ? 0 : PROMPT + i - 1,
                                     .tokens = i == 0 ? engine_case.prompt : a->tokens + i - 1,
                                     .n = i == 0 ? PROMPT : 1,
                                     .wanted = 1};
        tern_runner_run(runner, &pool, &span, 1);
        tern_sha256_add(&digest, tern_runner_hidden(runner, 0),
                        engine_case.info.n_embd * sizeof(float));
    }
    tern_sha256_finish(&digest, hex);
    assert_string_equal(a->digest, hex);
    check_freed(tern_runner_free, runner);
    tern_pool_close(&pool);
}

/* Pages are shared within one name space, never between two. Branches differ by their seeds. */
static void test_sharing(void **state) {
    (void)state;
    static const uint8_t mine[TERN_SPACE_BYTES] = {7};
    const tern_sampler_params warm = {.temperature = 1.5F, .top_p = 1.0F, .seed = 5};
    engine_case_open((tern_engine_params){.pool_bytes = 1 << 22});
    tern_request request = engine_case_request(20);
    request.sampling = &warm;
    request.branches = 3;
    const answer *first = engine_case_run(&request);
    for (uint32_t i = 0; i < 3; i++) {
        const answer *a = engine_case_answer(first->request, i);
        assert_int_equal(a->end, TERN_END_LENGTH);
        assert_int_equal(a->figures.n_shared, i == 0 ? 0 : 128);
        assert_true(i == 0 || memcmp(a->tokens, first->tokens, sizeof a->tokens) != 0);
    }
    tern_sampler_params second = warm;
    second.seed += 1;
    request.sampling = &second;
    request.branches = 1;
    const answer *again = engine_case_run(&request);
    const answer *branch = engine_case_answer(first->request, 1);
    assert_int_equal(again->figures.n_shared, 128);
    check_bytes("tokens", branch->tokens, again->tokens, sizeof again->tokens);
    assert_string_equal(branch->digest, again->digest);
    request.space = mine;
    assert_int_equal(engine_case_run(&request)->figures.n_shared, 0);
    assert_int_equal(engine_case_run(&request)->figures.n_shared, 128);
    tern_engine_forget(engine_case.engine);
    assert_int_equal(tern_engine_now(engine_case.engine).cached_pages, 0);
    assert_int_equal(engine_case_run(&request)->figures.n_shared, 0);
}

/* Log-probabilities are those of the logits, whichever token is picked. */
static void test_logprobs(void **state) {
    (void)state;
    engine_case_open((tern_engine_params){.threads = 1});
    tern_request request = engine_case_request(6);
    request.n_logprobs = 3;
    const answer *a = engine_case_run(&request);
    tern_session *s = tiny_session(engine_case.model, (tern_session_params){.kv = TERN_FORMAT_F16});
    const float *logits = tiny_eval(s, engine_case.prompt, PROMPT);
    assert_int_equal(a->n_likeliest, 3);
    for (size_t i = 0; i < a->n; i++) {
        const double sum = tern_log_sum_exp(logits, engine_case.info.n_vocab);
        assert_int_equal(a->first[i][1].token, a->tokens[i]); /* greedy */
        for (size_t j = 0; j < 4; j++)
            assert_true(a->first[i][j].logprob ==
                        (float)((double)logits[a->first[i][j].token] - sum));
        for (uint32_t t = 0; t < engine_case.info.n_vocab; t++)
            assert_true(logits[t] <= logits[a->first[i][3].token] ||
                        (int32_t)t == a->first[i][1].token || (int32_t)t == a->first[i][2].token);
        logits = tiny_eval(s, &a->tokens[i], 1);
    }
    tern_session_free(&s);
}

/* ---- when it ends ---------------------------------------------------------------------------- */

static void test_limits(void **state) {
    (void)state;
    engine_case_open((tern_engine_params){.n_ctx = 160});
    tern_request request = engine_case_request(0);
    const answer *a = engine_case_run(&request);
    assert_int_equal(a->end, TERN_END_CONTEXT);
    assert_int_equal(a->n, 10);
    assert_string_equal(tern_end_name(a->end), "context");
    const int32_t stop = a->tokens[5];
    size_t first = 0;
    while (a->tokens[first] != stop)
        first++;
    request.stop_tokens = &stop;
    request.n_stop_tokens = 1;
    a = engine_case_run(&request);
    assert_int_equal(a->end, TERN_END_STOP_TOKEN);
    assert_int_equal(a->n, first);
}

/* The token that ends an answer is reported with the end, and so are its log-probabilities. */
static void test_token_that_ends(void **state) {
    (void)state;
    engine_case_open((tern_engine_params){.threads = 1});
    tern_request request = engine_case_request(20);
    request.n_logprobs = 3;
    const answer *a = engine_case_run(&request);
    tern_logprob at[4];
    size_t first = 0;
    const int32_t stop = a->tokens[5];
    while (a->tokens[first] != stop)
        first++;
    assert_int_equal(a->last[0].logprob, 0); /* that answer was not ended by a token */
    memcpy(at, a->first[first], sizeof at);
    request.stop_tokens = &stop;
    request.n_stop_tokens = 1;
    a = engine_case_run(&request);
    assert_int_equal(a->end, TERN_END_STOP_TOKEN);
    assert_int_equal(a->n, first);
    check_bytes("the last pick", at, a->last, sizeof at);
}

/* A stop text ends the answer before its first byte. A possible beginning of one is held back. */
static void test_stop_texts(void **state) {
    (void)state;
    engine_case_open((tern_engine_params){.threads = 1});
    tern_request request = engine_case_request(30);
    const answer *whole = engine_case_run(&request);
    assert_true(whole->size > 12);
    char stop[6] = {0}; /* from the middle of the answer, so that it spans several tokens */
    const size_t middle = whole->size / 2;
    memcpy(stop, whole->text + middle, 5);
    assert_null(memchr(stop, 0, 5));
    const char *const stops[] = {"never said", stop};
    const size_t begin =
        (size_t)((const char *)memmem(whole->text, whole->size, stop, 5) - whole->text);
    request.stop_texts = stops;
    request.n_stop_texts = 2;
    const answer *a = engine_case_run(&request);
    assert_int_equal(a->end, TERN_END_STOP_TEXT);
    assert_int_equal(a->stop_text, 1);
    assert_int_equal(a->size, begin);
    check_bytes("text", whole->text, a->text, begin);
    check_bytes("tokens", whole->tokens, a->tokens, a->n * sizeof *a->tokens);
    const char *const empty[] = {""};
    uint64_t id;
    request.stop_texts = empty;
    request.n_stop_texts = 1;
    assert_int_equal(tern_engine_submit(engine_case.engine, &request, &id, NULL), TERN_ERR_ARG);
}

static void test_cancel(void **state) {
    (void)state;
    engine_case_open((tern_engine_params){.n_sequences = 2, .n_batch = 40});
    tern_request request = engine_case_request(20);
    request.branches = 2;
    const uint64_t running = engine_case_submit(&request), waiting = engine_case_submit(&request);
    for (int i = 0; i < 6; i++)
        engine_case_step();
    assert_false(tern_engine_cancel(engine_case.engine, 99));
    assert_true(tern_engine_cancel(engine_case.engine, running));
    assert_true(tern_engine_cancel(engine_case.engine, waiting));
    const size_t before = engine_case_answer(running, 0)->n;
    engine_case_step();
    assert_true(engine_case_is_idle());
    assert_int_equal(engine_case_answer(running, 0)->n, before);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(engine_case_answer(i < 2 ? running : waiting, i % 2)->end,
                         TERN_END_CANCELLED);
    assert_int_equal(tern_engine_now(engine_case.engine).used_pages, 0);
    assert_false(tern_engine_cancel(engine_case.engine, running));
}

static void test_deadline(void **state) {
    (void)state;
    engine_case_open((tern_engine_params){.n_sequences = 1});
    tern_request request = engine_case_request(20);
    request.deadline_seconds = 2.5;
    const uint64_t id = engine_case_submit(&request), late = engine_case_submit(&request);
    for (; !engine_case_is_idle(); engine_case.now += 1.0)
        engine_case_step();
    assert_int_equal(engine_case_answer(id, 0)->end, TERN_END_DEADLINE);
    assert_true(engine_case_answer(id, 0)->n > 0 && engine_case_answer(id, 0)->n < 4);
    assert_true(engine_case_answer(id, 0)->figures.seconds == 3.0);
    assert_int_equal(engine_case_answer(late, 0)->end, TERN_END_DEADLINE);
    assert_int_equal(engine_case_answer(late, 0)->n, 0);
    assert_true(engine_case_answer(late, 0)->figures.queued_seconds == 3.0);
}

/* ---- hooks ----------------------------------------------------------------------------------- */

/* Allows only tokens that are equal to the position modulo 7, and none at position *user. */
static bool same_rest(void *user, const tern_progress *progress, uint64_t *allowed, size_t words) {
    const size_t *none = user;
    for (size_t i = 0; i < words * 64; i++)
        if (i % 7 != progress->n % 7 || progress->n == *none)
            allowed[i / 64] &= ~(UINT64_C(1) << (i % 64));
    return true;
}

static void test_mask(void **state) {
    (void)state;
    size_t none = 0;
    engine_case_open((tern_engine_params){.threads = 2});
    tern_request request = engine_case_request(20);
    request.mask = same_rest;
    request.user = &none;
    const answer *a = engine_case_run(&request);
    assert_int_equal(a->end, TERN_END_LENGTH);
    for (size_t i = 0; i < a->n; i++)
        assert_int_equal(a->tokens[i] % 7, (PROMPT + i) % 7);
    none = PROMPT + 4;
    a = engine_case_run(&request);
    assert_int_equal(a->end, TERN_END_ERROR);
    assert_int_equal(a->n, 4);
    assert_int_equal(a->error, TERN_ERR_ARG);
    assert_string_equal(a->message, "sampler: none of 307 tokens is allowed");
}

typedef struct knowing {
    const int32_t *tokens;
    size_t n;
} knowing;

static size_t know(void *user, const tern_progress *progress, int32_t *guesses, size_t most) {
    const knowing *k = user;
    const size_t at = progress->n - progress->n_prompt;
    const size_t n = k->n - at < most ? k->n - at : most;
    memcpy(guesses, k->tokens + at, n * sizeof *guesses);
    return n;
}

/* Right guesses save passes. What follows a wrong guess is computed again. */
static void test_guesses(void **state) {
    (void)state;
    int32_t told[40];
    engine_case_open((tern_engine_params){.threads = 1});
    tern_request request = engine_case_request(40);
    const answer *alone = engine_case_run(&request);
    const size_t passes = engine_case.steps;
    memcpy(told, alone->tokens, sizeof told);
    knowing k = {told, 40};
    request.guess = know;
    request.user = &k;
    const answer *a = engine_case_run(&request);
    assert_true(engine_case.steps - passes < 8);
    assert_int_equal(a->figures.n_guessed_right, a->figures.n_guessed);
    check_bytes("tokens", alone->tokens, a->tokens, sizeof a->tokens);
    assert_string_equal(a->digest, alone->digest);
    for (size_t i = 0; i < 40; i += 5)
        told[i] = (told[i] + 1) % 300;
    a = engine_case_run(&request);
    assert_true(a->figures.n_guessed_right < a->figures.n_guessed);
    check_bytes("tokens", alone->tokens, a->tokens, sizeof a->tokens);
    assert_string_equal(a->digest, alone->digest);
}

/* The engine's own guesses: in a text that repeats itself they are right, and change nothing. */
static void test_drafts(void **state) {
    (void)state;
    engine_case_open((tern_engine_params){.threads = 1});
    tern_request request = engine_case_request(60);
    tern_sampler_params sampling = tern_sampler_params_default();
    const tern_logit_bias bias[] = {{7, 40.0F}, {8, 39.5F}};
    sampling.bias = bias;
    sampling.n_bias = 2;
    sampling.repetition_penalty = 1.02F;
    request.sampling = &sampling;
    request.logprobs = true;
    request.branches = 2;
    const answer *alone = engine_case_run(&request);
    const size_t passes = engine_case.steps;
    assert_int_equal(alone->figures.n_guessed, 0);
    request.draft = TERN_DRAFT_ALWAYS;
    const answer *a = engine_case_run(&request);
    assert_true(engine_case.steps - passes < passes / 2);
    assert_true(a->figures.n_guessed_right > 30);
    check_bytes("tokens", alone->tokens, a->tokens, sizeof a->tokens);
    check_bytes("probabilities", alone->first, a->first, sizeof a->first);
    assert_string_equal(a->digest, alone->digest);
    request.draft = TERN_DRAFT_WHERE_IT_PAYS; /* the clock stands still, so costs are unknown */
    a = engine_case_run(&request);
    assert_int_equal(a->figures.n_guessed, 0);
    assert_string_equal(a->digest, alone->digest);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void refuse(const tern_request *request, tern_status status, const char *message) {
    tern_error err = {0};
    uint64_t id = 77;
    assert_int_equal(tern_engine_submit(engine_case.engine, request, &id, &err), status);
    assert_string_equal(err.message, message);
    assert_int_equal(id, 77);
}

static void test_refusals(void **state) {
    (void)state;
    const uint64_t page = tern_model_kv_bytes(engine_case.model, 64, TERN_FORMAT_F16);
    engine_case_open((tern_engine_params){.n_ctx = 400, .pool_bytes = 4 * page, .n_queue = 3});
    tern_request request = engine_case_request(107);
    refuse(&request, TERN_ERR_CONTEXT, "a request of 257 positions exceeds the cache of 256");
    request.max_tokens = 251;
    refuse(&request, TERN_ERR_CONTEXT, "a request of 401 positions exceeds the context of 400");
    request.max_tokens = 4;
    request.branches = 3;
    (void)engine_case_submit(&request);
    request.branches = 1;
    refuse(&request, TERN_ERR_QUEUE, "3 requests wait, 3 may");
    engine_case_finish();
    (void)engine_case_submit(&request);
    request.n_tokens = 0;
    refuse(&request, TERN_ERR_EMPTY, "a request without tokens");
    const int32_t wild[] = {1, 307};
    request.tokens = wild;
    request.n_tokens = 2;
    refuse(&request, TERN_ERR_TOKEN_RANGE, "token 307 at index 1 is outside the vocabulary of 307");
    request = engine_case_request(1);
    request.deadline_seconds = (double)NAN;
    refuse(&request, TERN_ERR_ARG, "a deadline in nan seconds");
    request = engine_case_request(1);
    request.n_logprobs = 33;
    refuse(&request, TERN_ERR_ARG, "33 likeliest tokens exceed 32");
    request = engine_case_request(1);
    request.prompt_from = PROMPT;
    refuse(&request, TERN_ERR_ARG, "results from position 150 on of 150 tokens");
    request = engine_case_request(1);
    request.prompt_only = true;
    refuse(&request, TERN_ERR_ARG, "1 tokens and 0 branches after a prompt alone");
    engine_case_finish();
}

static void test_parameters(void **state) {
    (void)state;
    tern_engine *e = NULL;
    tern_error err = {0};
    tern_engine_params p = {.n_ctx = 513};
    assert_int_equal(tern_engine_new(engine_case.model, &p, &e, &err), TERN_ERR_CONTEXT);
    p = (tern_engine_params){.kv = TERN_FORMAT_Q4_0};
    assert_int_equal(tern_engine_new(engine_case.model, &p, &e, &err), TERN_ERR_ARG);
    p = (tern_engine_params){.pool_bytes = 100};
    assert_int_equal(tern_engine_new(engine_case.model, &p, &e, &err), TERN_ERR_ARG);
    p = (tern_engine_params){.n_sequences = 65, .n_batch = 64};
    assert_int_equal(tern_engine_new(engine_case.model, &p, &e, &err), TERN_ERR_ARG);
    p = (tern_engine_params){.gap_seconds = -1.0};
    assert_int_equal(tern_engine_new(engine_case.model, &p, &e, &err), TERN_ERR_ARG);
    assert_null(e);
}

/* ---- threads --------------------------------------------------------------------------------- */

static void *submit_some(void *argument) {
    (void)argument;
    const tern_request request = engine_case_request(3);
    for (int i = 0; i < 4; i++) {
        uint64_t id = 0;
        if (tern_engine_submit(engine_case.engine, &request, &id, NULL) == TERN_OK && i % 2 == 1)
            (void)tern_engine_cancel(engine_case.engine, id);
        (void)tern_engine_now(engine_case.engine);
    }
    return NULL;
}

/* Other threads submit and cancel requests while steps are made. */
static void test_threads(void **state) {
    (void)state;
    enum { THREADS = 3 };
    pthread_t threads[THREADS];
    engine_case_open((tern_engine_params){.threads = 2});
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, submit_some, NULL), 0);
    for (int i = 0; i < 50; i++)
        engine_case_step();
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    engine_case_finish();
    assert_int_equal(engine_case.n, 12);
    for (size_t i = 0; i < engine_case.n; i++)
        assert_true(engine_case.answers[i].end == TERN_END_CANCELLED ||
                    engine_case.answers[i].n == 3);
}

/* An answer that was computed while somebody wrote to a file of the model ends with that error. One
 * that was cancelled before its end is reported as cancelled. */
static void test_changed_file(void **state) {
    (void)state;
    const int file = tern_file_map_descriptor(engine_case.model->file->map);
    const struct timespec long_ago[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    struct stat info;
    engine_case_open((tern_engine_params){.threads = 2});
    const tern_request request = engine_case_request(5);
    assert_int_equal(engine_case_run(&request)->end, TERN_END_LENGTH);
    assert_int_equal(fstat(file, &info), 0);
    const uint64_t changed = engine_case_submit(&request), given_up = engine_case_submit(&request);
    engine_case_step();
    assert_int_equal(futimens(file, long_ago), 0);
    tern_engine_cancel(engine_case.engine, given_up);
    engine_case_finish();
    const answer *a = engine_case_answer(changed, 0);
    assert_int_equal(a->end, TERN_END_ERROR);
    assert_int_equal(a->error, TERN_ERR_CHANGED);
    assert_non_null(strstr(a->message, "was written to while it was in use"));
    assert_int_equal(engine_case_answer(given_up, 0)->end, TERN_END_CANCELLED);
    assert_int_equal(futimens(file, (const struct timespec[]){info.st_atim, info.st_mtim}), 0);
    assert_int_equal(engine_case_run(&request)->end, TERN_END_LENGTH);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_digest),
        cmocka_unit_test(test_sharing),
        cmocka_unit_test(test_logprobs),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_token_that_ends),
        cmocka_unit_test(test_stop_texts),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_mask),
        cmocka_unit_test(test_guesses),
        cmocka_unit_test(test_drafts),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_changed_file),
    };
    return cmocka_run_group_tests(tests, engine_case_begin, engine_case_end);
}
