/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_HTTP_INTERNAL_H
#define TERN_SERVE_HTTP_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "serve/http/chunks.h"
#include "serve/http/head.h"
#include "serve/http/http.h"
#include "serve/http/tls.h"

/* What a connection does; a reply and its request never overlap. */
typedef enum http_phase {
    HTTP_SHAKES, /* hands, by TLS */
    HTTP_HEAD,   /* reads one, or waits for its first byte */
    HTTP_BODY,
    HTTP_REPLY, /* waits for bytes of it, or for room in the socket */
    HTTP_LINGER /* all is sent; what the client still sends is dropped for a moment: a connection
                   that is closed before it was read to its end takes the reply with it */
} http_phase;

/* Of the thread that moves bytes, but for what is atomic. */
typedef struct http_connection {
    struct http_connection *next;
    struct http_server *server;
    int fd;
    http_tls *tls; /* NULL: none */
    http_phase phase;
    atomic_bool woken; /* its exchange is to be looked at again */
    bool again;        /* there may be more to do without news of the socket */
    bool closes;       /* after this reply */
    double until;      /* when it is ended, whatever moves; 0: never */
    double moved;      /* when a byte moved last */
    http_exchange *x;  /* NULL in between */
    char *in;          /* [in_capacity] what came: from in_at to in_end it is not taken */
    size_t in_at, in_end, in_capacity;
    http_scan scan;     /* of the head that begins at in_at */
    uint64_t body_left; /* of a body without chunks */
    http_chunks chunks;
    bool chunked;
    size_t dropped; /* bytes while it lingers */
    char *out;      /* [HTTP_OUT_BYTES] what goes: from out_at to out_end it is not sent */
    size_t out_at, out_end;
} http_connection;

enum { HTTP_OUT_BYTES = 32768 };

struct http_server {
    http_config config;
    char address[256];
    int listening, wakes; /* sockets to accept from, and to be woken by */
    pthread_t thread;
    atomic_bool stops;
    http_connection *connections, **last; /* of the thread: all that are open, as they came */
    unsigned n_connections;
    atomic_size_t bodies;  /* bytes of all bodies that are held */
    atomic_size_t replies; /* bytes of all replies that are held */
    atomic_uint active;
    pthread_mutex_t lock;   /* of what follows */
    http_exchange *streams; /* all that are open */
};

typedef struct http_header {
    const char *name;
    char value[HTTP_VALUE_BYTES];
} http_header;

/*
 * What a request comes to: whatever was found in its bytes decides, in this order, before a hook
 * is asked. Where the end of the request, or who is asked, cannot be told the connection ends.
 */
typedef enum http_verdict {
    HTTP_SOUND,
    HTTP_BYTES,     /* 400: a byte or a line that no request has */
    HTTP_VERSION,   /* 505 */
    HTTP_LINE,      /* 414: the first line is too long */
    HTTP_FIELDS,    /* 431: the head is */
    HTTP_FRAMING,   /* 400: the end of the body is not said, or not in one way */
    HTTP_HOST,      /* 400: nor who is asked */
    HTTP_CHUNKS,    /* 400: the body is not in chunks as it should be */
    HTTP_TOO_LONG,  /* 413 */
    HTTP_NO_MEMORY, /* 503 */
    HTTP_UNWANTED   /* by the hook: the body is not kept */
} http_verdict;

struct http_exchange {
    http_server *server;
    atomic_uint owners;
    double began;
    char *bytes; /* of the head */
    http_head head;
    const char *path, *arguments; /* in them: without escapes, and what follows '?' */
    char *body;
    size_t body_size, body_capacity, body_dropped;
    http_verdict verdict;
    void *mark;

    pthread_mutex_t lock;        /* of what follows */
    http_connection *connection; /* NULL: the exchange is over */
    bool suspended;              /* its connection waits for more of the reply */
    bool gone;                   /* the client has left, or does not read: nothing more is sent */
    unsigned status;
    const char *type;
    char *reply; /* of a stream what is not sent yet */
    size_t reply_size, reply_capacity, reply_sent;
    size_t held; /* of the server's replies */
    uint64_t given;
    bool stream, ended;
    bool begun, over; /* the first, the last byte of it is on its way */
    double written;   /* when the stream was written to last */
    http_header headers[HTTP_MOST_HEADERS];
    unsigned n_headers;
    http_exchange *next, *before; /* among the server's streams */
};

/* ---- http.c: by the thread that moves bytes -------------------------------------------------- */

/* An exchange that begins with the head bytes[size]; size is 0 where none can be read. NULL: there
 * is no memory. */
http_exchange *http_begin(http_connection *c, const char *bytes, size_t size);

/* Finds what its head comes to, refuses it or asks the hook about it. Says how the body ends. */
void http_judge(http_exchange *x);

/* Takes a piece of the body. False: more than that is not read from this client. */
bool http_take(http_exchange *x, const char *bytes, size_t size);

/* All of the request is there. */
void http_handle(http_exchange *x);

/* Refuses it, whatever the head said, and ends the connection behind the reply. */
void http_refuse(http_exchange *x, http_verdict verdict);

/* It is over. */
void http_finish(http_exchange *x, bool whole);

/* ---- reply.c --------------------------------------------------------------------------------- */

typedef enum http_filled {
    HTTP_FILLED,
    HTTP_NOTHING, /* there is nothing yet: the connection is woken when there is */
    HTTP_ALL,     /* nothing more comes */
    HTTP_CUT      /* nothing more comes, and the reply is not whole */
} http_filled;

/* Puts the next bytes of a reply into c->out, which is empty. */
http_filled http_fill(http_connection *c);

/* Takes a stream out of the server's list. */
void http_stream_forget(http_exchange *x);

/* ---- connection.c ---------------------------------------------------------------------------- */

/* A client has come; closes fd where there is no memory for it. */
void http_connect(http_server *s, int fd);

/* Goes on with whatever is possible, after news of its socket: events of poll. False: it has ended,
 * and c is gone. */
bool http_go_on(http_connection *c, short news, double now);

/* Closes it. */
void http_end(http_connection *c);

/* What to poll its socket for. */
short http_events(const http_connection *c);

/* ---- loop.c ---------------------------------------------------------------------------------- */

/* Starts the thread that moves bytes, which takes s->listening over. False: no thread or memory. */
bool http_start(http_server *s);

/* Ends it, with all connections. */
void http_stop(http_server *s);

/* Has it look at all connections that are woken. From any thread. */
void http_wake(const http_server *s);

/* ---- listen.c -------------------------------------------------------------------------------- */

/* A socket that listens as the config says, and its address as text; -1 with the error set. */
int http_listen(const http_config *config, char *address, size_t size, tern_error *err);

#endif
