/* SPDX-License-Identifier: Apache-2.0 */
/* Connections. Clients' bytes go in, in pieces of any size, and whole replies come out, one for
 * each request, in order. The hooks record the requests. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "serve/http/http.h"
#include "serve/http/internal.h"
#include "tests/serve/http_client.h"
#include "tests/support/check.h"

enum { BODY = 1000, HEADER = 2000, MOST = 1 << 16, CONNECTIONS = 8 };

static struct {
    http_server *server;
    uint16_t port;
    _Atomic unsigned refused;         /* calls of `done` without a path */
    http_exchange *held[CONNECTIONS]; /* those of /late, which wait for let_go() */
    _Atomic size_t n_held;
} f;

static bool admit(void *user, http_exchange *x) {
    (void)user;
    if (strcmp(http_path(x), "/refused") != 0)
        return true;
    http_reply(x, 404, "text/plain", strdup("no"), 2);
    return false;
}

/* Replies with METHOD PATH, the body, and the field X. Late replies are the test's. */
static void handle(void *user, http_exchange *x) {
    size_t size;
    char *said = NULL;
    const char *body = http_body(x, &size), *field = http_request_header(x, "X");
    (void)user;
    if (http_status(x) != 0)
        return;
    if (strncmp(http_path(x), "/late", 5) == 0) {
        http_keep(x);
        if (strcmp(http_path(x), "/late-stream") == 0)
            http_stream_open(x, NULL);
        f.held[f.n_held++] = x;
        return;
    }
    if (strcmp(http_path(x), "/304") == 0 || strcmp(http_path(x), "/204") == 0) {
        http_reply(x, (unsigned)strtoul(http_path(x) + 1, NULL, 10), "text/plain", NULL, 0);
        return;
    }
    const int n = asprintf(&said, "<%s %s [%.*s] %s>", http_method(x), http_path(x), (int)size,
                           body, field != NULL ? field : "");
    if (strcmp(http_path(x), "/stream") != 0) {
        http_reply(x, 200, "text/plain", said, (size_t)n);
        return;
    }
    http_stream_open(x, NULL);
    (void)http_stream_write(x, said, (size_t)n);
    http_stream_end(x);
    free(said);
}

static void done(void *user, http_exchange *x, bool whole) {
    (void)user;
    (void)whole;
    f.refused += http_path(x)[0] == '\0';
}

static int open_server(void **state) {
    (void)state;
    http_config config = {.host = "127.0.0.1",
                          .limits = http_limits_default(),
                          .hooks = {.admit = admit, .handle = handle, .done = done}};
    config.limits.body_bytes = BODY;
    config.limits.header_bytes = HEADER;
    config.limits.connections = CONNECTIONS;
    tern_error err = {0};
    if (http_open(&config, &f.server, &err) != TERN_OK)
        fail_msg("%s", err.message);
    f.port = (uint16_t)strtoul(strrchr(http_address(f.server), ':') + 1, NULL, 10);
    return 0;
}

static int close_server(void **state) {
    (void)state;
    http_close(&f.server);
    return 0;
}

/* ---- replies --------------------------------------------------------------------------------- */

/* Receives everything that the server sends. */
static void hear_all(int fd, char heard[MOST]) {
    size_t n = 0;
    for (ssize_t more = 1; more > 0 && n<MOST - 1; n += more> 0 ? (size_t)more : 0)
        more = recv(fd, heard + n, MOST - 1 - n, 0);
    heard[n] = '\0';
}

/* Sends bytes in pieces. They ask the server to close after the last request. */
static void exchange(const char *bytes, size_t size, size_t piece, char heard[MOST]) {
    const int fd = http_client_dial(f.port);
    for (size_t at = 0; at < size; at += piece)
        if (send(fd, bytes + at, at + piece < size ? piece : size - at, MSG_NOSIGNAL) < 0)
            break; /* the server reads no further */
    hear_all(fd, heard);
    (void)close(fd);
}

