/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guesses of a second model: what they are worth, and that they change nothing: not the tokens, the
 * state of the sampler, what a session holds, or a digest.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "authoring/synth.h"
#include "base/chacha.h"
#include "runtime/engine/draft/worth.h"
#include "tern/engine.h"
#include "tern/tern.h"
#include "tests/support/check.h"

/* ---- what guesses are worth ------------------------------------------------------------------ */

/* Costs of passes: the first row takes a second, each further one `more`. */
static tern_draft_costs costs_of(double more) {
    tern_draft_costs c = {.n = {0}};
    for (uint32_t rows = 1; rows <= TERN_DRAFT_ROWS; rows++) {
        c.seconds[rows] = 1.0 + more * (double)(rows - 1);
        c.n[rows] = 1;
    }
    return c;
}

static tern_worth_plan plan_of(const tern_worth *w, double more, size_t n) {
    const tern_draft_costs c = costs_of(more);
    const tern_draft_pass pass = {.rows = (uint32_t)n, .tokens = (double)n};
    return tern_worth_choose(w, &c, &pass, n, 8);
}

static void see(tern_worth *w, bool right, size_t times) {
    for (size_t i = 0; i < times; i++)
        tern_worth_seen(w, false, i % TERN_WORTH_KINDS, right);
}

/* The plan is the number with the most tokens a second. */
static void test_plan(void **state) {
    (void)state;
    const tern_draft_costs none = {.n = {0}};
    const tern_draft_pass pass = {.rows = 1, .tokens = 1.0};
    tern_worth w = tern_worth_begin(0.1);
    see(&w, true, 400);
    const tern_worth_plan many = plan_of(&w, 0.01, 1);
    assert_int_equal(many.n, 8);
    assert_true(many.gain > 4.0 && many.gain < 5.1); /* 9 tokens in 1 + 8 * 0.01 + 8 * 0.1 */
    assert_int_equal(tern_worth_choose(&w, &none, &pass, 1, 8).n, 0); /* costs are unknown */
    assert_true(plan_of(&w, 0.01, 8).n == 3);   /* 8 sequences fill the largest pass */
    assert_int_equal(plan_of(&w, 1.0, 1).n, 0); /* each row costs as much as a pass */
    w.share = 1.0;                              /* as large as the model itself */
    assert_int_equal(plan_of(&w, 0.01, 1).n, 0);
    w.share = 0.3;
    see(&w, false, 400);
    const tern_worth_plan wrong = plan_of(&w, 0.01, 1);
    assert_int_equal(wrong.n, 0);
    assert_true(wrong.gain == 1.0);
    for (int i = 0; i < 20; i++)
        tern_worth_forget(&w); /* later sequences get another chance */
    assert_true(plan_of(&w, 0.01, 1).n > 0);
}

/* Half of the guesses of a third of the cost: (1 + 1/2) / (1 + 1/3) is the most. */
static void test_half_right(void **state) {
    (void)state;
    tern_worth w = tern_worth_begin(1.0 / 3.0);
    for (size_t i = 0; i < 1000; i++)
        tern_worth_seen(&w, false, 0, i % 2 == 0);
    const tern_worth_plan plan = plan_of(&w, 0.0, 1);
    assert_int_equal(plan.n, 1);
    assert_true(plan.gain > 1.12 && plan.gain < 1.13);
}

