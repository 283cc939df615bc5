/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guesses from earlier text: where they come from and when they are worth a pass. They change
 * nothing: not the tokens, the stops or the session's state, and no bit of its logits.
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
#include "runtime/engine/draft/draft.h"
#include "tern/engine.h"
#include "tern/tern.h"
#include "tests/support/check.h"

/* ---- recall ---------------------------------------------------------------------------------- */

/* Follows tokens[n] and then learns them, as a draft does. */
static tern_recall_place follow_all(tern_recall *r, const int32_t *tokens, size_t n) {
    tern_recall_place place = {0};
    for (size_t i = 0; i < n; i++) {
        tern_recall_follow(r, tokens, i + 1, &place);
        tern_recall_add(r, tokens[i]);
    }
    return place;
}

static tern_recall *new_recall(size_t capacity) {
    tern_recall *r = NULL;
    assert_int_equal(tern_recall_new(capacity, &r, NULL), TERN_OK);
    return r;
}

/* The longest match counts; among equal ones, the latest. */
static void test_longest_match(void **state) {
    (void)state;
    const int32_t tokens[] = {9, 1, 2, 3, 50, 8, 1, 2, 3, 60, 7, 1, 2, 3, 70, 9, 1, 2, 3};
    const size_t n = sizeof tokens / sizeof *tokens;
    int32_t read[4];
    tern_recall *r = new_recall(64);
    tern_recall_place place = follow_all(r, tokens, n);
    assert_int_equal(place.length, 4);
    assert_int_equal(tern_recall_read(r, &place, read, 4), 4);
    assert_memory_equal(read, ((int32_t[]){50, 8, 1, 2}), sizeof read);
    check_freed(tern_recall_free, r);
    r = new_recall(64);
    place = follow_all(r, ((int32_t[]){4, 5, 4, 5, 4, 5}), 6); /* the text repeats itself */
    assert_int_equal(tern_recall_read(r, &place, read, 4), 4);
    assert_memory_equal(read, ((int32_t[]){4, 5, 4, 5}), sizeof read);
    tern_recall_free(&r);
    r = new_recall(64);
    place = follow_all(r, tokens + 6, 8); /* only "1 2 3" occurred before, twice */
    assert_int_equal(place.length, 3);
    assert_int_equal(tern_recall_read(r, &place, read, 1), 1);
    assert_int_equal(read[0], 60);
    tern_recall_free(&r);
}

/* Replaced, missing or inserted tokens do not lose the place. */
static void test_edits(void **state) {
    (void)state;
    static const int32_t edits[][4] = {{14, 99, 16, 17}, {14, 16, 17, 18}, {14, 99, 15, 16}};
    int32_t tokens[64], read;
    size_t n = 0;
    for (; n < 30; n++)
        tokens[n] = 10 + (int32_t)n;
    for (size_t e = 0; e < 3; e++) {
        tern_recall *r = new_recall(64);
        memcpy(tokens + 30, ((int32_t[]){11, 12, 13}), 3 * sizeof *tokens);
        memcpy(tokens + 33, edits[e], sizeof edits[e]);
        const tern_recall_place place = follow_all(r, tokens, 37);
        assert_int_equal(tern_recall_read(r, &place, &read, 1), 1);
        assert_int_equal(read, tokens[36] + 1);
        assert_int_equal(place.length, e == 1 ? 3 : 2);
        tern_recall_free(&r);
    }
}

/* A memory forgets old tokens, and then guesses nothing from them. Negative tokens separate
 * texts. */
static void test_forgets(void **state) {
    (void)state;
    tern_recall *r = new_recall(16);
    const int32_t same[] = {1, 2, 3};
    tern_recall_place place = {0};
    int32_t read[8];
    for (int32_t i = 1; i < 6; i++)
        tern_recall_add(r, i);
    tern_recall_follow(r, same, 3, &place);
    assert_int_equal(tern_recall_read(r, &place, read, 2), 2);
    for (int32_t i = 100; i < 113; i++)
        tern_recall_add(r, i);
    place = (tern_recall_place){0};
    tern_recall_follow(r, same, 3, &place);
    assert_int_equal(place.next, 0);
    for (int i = 0; i < 2; i++) {
        tern_recall_add(r, -1);
        tern_recall_add(r, 1);
        tern_recall_add(r, 2);
        tern_recall_add(r, 3);
    }
    tern_recall_follow(r, same, 3, &place);
    assert_int_equal(tern_recall_read(r, &place, read, 8), 0); /* the text ends there */
    tern_recall_free(&r);
}

