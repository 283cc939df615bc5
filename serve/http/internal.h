/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_HTTP_INTERNAL_H
#define TERN_SERVE_HTTP_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/os/os.h"
#include "serve/http/chunks.h"
#include "serve/http/head.h"
#include "serve/http/http.h"
#include "serve/http/tls.h"

/* The phases of a connection. A request and its reply never overlap. */
typedef enum http_phase {
    HTTP_SHAKES, /* the TLS handshake */
    HTTP_HEAD,   /* reads a head, or waits for its first byte */
    HTTP_BODY,
    HTTP_REPLY, /* waits for bytes of the reply, or for room in the socket */
    HTTP_LINGER /* all is sent; bytes that the client still sends are dropped for a moment, because
                   closing a connection with unread bytes discards the reply, too */
} http_phase;

/* Belongs to the thread that moves bytes, except for atomic members. */
typedef struct http_connection {
    struct http_connection *next;
    struct http_server *server;
    int fd;
    http_tls *tls; /* NULL: no TLS */
    http_phase phase;
    atomic_bool woken; /* its exchange has more to do */
    bool again;        /* there may be more to do before poll reports anything */
    bool closes;       /* closes after this reply */
    bool half_closed;  /* the client sends no more, but may still read */
    double since;      /* time since which it waits for a handshake and a head, or for a body */
    double until;      /* time at which it is ended in any case; 0: never */
    double moved;      /* time at which a byte moved last */
    http_exchange *x;  /* NULL between requests */
    char *in;          /* [in_capacity] received bytes; those from in_at to in_end are not parsed
                          yet */
    size_t in_at, in_end, in_capacity;
    http_scan scan;     /* state of scanning the head at in_at */
    uint64_t body_left; /* bytes to come of a body without chunks */
    http_chunks chunks;
    bool chunked;
    size_t dropped; /* bytes dropped in HTTP_LINGER */
    char *out;      /* [HTTP_OUT_BYTES] bytes to send: those from out_at to out_end */
    size_t out_at, out_end;
} http_connection;

enum { HTTP_OUT_BYTES = 32768 };

struct http_server {
    http_config config;
    char address[256];
    int listening;     /* the descriptor to accept from */
    tern_os_bell bell; /* that wakes the loop */
    pthread_t thread;
    atomic_bool stops;
    http_connection *connections, **last; /* used by the thread: all open ones, in the order in
                                             which they came */
    unsigned n_connections;
    atomic_size_t bodies;  /* bytes held for all bodies */
    atomic_size_t replies; /* bytes held for all replies */
    atomic_uint active;
    pthread_mutex_t lock;   /* protects the members below */
    http_exchange *streams; /* all open streams */
};

typedef struct http_header {
    const char *name;
    char value[HTTP_VALUE_BYTES];
} http_header;

/*
 * The verdict on a request: faults found in its bytes decide, in this order, before a hook is
 * asked. The connection ends if the end of the request, or the host that is asked, is unknown.
 */
typedef enum http_verdict {
    HTTP_SOUND,
    HTTP_BYTES,     /* 400: a byte or a line that HTTP does not allow */
    HTTP_VERSION,   /* 505 */
    HTTP_LINE,      /* 414: the first line is too long */
    HTTP_FIELDS,    /* 431: the head is too long */
    HTTP_FRAMING,   /* 400: the end of the body is not given, or ambiguous */
    HTTP_HOST,      /* 400: so is the host that is asked */
    HTTP_CHUNKS,    /* 400: the chunks of the body are not valid */
    HTTP_TOO_LONG,  /* 413 */
    HTTP_NO_MEMORY, /* 503 */
    HTTP_UNWANTED   /* refused by the hook `admit`: the body is not kept */
} http_verdict;

struct http_exchange {
    http_server *server;
    atomic_uint owners;
    double began;
    char *bytes; /* the head's bytes */
    http_head head;
    const char *path, *arguments; /* the decoded path, and what follows '?' */
    const char *deployment;       /* NULL: none */
    char *body;
    size_t body_size, body_capacity, body_dropped;
    http_verdict verdict;
    void *mark;