/* Surer guesses are right more often, and each kind learns for itself. */
static void test_kinds(void **state) {
    (void)state;
    tern_worth w = tern_worth_begin(0.1);
    static const float margins[] = {-3.0F, 0.0F, 0.3F, 0.7F, 1.2F, 1.7F,
                                    2.5F,  3.5F, 5.0F, 7.0F, 50.0F};
    assert_int_equal(tern_worth_kind(-3.0F), 0);
    assert_int_equal(tern_worth_kind(50.0F), TERN_WORTH_KINDS - 1);
    for (size_t i = 0; i + 1 < sizeof margins / sizeof *margins; i++) {
        const size_t kind = tern_worth_kind(margins[i]), next = tern_worth_kind(margins[i + 1]);
        assert_true(next >= kind && next <= kind + 1);
        assert_true(tern_worth_chance(&w, false, next) >= tern_worth_chance(&w, false, kind));
    }
    for (size_t i = 0; i < 100; i++)
        tern_worth_seen(&w, true, 2, false);
    assert_true(tern_worth_chance(&w, true, 2) < 0.1);
    assert_true(tern_worth_chance(&w, false, 2) > 0.5 && tern_worth_chance(&w, true, 3) > 0.5);
}

/* Losses stop the guessing after a few passes, and are paid back slowly. */
static void test_debt(void **state) {
    (void)state;
    const tern_draft_costs c = costs_of(0.1);
    tern_worth w = tern_worth_begin(0.5);
    size_t passes = 0;
    for (; !tern_worth_is_lost(&w, 1.0); passes++)
        tern_worth_settle(&w, &c, 1, 2, 1, 0.5); /* a wrong guess each */
    assert_true(passes == 4);                    /* of 0.6 - 0.01 seconds: more than two passes */
    assert_false(tern_worth_may_try(&w));
    for (passes = 0; !tern_worth_may_try(&w); passes++)
        tern_worth_settle(&w, &c, 1, 1, 1, 0.0);
    assert_true(passes > 200 && passes < 250); /* less than one in a hundred is lost */
    for (passes = 0; passes < 1000; passes++)
        tern_worth_settle(&w, &c, 1, 2, 2, 0.3); /* right guesses */
    for (passes = 0; !tern_worth_is_lost(&w, 1.0); passes++)
        tern_worth_settle(&w, &c, 1, 2, 1, 0.5);
    assert_true(passes > 8 && passes < 12); /* what was won does not count for ever */
}

/* Reading pays where enough tokens follow. */
static void test_reading(void **state) {
    (void)state;
    assert_true(tern_worth_reading(1.5, 30.0, 100, 1.0));
    assert_false(tern_worth_reading(1.5, 40.0, 100, 1.0));
    assert_false(tern_worth_reading(1.0, 0.001, 100, 1.0));
}

/* ---- models ---------------------------------------------------------------------------------- */

static char folder[] = "/tmp/tern-test-drafter-XXXXXX";
enum { MAIN, SAME, OTHER, WINDOW, SHORTER, RENAMED, MODELS };
static tern_model *models[MODELS];

/* Gives a token of the file another name. */
static bool rename_token(const char *path) {
    static const char token[] = "<|im_start|>";
    char bytes[4096];
    FILE *file = fopen(path, "r+b");
    const size_t n = file != NULL ? fread(bytes, 1, sizeof bytes, file) : 0;
    size_t at = 0;
    while (at + sizeof token < n && memcmp(bytes + at, token, sizeof token - 1) != 0)
        at++;
    const bool found = at + sizeof token < n && fseek(file, (long)at + 2, SEEK_SET) == 0 &&
                       fputc('x', file) != EOF;
    return file != NULL && fclose(file) == 0 && found;
}

static tern_model *make(const char *preset, uint64_t seed, const char *name) {
    char path[sizeof folder + 32];
    tern_model *model = NULL;
    tern_error err = {0};
    (void)snprintf(path, sizeof path, "%s/%s.gguf", folder, name);
    if (tern_synth(preset, path, TERN_OUT_REPLACE, seed, NULL, NULL, &err) != TERN_OK ||
        (strcmp(name, "renamed") == 0 && !rename_token(path)) ||
        tern_model_open(path, NULL, &model, &err) != TERN_OK)
        print_error("%s\n", err.message);
    (void)unlink(path);
    return model;
}

