/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_HTTP_HTTP_H
#define TERN_SERVE_HTTP_HTTP_H

/*
 * HTTP/1.1: requests with their whole body in, replies out, whole or as streams, from any thread.
 *
 * One thread moves bytes. It calls the hooks below, which must not wait for anything. Whoever wants
 * to answer later keeps the exchange (http_keep) and replies from its own thread; a reply never
 * waits for the socket either: what the client has not read yet is held, up to a limit.
 *
 * Refused before a hook hears of it, and told to `done` alone, without method and path: what is not
 * written as RFC 9112 has it (head.h, chunks.h), and what two readers could frame differently (both
 * Content-Length and Transfer-Encoding, one of them twice, a coding other than chunked): 400; a
 * head that is longer than the limit: 414 and 431; a body: 413; bodies of all requests that
 * together are too much: 503.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/status.h"

typedef struct http_server http_server;
typedef struct http_exchange http_exchange; /* a request and its reply */

typedef struct http_limits {
    size_t header_bytes;      /* of a request's first line and all header lines */
    size_t body_bytes;        /* of a request */
    size_t all_bodies_bytes;  /* of all requests together */
    size_t all_replies_bytes; /* of all replies and streams that clients have not read */
    size_t unread_bytes;      /* of a stream, which its client has not read yet */
    unsigned connections;     /* at once */
    unsigned idle_seconds;    /* without a byte, before a connection is closed */
    unsigned request_seconds; /* for a header, and again for a body, and again for a client to read
                                 the rest of a reply, with a second more for each 16 KiB of it */
    double ping_seconds;      /* that a stream is silent before a comment is sent */
} http_limits;

http_limits http_limits_default(void);

typedef struct http_hooks {
    void *user;
    /* The header is there. False: the body is read and not kept. */
    bool (*admit)(void *user, http_exchange *x);
    /* The request is whole: replies, or keeps the exchange for a reply later. */
    void (*handle)(void *user, http_exchange *x);
    /* The exchange is over: `whole` tells whether all of the reply was sent. */
    void (*done)(void *user, http_exchange *x, bool whole);
    /* Nobody keeps the exchange any more, whose mark this was, not NULL. From any thread. */
    void (*forget)(void *user, void *mark);
} http_hooks;

typedef struct http_config {
    const char *host;      /* name or address to listen on; not used with unix_path */
    uint16_t port;         /* 0: one that is free */
    const char *unix_path; /* of a socket in the file system; NULL: none */
    bool tls;              /* https, with what http_tls_load read (serve/http/tls.h) */
    const char *origin;    /* of pages that may ask, in a browser (CORS); NULL: of none */
    http_limits limits;
    http_hooks hooks;
} http_config;

/* Listens, and answers from now on. TERN_ERR_IO names the address and what is wrong with it;
 * TERN_ERR_NOMEM. The config's texts must outlive it. */
TERN_MUST_CHECK tern_status http_open(const http_config *config, http_server **out,
                                      tern_error *err);

/* Where it listens: "http://127.0.0.1:8080", "https://..." or "unix:PATH". */
const char *http_address(const http_server *s);

/* Once a second, by a thread that may wait a little: pings streams that are silent. */
void http_tick(http_server *s);

/* Requests that are not over yet. */
unsigned http_active(const http_server *s);

/* Stops. All exchanges must have been replied to; those that were not sent yet are cut. Frees *s
 * and sets it to NULL; NULL is fine. */
void http_close(http_server **s);

/* ---- what was asked: valid as long as the exchange is kept ----------------------------------- */

const char *http_method(const http_exchange *x);
const char *http_path(const http_exchange *x);               /* without what follows '?' */
const char *http_body(const http_exchange *x, size_t *size); /* terminated */

/* The value of a header line, without blanks at its ends; NULL: there is none. */
const char *http_request_header(const http_exchange *x, const char *name);

/* True if NAME=VALUE stands after the path's '?', as it was written. */
bool http_argument_is(const http_exchange *x, const char *name, const char *value);

/* A word that the hooks keep with an exchange, NULL at first. */
void http_set_mark(http_exchange *x, void *mark);
void *http_mark(const http_exchange *x);

/* ---- the reply ------------------------------------------------------------------------------- */

void http_keep(http_exchange *x);    /* x stays valid ... */
void http_release(http_exchange *x); /* ... until it is released as often as kept */

enum { HTTP_MOST_HEADERS = 8, HTTP_VALUE_BYTES = 256 };

/* A header line of the reply, before it is given; at most HTTP_MOST_HEADERS. The value is copied,
 * cut at HTTP_VALUE_BYTES with its terminator. */
void http_reply_header(http_exchange *x, const char *name, const char *value);

/* The whole reply. bytes[size] come from malloc and are taken over; NULL is an empty body, or,
 * where size is not 0, a lack of memory, which ends the connection. */
void http_reply(http_exchange *x, unsigned status, const char *type, char *bytes, size_t size);

/* A stream of server-sent events in place of it: begins with status 200. */
void http_stream_open(http_exchange *x);

/* Appends to what is to be sent. False: the client has gone, or does not read; the stream is over.
 */
bool http_stream_write(http_exchange *x, const char *bytes, size_t size);
void http_stream_end(http_exchange *x);

/* Ends it where it is, so that the client sees that something is missing. */
void http_stream_cut(http_exchange *x);

/* True if the client has closed its side, or the exchange is over. Looks at the socket, and does
 * not wait. What was not sent is dropped then. */
bool http_gone(http_exchange *x);

/* To poll for what http_gone looks at, for many exchanges in one call; -1: the client is gone. It
 * may be another connection's by then, so http_gone has the last word. */
int http_socket(http_exchange *x);

unsigned http_status(http_exchange *x);     /* of the reply; 0: there is none yet */
uint64_t http_sent_bytes(http_exchange *x); /* of its body, given so far */
double http_began(const http_exchange *x);  /* seconds of tern_clock_seconds */

#endif
