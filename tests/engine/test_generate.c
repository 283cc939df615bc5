/* SPDX-License-Identifier: Apache-2.0 */
/* The decode loop on a small model with random weights: what it reports, where it stops and what
 * the session holds afterwards. It allocates nothing. */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "authoring/synth.h"
#include "base/metrics.h"
#include "tern/tern.h"
#include "tests/support/check.h"

/* ---- counting allocations ----------------------------------------------------------------------
 */

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#endif

#if defined(__GLIBC__) && !defined(SANITIZED)
#define COUNTS_ALLOCATIONS 1
static size_t allocations;

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);

void *malloc(size_t size) {
    (void)__atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED);
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t size) {
    (void)__atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED);
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t size) {
    (void)__atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED);
    return __libc_realloc(p, size);
}
#endif

/* ---- a clock that a test sets -------------------------------------------------------------------
 */

static long shown_seconds; /* 0: use the system's clock */

/* Replaces the C library's function for the library's clock and this test. */
int clock_gettime(clockid_t clock, struct timespec *t) {
    if (shown_seconds == 0 || clock != CLOCK_MONOTONIC)
        return (int)syscall(SYS_clock_gettime, clock, t);
    *t = (struct timespec){.tv_sec = shown_seconds};
    return 0;
}

/* ---- fixture -----------------------------------------------------------------------------------
 */

static char folder[] = "/tmp/tern-test-generate-XXXXXX";
static char path[sizeof folder + 16];
static tern_model *model;
static tern_model_info info;

static int open_model(void **state) {
    (void)state;
    tern_error err = {0};
    if (mkdtemp(folder) == NULL)
        return -1;
    (void)snprintf(path, sizeof path, "%s/m.gguf", folder);
    if (tern_synth("bitnet-tiny", path, TERN_OUT_REPLACE, 1, NULL, NULL, &err) != TERN_OK ||
        tern_model_open(path, NULL, &model, &err) != TERN_OK) {
        print_error("%s\n", err.message);
        return -1;
    }
    tern_model_describe(model, &info);
    return 0;
}

static int close_model(void **state) {
    (void)state;
    tern_model_free(&model);
    return unlink(path) == 0 && rmdir(folder) == 0 ? 0 : -1;
}

static tern_session *new_session(uint32_t n_ctx, uint32_t threads) {
    tern_session_params params = tern_session_params_default();
    params.n_ctx = n_ctx;
    params.threads = threads;
    tern_session *session = NULL;
    tern_error err = {0};
    if (tern_session_new(model, &params, &session, &err) != TERN_OK)
        fail_msg("%s", err.message);
    return session;
}

static tern_sampler *new_sampler(float temperature, uint64_t seed) {
    tern_sampler_params params = tern_sampler_params_default();
    params.temperature = temperature;
    params.seed = seed;
    tern_sampler *sampler = NULL;
    assert_int_equal(tern_sampler_new(&params, info.n_vocab, &sampler, NULL), TERN_OK);
    return sampler;
}

enum { MAX_SEEN = 1024 };

/* A record of the callback's calls. */
typedef struct seen {
    int32_t tokens[MAX_SEEN];
    double seconds[MAX_SEEN];
    size_t n, stop_after;
} seen;

static bool see(int32_t token, double seconds, void *user) {
    seen *s = user;
    assert_true(s->n < MAX_SEEN);
    s->tokens[s->n] = token;
    s->seconds[s->n] = seconds;
    return ++s->n != s->stop_after;
}

static const int32_t prompt[] = {5, 77, 401, 12, 9};
enum { N_PROMPT = sizeof prompt / sizeof *prompt };

/* ---- tests -------------------------------------------------------------------------------------
 */