static int open_models(void **state) {
    (void)state;
    if (mkdtemp(folder) == NULL)
        return -1;
    models[MAIN] = make("llama-tiny-q8_0", 1, "main");
    models[SAME] = make("llama-tiny-q8_0", 1, "same");
    models[OTHER] = make("llama-tiny-q8_0", 2, "other");
    models[WINDOW] = make("mistral-tiny", 1, "window"); /* whose layers see few positions */
    models[SHORTER] = make("bitnet-tiny", 1, "shorter");
    models[RENAMED] = make("llama-tiny-q8_0", 1, "renamed");
    for (size_t i = 0; i < MODELS; i++)
        if (models[i] == NULL)
            return -1;
    return rmdir(folder);
}

static int close_models(void **state) {
    (void)state;
    for (size_t i = 0; i < MODELS; i++)
        tern_model_free(&models[i]);
    return 0;
}

static void test_refused(void **state) {
    (void)state;
    tern_error err = {0};
    tern_session *s = NULL;
    tern_engine *e = NULL;
    tern_engine_params params = tern_engine_params_default();
    for (size_t i = MAIN; i <= WINDOW; i++)
        assert_int_equal(tern_model_may_draft(models[i], models[MAIN], &err), TERN_OK);
    assert_int_equal(tern_model_may_draft(NULL, models[MAIN], &err), TERN_ERR_NULL);
    assert_int_equal(tern_model_may_draft(models[SHORTER], models[MAIN], &err), TERN_ERR_ARG);
    assert_non_null(strstr(err.message, "shorter.gguf cannot guess for"));
    assert_non_null(strstr(err.message, "main.gguf: it has 515 tokens, the other model 307"));
    assert_int_equal(tern_model_may_draft(models[RENAMED], models[MAIN], &err), TERN_ERR_ARG);
    assert_non_null(strstr(err.message, "main.gguf: its tokens are others"));
    assert_int_equal(tern_session_new(models[MAIN], NULL, &s, &err), TERN_OK);
    assert_int_equal(tern_session_draft_by(s, models[RENAMED], &err), TERN_ERR_ARG);
    assert_int_equal(tern_session_draft_by(NULL, models[SAME], &err), TERN_ERR_NULL);
    tern_session_free(&s);
    params.draft_model = models[RENAMED];
    assert_int_equal(tern_engine_new(models[MAIN], &params, &e, &err), TERN_ERR_ARG);
    assert_null(e);
}

/* ---- sessions -------------------------------------------------------------------------------- */

enum { PROMPT = 40, TOKENS = 60, TURNS = 2 };

typedef struct outcome {
    tern_session *session;
    tern_sampler *sampler;
    int32_t tokens[TURNS * TOKENS];
    size_t n, drafted, accepted;
    int32_t next;
} outcome;

static uint32_t below(tern_chacha *random, uint32_t n) {
    return (uint32_t)((uint64_t)tern_chacha_next(random) * n >> 32);
}

static bool note(int32_t token, double seconds, void *user) {
    (void)seconds;
    outcome *o = user;
    o->tokens[o->n++] = token;
    return true;
}

static tern_sampler_params sampling_of(uint64_t number) {
    tern_sampler_params p = tern_sampler_params_default();
    p.seed = number;
    p.temperature = number % 2 == 0 ? 0.0F : 0.3F * (float)(number % 5);
    p.top_k = number % 3 == 0 ? 10 : 0;
    p.top_p = number % 4 == 0 ? 0.9F : 1.0F;
    p.repetition_penalty = number % 5 == 0 ? 1.2F : 1.0F;
    return p;
}

