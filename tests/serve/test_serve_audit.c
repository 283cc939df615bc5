/* SPDX-License-Identifier: Apache-2.0 */
/* A server's audit of itself: an answer that differs when it is repeated is counted. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "serve/server.h"
#include "serve/work/audit.h"
#include "tests/serve/http_client.h"
#include "tests/support/check.h"
#include "tests/support/one_model.h"
#include "tests/support/tiny_model.h"

#define MODEL_FILE TERN_SOURCE_DIR "/models/tern-small.gguf"

enum { MOST = 12 };

typedef struct fixture {
    tern_model *model, *other; /* with the processor's kernels and with scalar ones */
    tern_sampler_params sampling;
    int32_t prompt[3], tokens[MOST];
    receipt_answer answer; /* with the model */
    char digest[65];
    audit *audit;
} fixture;

static fixture f;

static tern_model *open_model(const char *isa) {
    tern_model_params params = tern_model_params_default();
    tern_model *model = NULL;
    tern_error err = {0};
    params.isa = isa;
    if (tern_model_open(MODEL_FILE, &params, &model, &err) != TERN_OK)
        fail_msg("%s", err.message);
    return model;
}

/* An answer as a server gives it, computed beside another sequence. */
static void give_answer(const tern_request *request) {
    tern_engine_params params = tern_engine_params_default();
    tern_engine *engine;
    tern_error err = {0};
    uint64_t id, other;
    params.n_ctx = 64;
    assert_int_equal(tern_engine_new(f.model, &params, &engine, &err), TERN_OK);
    assert_int_equal(tern_engine_submit(engine, request, &id, &err), TERN_OK);
    assert_int_equal(tern_engine_submit(engine, request, &other, &err), TERN_OK);
    size_t n_picked = 0;
    while (tern_engine_now(engine).waiting + tern_engine_now(engine).running > 0) {
        const tern_event *events;
        size_t n;
        assert_int_equal(tern_engine_step(engine, &events, &n, &err), TERN_OK);
        for (size_t i = 0; i < n; i++) {
            if (events[i].request == id && events[i].kind == TERN_EVENT_TOKEN) {
                f.tokens[n_picked++] = events[i].token;
            } else if (events[i].request == id) {
                memcpy(f.digest, events[i].digest, sizeof f.digest);
                f.answer.end = events[i].end;
            }
        }
    }
    tern_engine_free(&engine);
    f.answer.n_tokens = n_picked;
}

static int set_up(void **state) {
    (void)state;
    f = (fixture){
        .model = open_model(NULL), .other = open_model("scalar"), .prompt = {1, 300, 301}};
    f.sampling = tern_sampler_params_default();
    f.sampling.temperature = 1.0F;
    f.sampling.seed = 5;
    const tern_request request = {.tokens = f.prompt,
                                  .n_tokens = 3,
                                  .sampling = &f.sampling,
                                  .max_tokens = MOST,
                                  .ignore_end = true};
    give_answer(&request);
    f.answer.prompt = f.prompt;
    f.answer.n_prompt = 3;
    f.answer.tokens = f.tokens;
    f.answer.sampling = &f.sampling;
    f.answer.max_tokens = MOST;
    f.answer.ignore_end = true;
    f.answer.digest = f.digest;
    tern_error err = {0};
    tern_engine_params like = tern_engine_params_default();
    like.n_ctx = 64;
    assert_int_equal(audit_open(f.other, &like, &f.audit, &err), TERN_OK);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    check_freed(audit_free, f.audit);
    tern_model_free(&f.other);
    tern_model_free(&f.model);
    return 0;
}

static answer_metrics audited(const receipt_answer *answer) {
    answer_metrics found = {0};
    audit_note(f.audit, answer);
    while (audit_step(f.audit, &found)) {
    }
    return found;
}

static void test_the_same(void **state) {
    (void)state;
    assert_int_equal(f.answer.n_tokens, MOST);
    for (int round = 0; round < 2; round++) {
        const answer_metrics found = audited(&f.answer);
        assert_int_equal(found.replays, 1);
        assert_int_equal(found.mismatches, 0);
    }
}

