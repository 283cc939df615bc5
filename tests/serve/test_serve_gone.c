/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients that leave, at every moment of a request, and the passes that are still made for them:
 * counted, not timed. The engine asks the test for the time during each pass, which lets the test
 * hold it there.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "serve/server.h"
#include "tests/serve/http_client.h"
#include "tests/support/check.h"
#include "tests/support/one_model.h"
#include "tests/support/tiny_model.h"

enum { PROMPT = 300, SUBMITS = 64 /* more than all tests make */ };

/* A step asks for the time when it begins, when it admits a request, before and after its pass,
 * when its tokens are picked, and for each of them. */
enum { CALLS = 5, FREE = 1 << 30 };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int left;  /* clock readings until a pass is held */
    bool held; /* a pass is being held */
    bool slow; /* each reading takes a while, so that others get their turn */
    double now;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .left = FREE};

static struct {
    tern_model *model;
    server *server;
    keys keys;
    uint16_t port;
} f;

/* ---- the clock of the engine ----------------------------------------------------------------- */

/* Only the thread that makes passes is held. It is recognised by the number of its calls. */
static double the_time(void *user) {
    static _Thread_local unsigned asked;
    (void)user;
    const bool passes = ++asked > SUBMITS;
    (void)pthread_mutex_lock(&gate.lock);
    while (passes && gate.left == 0) {
        gate.held = true;
        (void)pthread_cond_broadcast(&gate.changed);
        (void)pthread_cond_wait(&gate.changed, &gate.lock);
    }
    gate.held = false;
    gate.left -= passes && gate.left < FREE;
    const double now = gate.now += 0.001;
    const bool slow = passes && gate.slow;
    (void)pthread_mutex_unlock(&gate.lock);
    if (slow)
        (void)nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    return now;
}

static void slow_down(bool slow) {
    (void)pthread_mutex_lock(&gate.lock);
    gate.slow = slow;
    (void)pthread_mutex_unlock(&gate.lock);
}

static void let(int calls) {
    (void)pthread_mutex_lock(&gate.lock);
    gate.left = calls;
    gate.held = false;
    (void)pthread_cond_broadcast(&gate.changed);
    (void)pthread_mutex_unlock(&gate.lock);
}

/* Returns when a step is held, after let(calls). Until it goes on, pages that need the engine must
 * not be requested. */
static void wait_held(void) {
    (void)pthread_mutex_lock(&gate.lock);
    while (!gate.held)
        (void)pthread_cond_wait(&gate.changed, &gate.lock);
    (void)pthread_mutex_unlock(&gate.lock);
}

/* ---- the server ------------------------------------------------------------------------------ */

static int set_up(void **state) {
    (void)state;
    tern_error err = {0};
    tern_model_params params = tern_model_params_default();
    if (tern_model_open(TERN_SOURCE_DIR "/models/tern-small.gguf", &params, &f.model, &err) !=
        TERN_OK)
        return -1;
    tern_engine_params engine = tern_engine_params_default();
    engine.n_sequences = 1;
    engine.n_batch = 8;
    engine.n_queue = 8;
    engine.threads = 1;
    engine.clock = the_time;
    static const model_listed listed = {.name = "small", .path = ""};
    static model_setup with;
    with = (model_setup){
        .model = f.model, .engine = engine, .sampling = tern_sampler_params_default()};
    const server_config config = {.http = {.host = "127.0.0.1", .limits = http_limits_default()},
                                  .models = &listed,
                                  .n_models = 1,
                                  .source = one_model(&with),
                                  .keys = &f.keys,
                                  .stalled_seconds = 60.0};
    if (server_open(&config, &f.server, &err) != TERN_OK) {
        (void)fprintf(stderr, "%s\n", err.message);
        return -1;
    }
    f.port = (uint16_t)strtoul(strrchr(server_address(f.server), ':') + 1, NULL, 10);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    server_close(&f.server);
    tern_model_free(&f.model);
    return 0;
}

static bool at_rest(void) {
    return http_client_figure(f.port, "answers_running") +
               http_client_figure(f.port, "answers_waiting") +
               http_client_figure(f.port, "cache_pages_used") ==
           0.0;
}

/* The bytes of a request with a prompt of n tokens and answers that do not end by themselves. */
static size_t write_request(char *out, size_t size, size_t n, bool stream) {
    char body[4096];
    size_t used = (size_t)snprintf(body, sizeof body,
                                   "{\"ignore_eos\":true,\"max_tokens\":-1,\"seed\":1,"
                                   "\"stream\":%s,\"prompt\":[",
                                   stream ? "true" : "false");
    for (size_t i = 0; i < n; i++) {
        used += (size_t)snprintf(body + used, sizeof body - used, "%s%zu", i > 0 ? "," : "",
                                 20 + i % 90);
    }
    used += (size_t)snprintf(body + used, sizeof body - used, "]}");
    return (size_t)snprintf(out, size,
                            "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                            "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                            used, body);
}

static int ask(size_t n, bool stream) {
    char request[8192];
    const size_t size = write_request(request, sizeof request, n, stream);
    const int fd = http_client_dial(f.port);
    http_client_say(fd, request, size);
    return fd;
}