/* Two turns of a session: its second prompt follows what it holds. */
static void answer(uint64_t number, const tern_model *draft, tern_draft_mode mode, outcome *o) {
    tern_chacha random;
    tern_model_info info;
    tern_error err = {0};
    tern_session_params params = tern_session_params_default();
    const tern_sampler_params sampling = sampling_of(number);
    *o = (outcome){.n = 0};
    tern_chacha_seed(&random, number);
    tern_model_describe(models[MAIN], &info);
    params.threads = 1 + (number % 4 == 1);
    params.n_ctx = number % 7 == 3 ? 150 : 256;
    params.n_batch = number % 6 == 5 ? 3 : 0;
    if (tern_session_new(models[MAIN], &params, &o->session, &err) != TERN_OK ||
        tern_session_draft_by(o->session, draft, &err) != TERN_OK ||
        tern_sampler_new(&sampling, info.n_vocab, &o->sampler, &err) != TERN_OK)
        fail_msg("%s", err.message);
    for (size_t turn = 0; turn < TURNS; turn++) {
        int32_t prompt[PROMPT];
        tern_generation g;
        const tern_generate_params generate = {
            .max_tokens = 1 + below(&random, TOKENS), .ignore_end = true, .draft = mode};
        const size_t n = 1 + below(&random, PROMPT);
        for (size_t i = 0; i < n; i++)
            prompt[i] = (int32_t)below(&random, info.n_vocab);
        if (tern_generate(o->session, o->sampler, prompt, n, &generate, note, o, &g, &err) !=
            TERN_OK)
            fail_msg("%s", err.message);
        o->drafted += g.n_drafted;
        o->accepted += g.n_accepted;
    }
    assert_int_equal(tern_session_pick(o->session, o->sampler, &o->next, NULL), TERN_OK);
}

static void end(outcome *o) {
    tern_session_free(&o->session);
    tern_sampler_free(&o->sampler);
}

static void compare(uint64_t number, const outcome *a, const outcome *b) {
    const float *x = NULL, *y = NULL;
    tern_model_info info;
    const size_t n = tern_session_position(a->session);
    if (a->n != b->n || memcmp(a->tokens, b->tokens, a->n * sizeof *a->tokens) != 0)
        fail_msg("setting %llu: other tokens", (unsigned long long)number);
    if (a->next != b->next)
        fail_msg("setting %llu: %d follows, without guesses %d", (unsigned long long)number,
                 b->next, a->next);
    assert_int_equal(tern_session_position(b->session), n);
    assert_memory_equal(tern_session_tokens(a->session), tern_session_tokens(b->session),
                        n * sizeof(int32_t));
    tern_model_describe(models[MAIN], &info);
    assert_int_equal(tern_session_last_logits(a->session, &x, NULL), TERN_OK);
    assert_int_equal(tern_session_last_logits(b->session, &y, NULL), TERN_OK);
    assert_memory_equal(x, y, info.n_vocab * sizeof *x);
}

/* Nothing but times changes, whatever the second model guesses. One that is equal to the model is
 * always right, also where tokens are sampled: it draws the same random numbers. */
static void test_sessions(void **state) {
    (void)state;
    const char *asked = getenv("TERN_TEST_DRAFTS");
    const uint64_t settings = asked != NULL ? strtoull(asked, NULL, 10) : 14;
    size_t tokens = 0;
    for (uint64_t i = 0; i < settings; i++) {
        outcome plain, other;
        answer(i, NULL, TERN_DRAFT_NEVER, &plain);
        for (int draft = SAME; draft <= WINDOW; draft++) {
            answer(i, models[draft], TERN_DRAFT_WHERE_IT_PAYS, &other);
            compare(i, &plain, &other);
            end(&other);
            answer(i, models[draft], TERN_DRAFT_ALWAYS, &other);
            compare(i, &plain, &other);
            tokens += 2 * other.n;
            assert_true(other.drafted > 0 || other.n < 8);
            if (draft == SAME && sampling_of(i).repetition_penalty == 1.0F)
                assert_int_equal(other.accepted, other.drafted);
            end(&other);
        }
        answer(i, models[SAME], TERN_DRAFT_NEVER, &other);
        assert_int_equal(other.drafted, 0);
        end(&other);
        end(&plain);
    }
    print_message("%zu tokens\n", tokens);
}

/* ---- many sequences -------------------------------------------------------------------------- */

