/* SPDX-License-Identifier: Apache-2.0 */
/* What a request asks for, one thing at a time; test_engine_schedules.c mixes them. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/logprob.h"
#include "base/sha256.h"
#include "runtime/forward/runner.h"
#include "tern/engine.h"
#include "tests/check.h"
#include "tests/tiny_model.h"

enum { PROMPT = 150, MOST = 64, ANSWERS = 24 };

typedef struct answer {
    uint64_t request;
    uint32_t branch;
    int32_t tokens[MOST];
    tern_logprob first[MOST][4]; /* own, then the likeliest */
    size_t n, n_likeliest;
    tern_logprob prompt[PROMPT][4]; /* likewise of the prompt's tokens */
    double exact[PROMPT];
    size_t n_reported;
    char text[4096];
    size_t size;
    bool is_over;
    tern_end end;
    size_t stop_text;
    tern_status error;
    char message[TERN_ERROR_MESSAGE_BYTES];
    char digest[65];
    tern_branch_figures figures;
} answer;

typedef struct fixture {
    tern_model *model;
    tern_model_info info;
    tern_engine *engine;
    int32_t prompt[PROMPT];
    answer answers[ANSWERS];
    size_t n, steps;
    double now;
} fixture;

static fixture f;

static double the_time(void *user) {
    return *(const double *)user;
}

static void open_engine(tern_engine_params params) {
    tern_error err = {0};
    tern_engine_free(&f.engine);
    params.kv = TERN_FORMAT_F16;
    params.clock = the_time;
    params.clock_user = &f.now;
    if (tern_engine_new(f.model, &params, &f.engine, &err) != TERN_OK)
        check_fail("%s", err.message);
    f.n = f.steps = 0;
    f.now = 0.0;
    memset(f.answers, 0, sizeof f.answers);
}

static int open_model(void **state) {
    (void)state;
    f.model = tiny_open("llama-tiny-f16", NULL);
    tern_model_describe(f.model, &f.info);
    tiny_prompt(f.model, 4, f.prompt, PROMPT);
    return 0;
}

static int close_model(void **state) {
    (void)state;
    tern_engine_free(&f.engine);
    tern_model_free(&f.model);
    return 0;
}

static answer *answer_of(uint64_t request, uint32_t branch) {
    for (size_t i = 0; i < f.n; i++)
        if (f.answers[i].request == request && f.answers[i].branch == branch)
            return &f.answers[i];
    assert_true(f.n < ANSWERS);
    f.answers[f.n] = (answer){.request = request, .branch = branch};
    return &f.answers[f.n++];
}

static void note_end(answer *a, const tern_event *event) {
    a->is_over = true;
    a->end = event->end;
    a->stop_text = event->stop_text;
    a->figures = event->figures;
    memcpy(a->digest, event->digest, sizeof a->digest);
    if (event->error) {
        a->error = event->error->status;
        memcpy(a->message, event->error->message, sizeof a->message);
    }
}

/* Tokens of the prompt come in order, before all others, up to the last one. */
static void note_prompt(answer *a, const tern_event *event) {
    const size_t i = event->position;
    assert_true(a->n == 0 && i < PROMPT && event->token == f.prompt[i] && event->size == 0);
    assert_true(a->n_reported == 0 || a->prompt[i - 1][0].logprob < 0.0F);
    a->prompt[i][0] = (tern_logprob){event->token, (float)event->logprob};
    a->exact[i] = event->logprob;
    if (event->n_likeliest > 0)
        memcpy(a->prompt[i] + 1, event->likeliest, 3 * sizeof(tern_logprob));
    a->n_reported++;
}

static void note(const tern_event *event) {
    answer *a = answer_of(event->request, event->branch);
    assert_false(a->is_over);
    if (event->kind == TERN_EVENT_PROMPT) {
        note_prompt(a, event);
        return;
    }
    assert_true(a->size + event->size < sizeof a->text);
    memcpy(a->text + a->size, event->text, event->size);
    a->size += event->size;
    if (event->kind == TERN_EVENT_END) {
        note_end(a, event);
        return;
    }
    assert_true(a->n < MOST && event->position == PROMPT + a->n);
    a->first[a->n][0] = (tern_logprob){event->token, (float)event->logprob};
    a->n_likeliest = event->n_likeliest;
    if (event->n_likeliest > 0)
        memcpy(a->first[a->n] + 1, event->likeliest, 3 * sizeof(tern_logprob));
    a->tokens[a->n++] = event->token;
}

