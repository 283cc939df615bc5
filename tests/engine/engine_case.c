/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/engine/engine_case.h"

#include <string.h>

#include "tests/support/check.h"
#include "tests/support/tiny_model.h"

engine_fixture engine_case;

static double the_time(void *user) {
    return *(const double *)user;
}

void engine_case_open(tern_engine_params params) {
    engine_case_open_in(TERN_FORMAT_F16, params);
}

void engine_case_open_in(tern_format kv, tern_engine_params params) {
    tern_error err = {0};
    check_freed(tern_engine_free, engine_case.engine);
    params.kv = kv;
    params.clock = the_time;
    params.clock_user = &engine_case.now;
    if (tern_engine_new(engine_case.model, &params, &engine_case.engine, &err) != TERN_OK)
        check_fail("%s", err.message);
    engine_case.n = engine_case.steps = 0;
    engine_case.now = 0.0;
    memset(engine_case.answers, 0, sizeof engine_case.answers);
}

int engine_case_begin(void **state) {
    (void)state;
    engine_case.model = tiny_open("llama-tiny-f16", NULL);
    tern_model_describe(engine_case.model, &engine_case.info);
    assert_true(engine_case.info.n_embd <= WIDTH);
    tiny_prompt(engine_case.model, 4, engine_case.prompt, PROMPT);
    return 0;
}

int engine_case_end(void **state) {
    (void)state;
    tern_engine_free(&engine_case.engine);
    check_freed(tern_model_free, engine_case.model);
    return 0;
}

answer *engine_case_answer(uint64_t request, uint32_t branch) {
    for (size_t i = 0; i < engine_case.n; i++)
        if (engine_case.answers[i].request == request && engine_case.answers[i].branch == branch)
            return &engine_case.answers[i];
    assert_true(engine_case.n < ANSWERS);
    engine_case.answers[engine_case.n] = (answer){.request = request, .branch = branch};
    return &engine_case.answers[engine_case.n++];
}

static void note_end(answer *a, const tern_event *event) {
    a->is_over = true;
    a->end = event->end;
    a->stop_text = event->stop_text;
    a->figures = event->figures;
    memcpy(a->digest, event->digest, sizeof a->digest);
    a->is_pooled = event->pooled != NULL;
    if (a->is_pooled)
        memcpy(a->pooled, event->pooled, engine_case.info.n_embd * sizeof(float));
    if (event->error != NULL) {
        a->error = event->error->status;
        memcpy(a->message, event->error->message, sizeof a->message);
    }
}

/* Tokens of the prompt come first and in order, up to the last one. */
static void note_prompt(answer *a, const tern_event *event) {
    const size_t i = event->position;
    assert_true(a->n == 0 && i < PROMPT && event->token == engine_case.prompt[i] &&
                event->size == 0);
    assert_true(a->n_reported == 0 || a->prompt[i - 1][0].logprob < 0.0F);
    a->prompt[i][0] = (tern_logprob){event->token, (float)event->logprob};
    a->exact[i] = event->logprob;
    if (event->n_likeliest > 0)
        memcpy(a->prompt[i] + 1, event->likeliest, 3 * sizeof(tern_logprob));
    a->n_reported++;
}

static void note(const tern_event *event) {
    answer *a = engine_case_answer(event->request, event->branch);
    assert_false(a->is_over);
    if (event->kind == TERN_EVENT_PROMPT) {
        note_prompt(a, event);
        return;
    }
    assert_true(a->size + event->size < sizeof a->text);
    memcpy(a->text + a->size, event->text, event->size);
    a->size += event->size;
    if (event->kind == TERN_EVENT_END) {
        if (event->n_likeliest > 0) {
            assert_int_equal(event->position, PROMPT + a->n);
            a->last[0] = (tern_logprob){event->token, (float)event->logprob};
            memcpy(a->last + 1, event->likeliest, 3 * sizeof(tern_logprob));
        }
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

void engine_case_step(void) {
    const tern_event *events;
    size_t n;
    assert_int_equal(tern_engine_step(engine_case.engine, &events, &n, NULL), TERN_OK);
    engine_case.steps++;
    for (size_t i = 0; i < n; i++)
        note(&events[i]);
}

bool engine_case_is_idle(void) {
    const tern_engine_state s = tern_engine_now(engine_case.engine);
    return s.waiting + s.running == 0;
}

void engine_case_finish(void) {
    while (!engine_case_is_idle())
        engine_case_step();
}

uint64_t engine_case_submit(const tern_request *request) {
    tern_error err = {0};
    uint64_t id = 0;
    if (tern_engine_submit(engine_case.engine, request, &id, &err) != TERN_OK)
        check_fail("%s", err.message);
    return id;
}

tern_request engine_case_request(size_t max_tokens) {
    return (tern_request){.tokens = engine_case.prompt,
                          .n_tokens = PROMPT,
                          .max_tokens = max_tokens,
                          .ignore_end = true};
}

answer *engine_case_run(const tern_request *request) {
    const uint64_t id = engine_case_submit(request);
    engine_case_finish();
    return engine_case_answer(id, 0);
}