static void test_greedy_decode_16_tokens(void **state) { /* AC:1 */
    (void)state;
    int32_t expected[16];
    tern_session *session = new_session(64, 1);
    float *logits = tern_session_logits(session);
    assert_int_equal(tern_session_eval(session, prompt, N_PROMPT, TERN_LOGITS_LAST, logits, NULL),
                     TERN_OK);
    for (int i = 0; i < 16; i++) {
        expected[i] = tern_argmax(logits, info.n_vocab);
        assert_int_equal(
            tern_session_eval(session, &expected[i], 1, TERN_LOGITS_LAST, logits, NULL), TERN_OK);
    }
    tern_session_free(&session);

    session = new_session(64, 2);
    tern_sampler *sampler = new_sampler(0.0F, 42);
    seen s = {.n = 0};
    tern_generation g;
    assert_int_equal(tern_generate(session, sampler, prompt, N_PROMPT,
                                   &(tern_generate_params){.max_tokens = 16, .ignore_end = true},
                                   see, &s, &g, NULL),
                     TERN_OK);
    assert_int_equal(s.n, 16);
    assert_memory_equal(s.tokens, expected, sizeof expected);
    assert_int_equal(g.n_prompt, N_PROMPT);
    assert_int_equal(g.n_generated, 16);
    assert_int_equal(g.stop, TERN_END_LENGTH);
    assert_int_equal(tern_session_position(session), N_PROMPT + 16);
    assert_true(g.prefill_seconds > 0.0 && g.decode_seconds > 0.0);
    assert_true(g.first_token_seconds >= g.prefill_seconds);
    assert_true(g.first_token_seconds <= g.prefill_seconds + g.decode_seconds);
    assert_true(g.p50_ms > 0.0 && g.p95_ms >= g.p50_ms);
    for (size_t i = 1; i < s.n; i++)
        assert_true(s.seconds[i] >= s.seconds[i - 1]);
    tern_sampler_free(&sampler);
    tern_session_free(&session);
}

enum { NAP_MS = 4, NAPS = 5 };

static bool nap(int32_t token, double seconds, void *user) {
    (void)token, (void)seconds, (void)user;
    return nanosleep(&(struct timespec){.tv_nsec = NAP_MS * 1000000L}, NULL) == 0;
}

/* The callback's time counts for its token, so each token takes at least the nap. */
static void test_times_are_milliseconds(void **state) {
    (void)state;
    tern_session *session = new_session(64, 1);
    tern_sampler *sampler = new_sampler(0.0F, 42);
    tern_generation g;
    const double start = tern_clock_seconds();
    assert_int_equal(tern_generate(session, sampler, prompt, N_PROMPT,
                                   &(tern_generate_params){.max_tokens = NAPS, .ignore_end = true},
                                   nap, NULL, &g, NULL),
                     TERN_OK);
    const double whole = 1e3 * (tern_clock_seconds() - start);
    assert_true(g.p50_ms >= NAP_MS && g.p95_ms >= g.p50_ms);
    assert_true(g.p95_ms <= whole && (NAPS + 1) / 2 * g.p50_ms <= whole);
    assert_true(1e3 * g.decode_seconds >= NAPS * NAP_MS && 1e3 * g.decode_seconds <= whole);
    assert_true(1e3 * g.first_token_seconds <= whole - NAPS * NAP_MS);
    tern_sampler_free(&sampler);
    tern_session_free(&session);
}

/* A model that takes five seconds for a prompt, and two, four, six ... for the tokens after it. */
static tern_status forward_slowly(const int32_t *tokens, size_t n, float *logits, void *user,
                                  tern_error *err) {
    size_t *calls = user;
    (void)tokens;
    (void)err;
    for (uint32_t i = 0; i < info.n_vocab; i++)
        logits[i] = i == 7 ? 1.0F : 0.0F;
    shown_seconds += n == N_PROMPT ? 5 : 2 * (long)++*calls;
    return TERN_OK;
}

