/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/eval/schedules.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/chacha.h"
#include "base/sha256.h"

enum {
    REQUESTS = 8,
    BRANCHES = 3,
    MOST_PROMPT = 200,
    MOST_TOKENS = 330,
    PAGE = TERN_ATTEND_CHUNK,
    ARRIVALS = 30
};

static const tern_format formats[] = {TERN_FORMAT_F16, TERN_FORMAT_F32, TERN_FORMAT_Q8_0};

/* The result of a branch. */
typedef struct answer {
    int32_t tokens[MOST_TOKENS];
    size_t n;
    bool is_over;
    tern_end end;
    char digest[65];
    char prompt[65]; /* SHA-256 of the reported log-probabilities of its prompt */
    tern_sha256 telling;
    tern_branch_figures figures;
} answer;

typedef struct wish {
    tern_request request;
    tern_sampler_params sampling;
    int32_t prompt[MOST_PROMPT];
    uint8_t space[TERN_SPACE_BYTES];
    int32_t stop_token;
    uint32_t n_vocab;
    uint32_t forbidden;     /* tokens with this remainder by 5 are masked; 5 and more: none are */
    const answer *expected; /* [BRANCHES] source of guesses, which are sometimes wrong */
    uint32_t wrong;         /* every how many guesses one is wrong */
    uint64_t id;
    uint32_t arrives, cancelled; /* steps; cancelled 0: never */
} wish;

typedef struct schedule {
    schedules *all;
    uint64_t number;
    tern_chacha random;
    const tern_model *model, *other; /* other: for another instruction set */
    uint32_t n_vocab, n_ctx, longest;
    tern_format kv;
    bool apart; /* every request has a separate name space */
    wish wishes[REQUESTS];
    answer alone[REQUESTS][BRANCHES], answers[REQUESTS][BRANCHES];
    size_t n;
    double now;
    bool failed;
} schedule;

static uint32_t below(schedule *s, uint32_t n) {
    return (uint32_t)((uint64_t)tern_chacha_next(&s->random) * n >> 32);
}