/* The statuses of all replies, each followed by a blank. */
static void statuses_of(const char *heard, char *out, size_t size) {
    size_t n = 0;
    out[0] = '\0';
    for (const char *at = heard; (at = strstr(at, "HTTP/1.1 ")) != NULL; at += 9)
        n += (size_t)snprintf(out + n, size - n, "%.3s ", at + 9);
}

typedef struct talk {
    const char *what;
    const char *bytes;
    size_t size;
    const char *statuses;
    const char *last; /* end of the last reply; NULL: not checked */
} talk;

#define TEXT(literal) literal, sizeof literal - 1
#define H "Host: x\r\n"
#define CLOSE H "Connection: close\r\n"
#define LAST "GET /last HTTP/1.1\r\n" CLOSE "\r\n"

static const talk talks[] = {
    {"one", TEXT(LAST), "200 ", "<GET /last [] >"},
    {"one after another",
     TEXT("GET /a HTTP/1.1\r\n" H "X: 1\r\n\r\nGET /b HTTP/1.1\r\n" H "\r\n" LAST), "200 200 200 ",
     "<GET /last [] >"},
    {"a body", TEXT("POST /a HTTP/1.1\r\n" CLOSE "X: y\r\nContent-Length: 3\r\n\r\nabc"), "200 ",
     "<POST /a [abc] y>"},
    {"a body, and another request",
     TEXT("POST /a HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nabc" LAST), "200 200 ",
     "<GET /last [] >"},
    {"chunks",
     TEXT("POST /a HTTP/1.1\r\n" CLOSE "Transfer-Encoding: chunked\r\n\r\n"
          "2;x\r\nab\r\n1\r\nc\r\n0\r\nA: b\r\n\r\n"),
     "200 ", "<POST /a [abc] >"},
    {"chunks, and another request",
     TEXT("POST /a HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n" LAST),
     "200 200 ", "<GET /last [] >"},
    {"escapes and arguments", TEXT("GET /a%2fb%00?c=d HTTP/1.1\r\n" CLOSE "\r\n"), "200 ",
     "<GET /a/b%00 [] >"},
    {"an absolute address", TEXT("GET http://x/a?b HTTP/1.1\r\n" CLOSE "\r\n"), "200 ",
     "<GET /a [] >"},
    {"an absolute address without a path", TEXT("GET http://x HTTP/1.1\r\n" CLOSE "\r\n"), "200 ",
     "<GET / [] >"},
    {"a body that is not wanted",
     TEXT("POST /refused HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nabc" LAST), "404 200 ",
     "<GET /last [] >"},
    {"HTTP/1.0 ends", TEXT("GET /a HTTP/1.0\r\n\r\n"), "200 ", "<GET /a [] >"},
    {"HTTP/1.0 is kept", TEXT("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" LAST), "200 200 ",
     "<GET /last [] >"},
    {"one field of several says that it ends",
     TEXT("GET /a HTTP/1.1\r\n" H "Connection: keep-alive\r\nConnection: x, CLOSE\r\n\r\n" LAST),
     "200 ", "<GET /a [] >"},
    {"one field of several says that HTTP/1.0 is kept",
     TEXT("GET /a HTTP/1.0\r\nConnection: x\r\nConnection: keep-alive\r\n\r\n" LAST), "200 200 ",
     "<GET /last [] >"},
    {"a head alone", TEXT("HEAD /a HTTP/1.1\r\n" CLOSE "\r\n"), "200 ", "\r\n\r\n"},
    {"a stream", TEXT("GET /stream HTTP/1.1\r\n" H "\r\n" LAST), "200 200 ", "<GET /last [] >"},
    {"a stream in chunks", TEXT("GET /stream HTTP/1.1\r\n" CLOSE "\r\n"), "200 ",
     "\r\n11\r\n<GET /stream [] >\r\n0\r\n\r\n"},
    {"a stream of HTTP/1.0", TEXT("GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" LAST),
     "200 ", "\r\n\r\n<GET /stream [] >"},
    {"who asks first",
     TEXT("POST /a HTTP/1.1\r\n" CLOSE "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n"
          "abc"),
     NULL, "<POST /a [abc] >"}, /* with or without a 100, depending on timing */
    {"who asks first and is refused",
     TEXT("POST /refused HTTP/1.1\r\n" H "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n"),
     "404 ", NULL},

    {"no host", TEXT("GET /a HTTP/1.1\r\n\r\n" LAST), "400 ", NULL},
    {"another host", TEXT("GET http://y/ HTTP/1.1\r\n" H "\r\n" LAST), "400 ", NULL},
    {"a line feed", TEXT("GET /a HTTP/1.1\n" H "\r\n" LAST), "400 ", NULL},
    {"a sound one before it", TEXT("GET /a HTTP/1.1\r\n" H "\r\nGET /b HTTP/1.1\n\r\n" LAST),
     "200 400 ", NULL},
    {"a zero in a length", TEXT("POST /a HTTP/1.1\r\n" H "Content-Length: 3\0 4\r\n\r\nabc" LAST),
     "400 ", NULL},
    {"length and chunks",
     TEXT("POST /a HTTP/1.1\r\n" H
          "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" LAST),
     "400 ", NULL},
    {"chunks of HTTP/1.0",
     TEXT("POST /a HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" LAST), "400 ", NULL},
    {"a wrong chunk",
     TEXT("POST /a HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n" LAST),
     "400 ", NULL},
    {"a wrong chunk that is not wanted",
     TEXT("POST /refused HTTP/1.1\r\n" H
          "Transfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n" LAST),
     "404 ", NULL},
    {"another version", TEXT("GET /a HTTP/2.0\r\n" H "\r\n" LAST), "505 ", NULL},
    {"a long body", TEXT("POST /a HTTP/1.1\r\n" H "Content-Length: 1001\r\n\r\n" LAST), "413 ",
     NULL},
};

