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

/* Whether each word of such a list is a host, or "*". An empty list is none. */
bool gate_list_is_sound(const char *allowed);

/*
 * Whether a Host line is one of this server's. NULL, which no browser sends, is. At a loopback
 * address its names are those of this machine: localhost and names below it, 127.0.0.0/8 and ::1.
 * At another address they are that address, every other address, and names that no stranger can
 * have lead here: of one word, and below .local, .internal and .home.arpa. A socket in the file
 * system has any name.
 */
bool gate_takes_host(const gate *g, const char *host);

/* Whether an Origin line is that of the host that the request names, or of pages that may ask. NULL
 * is; "null" and what is not an origin are not, unless they are named. */
bool gate_takes_origin(const gate *g, const char *host, const char *origin);

#endif