/* Which time counts for the prompt, for all tokens, for each token, and for the first. */
static void test_times_are_told_apart(void **state) {
    (void)state;
    size_t calls = 0;
    const tern_forward_model own = {.forward = forward_slowly, .user = &calls};
    tern_sampler *sampler = new_sampler(0.0F, 42);
    tern_generation g;
    seen s = {.n = 0};
    shown_seconds = 1000;
    const tern_status status = tern_generate_with(
        &own, sampler, prompt, N_PROMPT,
        &(tern_generate_params){.max_tokens = 20, .ignore_end = true}, see, &s, &g, NULL);
    shown_seconds = 0;
    assert_int_equal(status, TERN_OK);
    assert_int_equal(g.n_generated, 20);
    assert_true(fabs(g.prefill_seconds - 5.0) < 1e-6);
    assert_true(fabs(g.first_token_seconds - 5.0) < 1e-6);
    assert_true(fabs(g.decode_seconds - 20.0 * 21.0) < 1e-6);
    assert_true(fabs(g.p50_ms - 20e3) < 1e-3 && fabs(g.p95_ms - 38e3) < 1e-3);
    assert_true(fabs(s.seconds[0] - 5.0) < 1e-6 && fabs(s.seconds[1] - 7.0) < 1e-6);
    assert_true(fabs(s.seconds[19] - (5.0 + 19.0 * 20.0)) < 1e-6);
    tern_sampler_free(&sampler);
}

static void test_two_runs_are_identical(void **state) { /* AC:6 */
    (void)state;
    seen runs[2] = {{.n = 0}, {.n = 0}};
    for (uint32_t i = 0; i < 2; i++) {
        tern_session *session = new_session(128, i + 1);
        tern_sampler *sampler = new_sampler(1.0F, 42);
        assert_int_equal(
            tern_generate(session, sampler, prompt, N_PROMPT,
                          &(tern_generate_params){.max_tokens = 50, .ignore_end = true}, see,
                          &runs[i], NULL, NULL),
            TERN_OK);
        tern_sampler_free(&sampler);
        tern_session_free(&session);
    }
    assert_int_equal(runs[0].n, 50);
    assert_memory_equal(runs[0].tokens, runs[1].tokens, 50 * sizeof(int32_t));
}

static void test_a_second_call_goes_on(void **state) {
    (void)state;
    seen whole = {.n = 0};
    seen parts = {.n = 0};
    tern_session *session = new_session(64, 1);
    tern_sampler *sampler = new_sampler(0.0F, 42);
    assert_int_equal(tern_generate(session, sampler, prompt, N_PROMPT,
                                   &(tern_generate_params){.max_tokens = 9, .ignore_end = true},
                                   see, &whole, NULL, NULL),
                     TERN_OK);
    assert_int_equal(tern_session_rewind(session, 0, NULL), TERN_OK);
    assert_int_equal(tern_generate(session, sampler, prompt, 3,
                                   &(tern_generate_params){.max_tokens = 0, .ignore_end = true},
                                   see, &parts, NULL, NULL),
                     TERN_OK);
    assert_int_equal(parts.n, 0);
    assert_int_equal(tern_generate(session, sampler, prompt + 3, N_PROMPT - 3,
                                   &(tern_generate_params){.max_tokens = 9, .ignore_end = true},
                                   see, &parts, NULL, NULL),
                     TERN_OK);
    assert_int_equal(parts.n, 9);
    assert_memory_equal(parts.tokens, whole.tokens, 9 * sizeof(int32_t));
    tern_sampler_free(&sampler);
    tern_session_free(&session);
}

static void test_caller_stops(void **state) {
    (void)state;
    seen s = {.stop_after = 3};
    tern_session *session = new_session(64, 1);
    tern_sampler *sampler = new_sampler(0.0F, 42);
    tern_generation g;
    assert_int_equal(tern_generate(session, sampler, prompt, N_PROMPT,
                                   &(tern_generate_params){.max_tokens = 16, .ignore_end = true},
                                   see, &s, &g, NULL),
                     TERN_OK);
    assert_int_equal(g.stop, TERN_END_CANCELLED);
    assert_int_equal(g.n_generated, 3);
    assert_int_equal(tern_session_position(session), N_PROMPT + 3);
    tern_sampler_free(&sampler);
    tern_session_free(&session);
}

