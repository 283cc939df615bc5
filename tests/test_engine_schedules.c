/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random schedules: sequences arrive, share prompts, guess, are masked, cancelled and set aside for
 * want of memory, in passes of any size; tokens and digest of each are those of the sequence alone,
 * computed with another instruction set. In one of five no request shares pages with another one.
 *
 * TERN_TEST_SCHEDULES says how many schedules, TERN_TEST_FIRST with which one to begin (the number
 * is its seed: a run that was stopped goes on from the last number it printed), TERN_TEST_ISA on
 * which instruction set they run together (otherwise each draws one), TERN_TEST_MODEL which model
 * file they use in place of the tiny ones.
 */
#include <stdlib.h>
#include <string.h>

#include "tern/engine.h"
#include "tests/check.h"
#include "tests/tiny_model.h"

enum { MODELS = 4, ISAS = 16, REQUESTS = 8, BRANCHES = 3, MOST_PROMPT = 200, MOST_TOKENS = 330 };

static const char *const presets[MODELS] = {"bitnet-tiny", "qwen3-tiny", "llama-tiny-f16",
                                            "falcon-e-tiny"};
static const tern_format formats[] = {TERN_FORMAT_F16, TERN_FORMAT_F32, TERN_FORMAT_Q8_0};

/* What a branch gave. */
typedef struct answer {
    int32_t tokens[MOST_TOKENS];
    size_t n;
    bool is_over;
    tern_end end;
    char digest[65];
    tern_branch_figures figures;
} answer;

typedef struct wish {
    tern_request request;
    tern_sampler_params sampling;
    int32_t prompt[MOST_PROMPT];
    uint8_t space[TERN_SPACE_BYTES];
    int32_t stop_token;
    uint32_t forbidden;     /* tokens of this remainder by 5 may not follow; 5: all may */
    const answer *expected; /* [BRANCHES] for guesses, which are sometimes wrong */
    uint32_t wrong;         /* one guess in so many */
    uint64_t id;
    uint32_t arrives, cancelled; /* at which step; 0: never cancelled */
} wish;

typedef struct models {
    tern_model *open[MODELS][ISAS];
    const char *isas[ISAS];
    size_t n_isas;
    const char *path; /* NULL: the presets */
    size_t only;      /* instruction set that schedules run on; n_isas: any */
} models;

static tern_model *open_file(const char *path, const char *isa) {
    const tern_model_params params = {.isa = isa, .threads = 2};
    tern_error err = {0};
    tern_model *model = NULL;
    if (tern_model_open(path, &params, &model, &err) != TERN_OK)
        check_fail("%s", err.message);
    return model;
}

static const tern_model *model_of(models *m, size_t preset, size_t isa) {
    tern_model **model = &m->open[m->path ? 0 : preset][isa];
    if (!*model)
        *model =
            m->path ? open_file(m->path, m->isas[isa]) : tiny_open(presets[preset], m->isas[isa]);
    return *model;
}

static void find_models(models *m) {
    const char *only = getenv("TERN_TEST_ISA");
    m->path = getenv("TERN_TEST_MODEL");
    m->n_isas = tiny_isas(m->isas, ISAS);
    m->only = only ? 0 : m->n_isas;
    while (only && m->only < m->n_isas && strcmp(m->isas[m->only], only) != 0)
        m->only++;
    if (only && m->only == m->n_isas)
        check_fail("the instruction set %s does not run here", only);
}

static void close_models(models *m) {
    for (size_t i = 0; i < MODELS; i++)
        for (size_t j = 0; j < ISAS; j++)
            tern_model_free(&m->open[i][j]);
}

/* ---- hooks ----------------------------------------------------------------------------------- */

static bool forbid(void *user, const tern_progress *progress, uint64_t *allowed, size_t words) {
    const wish *w = user;
    for (size_t i = (w->forbidden + progress->n) % 5; i < words * 64; i += 5)
        allowed[i / 64] &= ~(UINT64_C(1) << (i % 64));
    return true;
}

/* What the sequence gave alone, with a wrong token here and there; nothing where it ended. */
static size_t guess(void *user, const tern_progress *progress, int32_t *guesses, size_t most) {
    const wish *w = user;
    const answer *a = w->expected ? &w->expected[progress->branch] : NULL;
    size_t n = 0;
    for (size_t at = progress->n - progress->n_prompt; a && n < most && at < a->n; at++, n++)
        guesses[n] = (progress->n + n) % w->wrong == 0 ? (a->tokens[at] + 1) % 300 : a->tokens[at];
    return n;
}