static void test_talks(void **state) {
    (void)state;
    static char heard[MOST];
    for (size_t i = 0; i < sizeof talks / sizeof *talks; i++)
        for (size_t piece = 1; piece < 4096; piece = piece < 4 ? piece + 1 : 1000 * piece) {
            const talk *t = &talks[i];
            char statuses[64];
            check_case("%s, in pieces of %zu", t->what, piece);
            exchange(t->bytes, t->size, piece, heard);
            statuses_of(heard, statuses, sizeof statuses);
            if (t->statuses != NULL)
                assert_string_equal(statuses, t->statuses);
            const size_t n = strlen(heard), m = t->last != NULL ? strlen(t->last) : 0;
            if (n < m || strcmp(heard + n - m, t->last != NULL ? t->last : "") != 0)
                check_fail("%s", heard);
        }
    assert_true(f.refused > 0); /* and the log is told of them */
}

/* Every refusal is a single JSON reply, which says that the connection ends. */
static void test_refusals(void **state) {
    (void)state;
    static char heard[MOST];
    static const char request[] = "GET /a HTTP/1.1\nHost: x\r\n\r\n";
    exchange(request, sizeof request - 1, sizeof request, heard);
    assert_non_null(strstr(heard, "\r\nConnection: close\r\n"));
    assert_non_null(strstr(heard, "\r\nContent-Type: application/json\r\n"));
    assert_non_null(strstr(heard, "\r\n\r\n{\"error\":{\"message\":\"the request has a byte"));
    assert_null(strstr(heard, "<html"));
}

/* Statuses without a body. A length would be that of another reply, and no body is waited for. */
static void test_bare_replies(void **state) {
    (void)state;
    static char heard[MOST];
    static const char *const paths[] = {"204", "304"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        char request[128];
        const int n =
            snprintf(request, sizeof request, "GET /%s HTTP/1.1\r\n" H "\r\n" LAST, paths[i]);
        exchange(request, (size_t)n, (size_t)n, heard);
        const char *next = strstr(heard + 1, "HTTP/1.1 200 ");
        assert_memory_equal(heard + 9, paths[i], 3);
        assert_true(heard[13] >= 'A'); /* a reason follows the status */
        assert_non_null(next);
        assert_memory_equal(next - 4, "\r\n\r\n", 4);
        const char *length = strstr(heard, "Content-Length");
        assert_true(length != NULL && length > next);
    }
}