/* Each part of an answer is changed alone, and each change is noticed. */
static void test_differences(void **state) {
    (void)state;
    int32_t tokens[MOST];
    char digest[65];
    memcpy(tokens, f.tokens, sizeof tokens);
    memcpy(digest, f.digest, sizeof digest);
    tokens[7]++;
    digest[0] = digest[0] == '0' ? '1' : '0';
    receipt_answer wrong[4] = {f.answer, f.answer, f.answer, f.answer};
    wrong[0].digest = digest;
    wrong[1].tokens = tokens;
    wrong[2].n_tokens--;
    wrong[3].end = TERN_END_OF_TEXT;
    for (int i = 0; i < 4; i++) {
        check_case("%d", i);
        const answer_metrics found = audited(&wrong[i]);
        assert_int_equal(found.replays, 1);
        assert_int_equal(found.mismatches, 1);
    }
    assert_int_equal(audited(&f.answer).mismatches, 0);
}

static void test_one_at_a_time(void **state) {
    (void)state;
    answer_metrics found = {0};
    assert_false(audit_step(f.audit, &found));
    receipt_answer wrong = f.answer;
    wrong.n_tokens--;
    audit_note(f.audit, &f.answer);
    audit_note(f.audit, &wrong); /* ignored, since an audit is under way */
    while (audit_step(f.audit, &found)) {
    }
    assert_int_equal(found.replays, 1);
    assert_int_equal(found.mismatches, 0);
}

/* Opens a server that repeats answers of `model` on `other`, and returns its port. */
static server *open_server(const tern_model *model, const tern_model *other, uint16_t *port) {
    static keys none;
    server *s = NULL;
    tern_error err = {0};
    static const model_listed listed = {.name = "tiny", .path = ""};
    static model_setup with;
    with = (model_setup){.model = model,
                         .audit = other,
                         .engine = tern_engine_params_default(),
                         .sampling = tern_sampler_params_default()};
    const server_config config = {.http = {.host = "127.0.0.1", .limits = http_limits_default()},
                                  .models = &listed,
                                  .n_models = 1,
                                  .source = one_model(&with),
                                  .keys = &none,
                                  .stalled_seconds = 60.0};
    if (server_open(&config, &s, &err) != TERN_OK)
        check_fail("%s", err.message);
    *port = (uint16_t)strtoul(strrchr(server_address(s), ':') + 1, NULL, 10);
    return s;
}

static void ask_for_tokens(uint16_t port) {
    static const char body[] = "{\"prompt\":[1,2,3],\"max_tokens\":4,\"ignore_eos\":true}";
    char request[512];
    const int n = snprintf(request, sizeof request,
                           "POST /completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                           "application/json\r\nContent-Length: %zu\r\n\r\n%s",
                           sizeof body - 1, body);
    const int fd = http_client_dial(port);
    http_client_say(fd, request, (size_t)n);
    http_client_hear(fd, "\"finish_reason\":\"length\"");
    (void)close(fd);
}

/* A model with other weights stands for a machine that computes wrongly. */
static void test_a_server_counts(void **state) {
    (void)state;
    tern_model *model = tiny_open("llama-tiny-f16", NULL);
    tern_model *wrong = tiny_open("llama-tiny-q4_0", NULL);
    for (int i = 0; i < 2; i++) {
        uint16_t port;
        check_case("%s", i == 0 ? "the same weights" : "other weights");
        server *s = open_server(model, i == 0 ? model : wrong, &port);
        ask_for_tokens(port);
        while (http_client_figure(port, "replays_total") < 1.0)
            (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        assert_int_equal(http_client_figure(port, "replay_mismatch_total"), i);
        check_freed(server_close, s);
    }
    tern_model_free(&wrong);
    tern_model_free(&model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_same), cmocka_unit_test(test_differences),
        cmocka_unit_test(test_one_at_a_time), cmocka_unit_test(test_a_server_counts)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