static void step(void) {
    const tern_event *events;
    size_t n;
    assert_int_equal(tern_engine_step(f.engine, &events, &n, NULL), TERN_OK);
    f.steps++;
    for (size_t i = 0; i < n; i++)
        note(&events[i]);
}

static bool is_idle(void) {
    const tern_engine_state s = tern_engine_now(f.engine);
    return s.waiting + s.running == 0;
}

static void finish(void) {
    while (!is_idle())
        step();
}

static uint64_t submit(const tern_request *request) {
    tern_error err = {0};
    uint64_t id = 0;
    if (tern_engine_submit(f.engine, request, &id, &err) != TERN_OK)
        check_fail("%s", err.message);
    return id;
}

static tern_request plain(size_t max_tokens) {
    return (tern_request){
        .tokens = f.prompt, .n_tokens = PROMPT, .max_tokens = max_tokens, .ignore_end = true};
}

static answer *run(const tern_request *request) {
    const uint64_t id = submit(request);
    finish();
    return answer_of(id, 0);
}

/* ---- what is computed ------------------------------------------------------------------------ */

/* The digest is that of the hidden states from which tokens were picked, computed one by one. */
static void test_digest(void **state) {
    (void)state;
    enum { TOKENS = 9, PAGES = 3 };
    open_engine((tern_engine_params){.threads = 2});
    const tern_request request = plain(TOKENS);
    const answer *a = run(&request);
    const tern_runner_params params = {.threads = 1, .n_batch = PROMPT, .n_ctx = 192, .n_picks = 1};
    const uint32_t pages[PAGES] = {2, 0, 1};
    tern_runner *runner;
    tern_pool pool;
    tern_sha256 digest;
    char hex[65];
    int refused = 0;
    assert_int_equal(a->n, TOKENS);
    assert_int_equal(tern_runner_new(f.model, &params, &runner, NULL), TERN_OK);
    assert_int_equal(tern_pool_open(f.model, TERN_FORMAT_F16, PAGES, &pool, &refused, NULL),
                     TERN_OK);
    tern_sha256_start(&digest);
    for (uint32_t i = 0; i < TOKENS; i++) {
        const tern_pass_span span = {.pages = pages,
                                     .position = i == 0 ? 0 : PROMPT + i - 1,
                                     .tokens = i == 0 ? f.prompt : a->tokens + i - 1,
                                     .n = i == 0 ? PROMPT : 1,
                                     .wanted = 1};
        tern_runner_run(runner, &pool, &span, 1);
        tern_sha256_add(&digest, tern_runner_hidden(runner, 0), f.info.n_embd * sizeof(float));
    }
    tern_sha256_finish(&digest, hex);
    assert_string_equal(a->digest, hex);
    tern_runner_free(&runner);
    tern_pool_close(&pool);
}

/* Pages are shared in one name space, and not between two; branches differ by their seeds. */
static void test_sharing(void **state) {
    (void)state;
    static const uint8_t mine[TERN_SPACE_BYTES] = {7};
    const tern_sampler_params warm = {.temperature = 1.5F, .top_p = 1.0F, .seed = 5};
    open_engine((tern_engine_params){.pool_bytes = 1 << 22});
    tern_request request = plain(20);
    request.sampling = &warm;
    request.branches = 3;
    const answer *first = run(&request);
    for (uint32_t i = 0; i < 3; i++) {
        const answer *a = answer_of(first->request, i);
        assert_int_equal(a->end, TERN_END_LENGTH);
        assert_int_equal(a->figures.n_shared, i == 0 ? 0 : 128);
        assert_true(i == 0 || memcmp(a->tokens, first->tokens, sizeof a->tokens) != 0);
    }
    tern_sampler_params second = warm;
    second.seed += 1;
    request.sampling = &second;
    request.branches = 1;
    const answer *again = run(&request);
    const answer *branch = answer_of(first->request, 1);
    assert_int_equal(again->figures.n_shared, 128);
    check_bytes("tokens", branch->tokens, again->tokens, sizeof again->tokens);
    assert_string_equal(branch->digest, again->digest);
    request.space = mine;
    assert_int_equal(run(&request)->figures.n_shared, 0);
    assert_int_equal(run(&request)->figures.n_shared, 128);
    tern_engine_forget(f.engine);
    assert_int_equal(tern_engine_now(f.engine).cached_pages, 0);
    assert_int_equal(run(&request)->figures.n_shared, 0);
}