/* Random walks over few different tokens, against a full search. */
static void test_against_search(void **state) {
    (void)state;
    enum { N = 3000 };
    static int32_t tokens[N];
    tern_chacha random;
    tern_recall *r = new_recall(N);
    tern_recall_place place = {0};
    tern_chacha_seed(&random, 7);
    for (size_t n = 1; n <= N; n++) {
        tokens[n - 1] = (int32_t)(tern_chacha_next(&random) % 40);
        if (n > 200 && tern_chacha_next(&random) % 8 != 0) /* mostly a copy */
            tokens[n - 1] = tokens[n - 151];
        tern_recall_follow(r, tokens, n, &place);
        tern_recall_add(r, tokens[n - 1]);
        size_t longest = 0;
        for (size_t at = 1; at < n; at++) {
            size_t same = 0;
            while (same < at && same < TERN_RECALL_LONGEST &&
                   tokens[at - 1 - same] == tokens[n - 1 - same])
                same++;
            longest = same > longest ? same : longest;
        }
        if (longest >= TERN_RECALL_SHORTEST)
            assert_int_equal(place.length, longest);
        if (place.next > 0)
            assert_memory_equal(tokens + place.next - 1 - place.length, tokens + n - place.length,
                                place.length * sizeof *tokens);
    }
    tern_recall_free(&r);
}

/* ---- costs ----------------------------------------------------------------------------------- */

static tern_draft_costs costs_of(const double *seconds, uint32_t n) {
    tern_draft_costs c = {.n = {0}};
    for (int i = 0; i < 4; i++)
        for (uint32_t rows = 1; rows <= n; rows++)
            tern_draft_costs_add(&c, rows, seconds[rows - 1]);
    return c;
}

static void test_costs(void **state) {
    (void)state;
    tern_draft_costs c = {.n = {0}};
    assert_true(tern_draft_costs_seconds(&c, 1) == 0.0);
    tern_draft_costs_add(&c, 1, 0.0); /* a clock that stands still tells nothing */
    tern_draft_costs_add(&c, 40, 1.0);
    assert_true(tern_draft_costs_seconds(&c, 32) == 0.0);
    tern_draft_costs_add(&c, 1, 0.010);
    assert_true(tern_draft_costs_seconds(&c, 3) > 0.010);
    assert_float_equal(tern_draft_costs_seconds(&c, 3), 0.015, 1e-9); /* one size is known */
    tern_draft_costs_add(&c, 5, 0.050); /* slow once: two more measurements count alone */
    tern_draft_costs_add(&c, 5, 0.014);
    assert_float_equal(tern_draft_costs_seconds(&c, 5), 0.014, 1e-9);
    assert_float_equal(tern_draft_costs_seconds(&c, 3), 0.012, 1e-9);
    assert_float_equal(tern_draft_costs_seconds(&c, 9), 0.018, 1e-9); /* same slope */
    tern_draft_costs flat = c;
    flat.seconds[5] = 0.010;
    assert_float_equal(tern_draft_costs_seconds(&flat, 21), 0.020, 1e-9); /* never free */
    for (int i = 0; i < 20; i++)
        tern_draft_costs_add(&c, 5, 0.030);
    assert_float_equal(tern_draft_costs_seconds(&c, 5), 0.030, 1e-3);
    for (int i = 0; i < 4000; i++)
        tern_draft_costs_add(&c, 1, 0.010); /* it is tried again, never cheaper than 1 */
    assert_true(tern_draft_costs_seconds(&c, 5) < 0.013);
    for (int i = 0; i < 4000; i++)
        tern_draft_costs_add(&c, 1, 0.010);
    assert_float_equal(tern_draft_costs_seconds(&c, 5), 0.010, 1e-6);
}

/* The number of guesses that pays: 0 if each row costs a pass's time, or if recent guesses
 * failed. */
