/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An engine with requests of every kind, for the test that makes calls fail. "engine MODEL FILE"
 * prints their tokens and digests, saves computed pages as FILE, loads them for another name space,
 * and answers a request that finds them. A request that finds no memory is submitted once more.
 * When it is refused again, the requests before it are still answered, and a line says why.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tern/engine.h"

enum { REQUESTS = 7, BRANCHES = 2, PROMPT = 90, MOST = 6, LATE = 3, CANCELLED = 5, LOADED = 6 };

static const uint8_t loaded_space[TERN_SPACE_BYTES] = {2};

typedef struct answer {
    int32_t tokens[MOST];
    size_t n;
    tern_end end;
    char digest[65];
    size_t n_shared;
    double told; /* the sum of the log-probabilities of its prompt */
} answer;

typedef struct work {
    tern_model *model;
    tern_engine *engine;
    int32_t prompt[PROMPT];
    uint64_t ids[REQUESTS];
    size_t n; /* accepted requests */
    answer answers[REQUESTS][BRANCHES];
    tern_error failed; /* the error of the last answer that ended by one */
} work;

static bool allow_even(void *user, const tern_progress *progress, uint64_t *allowed, size_t words) {
    (void)user;
    (void)progress;
    for (size_t i = 0; i < words; i++)
        allowed[i] &= UINT64_C(0x5555555555555555);
    return true;
}

static size_t guess_the_same(void *user, const tern_progress *progress, int32_t *guesses,
                             size_t most) {
    (void)user;
    for (size_t i = 0; i < most && i < 2; i++)
        guesses[i] = progress->tokens[progress->n - 1];
    return most < 2 ? most : 2;
}

/* One request of each kind, in the order in which they are submitted. */
static tern_request request_of(const work *w, size_t i) {
    static const tern_logit_bias bias = {.token = 42, .bias = 1.0F};
    static const tern_sampler_params warm = {.temperature = 1.0F,
                                             .top_k = 40,
                                             .top_p = 0.9F,
                                             .repetition_penalty = 1.2F,
                                             .repeat_last_n = 64,
                                             .bias = &bias,
                                             .n_bias = 1,
                                             .seed = 3};
    static const char *const texts[] = {"nobody says this", "nor this"};
    static const int32_t stop = 7;
    static const uint8_t space[TERN_SPACE_BYTES] = {1};
    tern_request r = {
        .tokens = w->prompt, .n_tokens = PROMPT, .max_tokens = MOST, .ignore_end = true};
    if (i == 0 || i == 1)
        r.n_logprobs = 3;
    r.prompt_logprobs = i == 0;
    if (i == LOADED)
        r.space = loaded_space;
    if (i == 2)
        r.branches = BRANCHES;
    if (i == 2 || i == LATE)
        r.sampling = &warm;
    if (i == 4)
        r.mask = allow_even;
    if (i == 4 || i == 1)
        r.guess = guess_the_same;
    if (i == LATE) {
        r.stop_texts = texts;
        r.n_stop_texts = 2;
        r.stop_tokens = &stop;
        r.n_stop_tokens = 1;
        r.space = space;
    }
    return r;
}

static tern_status open_all(work *w, const char *path, tern_error *err) {
    tern_engine_params params = tern_engine_params_default();
    params.n_sequences = 3;
    params.n_batch = 40;
    params.threads = 2;
    tern_status s = tern_model_open(path, NULL, &w->model, err);
    if (s == TERN_OK)
        s = tern_engine_new(w->model, &params, &w->engine, err);
    tern_model_info info = {.n_vocab = 0};
    if (s == TERN_OK)
        tern_model_describe(w->model, &info);
    const int32_t n = info.n_vocab > 930 ? 900 : 200;
    for (int32_t i = 0; i < PROMPT; i++)
        w->prompt[i] = 30 + (i * i * 37 + i * 11) % n;
    return s;
}

static tern_status submit(work *w, size_t i, tern_error *err) {
    const tern_request request = request_of(w, i);
    tern_status s = tern_engine_submit(w->engine, &request, &w->ids[i], err);
    if (s == TERN_ERR_NOMEM) {
        fprintf(stderr, "tern: %s: once more\n", err->message);
        s = tern_engine_submit(w->engine, &request, &w->ids[i], err);
    }
    w->n += s == TERN_OK;
    return s;
}