/* A clock that is as it likes to be: it decides about pieces of prompts, and about nothing else. */
static double any_time(void *user) {
    check_rng *rng = user;
    static double now;
    now += 1e-3 * check_below(rng, 20);
    return now;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Prompts of few families, so that some begin alike. */
static void make_prompt(wish *w, check_rng *rng, const tern_model *model) {
    const uint32_t longest = check_below(rng, 3) == 0 ? MOST_PROMPT : 100;
    const size_t n = 1 + check_below(rng, longest);
    const size_t same = check_below(rng, 2) ? n : check_below(rng, (uint32_t)n + 1);
    tiny_prompt(model, 1 + check_below(rng, 2), w->prompt, n);
    for (size_t i = same; i < n; i++)
        w->prompt[i] = (int32_t)check_below(rng, 300);
    w->request.tokens = w->prompt;
    w->request.n_tokens = n;
}

static void make_sampling(wish *w, check_rng *rng) {
    w->sampling = tern_sampler_params_default();
    w->sampling.seed = check_random(rng);
    w->sampling.temperature =
        check_below(rng, 3) == 0 ? 0.0F : 0.1F * (float)(1 + check_below(rng, 20));
    w->sampling.top_k = check_below(rng, 2) == 0 ? 0 : 1 + check_below(rng, 40);
    w->sampling.top_p = check_below(rng, 2) == 0 ? 1.0F : 0.9F;
    w->sampling.repetition_penalty = check_below(rng, 3) == 0 ? 1.3F : 1.0F;
    w->request.sampling = &w->sampling;
}

static void make_wish(wish *w, check_rng *rng, const tern_model *model, uint32_t n_ctx) {
    *w = (wish){.forbidden = check_below(rng, 12), .wrong = 2 + check_below(rng, 8)};
    make_prompt(w, rng, model);
    make_sampling(w, rng);
    const uint32_t room = n_ctx - (uint32_t)w->request.n_tokens;
    w->request.max_tokens =
        check_below(rng, 3) == 0 ? 0 : 1 + check_below(rng, room < 60 ? room : 60);
    w->request.ignore_end = check_below(rng, 3) > 0;
    w->stop_token = (int32_t)check_below(rng, 300);
    w->request.stop_tokens = &w->stop_token;
    w->request.n_stop_tokens = check_below(rng, 2);
    w->request.branches = check_below(rng, 4) == 0 ? 1 + check_below(rng, BRANCHES) : 0;
    w->request.logprobs = check_below(rng, 6) == 0;
    w->request.n_logprobs = check_below(rng, 6) == 0 ? 3 : 0;
    w->request.priority = (int32_t)check_below(rng, 2);
    w->space[0] = check_below(rng, 4) == 0;
    w->request.space = w->space;
    w->request.mask = w->forbidden < 5 ? forbid : NULL;
    w->request.guess = check_below(rng, 2) == 0 ? guess : NULL;
    w->request.user = w;
    w->arrives = check_below(rng, 30);
    w->cancelled = check_below(rng, 5) == 0 ? w->arrives + check_below(rng, 30) : 0;
}

/* ---- running --------------------------------------------------------------------------------- */

static void note(answer *a, const tern_event *event) {
    assert_false(a->is_over);
    if (event->kind == TERN_EVENT_TOKEN) {
        assert_true(a->n < MOST_TOKENS);
        a->tokens[a->n++] = event->token;
        return;
    }
    if (event->error)
        check_fail("%s", event->error->message);
    a->is_over = true;
    a->end = event->end;
    a->figures = event->figures;
    memcpy(a->digest, event->digest, sizeof a->digest);
}

static size_t branches_of(const wish *w) {
    return w->request.branches ? w->request.branches : 1;
}

static void submit(tern_engine *e, wish *w) {
    tern_error err = {0};
    if (tern_engine_submit(e, &w->request, &w->id, &err) != TERN_OK)
        check_fail("%s", err.message);
}

static void step(tern_engine *e, const wish *wishes, size_t n, answer (*answers)[BRANCHES]) {
    const tern_event *events;
    size_t n_events;
    assert_int_equal(tern_engine_step(e, &events, &n_events, NULL), TERN_OK);
    for (size_t i = 0; i < n_events; i++)
        for (size_t j = 0; j < n; j++)
            if (wishes[j].id == events[i].request)
                note(&answers[j][events[i].branch], &events[i]);
}

static bool is_idle(tern_engine *e) {
    const tern_engine_state s = tern_engine_now(e);
    assert_int_equal(s.free_pages + s.used_pages + s.cached_pages, s.pages);
    return s.waiting + s.running == 0;
}

static tern_engine *open_engine(const tern_model *model, const tern_engine_params *params) {
    tern_error err = {0};
    tern_engine *e = NULL;
    if (tern_engine_new(model, params, &e, &err) != TERN_OK)
        check_fail("%s", err.message);
    return e;
}

/* A wish by itself, branch by branch, without what must not matter. */
static void run_alone(const tern_model *model, tern_format kv, uint32_t n_ctx, const wish *w,
                      size_t most, size_t branch, answer *out) {
    const tern_engine_params params = {
        .n_ctx = n_ctx, .n_sequences = 1, .n_batch = 33, .threads = 1, .kv = kv};
    tern_engine *e = open_engine(model, &params);
    wish copy = *w;
    answer answers[1][BRANCHES] = {0};
    copy.sampling.seed += branch;
    copy.request.sampling = &copy.sampling;
    copy.request.branches = 0;
    copy.request.guess = NULL;
    copy.request.logprobs = false;
    copy.request.n_logprobs = 0;
    copy.request.max_tokens = most;
    submit(e, &copy);
    while (!is_idle(e))
        step(e, &copy, 1, answers);
    *out = answers[0][0];
    tern_engine_free(&e);
}

/* The same by tern_generate, where a request asks for no more than that can do. */
static void check_session(const tern_model *model, tern_format kv, uint32_t n_ctx, const wish *w,
                          size_t branch, const answer *alone) {
    tern_sampler_params sampling = w->sampling;
    sampling.seed += branch;
    if (w->request.mask || w->request.max_tokens == 0)
        return;
    tern_session *s = tiny_session(
        model, (tern_session_params){.n_ctx = n_ctx, .n_batch = 64, .threads = 2, .kv = kv});
    tern_sampler *sampler;
    tern_generation result;
    tern_model_info info;
    const tern_generate_params params = {.max_tokens = w->request.max_tokens,
                                         .ignore_end = w->request.ignore_end,
                                         .stop_tokens = w->request.stop_tokens,
                                         .n_stop_tokens = w->request.n_stop_tokens};
    tern_model_describe(model, &info);
    assert_int_equal(tern_sampler_new(&sampling, info.n_vocab, &sampler, NULL), TERN_OK);
    assert_int_equal(tern_generate(s, sampler, w->prompt, w->request.n_tokens, &params, NULL, NULL,
                                   &result, NULL),
                     TERN_OK);
    assert_int_equal(result.n_generated, alone->n);
    check_bytes("tokens of tern_generate", tern_session_tokens(s) + w->request.n_tokens,
                alone->tokens, alone->n * sizeof *alone->tokens);
    tern_sampler_free(&sampler);
    tern_session_free(&s);
}

static const char hash_of_nothing[] =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/* ---- one schedule ---------------------------------------------------------------------------- */

typedef struct schedule {
    models *models;
    uint64_t number;
    size_t preset, isa;
    tern_format kv;
    bool apart; /* every request has a name space of its own */
    uint32_t n_ctx;
    wish wishes[REQUESTS];
    answer alone[REQUESTS][BRANCHES], answers[REQUESTS][BRANCHES];
    size_t n;
} schedule;

typedef struct totals {
    size_t branches, tokens, cancelled, right;
    uint64_t shared, set_aside;
} totals;

static const tern_model *other_model(schedule *s) {
    return model_of(s->models, s->preset, (s->isa + 1) % s->models->n_isas);
}

static void check_answer(schedule *s, size_t i, size_t branch) {
    const wish *w = &s->wishes[i];
    const answer *got = &s->answers[i][branch], *alone = &s->alone[i][branch];
    answer shorter;
    check_case("schedule %llu, request %zu, branch %zu", (unsigned long long)s->number, i, branch);
    if (s->apart && branch == 0)
        assert_int_equal(got->figures.n_shared, 0);
    if (got->end == TERN_END_CANCELLED && got->n == 0) {
        assert_string_equal(got->digest, hash_of_nothing);
        return;
    }
    if (got->end == TERN_END_CANCELLED) { /* perhaps before a last pick that ends the text */
        run_alone(other_model(s), s->kv, s->n_ctx, w, got->n, branch, &shorter);
        alone = &shorter;
    } else {
        assert_int_equal(got->end, alone->end);
    }
    assert_int_equal(got->n, alone->n);
    check_bytes("tokens", alone->tokens, got->tokens, got->n * sizeof *got->tokens);
    if (strcmp(got->digest, alone->digest) != 0)
        check_fail("%zu tokens that end as %s: digest %s, alone %s", got->n,
                   tern_end_name(got->end), got->digest, alone->digest);
}

static void run_together(schedule *s, check_rng *rng, totals *t) {
    const uint32_t pages = (s->n_ctx + 63) / 64;
    const uint64_t one = tern_model_kv_bytes(model_of(s->models, s->preset, s->isa), 64, s->kv);
    tern_engine_params params = {.n_ctx = s->n_ctx,
                                 .pool_bytes = one * (pages + check_below(rng, 3 * pages)),
                                 .n_sequences = 1 + check_below(rng, 6),
                                 .n_queue = REQUESTS * BRANCHES,
                                 .n_ahead = 1 + check_below(rng, 100),
                                 .n_batch = 6 + check_below(rng, check_below(rng, 2) ? 8 : 90),
                                 .threads = 1 + check_below(rng, 4),
                                 .kv = s->kv,
                                 .gap_seconds = check_below(rng, 2) ? 0.0 : 0.05,
                                 .clock = any_time,
                                 .clock_user = rng};
    tern_engine *e = open_engine(model_of(s->models, s->preset, s->isa), &params);
    for (uint32_t at = 0; at < 30 || !is_idle(e); at++) {
        for (size_t i = 0; i < s->n; i++) {
            if (s->wishes[i].arrives == at)
                submit(e, &s->wishes[i]);
            if (s->wishes[i].cancelled == at && at > 0)
                (void)tern_engine_cancel(e, s->wishes[i].id);
        }
        if (check_below(rng, 20) == 0)
            tern_engine_forget(e);
        step(e, s->wishes, s->n, s->answers);
    }
    t->shared += tern_engine_now(e).shared_tokens;
    t->set_aside += tern_engine_now(e).set_aside;
    assert_int_equal(tern_engine_now(e).used_pages, 0);
    tern_engine_free(&e);
}

/* What runs, and what each sequence gives alone. */
static void make_schedule(schedule *s, models *m, uint64_t number, check_rng *rng) {
    s->models = m;
    s->number = number;
    s->preset = number % MODELS;
    s->isa = check_below(rng, (uint32_t)m->n_isas);
    s->isa = m->only < m->n_isas ? m->only : s->isa;
    s->kv = formats[number / MODELS % 3];
    s->apart = number % 5 == 4;
    s->n_ctx = MOST_PROMPT + 2 + check_below(rng, MOST_TOKENS - MOST_PROMPT - 2);
    s->n = 2 + check_below(rng, REQUESTS - 1);
    for (size_t i = 0; i < s->n; i++) {
        wish *w = &s->wishes[i];
        make_wish(w, rng, model_of(m, s->preset, s->isa), s->n_ctx);
        w->space[1] = s->apart ? (uint8_t)(1 + i) : 0;
        for (size_t j = 0; j < branches_of(w); j++) {
            run_alone(other_model(s), s->kv, s->n_ctx, w, w->request.max_tokens, j,
                      &s->alone[i][j]);
            check_session(model_of(m, s->preset, s->isa), s->kv, s->n_ctx, w, j, &s->alone[i][j]);
        }
        w->expected = s->alone[i];
    }
}

static void run_schedule(models *m, uint64_t number, totals *t) {
    check_rng rng = {.state = 1000 + number};
    schedule *s = calloc(1, sizeof *s);
    assert_non_null(s);
    make_schedule(s, m, number, &rng);
    run_together(s, &rng, t);
    for (size_t i = 0; i < s->n; i++)
        for (size_t j = 0; j < branches_of(&s->wishes[i]); j++) {
            check_answer(s, i, j);
            t->branches++;
            t->tokens += s->answers[i][j].n;
            t->cancelled += s->answers[i][j].end == TERN_END_CANCELLED;
            t->right += s->answers[i][j].figures.n_guessed_right;
        }
    free(s);
}

static uint64_t number_of(const char *variable, uint64_t otherwise) {
    const char *text = getenv(variable);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static void test_schedules(void **state) {
    (void)state;
    static models m;
    totals t = {0};
    const uint64_t first = number_of("TERN_TEST_FIRST", 0);
    const uint64_t n = number_of("TERN_TEST_SCHEDULES", 24);
    find_models(&m);
    for (uint64_t i = first; i < first + n; i++) {
        if (i > first && i % 100 == 0)
            print_message("schedules before %llu\n", (unsigned long long)i);
        check_case("schedule %llu", (unsigned long long)i);
        run_schedule(&m, i, &t);
    }
    print_message("%llu schedules: %zu sequences, %zu tokens, %zu cancelled, %llu tokens shared, "
                  "%llu set aside, %zu guesses right\n",
                  (unsigned long long)n, t.branches, t.tokens, t.cancelled,
                  (unsigned long long)t.shared, (unsigned long long)t.set_aside, t.right);
    if (n >= 24)
        assert_true(t.cancelled > 0 && t.shared > 0 && t.set_aside > 0 && t.right > 0);
    close_models(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_schedules)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