/* ---- limits ---------------------------------------------------------------------------------- */

/* A request of `size` bytes, which are mostly in its first line or in a field. */
static char *long_head(size_t size, bool line, size_t *n) {
    char *bytes = malloc(size + 256);
    assert_non_null(bytes);
    *n = (size_t)sprintf(bytes, "GET /%s", line ? "" : "a HTTP/1.1\r\n" CLOSE "A: ");
    const char *end = line ? " HTTP/1.1\r\n" CLOSE "\r\n" : "\r\n\r\n";
    while (*n + strlen(end) < size)
        bytes[(*n)++] = 'a';
    *n += (size_t)sprintf(bytes + *n, "%s", end);
    return bytes;
}

static void test_long_heads(void **state) {
    (void)state;
    static char heard[MOST];
    static const struct {
        size_t size;
        bool line;
        const char *statuses;
    } sizes[] = {
        {HEADER, false, "200 "},     {HEADER, true, "200 "},     {HEADER + 1, false, "431 "},
        {4 * HEADER, false, "431 "}, {4 * HEADER, true, "414 "}, {1 << 20, true, "414 "},
        {1 << 20, false, "431 "},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t n;
        char statuses[64];
        char *bytes = long_head(sizes[i].size, sizes[i].line, &n);
        check_case("%zu bytes", sizes[i].size);
        exchange(bytes, n, 1000, heard); /* the reply comes, though the client sends on */
        statuses_of(heard, statuses, sizeof statuses);
        assert_string_equal(statuses, sizes[i].statuses);
        free(bytes);
    }
}

/* When a client is refused while it sends, the server reads on for a while, so that the connection
 * ends with the reply. If it were closed at once, it would be reset. */
static void test_refused_while_it_sends(void **state) {
    (void)state;
    size_t n;
    char heard[256] = "";
    char *bytes = long_head(HEADER + HEADER / 2, false, &n);
    const int fd = http_client_dial(f.port);
    http_client_say(fd, bytes, n);
    http_client_hear(fd, "}}");
    assert_int_equal(recv(fd, heard, sizeof heard, 0), 0);
    (void)close(fd);
    free(bytes);
}

/* A body in chunks, whose length is not known in advance. */
static void test_long_chunks(void **state) {
    (void)state;
    static char heard[MOST], bytes[4 * BODY];
    for (size_t size = BODY; size <= BODY + 1; size++) {
        char statuses[64];
        size_t n = (size_t)sprintf(
            bytes, "POST /a HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n%zx\r\n", size);
        memset(bytes + n, 'a', size);
        n += size + (size_t)sprintf(bytes + n + size, "\r\n0\r\n\r\n" LAST);
        exchange(bytes, n, n, heard);
        statuses_of(heard, statuses, sizeof statuses);
        assert_string_equal(statuses, size == BODY ? "200 200 " : "413 200 ");
    }
}

/* A client that sends far more than the limit is not read to the end, but still gets the reply. */
static void test_endless_chunks(void **state) {
    (void)state;
    static char heard[MOST], bytes[4 * BODY];
    static const char *const paths[] = {"a", "refused"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        char statuses[64];
        const int n =
            sprintf(bytes, "POST /%s HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n%x\r\n",
                    paths[i], 1 << 20);
        memset(bytes + n, 'a', sizeof bytes - (size_t)n);
        exchange(bytes, sizeof bytes, sizeof bytes, heard);
        statuses_of(heard, statuses, sizeof statuses);
        assert_string_equal(statuses, i == 0 ? "413 " : "404 ");
        assert_non_null(strstr(heard, "\r\nConnection: close\r\n"));
    }
}

/* ---- connections ----------------------------------------------------------------------------- */

static int dial(const char *bytes) {
    const int fd = http_client_dial(f.port);
    http_client_say(fd, bytes, strlen(bytes));
    return fd;
}

