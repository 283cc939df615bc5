/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_HTTP_FRAMING_H
#define TERN_SERVE_HTTP_FRAMING_H

/*
 * How a request says where its body ends. Two readers of a connection that understand this
 * differently take the rest of one request for the next one, so whatever can be understood in two
 * ways is refused: Content-Length and Transfer-Encoding together or twice, lengths that are not
 * digits alone, codings other than "chunked", and fields whose names are not tokens. Likewise who
 * is asked, and by which page: Host and Origin stand once at most, and Host has one host and its
 * port.
 */

#include <stdbool.h>
#include <stdint.h>

/* What the fields of a header said so far; {0} before the first one. */
typedef struct http_framing {
    unsigned lengths, codings; /* how many fields of either kind */
    bool unsound;              /* a field cannot be understood, or not in one way only */
    uint64_t length;           /* of the body, where a sound field said it; else 0 */
    unsigned hosts, origins;   /* fields that say who is asked, and by which page */
    bool stranger;             /* a Host that is not a HOST or HOST:PORT */
} http_framing;

/* Takes a field of the header; value NULL is an empty one. */
void http_framing_note(http_framing *f, const char *name, const char *value);

/* True if all readers agree about the end of the body. HTTP/1.0 (old) has no codings. */
bool http_framing_is_sound(const http_framing *f, bool old);

/* True if all readers agree about who is asked. Only HTTP/1.0 may leave it away. */
bool http_framing_has_one_host(const http_framing *f, bool old);

#endif
