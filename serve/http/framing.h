/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_HTTP_FRAMING_H
#define TERN_SERVE_HTTP_FRAMING_H

/*
 * Checks how a request says where its body ends. If two readers of a connection understand this
 * differently, one takes the rest of one request for the next one. So whatever can be understood in
 * two ways is refused: Content-Length and Transfer-Encoding together or twice, lengths that are not
 * digits alone, codings other than "chunked", and fields whose names are not tokens. The same holds
 * for the host that is asked and for the page that asks: Host and Origin may appear only once, and
 * Host must be one host and its port.
 */

#include <stdbool.h>
#include <stdint.h>

/* The findings from the fields of a header so far; {0} before the first one. */
typedef struct http_framing {
    unsigned lengths, codings; /* number of fields of each kind */
    bool unsound;              /* a field is invalid or ambiguous */
    uint64_t length;           /* of the body, if a valid field gave it; else 0 */
    unsigned hosts, origins;   /* number of Host and Origin fields */
    bool stranger;             /* a Host is not HOST or HOST:PORT */
} http_framing;

/* Notes a field of the header; value NULL is an empty one. */
void http_framing_note(http_framing *f, const char *name, const char *value);

/* True if all readers agree about the end of the body. HTTP/1.0 (old) has no codings. */
bool http_framing_is_sound(const http_framing *f, bool old);

/* True if all readers agree about the host that is asked. Only HTTP/1.0 may omit it. */
bool http_framing_has_one_host(const http_framing *f, bool old);

#endif