/* Logarithms of probabilities are those of the logits, whatever is picked. */
static void test_logprobs(void **state) {
    (void)state;
    open_engine((tern_engine_params){.threads = 1});
    tern_request request = plain(6);
    request.n_logprobs = 3;
    const answer *a = run(&request);
    tern_session *s = tiny_session(f.model, (tern_session_params){.kv = TERN_FORMAT_F16});
    const float *logits = tiny_eval(s, f.prompt, PROMPT);
    assert_int_equal(a->n_likeliest, 3);
    for (size_t i = 0; i < a->n; i++) {
        const double sum = tern_log_sum_exp(logits, f.info.n_vocab);
        assert_int_equal(a->first[i][1].token, a->tokens[i]); /* greedy */
        for (size_t j = 0; j < 4; j++)
            assert_true(a->first[i][j].logprob ==
                        (float)((double)logits[a->first[i][j].token] - sum));
        for (uint32_t t = 0; t < f.info.n_vocab; t++)
            assert_true(logits[t] <= logits[a->first[i][3].token] ||
                        (int32_t)t == a->first[i][1].token || (int32_t)t == a->first[i][2].token);
        logits = tiny_eval(s, &a->tokens[i], 1);
    }
    tern_session_free(&s);
}

/* ---- what is wanted of prompts --------------------------------------------------------------- */

/* What follows each position of the prompt, by a session. */
static const float *logits_of_prompt(tern_session *s) {
    static float all[PROMPT][512];
    assert_true(f.info.n_vocab <= 512);
    for (size_t i = 0; i < PROMPT; i++)
        memcpy(all[i], tiny_eval(s, &f.prompt[i], 1), f.info.n_vocab * sizeof(float));
    return all[0];
}

static void check_prompt(const answer *a, size_t from, const float *all) {
    assert_int_equal(a->n_reported, PROMPT - 1 - from);
    for (size_t i = from + 1; i < PROMPT; i++) {
        const float *logits = all + (i - 1) * 512;
        const double sum = tern_log_sum_exp(logits, f.info.n_vocab);
        assert_true(a->exact[i] == (double)logits[f.prompt[i]] - sum);
        for (size_t j = 0; j < 4; j++)
            assert_true(a->prompt[i][j].logprob ==
                        (float)((double)logits[a->prompt[i][j].token] - sum));
        assert_int_equal(a->prompt[i][1].token, tern_argmax(logits, f.info.n_vocab));
    }
}

/* Known pages are taken for positions before those that are asked for, and no further; what is
 * asked for is right in passes of any size, and the answer stays what it was. */
static void test_prompt_logprobs(void **state) {
    (void)state;
    tern_session *s = tiny_session(f.model, (tern_session_params){.kv = TERN_FORMAT_F16});
    const float *all = logits_of_prompt(s);
    for (uint32_t batch = 7; batch < 200; batch += 33) {
        open_engine((tern_engine_params){
            .pool_bytes = 1 << 22, .n_batch = batch, .n_sequences = 7, .threads = 2});
        tern_request request = plain(5);
        const answer *plainly = run(&request);
        request.prompt_logprobs = true;
        request.n_logprobs = 3;
        request.branches = 2;
        const size_t from[] = {0, 70, 149};
        for (size_t i = 0; i < 3; i++) {
            request.prompt_from = from[i];
            const answer *a = run(&request);
            check_prompt(a, from[i], all);
            assert_int_equal(a->figures.n_shared, from[i] / 64 * 64);
            check_bytes("tokens", plainly->tokens, a->tokens, sizeof a->tokens);
            assert_int_equal(answer_of(a->request, 1)->n_reported, 0);
            assert_int_equal(strcmp(plainly->digest, a->digest) == 0, i == 2);
        }
    }
    tern_session_free(&s);
}