enum { REQUESTS = 9 };

typedef struct answers {
    char digest[REQUESTS][65];
    uint64_t id[REQUESTS];
    uint64_t guessed, right;
} answers;

static void submit(tern_engine *e, uint64_t number, tern_draft_mode mode, answers *a) {
    tern_chacha random;
    int32_t prompt[PROMPT];
    tern_model_info info;
    tern_error err = {0};
    const tern_sampler_params sampling = sampling_of(number);
    tern_chacha_seed(&random, number % 4); /* some begin alike */
    tern_model_describe(models[MAIN], &info);
    for (size_t i = 0; i < PROMPT; i++)
        prompt[i] = (int32_t)below(&random, info.n_vocab);
    const tern_request request = {.tokens = prompt,
                                  .n_tokens = PROMPT,
                                  .sampling = &sampling,
                                  .max_tokens = 20 + 3 * number,
                                  .ignore_end = true,
                                  .draft = mode};
    if (tern_engine_submit(e, &request, &a->id[number], &err) != TERN_OK)
        fail_msg("%s", err.message);
}

static void answer_all(const tern_model *draft, tern_draft_mode mode, uint32_t pages, answers *a) {
    tern_engine *e = NULL;
    tern_error err = {0};
    size_t over = 0;
    tern_engine_params params = tern_engine_params_default();
    *a = (answers){.guessed = 0};
    params.draft_model = draft;
    params.n_ctx = 128;
    params.threads = 1;
    params.n_sequences = 4;
    assert_int_equal(tern_engine_pool_bytes(models[MAIN], &params, (uint64_t)pages * 64,
                                            &params.pool_bytes, &err),
                     TERN_OK);
    if (tern_engine_new(models[MAIN], &params, &e, &err) != TERN_OK)
        fail_msg("%s", err.message);
    for (uint64_t i = 0; i < REQUESTS; i++)
        submit(e, i, mode, a);
    while (over < REQUESTS) {
        const tern_event *events;
        size_t n;
        assert_int_equal(tern_engine_step(e, &events, &n, &err), TERN_OK);
        for (size_t i = 0; i < n; i++) {
            for (size_t k = 0; k < REQUESTS && events[i].kind == TERN_EVENT_END; k++)
                if (a->id[k] == events[i].request)
                    memcpy(a->digest[k], events[i].digest, sizeof a->digest[k]);
            over += events[i].kind == TERN_EVENT_END;
            a->guessed += events[i].kind == TERN_EVENT_END ? events[i].figures.n_guessed : 0;
            a->right += events[i].kind == TERN_EVENT_END ? events[i].figures.n_guessed_right : 0;
        }
    }
    tern_engine_free(&e);
}

/* Sequences at once, more than the second model can follow, and set aside where pages are few. */
static void test_many(void **state) {
    (void)state;
    static const uint32_t pages[] = {4, 16};
    answers plain, other;
    answer_all(NULL, TERN_DRAFT_NEVER, 16, &plain);
    for (size_t i = 0; i < 2; i++) {
        for (int draft = SAME; draft <= WINDOW; draft++) {
            answer_all(models[draft], TERN_DRAFT_ALWAYS, pages[i], &other);
            assert_memory_equal(plain.digest, other.digest, sizeof plain.digest);
            assert_true(other.guessed > 50);
            assert_true(draft != SAME || 10 * other.right > 7 * other.guessed);
        }
        answer_all(models[SAME], TERN_DRAFT_WHERE_IT_PAYS, pages[i], &other);
        assert_memory_equal(plain.digest, other.digest, sizeof plain.digest);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan),     cmocka_unit_test(test_half_right),
        cmocka_unit_test(test_kinds),    cmocka_unit_test(test_debt),
        cmocka_unit_test(test_reading),  cmocka_unit_test(test_refused),
        cmocka_unit_test(test_sessions), cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests_name("drafter", tests, open_models, close_models);
}