/* Records the first error. */
static void fail(schedule *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void fail(schedule *s, const char *format, ...) {
    char text[SCHEDULES_MESSAGE_BYTES / 2];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (!s->failed) {
        (void)snprintf(s->all->message, sizeof s->all->message, "schedule %llu: %s",
                       (unsigned long long)s->number, text);
    }
    s->failed = true;
}

/* ---- hooks ----------------------------------------------------------------------------------- */

static bool forbid(void *user, const tern_progress *progress, uint64_t *allowed, size_t words) {
    const wish *w = user;
    for (size_t i = (w->forbidden + progress->n) % 5; i < words * 64; i += 5)
        allowed[i / 64] &= ~(UINT64_C(1) << (i % 64));
    return true;
}

/*
 * Guesses what the sequence gave alone, with a wrong token here and there; nothing after its end.
 */
static size_t guess(void *user, const tern_progress *progress, int32_t *guesses, size_t most) {
    const wish *w = user;
    const answer *a = w->expected != NULL ? &w->expected[progress->branch] : NULL;
    size_t n = 0;
    for (size_t at = progress->n - progress->n_prompt; a != NULL && n < most && at < a->n; at++) {
        const bool wrong = (progress->n + n) % w->wrong == 0;
        guesses[n++] = (int32_t)(((uint32_t)a->tokens[at] + wrong) % w->n_vocab);
    }
    return n;
}

/* A random clock: time decides about pieces of prompts, and must not affect anything else. */
static double any_time(void *user) {
    schedule *s = user;
    s->now += 1e-3 * below(s, 20);
    return s->now;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Makes prompts from few families, so that some begin alike. */
static void make_prompt(schedule *s, wish *w) {
    const uint32_t most = below(s, 3) == 0 || s->longest < 100 ? s->longest : 100;
    const uint32_t n = 1 + below(s, most);
    const uint32_t same = below(s, 2) == 0 ? n : below(s, n + 1);
    const uint32_t family = 1 + below(s, 2);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t known = (uint32_t)((i + 7U * family) * UINT64_C(2654435761) >> 8);
        w->prompt[i] = (int32_t)(i < same ? known % s->n_vocab : below(s, s->n_vocab));
    }
    w->request.tokens = w->prompt;
    w->request.n_tokens = n;
}

static void make_sampling(schedule *s, wish *w) {
    w->sampling = tern_sampler_params_default();
    w->sampling.seed = (uint64_t)tern_chacha_next(&s->random) << 32 | below(s, UINT32_MAX);
    w->sampling.temperature = below(s, 3) == 0 ? 0.0F : 0.1F * (float)(1 + below(s, 20));
    w->sampling.top_k = below(s, 2) == 0 ? 0 : 1 + below(s, 40);
    w->sampling.top_p = below(s, 2) == 0 ? 1.0F : 0.9F;
    w->sampling.repetition_penalty = below(s, 3) == 0 ? 1.3F : 1.0F;
    w->request.sampling = &w->sampling;
}

/* Chooses what a request asks for besides tokens. */
static void make_wishes(schedule *s, wish *w) {
    tern_request *r = &w->request;
    r->logprobs = below(s, 6) == 0;
    r->n_logprobs = below(s, 6) == 0 ? 3 : 0;
    r->prompt_logprobs = below(s, 3) == 0;
    r->prompt_from = r->prompt_logprobs ? below(s, (uint32_t)r->n_tokens) : 0;
    r->mask = w->forbidden < 5 ? forbid : NULL;
    r->guess = below(s, 2) == 0 ? guess : NULL;
    r->draft = (tern_draft_mode)below(s, 3);
    r->user = w;
}

static void make_wish(schedule *s, size_t i) {
    wish *w = &s->wishes[i];
    *w = (wish){.n_vocab = s->n_vocab, .forbidden = below(s, 12), .wrong = 2 + below(s, 8)};
    make_prompt(s, w);
    make_sampling(s, w);
    tern_request *r = &w->request;
    const uint32_t room = s->n_ctx - (uint32_t)r->n_tokens;
    r->max_tokens = below(s, 3) == 0 ? 0 : 1 + below(s, room < 60 ? room : 60);
    r->ignore_end = below(s, 3) > 0;
    w->stop_token = (int32_t)below(s, s->n_vocab);
    r->stop_tokens = &w->stop_token;
    r->n_stop_tokens = below(s, 2);
    r->branches = below(s, 4) == 0 ? 1 + below(s, BRANCHES) : 0;
    r->priority = (int32_t)below(s, 2);
    w->space[0] = below(s, 4) == 0;
    w->space[1] = s->apart ? (uint8_t)(1 + i) : 0;
    r->space = w->space;
    make_wishes(s, w);
    w->arrives = below(s, ARRIVALS);
    w->cancelled = below(s, 5) == 0 ? w->arrives + below(s, ARRIVALS) : 0;
}

static size_t branches_of(const wish *w) {
    return w->request.branches > 0 ? w->request.branches : 1;
}

/* ---- running --------------------------------------------------------------------------------- */

static void begin(answer *a) {
    *a = (answer){0};
    tern_sha256_start(&a->telling);
}

/* Hashes everything in an event about a prompt's token. */
static void note_prompt(answer *a, const tern_event *e) {
    tern_sha256_add(&a->telling, &e->position, sizeof e->position);
    tern_sha256_add(&a->telling, &e->token, sizeof e->token);
    tern_sha256_add(&a->telling, &e->logprob, sizeof e->logprob);
    for (size_t i = 0; i < e->n_likeliest; i++) {
        tern_sha256_add(&a->telling, &e->likeliest[i].token, sizeof e->likeliest[i].token);
        tern_sha256_add(&a->telling, &e->likeliest[i].logprob, sizeof e->likeliest[i].logprob);
    }
}

static void note(schedule *s, answer *a, const tern_event *e) {
    if (a->is_over || a->n >= MOST_TOKENS) {
        fail(s, "events of a sequence that is over");
    } else if (e->kind == TERN_EVENT_PROMPT) {
        note_prompt(a, e);
    } else if (e->kind == TERN_EVENT_TOKEN) {
        a->tokens[a->n++] = e->token;
    } else {
        a->is_over = true;
        a->end = e->end;
        a->figures = e->figures;
        memcpy(a->digest, e->digest, sizeof a->digest);
        tern_sha256_finish(&a->telling, a->prompt);
        if (e->error != NULL)
            fail(s, "%s", e->error->message);
    }
}

static void submit(schedule *s, tern_engine *e, wish *w) {
    tern_error err = {0};
    if (tern_engine_submit(e, &w->request, &w->id, &err) != TERN_OK)
        fail(s, "%s", err.message);
}

/* Makes a pass; answers[n][BRANCHES] belong to wishes[n]. */
static void step(schedule *s, tern_engine *e, const wish *wishes, size_t n, answer *answers) {
    const tern_event *events;
    size_t n_events;
    tern_error err = {0};
    if (tern_engine_step(e, &events, &n_events, &err) != TERN_OK) {
        fail(s, "%s", err.message);
        return;
    }
    for (size_t i = 0; i < n_events; i++) {
        for (size_t j = 0; j < n; j++)
            if (wishes[j].id == events[i].request)
                note(s, &answers[j * BRANCHES + events[i].branch], &events[i]);
    }
}

static bool is_idle(schedule *s, tern_engine *e) {
    const tern_engine_state now = tern_engine_now(e);
    if (now.free_pages + now.used_pages + now.cached_pages != now.pages) {
        fail(s, "%u free, %u used and %u cached pages of %u", now.free_pages, now.used_pages,
             now.cached_pages, now.pages);
    }
    if (now.free_window_pages + now.used_window_pages + now.cached_window_pages !=
        now.window_pages) {
        fail(s, "%u free, %u used and %u cached pages of windows of %u", now.free_window_pages,
             now.used_window_pages, now.cached_window_pages, now.window_pages);
    }
    return now.waiting + now.running == 0;
}

static tern_engine *open_engine(schedule *s, const tern_model *model,
                                const tern_engine_params *params) {
    tern_error err = {0};
    tern_engine *e = NULL;
    if (tern_engine_new(model, params, &e, &err) != TERN_OK)
        fail(s, "%s", err.message);
    return e;
}

/* Runs one branch of a wish alone, without the features that must not affect the result. */
static void run_alone(schedule *s, const wish *w, size_t most, size_t branch, answer *out) {
    const tern_engine_params params = {
        .n_ctx = s->n_ctx, .n_sequences = 1, .n_batch = 33, .threads = 1, .kv = s->kv};
    tern_engine *e = open_engine(s, s->other, &params);
    wish copy = *w;
    answer answers[BRANCHES];
    begin(&answers[0]);
    copy.sampling.seed += branch;
    copy.request.sampling = &copy.sampling;
    copy.request.branches = 0;
    copy.request.guess = NULL;
    copy.request.draft = TERN_DRAFT_NEVER;
    copy.request.logprobs = false;
    copy.request.n_logprobs = w->request.prompt_logprobs ? w->request.n_logprobs : 0;
    copy.request.prompt_logprobs = w->request.prompt_logprobs && branch == 0;
    copy.request.max_tokens = most;
    if (e != NULL)
        submit(s, e, &copy);
    while (!s->failed && !is_idle(s, e))
        step(s, e, &copy, 1, answers);
    *out = answers[0];
    tern_engine_free(&e);
}

/* Does the same by tern_generate, if the request asks for nothing that it lacks. */
static tern_status generate(const schedule *s, const wish *w, size_t branch, tern_session *session,
                            tern_sampler **sampler, tern_generation *result, tern_error *err) {
    tern_sampler_params sampling = w->sampling;
    const tern_generate_params params = {.max_tokens = w->request.max_tokens,
                                         .ignore_end = w->request.ignore_end,
                                         .stop_tokens = w->request.stop_tokens,
                                         .n_stop_tokens = w->request.n_stop_tokens,
                                         .draft = w->request.draft};
    sampling.seed += branch;
    const tern_status status = tern_sampler_new(&sampling, s->n_vocab, sampler, err);
    return status == TERN_OK ? tern_generate(session, *sampler, w->prompt, w->request.n_tokens,
                                             &params, NULL, NULL, result, err)
                             : status;
}

static void check_session(schedule *s, size_t i, size_t branch) {
    const wish *w = &s->wishes[i];
    const answer *alone = &s->alone[i][branch];
    const tern_session_params params = {
        .n_ctx = s->n_ctx, .n_batch = 64, .threads = 2, .kv = s->kv};
    tern_session *session = NULL;
    tern_sampler *sampler = NULL;
    tern_generation result = {0};
    tern_error err = {0};
    if (s->failed || w->request.mask != NULL || w->request.max_tokens == 0)
        return;
    if (tern_session_new(s->model, &params, &session, &err) != TERN_OK ||
        generate(s, w, branch, session, &sampler, &result, &err) != TERN_OK) {
        fail(s, "%s", err.message);
    } else if (result.n_generated != alone->n ||
               memcmp(tern_session_tokens(session) + w->request.n_tokens, alone->tokens,
                      alone->n * sizeof *alone->tokens) != 0) {
        fail(s, "request %zu, branch %zu: tern_generate gives other tokens than an engine", i,
             branch);
    }
    tern_sampler_free(&sampler);
    tern_session_free(&session);
}

/* ---- comparing ------------------------------------------------------------------------------- */

static void compare(schedule *s, size_t i, size_t branch, const answer *alone) {
    const answer *got = &s->answers[i][branch];
    size_t same = 0;
    while (same < got->n && same < alone->n && got->tokens[same] == alone->tokens[same])
        same++;
    if (same < got->n || same < alone->n) {
        fail(s, "request %zu, branch %zu: %zu tokens, alone %zu, the first %zu are the same", i,
             branch, got->n, alone->n, same);
    } else if (strcmp(got->digest, alone->digest) != 0) {
        fail(s, "request %zu, branch %zu: %zu tokens that end as %s: digest %s, alone %s", i,
             branch, got->n, tern_end_name(got->end), got->digest, alone->digest);
    } else if (strcmp(got->prompt, alone->prompt) != 0) {
        fail(s, "request %zu: its prompt's tokens have other log-probabilities alone", i);
    }
}

static void check_answer(schedule *s, size_t i, size_t branch) {
    const wish *w = &s->wishes[i];
    const answer *got = &s->answers[i][branch], *alone = &s->alone[i][branch];
    answer shorter;
    if (s->apart && branch == 0 && got->figures.n_shared > 0)
        fail(s, "request %zu shares %zu tokens with another name space", i, got->figures.n_shared);
    if (got->end == TERN_END_CANCELLED && got->n == 0)
        return;                           /* perhaps cancelled within its prompt */
    if (got->end == TERN_END_CANCELLED) { /* perhaps cancelled before the last token */
        run_alone(s, w, got->n, branch, &shorter);
        alone = &shorter;
    } else if (got->end != alone->end) {
        fail(s, "request %zu, branch %zu ends as %s, alone as %s", i, branch,
             tern_end_name(got->end), tern_end_name(alone->end));
    }
    if (!s->failed)
        compare(s, i, branch, alone);
}

/* ---- a schedule ------------------------------------------------------------------------------ */

static tern_engine_params random_params(schedule *s) {
    const uint32_t pages = (s->n_ctx + PAGE - 1) / PAGE;
    const uint64_t one = tern_model_kv_bytes(s->model, PAGE, s->kv);
    return (tern_engine_params){.n_ctx = s->n_ctx,
                                .pool_bytes = one * (pages + below(s, 3 * pages)),
                                .n_sequences = 1 + below(s, 6),
                                .n_queue = REQUESTS * BRANCHES,
                                .n_ahead = 1 + below(s, 100),
                                .n_batch = 6 + below(s, below(s, 2) == 0 ? 90 : 8),
                                .threads = 1 + below(s, 4),
                                .kv = s->kv,
                                .gap_seconds = below(s, 2) == 0 ? 0.05 : 0.0,
                                .clock = any_time,
                                .clock_user = s};
}

static void run_together(schedule *s) {
    const tern_engine_params params = random_params(s);
    tern_engine *e = s->failed ? NULL : open_engine(s, s->model, &params);
    for (uint32_t at = 0; !s->failed && (at < ARRIVALS || !is_idle(s, e)); at++) {
        for (size_t i = 0; i < s->n; i++) {
            if (s->wishes[i].arrives == at)
                submit(s, e, &s->wishes[i]);
            if (s->wishes[i].cancelled == at && at > 0)
                (void)tern_engine_cancel(e, s->wishes[i].id);
        }
        if (below(s, 20) == 0)
            tern_engine_forget(e);
        step(s, e, s->wishes, s->n, s->answers[0]);
    }
    if (!s->failed) {
        const tern_engine_state now = tern_engine_now(e);
        s->all->totals.shared_tokens += now.shared_tokens;
        s->all->totals.set_aside += now.set_aside;
        if (now.used_pages + now.used_window_pages != 0)
            fail(s, "%u pages are used when all is over", now.used_pages + now.used_window_pages);
    }
    tern_engine_free(&e);
}

/* Makes the requests, and runs each sequence alone. */
static void make_requests(schedule *s) {
    s->n = 2 + below(s, REQUESTS - 1);
    for (size_t i = 0; i < s->n && !s->failed; i++) {
        wish *w = &s->wishes[i];
        make_wish(s, i);
        for (size_t j = 0; j < branches_of(w); j++) {
            begin(&s->answers[i][j]);
            run_alone(s, w, w->request.max_tokens, j, &s->alone[i][j]);
            check_session(s, i, j);
        }
        w->expected = s->alone[i];
    }
}

/* Opens the models of a schedule, and sets the length of its sequences. */
static void find_models(schedule *s) {
    const schedules *all = s->all;
    const size_t turn = (size_t)((s->number / 4 + s->number / 12) % all->n_isas);
    const size_t isa = all->only < all->n_isas ? all->only : turn;
    tern_error err = {0};
    tern_model_info info;
    s->model = all->model(all->user, s->number, isa, &err);
    s->other =
        s->model != NULL ? all->model(all->user, s->number, (isa + 1) % all->n_isas, &err) : NULL;
    if (s->other == NULL) {
        fail(s, "%s", err.message);
        return;
    }
    tern_model_describe(s->model, &info);
    const uint32_t most = info.n_ctx_train < MOST_TOKENS ? info.n_ctx_train : MOST_TOKENS;
    s->n_vocab = info.n_vocab;
    s->longest = most * 3 / 5 < MOST_PROMPT ? most * 3 / 5 : MOST_PROMPT;
    s->n_ctx = s->longest + 2 + below(s, most - s->longest - 2);
    s->kv = formats[s->number / 4 % 3];
    s->apart = s->number % 5 == 4;
}

static void check_answers(schedule *s) {
    schedules_totals *t = &s->all->totals;
    for (size_t i = 0; i < s->n; i++) {
        for (size_t j = 0; j < branches_of(&s->wishes[i]) && !s->failed; j++) {
            const answer *a = &s->answers[i][j];
            check_answer(s, i, j);
            t->sequences++;
            t->tokens += a->n;
            t->cancelled += a->end == TERN_END_CANCELLED;
            t->guesses_right += a->figures.n_guessed_right;
        }
    }
    t->schedules++;
}

bool schedules_run(schedules *all, uint64_t number) {
    schedule *s = calloc(1, sizeof *s);
    if (s == NULL) {
        (void)snprintf(all->message, sizeof all->message, "no memory for a schedule");
        return false;
    }
    s->all = all;
    s->number = number;
    tern_chacha_seed(&s->random, number);
    find_models(s);
    if (!s->failed)
        make_requests(s);
    run_together(s);
    if (!s->failed)
        check_answers(s);
    const bool same = !s->failed;
    free(s);
    return same;
}