static void end_stream(void) {
    static const char text[] = "data: late stream\n\n";
    (void)http_stream_write(f.held[0], text, sizeof text - 1);
    http_stream_end(f.held[0]);
    http_release(f.held[0]);
    f.n_held = 0;
}

static void close_all(const int *fds, size_t n) {
    for (size_t i = 0; i < n; i++)
        (void)close(fds[i]);
}

/* Returns the replies to what is held. */
static void let_go(void) {
    char *said[CONNECTIONS] = {0};
    for (size_t i = 0; i < f.n_held; i++) {
        said[i] = strdup("late");
        http_reply(f.held[i], 200, "text/plain", said[i], 4);
        http_release(f.held[i]);
    }
    f.n_held = 0;
}

/* There are only as many connections as the limit says. While replies to all of them are computed,
 * others wait until one has ended. */
static void test_connections_have_a_limit(void **state) {
    (void)state;
    int fds[CONNECTIONS + 1];
    for (size_t i = 0; i < CONNECTIONS; i++) {
        fds[i] = dial("GET /late HTTP/1.1\r\n" H "\r\n");
        while (f.n_held <= i)
            (void)usleep(1000);
    }
    fds[CONNECTIONS] = dial("GET /a HTTP/1.1\r\n" H "\r\n");
    struct pollfd last = {.fd = fds[CONNECTIONS], .events = POLLIN};
    assert_int_equal(poll(&last, 1, 1000 * HTTP_LEAST_WAIT + 500), 0);
    let_go();
    for (size_t i = 0; i < CONNECTIONS; i++)
        http_client_hear(fds[i], "late");
    http_client_hear(fds[CONNECTIONS], "<GET /a [] >");
    close_all(fds, CONNECTIONS + 1);
}

/* When there is no room for a new client, the connection that has waited longest for a head makes
 * it, whether it has sent nothing, a request before or a part of a head; else that for a body. */
static void test_who_asks_for_nothing_makes_room(void **state) {
    (void)state;
    static const char *const first[CONNECTIONS] = {
        "POST /a HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nab",
        "GET /late HTTP/1.1\r\n" H "\r\n",
        "GET /a HTTP/1.1\r\n" H "\r\n",
        "GET /a HTTP/1.1\r\nX: ",
        "",
        "POST /a HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nab",
        "GET /late HTTP/1.1\r\n" H "\r\n",
        "GET /late HTTP/1.1\r\n" H "\r\n"};
    static const int order[] = {2, 3, 4, 0, 5};
    enum { NEW = sizeof order / sizeof *order };
    int fds[CONNECTIONS], others[NEW];
    char byte;
    for (size_t i = 0; i < CONNECTIONS; i++) {
        fds[i] = dial(first[i]);
        if (i == 2)
            http_client_hear(fds[i], "<GET /a [] >");
        (void)usleep(1000);
    }
    for (int i = 0; i < NEW; i++) {
        others[i] = dial("GET /late HTTP/1.1\r\n" H "\r\n");
        assert_int_equal(recv(fds[order[i]], &byte, 1, 0), 0); /* it was closed */
        for (int j = i + 1; j < NEW; j++) {
            struct pollfd look = {.fd = fds[order[j]], .events = POLLIN};
            assert_int_equal(poll(&look, 1, 0), 0);
        }
    }
    while (f.n_held < CONNECTIONS)
        (void)usleep(1000);
    let_go();
    for (int i = 0; i < NEW; i++)
        http_client_hear(others[i], "late");
    http_client_hear(fds[7], "late");
    close_all(fds, CONNECTIONS);
    close_all(others, NEW);
}

