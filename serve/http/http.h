/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_HTTP_HTTP_H
#define TERN_SERVE_HTTP_HTTP_H

/*
 * HTTP/1.1: requests come in with their whole body; replies go out, whole or as streams, from any
 * thread.
 *
 * One thread moves bytes. It calls the hooks below, which must not wait for anything. To answer
 * later, keep the exchange (http_keep) and reply from another thread. A reply never waits for the
 * socket either: what the client has not read yet is held, up to a limit.
 *
 * Some requests are refused here, and `handle` is not called for them: 400 for what RFC 9112 does
 * not allow (head.h, chunks.h) or two readers could frame differently (framing.h); 414 and 431 for
 * a head that is longer than the limit; 413 for such a body; 503 if the bodies of all requests
 * together take too much. If the head is at fault `admit` is not called either, and `done` sees an
 * exchange without a path.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/status.h"

typedef struct http_server http_server;
typedef struct http_exchange http_exchange; /* a request and its reply */

typedef struct http_limits {
    size_t header_bytes;      /* the first line of a request and all header lines */
    size_t body_bytes;        /* the body of a request */
    size_t all_bodies_bytes;  /* the bodies of all requests together */
    size_t all_replies_bytes; /* all replies and streams that clients have not read */
    size_t unread_bytes;      /* the part of one stream that its client has not read yet */
    unsigned connections;     /* open at the same time */
    unsigned idle_seconds;    /* without a byte before a connection is closed */
    unsigned request_seconds; /* for a header, and again for a body, and again for a client to read
                                 the rest of a reply, with a second more for each 16 KiB of it */
    double ping_seconds;      /* silence of a stream before a comment is sent */
} http_limits;

http_limits http_limits_default(void);

typedef struct http_hooks {
    void *user;
    /* The header has come. False: the body is read, but not kept. */
    bool (*admit)(void *user, http_exchange *x);
    /* The request is complete. The hook replies, or keeps the exchange to reply later. */
    void (*handle)(void *user, http_exchange *x);
    /* The exchange is over; `whole` is true if all of the reply was sent. */
    void (*done)(void *user, http_exchange *x, bool whole);
    /* Nobody keeps the exchange with this mark any more. Not called for the mark NULL. From any
     * thread. */
    void (*forget)(void *user, void *mark);
} http_hooks;

typedef struct http_config {
    const char *host;      /* name or address to listen on; not used with unix_path */
    uint16_t port;         /* 0: any free port */
    const char *unix_path; /* path of a socket in the file system; NULL: none */
    const char *prefix;    /* what paths begin with, such as "/llm"; NULL: nothing */
    int handed;            /* a socket that listens already, in place of host, port and unix_path;
                              0: none */
    bool tls;              /* https, with the certificate that http_tls_load read
                              (serve/http/tls.h) */
    const char *origin;    /* origin of pages that may ask from a browser (CORS); NULL: none may */
    http_limits limits;
    http_hooks hooks;
} http_config;

/* Listens, and answers from now on. TERN_ERR_IO names the address and what is wrong with it;
 * TERN_ERR_NOMEM. The config's texts must outlive the server. */
TERN_MUST_CHECK tern_status http_open(const http_config *config, http_server **out,
                                      tern_error *err);

/* The address where it listens: "http://127.0.0.1:8080", "https://..." or "unix:PATH". */
const char *http_address(const http_server *s);

/* Pings silent streams. Call it once a second, from a thread that may wait a little. */
void http_tick(http_server *s);

/* Requests that are not over yet. */
unsigned http_active(const http_server *s);

/* Stops the server. All exchanges must have been replied to; replies that were not sent yet are cut
 * off. Frees *s and sets it to NULL; NULL is fine. */
void http_close(http_server **s);

/* ---- what was asked: valid as long as the exchange is kept ----------------------------------- */

const char *http_method(const http_exchange *x);
/* The path of the route that is meant (serve/http/paths.h), without '?' and what follows; "": it
 * does not begin with the prefix. */
const char *http_path(const http_exchange *x);
const char *http_deployment(const http_exchange *x); /* that Azure's clients name; NULL: none */
const char *http_body(const http_exchange *x, size_t *size); /* terminated */

/* The value of a header line, without blanks at its ends; NULL: there is none. */
const char *http_request_header(const http_exchange *x, const char *name);

/* Copies the value of NAME=VALUE among the arguments after the path's '?', decoded, cut at size
 * bytes with its terminator. False: there is none. */
bool http_argument(const http_exchange *x, const char *name, char *out, size_t size);

/* A pointer that the hooks keep with an exchange, NULL at first. */
void http_set_mark(http_exchange *x, void *mark);
void *http_mark(const http_exchange *x);

/* ---- the reply ------------------------------------------------------------------------------- */

void http_keep(http_exchange *x);    /* x stays valid ... */
void http_release(http_exchange *x); /* ... until it is released as often as kept */

enum { HTTP_MOST_HEADERS = 8, HTTP_VALUE_BYTES = 256 };

/* Adds a header line. Call it before the reply is given, at most HTTP_MOST_HEADERS times. The value
 * is copied, and cut at HTTP_VALUE_BYTES including its terminator. */
void http_reply_header(http_exchange *x, const char *name, const char *value);

/* Gives the whole reply. bytes[size] come from malloc and are taken over; NULL is an empty body,
 * or, if size is not 0, a lack of memory, which ends the connection. */
void http_reply(http_exchange *x, unsigned status, const char *type, char *bytes, size_t size);

/* Begins a stream in place of a whole reply, with status 200. `type` NULL: of server-sent events.
 * Silent streams of these are pinged; in other types nothing may stand between documents. */
void http_stream_open(http_exchange *x, const char *type);

/* Appends to the stream. False: the stream is over, because the client has left or does not read.
 */
bool http_stream_write(http_exchange *x, const char *bytes, size_t size);
void http_stream_end(http_exchange *x);

/* Breaks the stream off, so that the client sees that something is missing. */
void http_stream_cut(http_exchange *x);

/* True if the client has closed its side, or the exchange is over. Looks at the socket and does not
 * wait. If it is true, bytes that were not sent are dropped. */
bool http_gone(http_exchange *x);

/* Returns a descriptor, so that many exchanges can be polled in one call for what http_gone looks
 * at; -1: the client has left. The descriptor may belong to another connection by then, so ask
 * http_gone as well. */
int http_socket(http_exchange *x);

unsigned http_status(http_exchange *x);     /* status of the reply; 0: none yet */
uint64_t http_sent_bytes(http_exchange *x); /* bytes of the reply's body given so far */
double http_began(const http_exchange *x);  /* in seconds of tern_clock_seconds */

#endif