/* The digest of the runner's rows from a position of the prompt on. */
static void digest_prompt(uint32_t from, char hex[65]) {
    const tern_runner_params params = {
        .threads = 1, .n_batch = PROMPT, .n_ctx = PROMPT, .n_picks = 1};
    const uint32_t pages[] = {0, 1, 2};
    const tern_pass_span span = {
        .pages = pages, .tokens = f.prompt, .n = PROMPT, .wanted = PROMPT - from};
    tern_runner *runner;
    tern_pool pool;
    tern_sha256 digest;
    int refused = 0;
    assert_int_equal(tern_runner_new(f.model, &params, &runner, NULL), TERN_OK);
    assert_int_equal(tern_pool_open(f.model, TERN_FORMAT_F16, 3, &pool, &refused, NULL), TERN_OK);
    tern_runner_run(runner, &pool, &span, 1);
    tern_sha256_start(&digest);
    for (size_t i = 0; i < span.wanted; i++)
        tern_sha256_add(&digest, tern_runner_hidden(runner, i), f.info.n_embd * sizeof(float));
    tern_sha256_finish(&digest, hex);
    tern_runner_free(&runner);
    tern_pool_close(&pool);
}

typedef struct seen {
    const float *all; /* of the prompt */
    size_t next;
} seen;

static void see(void *user, const tern_progress *progress, size_t position, const float *logits) {
    seen *s = user;
    assert_int_equal(position, s->next++);
    assert_true(position < progress->n && progress->n_prompt == PROMPT);
    if (position < PROMPT)
        check_bytes("logits", s->all + position * 512, logits, f.info.n_vocab * sizeof(float));
    else
        assert_true(progress->n == position + 1);
}

/* Logits come in order; a prompt alone may fill the context and ends without a token. */
static void test_prompt_only(void **state) {
    (void)state;
    char hex[65];
    tern_session *session = tiny_session(f.model, (tern_session_params){.kv = TERN_FORMAT_F16});
    seen s = {.all = logits_of_prompt(session), .next = 70};
    tern_session_free(&session);
    open_engine((tern_engine_params){.n_ctx = PROMPT, .n_batch = 37});
    tern_request request = plain(0);
    request.prompt_only = true;
    request.prompt_from = 70;
    request.logits = see;
    request.user = &s;
    const answer *a = run(&request);
    digest_prompt(70, hex);
    assert_true(a->n == 0 && a->n_reported == 0 && a->end == TERN_END_LENGTH && s.next == PROMPT);
    assert_string_equal(a->digest, hex);
    request.logits = NULL;
    a = run(&request);
    assert_int_equal(a->figures.n_shared, 128);
    digest_prompt(PROMPT - 1, hex);
    assert_string_equal(a->digest, hex);
    open_engine((tern_engine_params){.threads = 2});
    request = plain(6);
    request.logits = see;
    request.user = &s;
    s.next = 0;
    (void)run(&request);
    assert_int_equal(s.next, PROMPT + 5);
}

/* ---- when it ends ---------------------------------------------------------------------------- */

static void test_limits(void **state) {
    (void)state;
    open_engine((tern_engine_params){.n_ctx = 160});
    tern_request request = plain(0);
    const answer *a = run(&request);
    assert_int_equal(a->end, TERN_END_CONTEXT);
    assert_int_equal(a->n, 10);
    assert_string_equal(tern_end_name(a->end), "context");
    const int32_t stop = a->tokens[5];
    size_t first = 0;
    while (a->tokens[first] != stop)
        first++;
    request.stop_tokens = &stop;
    request.n_stop_tokens = 1;
    a = run(&request);
    assert_int_equal(a->end, TERN_END_STOP_TOKEN);
    assert_int_equal(a->n, first);
}

/* A stop text ends the answer before its first byte; what could be the beginning of one is held. */
static void test_stop_texts(void **state) {
    (void)state;
    open_engine((tern_engine_params){.threads = 1});
    tern_request request = plain(30);
    const answer *whole = run(&request);
    assert_true(whole->size > 12);
    char stop[6] = {0}; /* from the middle, so that several tokens make it */
    const size_t middle = whole->size / 2;
    memcpy(stop, whole->text + middle, 5);
    assert_null(memchr(stop, 0, 5));
    const char *const stops[] = {"never said", stop};
    const size_t begin =
        (size_t)((const char *)memmem(whole->text, whole->size, stop, 5) - whole->text);
    request.stop_texts = stops;
    request.n_stop_texts = 2;
    const answer *a = run(&request);
    assert_int_equal(a->end, TERN_END_STOP_TEXT);
    assert_int_equal(a->stop_text, 1);
    assert_int_equal(a->size, begin);
    check_bytes("text", whole->text, a->text, begin);
    check_bytes("tokens", whole->tokens, a->tokens, a->n * sizeof *a->tokens);
    const char *const empty[] = {""};
    uint64_t id;
    request.stop_texts = empty;
    request.n_stop_texts = 1;
    assert_int_equal(tern_engine_submit(f.engine, &request, &id, NULL), TERN_ERR_ARG);
}

