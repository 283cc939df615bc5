/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_HTTP_GATE_H
#define TERN_SERVE_HTTP_GATE_H

/*
 * Decides who may ask a server that has no keys. A browser sends requests for any page, also to
 * this machine. A foreign page asks under its own origin, or it first makes its own name resolve to
 * this address and asks under that name (DNS rebinding). The header shows both: Host has the name,
 * Origin the page.
 */

#include <stdbool.h>

typedef struct gate {
    const char *listening; /* the server's own address, as http_address gives it */
    const char *allowed;   /* further hosts, separated by commas: NAME, NAME:PORT, or "*" for any;
                              NULL: none */
    const char *origin;    /* origin of pages that may ask (CORS), "*" for any; NULL: none */
} gate;

/* True if each word of a list like `allowed` is a host or "*". An empty list is not valid. */
bool gate_list_is_sound(const char *allowed);

/*
 * True if a Host line names this server, or is NULL, which no browser sends. A server at a loopback
 * address has the names of this machine: localhost and names below it, 127.0.0.0/8 and ::1. A
 * server at another address accepts its own address, every other IP address, and names that no
 * stranger can make resolve to it: single words, and names below .local, .internal and .home.arpa.
 * A socket in the file system accepts any name.
 */
bool gate_takes_host(const gate *g, const char *host);

/* True if an Origin line is NULL, is that of the host in the request, or is an origin that may ask.
 * "null" and texts that are not origins are accepted only if they are configured. */
bool gate_takes_origin(const gate *g, const char *host, const char *origin);

#endif
