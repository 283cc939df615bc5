/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_HTTP_OWN_ADDRESS_H
#define TERN_SERVE_HTTP_OWN_ADDRESS_H

/*
 * What a client calls this server, for lines that are shown to be pasted into a shell. What a
 * request says of it is a stranger's text, so only a sound one is shown again.
 */

#include <stdbool.h>

#include "base/json_tree/text.h"

typedef struct own_address {
    const char *listening; /* where the server listens, as http_address says it */
    const char *host;      /* the request's Host line; NULL: there is none */
} own_address;

/*
 * True if a Host line is HOST or HOST:PORT and nothing else: a name of letters, digits, '-', '.'
 * and '_', an IPv4 address, or an IPv6 address in brackets. NULL is none of them.
 */
bool own_address_is_sound(const char *host);

/* The path of the socket at which the server listens; NULL: it has an address. */
const char *own_address_socket(const own_address *a);

/*
 * Adds the URL of a path that begins with '/': with a sound Host line, else where the server
 * listens. Of a socket in the file system the host is "localhost", which stands for nothing.
 */
void own_address_url(const own_address *a, const char *path, text *t);

/* Adds the words of a shell that ask for a path: "curl", the option for a socket, and the URL. */
void own_address_curl(const own_address *a, const char *path, text *t);

#endif