static void test_choice(void **state) {
    (void)state;
    static const double flat[] = {1.0, 1.05, 1.1, 1.15, 1.2, 1.3, 1.4, 1.5};
    static const double steep[] = {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0};
    const tern_draft_costs cheap = costs_of(flat, 8), dear = costs_of(steep, 8), none = {.n = {0}};
    int32_t tokens[400], guesses[8];
    tern_draft *d = NULL;
    for (size_t i = 0; i < 200; i++)
        tokens[i] = (int32_t)(i % 100);
    for (size_t i = 200; i < 400; i++)
        tokens[i] = (int32_t)(i % 100 == i % 4 ? 7000 + i : i % 100); /* seldom a different token */
    assert_int_equal(tern_draft_new(400, &d, NULL), TERN_OK);
    tern_draft_given(d, tokens, 150);
    for (size_t n = 151; n <= 200; n++)
        tern_draft_picked(d, tokens, n);
    assert_int_equal(tern_draft_guesses(d, guesses, 7), 7);
    tern_draft_pass pass = {.rows = 1, .tokens = 1.0};
    assert_int_equal(tern_draft_choose(d, &cheap, 7, &pass), 7);
    assert_int_equal(pass.rows, 8);
    assert_true(pass.tokens > 5.0 && pass.tokens < 8.0);
    pass = (tern_draft_pass){.rows = 1, .tokens = 1.0};
    assert_int_equal(tern_draft_choose(d, &dear, 7, &pass), 0);
    assert_int_equal(tern_draft_choose(d, &none, 7, &pass), 0); /* costs are unknown */
    assert_int_equal(pass.rows, 1);
    for (size_t n = 201; n <= 240; n++) { /* from now on every guess is wrong */
        tokens[n - 1] = n % 2 == 0 ? tokens[n - 101] : 8000 + (int32_t)n;
        tern_draft_picked(d, tokens, n);
    }
    assert_true(tern_draft_choose(d, &cheap, tern_draft_guesses(d, guesses, 7), &pass) <= 1);
    check_freed(tern_draft_free, d);
}

/* A text that arrives in two parts is learned whole, including the tokens across the border. */
static void test_parts(void **state) {
    (void)state;
    static const int32_t tokens[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 100, 9, 10, 11};
    int32_t guesses[2];
    for (size_t first = 1; first < 16; first++) {
        tern_draft *d = NULL;
        check_case("the first of %zu tokens", first);
        assert_int_equal(tern_draft_new(64, &d, NULL), TERN_OK);
        tern_draft_given(d, tokens, first);
        tern_draft_given(d, tokens, 16);
        assert_int_equal(tern_draft_guesses(d, guesses, 2), 2);
        assert_int_equal(guesses[0], 12);
        assert_int_equal(guesses[1], 100);
        tern_draft_free(&d);
    }
}

/* ---- sessions ---------------------------------------------------------------------------------
 */

static char folder[] = "/tmp/tern-test-draft-XXXXXX";
static tern_model *models[2];
static const char *const presets[] = {"bitnet-tiny", "llama-tiny-q8_0"}; /* float head or not */

static int open_models(void **state) {
    (void)state;
    char path[sizeof folder + 16];
    tern_error err = {0};
    if (mkdtemp(folder) == NULL)
        return -1;
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof path, "%s/m.gguf", folder);
        if (tern_synth(presets[i], path, TERN_OUT_REPLACE, 1, NULL, NULL, &err) != TERN_OK ||
            tern_model_open(path, NULL, &models[i], &err) != TERN_OK) {
            print_error("%s\n", err.message);
            return -1;
        }
        (void)unlink(path);
    }
    return rmdir(folder);
}

static int close_models(void **state) {
    (void)state;
    tern_model_free(&models[0]);
    tern_model_free(&models[1]);
    return 0;
}

enum { MOST = 100, FEW = 5 }; /* tokens; few are likely, so that answers repeat */

typedef struct setting {
    const tern_model *model;
    tern_session_params session;
    tern_sampler_params sampling;
    tern_generate_params generate;
    tern_logit_bias bias[FEW];
    int32_t stop_token;
    int32_t prompt[MOST];
    size_t n_prompt, called_off;
} setting;

