/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_ENGINE_ENGINE_CASE_H
#define TERN_TESTS_ENGINE_ENGINE_CASE_H

/* An engine over a tiny model, and the events of each answer. A test program has one. */

#include "tern/engine.h"

enum { PROMPT = 150, MOST = 64, ANSWERS = 24 }; /* prompt and answer in tokens */
enum { WIDTH = 128 };                           /* of hidden states, at most */

typedef struct answer {
    uint64_t request;
    uint32_t branch;
    int32_t tokens[MOST];
    tern_logprob first[MOST][4]; /* its own, then the likeliest */
    size_t n, n_likeliest;
    tern_logprob last[4];           /* the same for the token that ended it */
    tern_logprob prompt[PROMPT][4]; /* the same for the prompt's tokens */
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
    float pooled[WIDTH]; /* the vector of a prompt */
    bool is_pooled;
    tern_branch_figures figures;
} answer;

typedef struct engine_fixture {
    tern_model *model;
    tern_model_info info;
    tern_engine *engine;
    int32_t prompt[PROMPT];
    answer answers[ANSWERS];
    size_t n, steps;
    double now;
} engine_fixture;

extern engine_fixture engine_case;

/* Setup and teardown of a group of tests: open and close the model. */
int engine_case_begin(void **state);
int engine_case_end(void **state);

/* Replaces the engine by a new one with an f16 cache and the clock `now`. */
void engine_case_open(tern_engine_params params);
void engine_case_open_in(tern_format kv, tern_engine_params params); /* with a cache of format kv */

/* A request of the whole prompt that does not stop at the end of text. */
tern_request engine_case_request(size_t max_tokens);

uint64_t engine_case_submit(const tern_request *request);
void engine_case_step(void); /* makes a step, records and checks its events */
bool engine_case_is_idle(void);
void engine_case_finish(void); /* makes steps until nothing waits or runs */

/* The record of a branch. Creates one if there is none. */
answer *engine_case_answer(uint64_t request, uint32_t branch);

/* Submits a request, finishes, and returns the record of its first branch. */
answer *engine_case_run(const tern_request *request);

#endif
