/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/serve/http_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/check.h"

int http_client_dial(uint16_t port) {
    const struct sockaddr_in place = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&place, sizeof place), 0);
    return fd;
}

void http_client_say(int fd, const char *text, size_t size) {
    assert_int_equal(send(fd, text, size, MSG_NOSIGNAL), size);
}

void http_client_hear(int fd, const char *words) {
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

double http_client_figure(uint16_t port, const char *name) {
    static const char request[] = "GET /metrics HTTP/1.0\r\n\r\n";
    static char heard[1 << 17];
    size_t n = 0;
    const int fd = http_client_dial(port);
    http_client_say(fd, request, sizeof request - 1);
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