static void test_context_stops(void **state) {
    (void)state;
    tern_session *session = new_session(8, 1);
    tern_sampler *sampler = new_sampler(0.0F, 42);
    tern_generation g;
    assert_int_equal(tern_generate(session, sampler, prompt, N_PROMPT,
                                   &(tern_generate_params){.max_tokens = 100, .ignore_end = true},
                                   NULL, NULL, &g, NULL),
                     TERN_OK);
    assert_int_equal(g.stop, TERN_END_CONTEXT);
    assert_int_equal(g.n_generated, 8 - N_PROMPT);
    assert_int_equal(tern_session_position(session), 8);
    tern_sampler_free(&sampler);
    tern_session_free(&session);
}

/* At a high temperature, some seed soon gives the end-of-text token. */
static void test_end_of_text_stops_and_is_not_reported(void **state) {
    (void)state;
    const tern_tokenizer *tokenizer;
    assert_int_equal(tern_model_tokenizer(model, &tokenizer, NULL), TERN_OK);
    bool ended = false;
    for (uint64_t seed = 0; seed < 20 && !ended; seed++) {
        tern_session *session = new_session(512, 1);
        tern_sampler *sampler = new_sampler(1000.0F, seed);
        seen s = {.n = 0};
        tern_generation g;
        assert_int_equal(tern_generate(session, sampler, prompt, N_PROMPT,
                                       &(tern_generate_params){.max_tokens = 500}, see, &s, &g,
                                       NULL),
                         TERN_OK);
        for (size_t i = 0; i < s.n; i++)
            assert_false(tern_token_ends_text(tokenizer, s.tokens[i]));
        if (g.stop == TERN_END_OF_TEXT) {
            ended = true;
            assert_int_equal(g.n_generated, s.n);
            assert_int_equal(tern_session_position(session), N_PROMPT + s.n);
            seen on = {.n = 0}; /* the same run again, which goes on */
            assert_int_equal(tern_session_rewind(session, 0, NULL), TERN_OK);
            tern_sampler_reset(sampler, seed);
            assert_int_equal(
                tern_generate(session, sampler, prompt, N_PROMPT,
                              &(tern_generate_params){.max_tokens = s.n + 1, .ignore_end = true},
                              see, &on, &g, NULL),
                TERN_OK);
            assert_memory_equal(on.tokens, s.tokens, s.n * sizeof(int32_t));
            assert_true(tern_token_ends_text(tokenizer, on.tokens[s.n]));
        }
        tern_sampler_free(&sampler);
        tern_session_free(&session);
    }
    assert_true(ended);
}

/* A stop token ends the same text right before its first occurrence. */
static void test_stop_tokens(void **state) {
    (void)state;
    tern_session *session = new_session(128, 1);
    tern_sampler *sampler = new_sampler(1.0F, 5);
    seen all = {0};
    seen cut = {0};
    tern_generation g;
    tern_generate_params params = {.max_tokens = 30, .ignore_end = true};
    assert_int_equal(
        tern_generate(session, sampler, prompt, N_PROMPT, &params, see, &all, &g, NULL), TERN_OK);
    assert_int_equal(g.stop, TERN_END_LENGTH);
    size_t at = 20;
    for (size_t i = 0; i < at; i++)
        at = all.tokens[i] == all.tokens[at] ? i : at;
    const int32_t stop[] = {(int32_t)info.n_vocab + 5,
                            all.tokens[at]}; /* the first never occurs, the second does */
    params.stop_tokens = stop;
    params.n_stop_tokens = 2;
    assert_int_equal(tern_session_rewind(session, 0, NULL), TERN_OK);
    tern_sampler_reset(sampler, 5);
    assert_int_equal(
        tern_generate(session, sampler, prompt, N_PROMPT, &params, see, &cut, &g, NULL), TERN_OK);
    assert_int_equal(g.stop, TERN_END_STOP_TOKEN);
    assert_int_equal(cut.n, at);
    assert_int_equal(g.n_generated, at);
    assert_memory_equal(cut.tokens, all.tokens, at * sizeof *all.tokens);
    assert_int_equal(tern_session_position(session), N_PROMPT + at);
    params.stop_tokens = NULL;
    assert_int_equal(
        tern_generate(session, sampler, prompt, N_PROMPT, &params, NULL, NULL, &g, NULL),
        TERN_ERR_NULL);
    assert_int_equal(tern_generate(session, sampler, prompt, N_PROMPT, NULL, NULL, NULL, &g, NULL),
                     TERN_ERR_NULL);
    tern_sampler_free(&sampler);
    tern_session_free(&session);
}

