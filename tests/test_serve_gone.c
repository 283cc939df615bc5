/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients that leave, at every moment of a request, and the passes that are made for them
 * afterwards: counted, not timed. The engine asks the test for the time, in the middle of each
 * pass, and so the test holds it there.
 */
#ifdef TERN_HAVE_MICROHTTPD
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "serve/server.h"
#include "tests/check.h"
#include "tests/tiny_model.h"

enum { PROMPT = 300, PATIENCE = 30, SUBMITS = 64 /* more than all tests make */ };

/* A step asks for the time when it begins, when it admits somebody, before and after its pass. */
enum { CALLS = 4, FREE = 1 << 30 };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int left;  /* questions that are answered before a pass is held */
    bool held; /* a pass stands still */
    double now;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .left = FREE};

static struct {
    tern_model *model;
    server *server;
    keys keys;
    uint16_t port;
} f;

/* ---- the clock of the engine ----------------------------------------------------------------- */

/* The thread that makes passes asks far more often than those that submit, which are not held. */
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
    (void)pthread_mutex_unlock(&gate.lock);
    return now;
}

static void let(int calls) {
    (void)pthread_mutex_lock(&gate.lock);
    gate.left = calls;
    gate.held = false;
    (void)pthread_cond_broadcast(&gate.changed);
    (void)pthread_mutex_unlock(&gate.lock);
}

/* Returns when the time was asked for `calls` times and a step stands still. No page that asks the
 * engine may be asked for until it goes on. */
