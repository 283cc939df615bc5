/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_SERVE_HTTP_CLIENT_H
#define TERN_TESTS_SERVE_HTTP_CLIENT_H

/* A client for a server in the same process. Any failure fails the test. tests/watch ends the test
 * if a reply never comes. */

#include <stddef.h>
#include <stdint.h>

/* Connects to 127.0.0.1. The caller closes the connection. */
int http_client_dial(uint16_t port);

void http_client_say(int fd, const char *text, size_t size);

/* Reads until `words` arrive. */
void http_client_hear(int fd, const char *words);

/* A figure of /metrics. Its name is given without "tern_". */
double http_client_figure(uint16_t port, const char *name);

#endif