    pthread_mutex_t lock;        /* protects the members below */
    http_connection *connection; /* NULL: the exchange is over */
    bool suspended;              /* the connection waits for more of the reply */
    bool gone;                   /* the client has left or does not read: nothing more is sent */
    unsigned status;
    const char *type;
    char *reply; /* whole; or the unsent part of a stream */
    size_t reply_size, reply_capacity, reply_sent;
    size_t held; /* its share of the server's `replies` */
    uint64_t given;
    bool stream, pinged, ended; /* pinged: a stream that comments may stand in */
    bool begun, over; /* its first byte, its last byte has been handed to the connection */
    double written;   /* time of the last write to the stream */
    http_header headers[HTTP_MOST_HEADERS];
    unsigned n_headers;
    http_exchange *next, *before; /* neighbours in the server's list of streams */
};

/* ---- http.c: by the thread that moves bytes -------------------------------------------------- */

/* Begins an exchange with the head bytes[size]; size is 0 if no head could be read. NULL: there is
 * no memory. */
http_exchange *http_begin(http_connection *c, const char *bytes, size_t size);

/* Judges the head: refuses the request, or asks the hook `admit`. Sets how the body is framed. */
void http_judge(http_exchange *x);

/* Takes a piece of the body. False: nothing more is read from this client. */
bool http_take(http_exchange *x, const char *bytes, size_t size);

/* The request is complete: calls the hook `handle`, or refuses it. */
void http_handle(http_exchange *x);

/* Refuses the request. The connection ends after the reply if the verdict leaves no safe place to
 * read on. */
void http_refuse(http_exchange *x, http_verdict verdict);

/* Ends the exchange; `whole`: all of the reply was sent. */
void http_finish(http_exchange *x, bool whole);

/* ---- reply.c --------------------------------------------------------------------------------- */

typedef enum http_filled {
    HTTP_FILLED,
    HTTP_NOTHING, /* no bytes yet: the connection is woken when there are some */
    HTTP_ALL,     /* the reply is complete */
    HTTP_CUT      /* the reply ends here and is incomplete */
} http_filled;

/* Puts the next bytes of a reply into c->out, which is empty. */
http_filled http_fill(http_connection *c);

/* Takes a stream out of the server's list. */
void http_stream_forget(http_exchange *x);

/* Sends a comment, which means nothing. False: there is no open stream of events. */
bool http_stream_ping(http_exchange *x);

/* The events of poll by which a client has left. A client that may have closed its own side only is
 * sent something that means nothing, and its system then says whether it is there. This needs
 * HTTP/1.1 and a connection without TLS. */
short http_leaves_by(const http_connection *c, const http_exchange *x);

/* ---- connection.c ---------------------------------------------------------------------------- */

/* Adds a connection for a new client; closes fd if there is no memory. */
void http_connect(http_server *s, int fd);

/* The connection that makes room when a new client comes and there are as many as may be: the one
 * that has waited longest for a head, no matter how many bytes of it have come; else the one that
 * has waited longest for a body. NULL: there is none that has waited for HTTP_LEAST_WAIT seconds,
 * in which clients that come at once can all send their requests. */
enum { HTTP_LEAST_WAIT = 1 };
http_connection *http_least_wanted(const http_server *s);

/* Does what is possible after the events `news` of poll. False: it has ended; call http_end. */
bool http_go_on(http_connection *c, short news, double now);

/* Ends its exchange, closes the socket and frees c. */
void http_end(http_connection *c);

/* Returns the events to poll its socket for. */
short http_events(const http_connection *c);

/* ---- loop.c ---------------------------------------------------------------------------------- */

/* Starts the thread that moves bytes. False: there is no thread or memory; the caller still has to
 * close s->listening. */
bool http_start(http_server *s);

/* Ends the thread and all connections, and closes s->listening. */
void http_stop(http_server *s);

/* Makes the thread look at all connections that were woken. From any thread. */
void http_wake(const http_server *s);

/* ---- listen.c -------------------------------------------------------------------------------- */

/* Opens a socket that listens as the config says, and writes its address as text; -1 with the error
 * set. */
int http_listen(const http_config *config, char *address, size_t size, tern_error *err);

#endif