/* ---- a caller's own forward pass ------------------------------------------------------------- */

/* A session that poses as a caller's own model, and counts the calls. */
typedef struct guise {
    tern_session *session;
    size_t calls, tokens;
    size_t fail_at; /* number of the call that fails, from 1; 0: none */
} guise;

static tern_status forward_in_guise(const int32_t *tokens, size_t n, float *logits, void *user,
                                    tern_error *err) {
    guise *g = user;
    g->tokens += n;
    if (++g->calls == g->fail_at)
        return tern_fail(err, TERN_ERR_DEVICE, "the model broke down");
    return tern_session_eval(g->session, tokens, n, TERN_LOGITS_LAST, logits, err);
}

/* Sampler, stops and callback work the same over a caller's forward pass and over a session. */
static void test_own_forward(void **state) {
    (void)state;
    tern_generate_params params = {.max_tokens = 12, .ignore_end = true};
    for (int kind = 0; kind < 4; kind++) {
        tern_session *session = new_session(64, 1), *behind = new_session(64, 1);
        tern_sampler *sampler = new_sampler(kind == 0 ? 0.0F : 0.9F, 3);
        seen want = {.stop_after = kind == 2 ? 5 : 0}, got = {.stop_after = want.stop_after};
        tern_generation a, b;
        guise g = {.session = behind};
        const size_t room = kind == 3 ? N_PROMPT + 7 : 0;
        const tern_forward_model own = {.forward = forward_in_guise, .user = &g, .n_ctx = room};
        assert_int_equal(
            tern_generate(session, sampler, prompt, N_PROMPT, &params, see, &want, &a, NULL),
            TERN_OK);
        tern_sampler_reset(sampler, 3);
        assert_int_equal(
            tern_generate_with(&own, sampler, prompt, N_PROMPT, &params, see, &got, &b, NULL),
            TERN_OK);
        assert_int_equal(b.stop, kind == 3 ? TERN_END_CONTEXT : a.stop);
        assert_int_equal(got.n, kind == 3 ? 7 : want.n);
        assert_memory_equal(want.tokens, got.tokens, got.n * sizeof *got.tokens);
        assert_int_equal(b.n_prompt, N_PROMPT);
        assert_int_equal(b.n_generated, got.n);
        assert_int_equal(g.calls, 1 + got.n);
        assert_int_equal(g.tokens, N_PROMPT + got.n);
        tern_sampler_free(&sampler);
        tern_session_free(&session);
        tern_session_free(&behind);
    }
}

/* Stop tokens, the end of text, and refusals. */
static void test_own_forward_ends(void **state) {
    (void)state;
    tern_session *session = new_session(64, 1);
    tern_sampler *sampler = new_sampler(0.0F, 3);
    guise g = {.session = session};
    tern_forward_model own = {.forward = forward_in_guise, .user = &g};
    tern_generate_params params = {.max_tokens = 4, .ignore_end = true};
    seen all = {0}, cut = {0};
    tern_generation r = {.n_generated = 99};
    tern_error err = {0};
    assert_int_equal(
        tern_generate_with(&own, sampler, prompt, N_PROMPT, &params, see, &all, NULL, NULL),
        TERN_OK);
    params.stop_tokens = &all.tokens[2];
    params.n_stop_tokens = 1;
    assert_int_equal(tern_session_rewind(session, 0, NULL), TERN_OK);
    assert_int_equal(
        tern_generate_with(&own, sampler, prompt, N_PROMPT, &params, see, &cut, &r, NULL), TERN_OK);
    assert_int_equal(r.stop, TERN_END_STOP_TOKEN);
    assert_true(cut.n <= 2);
    r.n_generated = 99;
    g.fail_at = g.calls + 2;
    params.n_stop_tokens = 0;
    assert_int_equal(
        tern_generate_with(&own, sampler, prompt, N_PROMPT, &params, NULL, NULL, &r, &err),
        TERN_ERR_DEVICE);
    assert_string_equal(err.message, "the model broke down");
    assert_int_equal(r.n_generated, 99);
    assert_int_equal(tern_generate_with(NULL, sampler, prompt, 1, &params, NULL, NULL, &r, NULL),
                     TERN_ERR_NULL);
    assert_int_equal(tern_generate_with(&own, sampler, prompt, 0, &params, NULL, NULL, &r, NULL),
                     TERN_ERR_EMPTY);
    own.n_ctx = 2;
    assert_int_equal(tern_generate_with(&own, sampler, prompt, 3, &params, NULL, NULL, &r, NULL),
                     TERN_ERR_CONTEXT);
    own.forward = NULL;
    assert_int_equal(tern_generate_with(&own, sampler, prompt, 1, &params, NULL, NULL, &r, NULL),
                     TERN_ERR_NULL);
    tern_sampler_free(&sampler);
    tern_session_free(&session);
}

