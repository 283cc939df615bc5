/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_HTTP_OWN_ADDRESS_H
#define TERN_SERVE_HTTP_OWN_ADDRESS_H

/*
 * The address under which a client reaches this server, for lines to be pasted into a shell. The
 * request's Host line is a stranger's text, so it is shown only if it is valid.
 */

#include <stdbool.h>

#include "base/json_tree/text.h"

typedef struct own_address {
    const char *listening; /* the address where the server listens, from http_address */
    const char *host;      /* the request's Host line; NULL: there is none */
    const char *prefix;    /* what all paths begin with; NULL: nothing */
} own_address;

/*
 * True if a Host line is HOST or HOST:PORT and nothing else: a name of letters, digits, '-', '.'
 * and '_', an IPv4 address, or an IPv6 address in brackets. NULL is not.
 */
bool own_address_is_sound(const char *host);

/* The path of the socket at which the server listens; NULL: it listens at an address. */
const char *own_address_socket(const own_address *a);

/*
 * Adds the URL of a path that begins with '/'. Its host is a valid Host line, else the address
 * where the server listens. For a socket in the file system it is "localhost", a mere placeholder.
 */
void own_address_url(const own_address *a, const char *path, text *t);

/* Adds a shell command that requests a path: "curl", the option for a socket, and the URL. */
void own_address_curl(const own_address *a, const char *path, text *t);

#endif