/* Clients that have just come are not let go for others that come with them. */
static void test_who_comes_at_once_is_answered(void **state) {
    (void)state;
    int fds[CONNECTIONS], others[2 * CONNECTIONS];
    for (size_t i = 0; i < CONNECTIONS; i++)
        fds[i] = dial("GET /late HTTP/1.1\r\n" H "\r\n");
    while (f.n_held < CONNECTIONS)
        (void)usleep(1000);
    for (size_t i = 0; i < 2 * CONNECTIONS; i++)
        others[i] = dial(LAST);
    let_go();
    for (size_t i = 0; i < 2 * CONNECTIONS; i++)
        http_client_hear(others[i], "<GET /last [] >");
    close_all(fds, CONNECTIONS);
    close_all(others, 2 * CONNECTIONS);
}

/* A client that closes its own side after the request gets its reply, however late. */
static void test_a_half_closed_client_is_answered(void **state) {
    (void)state;
    static const char *const paths[] = {"/late", "/late-stream"};
    for (size_t i = 0; i < 2; i++) {
        char request[100], heard[MOST];
        (void)snprintf(request, sizeof request, "GET %s HTTP/1.1\r\n" H "\r\n", paths[i]);
        const int fd = dial(request);
        while (f.n_held < 1)
            (void)usleep(1000);
        assert_int_equal(shutdown(fd, SHUT_WR), 0);
        http_client_hear(fd, i == 0 ? "HTTP/1.1 100 Continue\r\n\r\n" : ": ping\n\n");
        (void)poll(NULL, 0, 20);
        assert_false(http_gone(f.held[0]));
        i == 0 ? let_go() : end_stream();
        hear_all(fd, heard);
        assert_non_null(strstr(heard, i == 0 ? "\r\n\r\nlate" : "late stream"));
        (void)close(fd);
    }
}

/* A client that has left is noticed while its reply is computed. */
static void test_a_client_that_left_is_noticed(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        const int fd =
            dial(i == 0 ? "GET /late HTTP/1.1\r\n" H "\r\n" : "GET /late HTTP/1.0\r\n" H "\r\n");
        while (f.n_held < 1)
            (void)usleep(1000);
        (void)close(fd);
        while (!http_gone(f.held[0]))
            (void)usleep(1000);
        let_go();
    }
}

static double processor_seconds(void) {
    struct timespec t;
    assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t), 0);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Without a free descriptor, a new client waits while the existing ones are served. Later both
 * are. */
static void test_no_descriptors(void **state) {
    (void)state;
    struct rlimit before, none;
    const int first = http_client_dial(f.port);
    http_client_say(first, TEXT("GET /a HTTP/1.1\r\n" H "\r\n"));
    http_client_hear(first, "<GET /a [] >");
    const int next = dup(first); /* the next descriptor's number */
    (void)close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = (rlim_t)next + 1; /* the client gets it, so the server has none */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    const int other = http_client_dial(f.port);
    assert_int_equal(other, next);
    http_client_say(other, TEXT("GET /c HTTP/1.1\r\n" H "\r\n"));
    const double before_waiting = processor_seconds();
    (void)poll(NULL, 0, 1000);
    assert_true(processor_seconds() - before_waiting < 0.1); /* no busy waiting */
    http_client_say(first, TEXT("GET /b HTTP/1.1\r\n" H "\r\n"));
    http_client_hear(first, "<GET /b [] >");
    struct pollfd look = {.fd = other, .events = POLLIN};
    assert_int_equal(poll(&look, 1, 0), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    http_client_hear(other, "<GET /c [] >");
    (void)close(first);
    (void)close(other);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_descriptors), /* first: no socket is about to be closed */
        cmocka_unit_test(test_talks),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_bare_replies),
        cmocka_unit_test(test_long_heads),
        cmocka_unit_test(test_refused_while_it_sends),
        cmocka_unit_test(test_long_chunks),
        cmocka_unit_test(test_endless_chunks),
        cmocka_unit_test(test_connections_have_a_limit),
        cmocka_unit_test(test_who_asks_for_nothing_makes_room),
        cmocka_unit_test(test_who_comes_at_once_is_answered),
        cmocka_unit_test(test_a_half_closed_client_is_answered),
        cmocka_unit_test(test_a_client_that_left_is_noticed),
    };
    return cmocka_run_group_tests(tests, open_server, close_server);
}