static void test_errors_leave_the_session_alone(void **state) {
    (void)state;
    tern_session *session = new_session(8, 1);
    tern_sampler *sampler = new_sampler(0.0F, 42);
    tern_generation g = {.n_generated = 99};
    const int32_t bad[] = {1, -1};
    int32_t nine[9] = {0};
    const struct {
        tern_session *session;
        tern_sampler *sampler;
        const int32_t *prompt;
        size_t n;
        tern_status status;
    } cases[] = {{NULL, sampler, prompt, 1, TERN_ERR_NULL},
                 {session, NULL, prompt, 1, TERN_ERR_NULL},
                 {session, sampler, NULL, 1, TERN_ERR_NULL},
                 {session, sampler, NULL, 0, TERN_ERR_EMPTY},
                 {session, sampler, bad, 2, TERN_ERR_TOKEN_RANGE},
                 {session, sampler, nine, 9, TERN_ERR_CONTEXT}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tern_error err = {0};
        assert_int_equal(tern_generate(cases[i].session, cases[i].sampler, cases[i].prompt,
                                       cases[i].n,
                                       &(tern_generate_params){.max_tokens = 4, .ignore_end = true},
                                       NULL, NULL, &g, &err),
                         cases[i].status);
        assert_true(err.message[0] != '\0');
        assert_int_equal(g.n_generated, 99);
        assert_int_equal(tern_session_position(session), 0);
    }
    tern_sampler_free(&sampler);
    tern_session_free(&session);
}

static void test_no_allocation(void **state) {
    (void)state;
#ifdef COUNTS_ALLOCATIONS
    tern_session *session = new_session(256, 2);
    tern_sampler *sampler = new_sampler(0.8F, 42);
    tern_generation g;
    const size_t before = __atomic_load_n(&allocations, __ATOMIC_RELAXED);
    assert_true(before > 0); /* the counter does count */
    const tern_status status = tern_generate(
        session, sampler, prompt, N_PROMPT,
        &(tern_generate_params){.max_tokens = 200, .ignore_end = true}, NULL, NULL, &g, NULL);
    const size_t after = __atomic_load_n(&allocations, __ATOMIC_RELAXED);
    assert_int_equal(status, TERN_OK);
    assert_int_equal(after - before, 0);
    tern_sampler_free(&sampler);
    tern_session_free(&session);
#else
    check_skip("allocations are not counted in this build");
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_greedy_decode_16_tokens),
        cmocka_unit_test(test_times_are_milliseconds),
        cmocka_unit_test(test_times_are_told_apart),
        cmocka_unit_test(test_two_runs_are_identical),
        cmocka_unit_test(test_a_second_call_goes_on),
        cmocka_unit_test(test_caller_stops),
        cmocka_unit_test(test_context_stops),
        cmocka_unit_test(test_end_of_text_stops_and_is_not_reported),
        cmocka_unit_test(test_stop_tokens),
        cmocka_unit_test(test_own_forward),
        cmocka_unit_test(test_own_forward_ends),
        cmocka_unit_test(test_errors_leave_the_session_alone),
        cmocka_unit_test(test_no_allocation),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
