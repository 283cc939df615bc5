/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_SERVE_HTTP_CLIENT_H
#define TERN_TESTS_SERVE_HTTP_CLIENT_H

/* A client of a server in the same process, for tests: what goes wrong fails the test. */

#include <stddef.h>
#include <stdint.h>

enum { HTTP_CLIENT_PATIENCE = 30 }; /* seconds */

/* A connection to 127.0.0.1, to be closed. */
int http_client_dial(uint16_t port);

void http_client_say(int fd, const char *text, size_t size);

/* Reads until `words` came. */
void http_client_hear(int fd, const char *words);

/* A figure of /metrics, named without "tern_". */
double http_client_figure(uint16_t port, const char *name);

#endif
