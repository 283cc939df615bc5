/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_HTTP_GATE_H
#define TERN_SERVE_HTTP_GATE_H

/*
 * Who may ask a server that wants no key. A browser sends what any page tells it to, also to this
 * machine: a page of elsewhere asks under its own origin, or it has its name lead to this address
 * first and asks under that name. Both say so in the header: Host has the name, Origin the page.
 */

#include <stdbool.h>

typedef struct gate {
    const char *listening; /* as http_address says it */
    const char *allowed;   /* further hosts, separated by commas: NAME, NAME:PORT, or "*" for any;
                              NULL: none */
    const char *origin;    /* of pages that may ask (CORS), "*" for any; NULL: none */
} gate;

/* True if each word of such a list is a host, or "*". An empty list is not sound. */
bool gate_list_is_sound(const char *allowed);

/*
 * True if a Host line names this server, or is NULL, which no browser sends. A server at a loopback
 * address has the names of this machine: localhost and names below it, 127.0.0.0/8 and ::1. At
 * another address it has that address, every other address, and the names that no stranger can have
 * lead here: those of one word, and those below .local, .internal and .home.arpa. A socket in the
 * file system has any name.
 */
bool gate_takes_host(const gate *g, const char *host);

/* True if an Origin line is that of the host that the request names, or of pages that may ask, or
 * NULL. "null" and a text that is not an origin are taken only where they are named. */
bool gate_takes_origin(const gate *g, const char *host, const char *origin);

#endif