/* The state of a session when it was done, and the token that follows. */
typedef struct outcome {
    tern_session *session;
    tern_sampler *sampler;
    tern_generation figures;
    size_t seen, called_off;
    int32_t tokens[2 * MOST];
    size_t n;
    tern_status status;
    int32_t next;
} outcome;

static uint32_t below(tern_chacha *random, uint32_t n) {
    return (uint32_t)((uint64_t)tern_chacha_next(random) * n >> 32);
}

/* Texts that repeat themselves, with changes. */
static void make_prompt(setting *s, tern_chacha *random, uint32_t n_vocab) {
    const uint32_t period = 3 + below(random, 20), change = 2 + below(random, 30);
    s->n_prompt = 1 + below(random, MOST / 2);
    for (size_t i = 0; i < s->n_prompt; i++)
        s->prompt[i] = i < period || below(random, change) == 0 ? (int32_t)below(random, n_vocab)
                                                                : s->prompt[i - period];
}

static void make_setting(setting *s, uint64_t number) {
    tern_chacha random;
    tern_model_info info;
    tern_chacha_seed(&random, number);
    *s = (setting){.model = models[number % 2]};
    tern_model_describe(s->model, &info);
    make_prompt(s, &random, info.n_vocab);
    s->session = tern_session_params_default();
    s->session.threads = 1 + (below(&random, 8) == 0);
    s->session.n_ctx = (uint32_t)s->n_prompt + below(&random, MOST);
    s->session.n_batch = below(&random, 4) == 0 ? 1 + below(&random, 6) : 0;
    if (number % 8 == 7) { /* no room for an answer; the last pass of the prompt has one row */
        s->session.n_ctx = (uint32_t)s->n_prompt;
        s->session.n_batch = (uint32_t)s->n_prompt - 1;
    }
    s->sampling = tern_sampler_params_default();
    s->sampling.seed = number;
    s->sampling.temperature = below(&random, 2) == 0 ? 0.0F : 0.05F * (float)below(&random, 20);
    s->sampling.top_k = below(&random, 2) == 0 ? 0 : 1 + below(&random, 10);
    s->sampling.top_p = below(&random, 2) == 0 ? 1.0F : 0.8F;
    s->sampling.repetition_penalty = below(&random, 3) == 0 ? 1.3F : 1.0F;
    s->sampling.frequency_penalty = below(&random, 3) == 0 ? 0.7F : 0.0F;
    const float bias = 2.0F * (float)below(&random, 20);
    for (size_t i = 0; i < FEW; i++)
        s->bias[i] = (tern_logit_bias){(int32_t)below(&random, info.n_vocab), bias};
    s->sampling.bias = s->bias;
    s->sampling.n_bias = below(&random, FEW + 1);
    s->stop_token =
        below(&random, 2) == 0 ? s->bias[0].token : (int32_t)below(&random, info.n_vocab);
    if (number % 5 == 3) /* of the text, so that it may be guessed */
        s->stop_token = s->prompt[s->n_prompt - 1];
    s->generate = (tern_generate_params){.max_tokens = 1 + below(&random, MOST),
                                         .ignore_end = below(&random, 2) == 0,
                                         .stop_tokens = &s->stop_token,
                                         .n_stop_tokens = below(&random, 2)};
    s->called_off = below(&random, 3) == 0 ? 1 + below(&random, MOST) : 0;
}

static bool note(int32_t token, double seconds, void *user) {
    (void)seconds;
    outcome *o = user;
    assert_true(o->n < sizeof o->tokens / sizeof *o->tokens);
    o->tokens[o->n++] = token;
    return o->n != o->called_off;
}

/* Generates, then picks the next token, to see that the random stream is in the right state. */
static void generate(const setting *s, tern_draft_mode mode, outcome *o) {
    tern_generate_params params = s->generate;
    tern_model_info info;
    tern_error err = {0};
    *o = (outcome){.called_off = s->called_off};
    params.draft = mode;
    tern_model_describe(s->model, &info);
    if (tern_session_new(s->model, &s->session, &o->session, &err) != TERN_OK ||
        tern_sampler_new(&s->sampling, info.n_vocab, &o->sampler, &err) != TERN_OK)
        fail_msg("%s", err.message);
    o->status = tern_generate(o->session, o->sampler, s->prompt, s->n_prompt, &params, note, o,
                              &o->figures, &err);
    if (o->status == TERN_OK)
        assert_int_equal(tern_session_pick(o->session, o->sampler, &o->next, NULL), TERN_OK);
}