static void hold_after(int calls) {
    struct timespec until;
    int late = 0;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE;
    let(calls);
    (void)pthread_mutex_lock(&gate.lock);
    while (!gate.held && late == 0)
        late = pthread_cond_timedwait(&gate.changed, &gate.lock, &until);
    (void)pthread_mutex_unlock(&gate.lock);
    if (late != 0) {
        let(FREE);
        check_fail("no pass is made");
    }
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
    const server_config config = {.http = {.host = "127.0.0.1", .limits = http_limits_default()},
                                  .model = f.model,
                                  .engine = engine,
                                  .name = "small",
                                  .keys = &f.keys,
                                  .sampling = tern_sampler_params_default(),
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

static int dial(void) {
    const struct sockaddr_in place = {.sin_family = AF_INET,
                                      .sin_port = htons(f.port),
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timeval patience = {.tv_sec = PATIENCE};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    assert_int_equal(connect(fd, (const struct sockaddr *)&place, sizeof place), 0);
    return fd;
}

static void say(int fd, const char *text, size_t size) {
    assert_int_equal(send(fd, text, size, MSG_NOSIGNAL), size);
}

/* Reads until `words` came. */
static void hear(int fd, const char *words) {
    char heard[65536];
    size_t n = 0;
    do {
        const ssize_t more = recv(fd, heard + n, sizeof heard - 1 - n, 0);
        if (more <= 0)
            check_fail("\"%s\" did not come: %.*s", words, (int)n, heard);
        n += (size_t)more;
        heard[n] = '\0';
    } while (strstr(heard, words) == NULL);
}

/* A figure of /metrics. */
static double page(const char *name) {
    static const char request[] = "GET /metrics HTTP/1.0\r\n\r\n";
    static char heard[1 << 17];
    size_t n = 0;
    const int fd = dial();
    say(fd, request, sizeof request - 1);
    for (ssize_t more = 1; more > 0 && n<sizeof heard - 1; n += more> 0 ? (size_t)more : 0)
        more = recv(fd, heard + n, sizeof heard - 1 - n, 0);
    heard[n] = '\0';
    (void)close(fd);
    char line[96];
    (void)snprintf(line, sizeof line, "\ntern_%s ", name);
    const char *at = strstr(heard, line);
    assert_non_null(at);
    return strtod(at + strlen(line), NULL);
}

static bool at_rest(void) {
    return page("answers_running") + page("answers_waiting") + page("cache_pages_used") == 0.0;
}

static void wait_until(bool (*reached)(void)) {
    for (int i = 0; i < PATIENCE * 1000; i++) {
        const struct timespec pause = {.tv_nsec = 1000000};
        if (reached())
            return;
        (void)nanosleep(&pause, NULL);
    }
    let(FREE);
    check_fail("it did not happen in %d seconds", PATIENCE);
}

/* The bytes of a request: a prompt of n tokens, and answers that do not end by themselves. */
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
                            "POST /v1/completions HTTP/1.1\r\nHost: a\r\n"
                            "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                            used, body);
}

static int ask(size_t n, bool stream) {
    char request[8192];
    const size_t size = write_request(request, sizeof request, n, stream);
    const int fd = dial();
    say(fd, request, size);
    return fd;
}

/* ---- who leaves ------------------------------------------------------------------------------ */

static unsigned expected;

static bool as_expected(void) {
    return server_active(f.server) == expected;
}

/* Sockets of this process: the server's own one is left. */
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

/* From here on the thread that makes passes is known. */
static void test_an_answer(void **state) {
    (void)state;
    const int fd = ask(4, false);
    hear(fd, "\"finish_reason\":\"length\"");
    (void)close(fd);
    wait_until(at_rest);
}

/* Before its request is whole: no pass is made for it, and nothing stays. */
static void test_before_the_engine_hears_of_it(void **state) {
    (void)state;
    char request[8192];
    const size_t size = write_request(request, sizeof request, 8, true);
    const size_t head = (size_t)(strstr(request, "\r\n\r\n") - request) + 4;
    const size_t parts[] = {0, 1, head / 2, head - 1, head, head + 1, size - 1};
    const double before = page("passes_total"), requests = page("requests_total");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        check_case("after %zu of %zu bytes", parts[i], size);
        const int fd = dial();
        say(fd, request, parts[i]);
        (void)close(fd);
    }
    expected = 0;
    wait_until(as_expected);
    wait_until(no_socket_left);
    assert_true(at_rest());
    assert_int_equal(page("passes_total"), before);
    assert_int_equal(page("requests_total"), requests);
}

/* Leaves while a pass stands still; when that one is over, and before another is made, its client
 * is known to be gone. */
static void leave(int fd, int calls, unsigned stay, const char *what) {
    check_case("%s", what);
    hold_after(calls);
    (void)close(fd);
    let(CALLS);
    expected = stay;
    wait_until(as_expected);
    let(FREE);
}

static void test_in_the_prompt(void **state) {
    (void)state;
    for (int stream = 0; stream < 2; stream++) {
        const double before = page("generated_tokens_total");
        const int fd = ask(PROMPT, stream == 1);
        leave(fd, 4 * CALLS, 0, "a prompt is read");
        wait_until(at_rest);
        assert_int_equal(page("generated_tokens_total"), before);
    }
}

static void test_in_the_answer(void **state) {
    (void)state;
    const int fd = ask(4, true);
    hear(fd, "data: ");
    leave(fd, 1, 0, "an answer is streamed");
    wait_until(at_rest);
}

static bool answering(void) {
    return page("answers_running") == 1.0;
}

static void test_in_a_whole_answer(void **state) {
    (void)state;
    const int fd = ask(4, false);
    wait_until(answering);
    leave(fd, 1, 0, "an answer is made");
    wait_until(at_rest);
}

static bool one_waits(void) {
    return page("answers_waiting") == 1.0;
}

static void test_in_the_queue(void **state) {
    (void)state;
    const int first = ask(4, true);
    hear(first, "data: ");
    const int second = ask(4, true);
    wait_until(one_waits);
    leave(second, 2, 1, "an answer waits for its turn");
    leave(first, 1, 0, "it has not waited");
    wait_until(at_rest);
}

/* All is computed, and nobody is there to read it. */
static void test_at_the_end(void **state) {
    (void)state;
    static const char request[] =
        "POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
        "Content-Length: 29\r\n\r\n{\"prompt\":\"a\",\"max_tokens\":1}";
    const double before = page("requests_total");
    for (int i = 0; i < 8; i++) {
        const int fd = dial();
        say(fd, request, sizeof request - 1);
        if (i % 2 == 0)
            hear(fd, "HTTP/1.1 200");
        (void)close(fd);
    }
    wait_until(at_rest);
    expected = 0;
    wait_until(as_expected);
    assert_true(page("requests_total") <= before + 8.0);
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
#else
int main(void) {
    return 77; /* built without a server */
}
#endif