static void note(work *w, const tern_event *event) {
    for (size_t i = 0; i < w->n; i++) {
        answer *a = &w->answers[i][event->branch];
        if (w->ids[i] != event->request)
            continue;
        if (event->kind == TERN_EVENT_PROMPT) {
            a->told += (double)event->position * event->logprob;
            for (size_t k = 0; k < event->n_likeliest; k++)
                a->told += event->likeliest[k].logprob;
        } else if (event->kind == TERN_EVENT_TOKEN) {
            a->tokens[a->n++] = event->token;
        } else {
            a->end = event->end;
            a->n_shared = event->figures.n_shared;
            memcpy(a->digest, event->digest, sizeof a->digest);
            if (event->end == TERN_END_ERROR)
                w->failed = *event->error;
        }
    }
}

/* Makes a step, and checks the state that it must leave whatever failed before it. */
static bool step(work *w) {
    const tern_event *events;
    size_t n;
    if (tern_engine_step(w->engine, &events, &n, NULL) != TERN_OK)
        abort();
    for (size_t i = 0; i < n; i++)
        note(w, &events[i]);
    const tern_engine_state s = tern_engine_now(w->engine);
    if (s.free_pages + s.used_pages + s.cached_pages != s.pages ||
        s.free_window_pages + s.used_window_pages + s.cached_window_pages != s.window_pages)
        abort();
    if (s.waiting + s.running == 0 && s.used_pages + s.used_window_pages > 0)
        abort();
    return s.waiting + s.running > 0;
}

/* The first three are submitted at once. The others come while these run, and nothing waits for the
 * last one. */
static tern_status run(work *w, tern_error *err) {
    tern_status s = TERN_OK;
    for (size_t i = 0; i < LOADED && s == TERN_OK; i++) {
        s = submit(w, i, err);
        if (i >= LATE - 1)
            (void)step(w);
    }
    if (w->n > CANCELLED)
        (void)tern_engine_cancel(w->engine, w->ids[CANCELLED]);
    while (step(w)) {
    }
    return s;
}

/* Pages that were computed for one name space are saved, and found in another one. */
static tern_status save_and_load(work *w, const char *path, tern_error *err) {
    size_t saved = 0, loaded = 0;
    tern_status s = tern_engine_save(w->engine, w->prompt, PROMPT, NULL, path, &saved, err);
    if (s == TERN_OK)
        s = tern_engine_load(w->engine, path, loaded_space, &loaded, err);
    if (s == TERN_OK && (saved == 0 || loaded != saved))
        abort();
    if (s == TERN_OK)
        s = submit(w, LOADED, err);
    while (step(w)) {
    }
    tern_engine_forget(w->engine);
    return s;
}

/* Prints answers up to the first that ended by an error. Everything printed must be right, and the
 * beginning of the full output. */
static bool print(const work *w) {
    for (size_t i = 0; i < w->n; i++)
        for (uint32_t j = 0; j < (i == 2 ? BRANCHES : 1); j++) {
            const answer *a = &w->answers[i][j];
            if (a->end == TERN_END_ERROR)
                return fflush(stdout) == 0;
            if (printf("%zu.%u %s", i, j, tern_end_name(a->end)) < 0)
                return false;
            for (size_t k = 0; k < a->n; k++)
                if (printf(" %d", (int)a->tokens[k]) < 0)
                    return false;
            const size_t loaded = i == LOADED ? a->n_shared : 0;
            if (printf(" %s %.17g %zu\n", a->digest, a->told, loaded) < 0)
                return false;
        }
    return fflush(stdout) == 0;
}

int main(int argc, char **argv) {
    static work w;
    tern_error err = {0};
    tern_status s = argc == 3 ? open_all(&w, argv[1], &err)
                              : tern_fail(&err, TERN_ERR_ARG, "usage: engine MODEL FILE");
    if (s == TERN_OK)
        s = run(&w, &err);
    if (s == TERN_OK)
        s = save_and_load(&w, argv[2], &err);
    if (s == TERN_OK && w.failed.message[0] != '\0')
        s = tern_fail(&err, TERN_ERR_STATE, "an answer: %s", w.failed.message);
    if (!print(&w) && s == TERN_OK)
        s = tern_fail(&err, TERN_ERR_IO, "standard output failed");
    tern_engine_free(&w.engine);
    tern_model_free(&w.model);
    if (s != TERN_OK)
        fprintf(stderr, "tern: %s\n", err.message);
    return s != TERN_OK;
}