static void end(outcome *o) {
    tern_session_free(&o->session);
    check_freed(tern_sampler_free, o->sampler);
}

static void compare(uint64_t number, const outcome *a, const outcome *b) {
    const float *x = NULL, *y = NULL;
    tern_model_info info;
    const size_t n = tern_session_position(a->session);
    if (a->n != b->n || memcmp(a->tokens, b->tokens, a->n * sizeof *a->tokens) != 0)
        fail_msg("setting %llu: %zu tokens, without guesses %zu", (unsigned long long)number, b->n,
                 a->n);
    assert_int_equal(a->status, b->status);
    assert_int_equal(a->figures.stop, b->figures.stop);
    assert_int_equal(a->figures.n_generated, b->figures.n_generated);
    if (a->next != b->next)
        fail_msg("setting %llu: %d follows, without guesses %d (ended by %d)",
                 (unsigned long long)number, b->next, a->next, (int)a->figures.stop);
    assert_int_equal(tern_session_position(b->session), n);
    assert_memory_equal(tern_session_tokens(a->session), tern_session_tokens(b->session),
                        n * sizeof(int32_t));
    if (a->status != TERN_OK)
        return;
    tern_model_describe(tern_session_model(a->session), &info);
    assert_int_equal(tern_session_last_logits(a->session, &x, NULL), TERN_OK);
    assert_int_equal(tern_session_last_logits(b->session, &y, NULL), TERN_OK);
    assert_memory_equal(x, y, info.n_vocab * sizeof *x);
}

static void test_sessions(void **state) {
    (void)state;
    const char *asked = getenv("TERN_TEST_DRAFTS");
    const uint64_t settings = asked != NULL ? strtoull(asked, NULL, 10) : 100;
    size_t accepted = 0, drafted = 0, tokens = 0;
    for (uint64_t i = 0; i < settings; i++) {
        setting s;
        outcome plain, other;
        make_setting(&s, i);
        generate(&s, TERN_DRAFT_NEVER, &plain);
        assert_int_equal(plain.figures.n_drafted, 0);
        for (int mode = TERN_DRAFT_WHERE_IT_PAYS; mode <= TERN_DRAFT_ALWAYS; mode++) {
            generate(&s, (tern_draft_mode)mode, &other);
            compare(i, &plain, &other);
            assert_true(other.figures.n_accepted <= other.figures.n_drafted);
            accepted += other.figures.n_accepted;
            drafted += other.figures.n_drafted;
            tokens += other.n;
            end(&other);
        }
        end(&plain);
    }
    print_message("%zu tokens, %zu of %zu guesses right\n", tokens, accepted, drafted);
    assert_true(accepted > settings && drafted > accepted);
}

/* Guesses the answer that a call without guesses gave. */
static size_t know(void *user, const tern_progress *progress, int32_t *guesses, size_t most) {
    const outcome *known = user;
    size_t n = 0;
    for (size_t at = progress->n - progress->n_prompt; at < known->n && n < most; at++)
        guesses[n++] = known->tokens[at];
    return n;
}

/* The first token of an answer, from the third on, that does not occur before it. */
static size_t first_new(const outcome *o) {
    for (size_t i = 2; i < o->n; i++) {
        size_t j = 0;
        while (j < i && o->tokens[j] != o->tokens[i])
            j++;
        if (j == i)
            return i;
    }
    return 0;
}

/* The logits that follow tokens[n], which a new session computes. */
static void assert_stands_after(const setting *s, tern_session *found, const int32_t *tokens,
                                size_t n) {
    const float *x = NULL, *y = NULL;
    tern_session *fresh;
    tern_model_info info;
    assert_int_equal(tern_session_position(found), n);
    assert_int_equal(tern_session_new(s->model, &s->session, &fresh, NULL), TERN_OK);
    assert_int_equal(tern_session_eval(fresh, tokens, n, TERN_LOGITS_NONE, NULL, NULL), TERN_OK);
    assert_int_equal(tern_session_last_logits(fresh, &x, NULL), TERN_OK);
    assert_int_equal(tern_session_last_logits(found, &y, NULL), TERN_OK);
    tern_model_describe(s->model, &info);
    assert_memory_equal(x, y, info.n_vocab * sizeof *x);
    tern_session_free(&fresh);
}