static void test_cancel(void **state) {
    (void)state;
    open_engine((tern_engine_params){.n_sequences = 2, .n_batch = 40});
    tern_request request = plain(20);
    request.branches = 2;
    const uint64_t running = submit(&request), waiting = submit(&request);
    for (int i = 0; i < 6; i++)
        step();
    assert_false(tern_engine_cancel(f.engine, 99));
    assert_true(tern_engine_cancel(f.engine, running));
    assert_true(tern_engine_cancel(f.engine, waiting));
    const size_t before = answer_of(running, 0)->n;
    step();
    assert_true(is_idle());
    assert_int_equal(answer_of(running, 0)->n, before);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(answer_of(i < 2 ? running : waiting, i % 2)->end, TERN_END_CANCELLED);
    assert_int_equal(tern_engine_now(f.engine).used_pages, 0);
    assert_false(tern_engine_cancel(f.engine, running));
}

static void test_deadline(void **state) {
    (void)state;
    open_engine((tern_engine_params){.n_sequences = 1});
    tern_request request = plain(20);
    request.deadline_seconds = 2.5;
    const uint64_t id = submit(&request), late = submit(&request);
    for (; !is_idle(); f.now += 1.0)
        step();
    assert_int_equal(answer_of(id, 0)->end, TERN_END_DEADLINE);
    assert_true(answer_of(id, 0)->n > 0 && answer_of(id, 0)->n < 4);
    assert_true(answer_of(id, 0)->figures.seconds == 3.0);
    assert_int_equal(answer_of(late, 0)->end, TERN_END_DEADLINE);
    assert_int_equal(answer_of(late, 0)->n, 0);
    assert_true(answer_of(late, 0)->figures.queued_seconds == 3.0);
}

/* ---- hooks ----------------------------------------------------------------------------------- */

/* Only tokens whose number has the same rest by 7 as the position; none at position *user. */
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
    open_engine((tern_engine_params){.threads = 2});
    tern_request request = plain(20);
    request.mask = same_rest;
    request.user = &none;
    const answer *a = run(&request);
    assert_int_equal(a->end, TERN_END_LENGTH);
    for (size_t i = 0; i < a->n; i++)
        assert_int_equal(a->tokens[i] % 7, (PROMPT + i) % 7);
    none = PROMPT + 4;
    a = run(&request);
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

