/* SPDX-License-Identifier: Apache-2.0 */
/* Replies that clients do not read have a common limit. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "serve/http/http.h"
#include "tests/support/check.h"

enum { REPLY = 2 << 20, LIMIT = 3 << 20, CONNECTIONS = 8 }; /* a socket holds a tenth of a reply */

static struct {
    char path[64];
    http_server *server;
} f;

static bool admit(void *user, http_exchange *x) {
    (void)user;
    (void)x;
    return true;
}

static void handle(void *user, http_exchange *x) {
    (void)user;
    if (strcmp(http_path(x), "/stream") == 0) {
        char *piece = calloc(1, REPLY / 4);
        assert_non_null(piece);
        http_stream_open(x, NULL);
        (void)http_stream_write(x, piece, REPLY / 4);
        http_stream_end(x);
        free(piece);
        return;
    }
    const size_t size = strcmp(http_path(x), "/short") == 0 ? 5 : REPLY;
    char *bytes = malloc(size);
    assert_non_null(bytes);
    memset(bytes, 'x', size);
    http_reply(x, 200, "text/plain", bytes, size);
}

static void done(void *user, http_exchange *x, bool whole) {
    (void)user;
    (void)x;
    (void)whole;
}

static int ask(const char *path) {
    char request[128];
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    (void)snprintf(name.sun_path, sizeof name.sun_path, "%s", f.path);
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_true(fd >= 0 && connect(fd, (const struct sockaddr *)&name, sizeof name) == 0);
    const int n = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path);
    assert_int_equal(write(fd, request, (size_t)n), n);
    return fd;
}

/* The status of the reply. Only its beginning is read. */
static int status_of(int fd) {
    char head[16] = "";
    for (size_t n = 0; n < sizeof head - 1;) {
        const ssize_t got = read(fd, head + n, sizeof head - 1 - n);
        assert_true(got > 0);
        n += (size_t)got;
    }
    return atoi(head + 9);
}

static int open_server(void **state) {
    (void)state;
    (void)snprintf(f.path, sizeof f.path, "/tmp/tern-replies-%ld", (long)getpid());
    http_config config = {.unix_path = f.path,
                          .limits = http_limits_default(),
                          .hooks = {.admit = admit, .handle = handle, .done = done}};
    config.limits.all_replies_bytes = LIMIT;
    tern_error err = {0};
    const tern_status status = http_open(&config, &f.server, &err);
    if (status != TERN_OK)
        fail_msg("%s", err.message);
    return 0;
}

static int close_server(void **state) {
    (void)state;
    http_close(&f.server);
    return 0;
}

static void test_unread_replies(void **state) {
    (void)state;
    const int first = ask("/long");
    assert_int_equal(status_of(first), 200);
    for (int i = 0; i < CONNECTIONS; i++) {
        const int other = ask("/long");
        assert_int_equal(status_of(other), 503);
        (void)close(other);
        const int little = ask("/short"); /* always finds room */
        assert_int_equal(status_of(little), 200);
        (void)close(little);
    }
    (void)close(first);
    while (http_active(f.server) > 0) /* then its memory is free */
        (void)usleep(1000);
    const int last = ask("/long");
    assert_int_equal(status_of(last), 200);
    (void)close(last);
}

/* Streams count towards the limit, too. A stream without room is cut. */
static void test_unread_streams(void **state) {
    (void)state;
    const int first = ask("/long"), second = ask("/stream");
    assert_int_equal(status_of(first), 200);
    char bytes[1 << 16];
    ssize_t n, all = 0;
    while ((n = read(second, bytes, sizeof bytes)) > 0)
        all += n;
    assert_true(all < REPLY / 4);
    (void)close(first);
    (void)close(second);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_unread_replies, open_server, close_server),
        cmocka_unit_test_setup_teardown(test_unread_streams, open_server, close_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