/* A guess may be right and end the answer without being part of it: a token that stops it. */
static void test_a_right_guess_that_stops(void **state) {
    (void)state;
    size_t tried = 0;
    for (uint64_t i = 0; i < 20; i++) {
        setting s;
        outcome known, o = {.n = 0};
        int32_t tokens[3 * MOST];
        make_setting(&s, i);
        s.session.n_ctx = 200;
        s.session.n_batch = 0;
        s.generate = (tern_generate_params){.max_tokens = MOST / 2, .ignore_end = true};
        s.called_off = 0;
        generate(&s, TERN_DRAFT_NEVER, &known);
        const size_t n = first_new(&known);
        const tern_request request = {.tokens = s.prompt,
                                      .n_tokens = s.n_prompt,
                                      .sampling = &s.sampling,
                                      .max_tokens = MOST / 2,
                                      .ignore_end = true,
                                      .stop_tokens = &known.tokens[n],
                                      .n_stop_tokens = 1,
                                      .guess = know,
                                      .user = &known};
        uint64_t id;
        assert_int_equal(tern_session_new(s.model, &s.session, &o.session, NULL), TERN_OK);
        tern_engine *engine = tern_session_engine(o.session);
        assert_int_equal(tern_engine_submit(engine, &request, &id, NULL), TERN_OK);
        for (bool over = n == 0; !over;) {
            const tern_event *events;
            size_t some;
            assert_int_equal(tern_engine_step(engine, &events, &some, NULL), TERN_OK);
            for (size_t k = 0; k < some; k++)
                over |= events[k].kind == TERN_EVENT_END;
        }
        if (n > 0) {
            memcpy(tokens, s.prompt, s.n_prompt * sizeof *tokens);
            memcpy(tokens + s.n_prompt, known.tokens, n * sizeof *tokens);
            assert_stands_after(&s, o.session, tokens, s.n_prompt + n);
            tried++;
        }
        tern_session_free(&o.session);
        end(&known);
    }
    assert_true(tried > 5);
}

/* The products that read the head: all that are not of the layers. */
static uint64_t heads_of(const tern_session *s) {
    tern_model_info info;
    const tern_session_work work = tern_session_work_done(s);
    tern_model_describe(tern_session_model(s), &info);
    return work.products - work.passes * 7 * info.n_layer;
}

/* Right guesses save passes and readings of the head; a text that repeats itself needs few. */
static void test_saves_passes(void **state) {
    (void)state;
    setting s;
    outcome plain, drafted;
    make_setting(&s, 1);
    s.session.n_ctx = 400;
    s.session.n_batch = 0;
    s.sampling = tern_sampler_params_default();
    s.bias[0] = (tern_logit_bias){5, 50.0F}; /* the same token again and again */
    s.sampling.bias = s.bias;
    s.sampling.n_bias = 1;
    s.generate = (tern_generate_params){.max_tokens = MOST, .ignore_end = true};
    s.called_off = 0;
    generate(&s, TERN_DRAFT_NEVER, &plain);
    generate(&s, TERN_DRAFT_ALWAYS, &drafted);
    const uint64_t heads = heads_of(plain.session), fewer = heads_of(drafted.session);
    compare(1, &plain, &drafted);
    const uint64_t before = tern_session_work_done(plain.session).passes;
    const uint64_t after = tern_session_work_done(drafted.session).passes;
    assert_int_equal(before - after, drafted.figures.n_accepted);
    assert_true(after < before / 2);
    assert_true(heads > MOST && fewer < heads / 3);
    end(&plain);
    end(&drafted);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_longest_match), cmocka_unit_test(test_edits),
        cmocka_unit_test(test_forgets),       cmocka_unit_test(test_against_search),
        cmocka_unit_test(test_costs),         cmocka_unit_test(test_choice),
        cmocka_unit_test(test_parts),         cmocka_unit_test(test_sessions),
        cmocka_unit_test(test_saves_passes),  cmocka_unit_test(test_a_right_guess_that_stops),
    };
    return cmocka_run_group_tests_name("draft", tests, open_models, close_models);
}