/* Right guesses save passes; what comes after a wrong one is computed again. */
static void test_guesses(void **state) {
    (void)state;
    int32_t told[40];
    open_engine((tern_engine_params){.threads = 1});
    tern_request request = plain(40);
    const answer *alone = run(&request);
    const size_t passes = f.steps;
    memcpy(told, alone->tokens, sizeof told);
    knowing k = {told, 40};
    request.guess = know;
    request.user = &k;
    const answer *a = run(&request);
    assert_true(f.steps - passes < 8);
    assert_int_equal(a->figures.n_guessed_right, a->figures.n_guessed);
    check_bytes("tokens", alone->tokens, a->tokens, sizeof a->tokens);
    assert_string_equal(a->digest, alone->digest);
    for (size_t i = 0; i < 40; i += 5)
        told[i] = (told[i] + 1) % 300;
    a = run(&request);
    assert_true(a->figures.n_guessed_right < a->figures.n_guessed);
    check_bytes("tokens", alone->tokens, a->tokens, sizeof a->tokens);
    assert_string_equal(a->digest, alone->digest);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void refuse(const tern_request *request, tern_status status, const char *message) {
    tern_error err = {0};
    uint64_t id = 77;
    assert_int_equal(tern_engine_submit(f.engine, request, &id, &err), status);
    assert_string_equal(err.message, message);
    assert_int_equal(id, 77);
}

static void test_refusals(void **state) {
    (void)state;
    const uint64_t page = tern_model_kv_bytes(f.model, 64, TERN_FORMAT_F16);
    open_engine((tern_engine_params){.n_ctx = 400, .pool_bytes = 4 * page, .n_queue = 3});
    tern_request request = plain(107);
    refuse(&request, TERN_ERR_CONTEXT, "a request of 257 positions exceeds the cache of 256");
    request.max_tokens = 251;
    refuse(&request, TERN_ERR_CONTEXT, "a request of 401 positions exceeds the context of 400");
    request.max_tokens = 4;
    request.branches = 3;
    (void)submit(&request);
    request.branches = 1;
    refuse(&request, TERN_ERR_QUEUE, "3 requests wait, 3 may");
    finish();
    (void)submit(&request);
    request.n_tokens = 0;
    refuse(&request, TERN_ERR_EMPTY, "a request without tokens");
    const int32_t wild[] = {1, 307};
    request.tokens = wild;
    request.n_tokens = 2;
    refuse(&request, TERN_ERR_TOKEN_RANGE, "token 307 at index 1 is outside the vocabulary of 307");
    request = plain(1);
    request.deadline_seconds = (double)NAN;
    refuse(&request, TERN_ERR_ARG, "a deadline in nan seconds");
    request = plain(1);
    request.n_logprobs = 33;
    refuse(&request, TERN_ERR_ARG, "33 likeliest tokens exceed 32");
    request = plain(1);
    request.prompt_from = PROMPT;
    refuse(&request, TERN_ERR_ARG, "results from position 150 on of 150 tokens");
    request = plain(1);
    request.prompt_only = true;
    refuse(&request, TERN_ERR_ARG, "1 tokens and 0 branches after a prompt alone");
    finish();
}

static void test_parameters(void **state) {
    (void)state;
    tern_engine *e = NULL;
    tern_error err = {0};
    tern_engine_params p = {.n_ctx = 513};
    assert_int_equal(tern_engine_new(f.model, &p, &e, &err), TERN_ERR_CONTEXT);
    p = (tern_engine_params){.kv = TERN_FORMAT_Q4_0};
    assert_int_equal(tern_engine_new(f.model, &p, &e, &err), TERN_ERR_ARG);
    p = (tern_engine_params){.pool_bytes = 100};
    assert_int_equal(tern_engine_new(f.model, &p, &e, &err), TERN_ERR_ARG);
    p = (tern_engine_params){.n_sequences = 65, .n_batch = 64};
    assert_int_equal(tern_engine_new(f.model, &p, &e, &err), TERN_ERR_ARG);
    p = (tern_engine_params){.gap_seconds = -1.0};
    assert_int_equal(tern_engine_new(f.model, &p, &e, &err), TERN_ERR_ARG);
    assert_null(e);
}

/* ---- threads --------------------------------------------------------------------------------- */

static void *submit_some(void *argument) {
    (void)argument;
    const tern_request request = plain(3);
    for (int i = 0; i < 4; i++) {
        uint64_t id = 0;
        if (tern_engine_submit(f.engine, &request, &id, NULL) == TERN_OK && i % 2 == 1)
            (void)tern_engine_cancel(f.engine, id);
        (void)tern_engine_now(f.engine);
    }
    return NULL;
}

/* Requests and cancels come from other threads while steps are made. */
static void test_threads(void **state) {
    (void)state;
    enum { THREADS = 3 };
    pthread_t threads[THREADS];
    open_engine((tern_engine_params){.threads = 2});
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, submit_some, NULL), 0);
    for (int i = 0; i < 50; i++)
        step();
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    finish();
    assert_int_equal(f.n, 12);
    for (size_t i = 0; i < f.n; i++)
        assert_true(f.answers[i].end == TERN_END_CANCELLED || f.answers[i].n == 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_digest),      cmocka_unit_test(test_sharing),
        cmocka_unit_test(test_logprobs),    cmocka_unit_test(test_limits),
        cmocka_unit_test(test_stop_texts),  cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_deadline),    cmocka_unit_test(test_mask),
        cmocka_unit_test(test_guesses),     cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_parameters),  cmocka_unit_test(test_threads),
        cmocka_unit_test(test_prompt_only), cmocka_unit_test(test_prompt_logprobs),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