/* ---- leaving --------------------------------------------------------------------------------- */

static unsigned expected;

static bool as_expected(void) {
    return server_active(f.server) == expected;
}

/* The sockets of this process, without the server's own. */
static unsigned sockets(void) {
    unsigned n = 0;
    for (int fd = 3; fd < 256; fd++) {
        int type;
        socklen_t size = sizeof type;
        n += getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
    }
    return n;
}

static bool no_socket_left(void) {
    return sockets() == 1;
}

/* After this, the thread that makes passes is known. */
static void test_an_answer(void **state) {
    (void)state;
    const int fd = ask(4, false);
    http_client_hear(fd, "\"finish_reason\":\"length\"");
    (void)close(fd);
    check_until(at_rest);
}

/* The client leaves before its request is whole. No pass is made for it, and nothing remains. */
static void test_before_the_engine_hears_of_it(void **state) {
    (void)state;
    char request[8192];
    const size_t size = write_request(request, sizeof request, 8, true);
    const size_t head = (size_t)(strstr(request, "\r\n\r\n") - request) + 4;
    const size_t parts[] = {0, 1, head / 2, head - 1, head, head + 1, size - 1};
    const double before = http_client_figure(f.port, "passes_total"),
                 requests = http_client_figure(f.port, "requests_total");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        check_case("after %zu of %zu bytes", parts[i], size);
        const int fd = http_client_dial(f.port);
        http_client_say(fd, request, parts[i]);
        (void)close(fd);
    }
    expected = 0;
    check_until(as_expected);
    check_until(no_socket_left);
    assert_true(at_rest());
    assert_int_equal(http_client_figure(f.port, "passes_total"), before);
    assert_int_equal(http_client_figure(f.port, "requests_total"), requests);
}

/* The client leaves while a pass is held. The server learns that after this pass, and before the
 * next. */
static void leave(int fd, unsigned stay, const char *what) {
    check_case("%s", what);
    wait_held();
    (void)close(fd);
    let(CALLS);
    expected = stay;
    check_until(as_expected);
}

static void test_in_the_prompt(void **state) {
    (void)state;
    for (int stream = 0; stream < 2; stream++) {
        const double before = http_client_figure(f.port, "generated_tokens_total");
        let(4 * CALLS); /* before the request: passes are quick, and this thread may be slow */
        leave(ask(PROMPT, stream == 1), 0, "a prompt is read");
        let(FREE);
        check_until(at_rest);
        assert_int_equal(http_client_figure(f.port, "generated_tokens_total"), before);
    }
}

static void test_in_the_answer(void **state) {
    (void)state;
    let(4 * CALLS);
    const int fd = ask(4, true);
    http_client_hear(fd, "data: ");
    leave(fd, 0, "an answer is streamed");
    let(FREE);
    check_until(at_rest);
}

static double generated;

static bool more_is_generated(void) {
    return http_client_figure(f.port, "generated_tokens_total") > generated;
}

static void test_in_a_whole_answer(void **state) {
    (void)state;
    generated = http_client_figure(f.port, "generated_tokens_total");
    let(4 * CALLS);
    leave(ask(4, false), 0, "an answer is made");
    let(FREE);
    check_until(at_rest);
    check_until(more_is_generated);
}

static bool one_waits(void) {
    return http_client_figure(f.port, "answers_waiting") == 1.0;
}

static void test_in_the_queue(void **state) {
    (void)state;
    slow_down(true);
    const int first = ask(4, true);
    http_client_hear(first, "data: ");
    const int second = ask(4, true);
    check_until(one_waits);
    let(CALLS);
    leave(second, 1, "an answer waits for its turn");
    wait_held();
    let(2 * CALLS); /* reporting its end reads the clock, too */
    leave(first, 0, "it has not waited");
    slow_down(false);
    let(FREE);
    check_until(at_rest);
}

/* Everything is computed, but nobody reads it. */
static void test_at_the_end(void **state) {
    (void)state;
    static const char request[] =
        "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Content-Length: 29\r\n\r\n{\"prompt\":\"a\",\"max_tokens\":1}";
    const double before = http_client_figure(f.port, "requests_total");
    for (int i = 0; i < 8; i++) {
        const int fd = http_client_dial(f.port);
        http_client_say(fd, request, sizeof request - 1);
        if (i % 2 == 0)
            http_client_hear(fd, "HTTP/1.1 200");
        (void)close(fd);
    }
    check_until(at_rest);
    expected = 0;
    check_until(as_expected);
    assert_true(http_client_figure(f.port, "requests_total") <= before + 8.0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_answer),
        cmocka_unit_test(test_before_the_engine_hears_of_it),
        cmocka_unit_test(test_in_the_prompt),
        cmocka_unit_test(test_in_the_answer),
        cmocka_unit_test(test_in_a_whole_answer),
        cmocka_unit_test(test_in_the_queue),
        cmocka_unit_test(test_at_the_end),
    };
    return cmocka_run_group_tests_name("serve_gone", tests, set_up, tear_down);
}
