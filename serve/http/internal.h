/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_HTTP_INTERNAL_H
#define TERN_SERVE_HTTP_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "serve/http/http.h"
#include "serve/http/library.h"

#if MHD_VERSION >= 0x00097002
typedef enum MHD_Result http_result;
#else
typedef int http_result;
#endif

/* A connection. While it waits for its client, for a header or until a reply is read, it has to be
 * ready in time. */
typedef struct http_connection {
    struct http_connection *next, *before;
    int fd;
    double until; /* when it is ended; 0: it does not wait for its client */
} http_connection;

struct http_server {
    http_config config;
    struct MHD_Daemon *daemon;
    char address[256];
    atomic_size_t bodies;  /* bytes of all bodies that are held */
    atomic_size_t replies; /* bytes of all replies that are held */
    atomic_uint active;
    pthread_mutex_t lock;         /* of what follows */
    http_connection *connections; /* all that are open */
    http_exchange *streams;       /* all that are open */
};

typedef struct http_header {
    const char *name;
    char value[HTTP_VALUE_BYTES];
} http_header;

/*
 * What a request comes to: whatever was found in the header decides, in this order, before a hook
 * is asked.
 */
typedef enum http_verdict {
    HTTP_SOUND,
    HTTP_FRAMING,   /* 400, and the connection ends, because what follows cannot be told apart */
    HTTP_HOST,      /* 400, likewise, because who is asked cannot be told */
    HTTP_HEADER,    /* 431, likewise */
    HTTP_TOO_LONG,  /* 413 */
    HTTP_NO_MEMORY, /* 503 */
    HTTP_UNWANTED   /* by the hook: the body is not kept */
} http_verdict;

struct http_exchange {
    http_server *server;
    atomic_uint owners;
    double began, body_began;
    char *method, *path;
    char *body;
    size_t body_size, body_capacity, body_dropped;
    http_verdict verdict;
    bool handled;
    void *mark;

    pthread_mutex_t lock;              /* of what follows */
    struct MHD_Connection *connection; /* NULL: the exchange is over */
    int fd;
    bool suspended;
    bool gone; /* the client has left, or does not read: nothing more is sent */
    unsigned status;
    const char *type;
    char *reply; /* of a whole reply, until it is queued; of a stream what is not sent yet */
    size_t reply_size, reply_capacity, reply_sent;
    size_t held; /* of the server's replies */
    uint64_t given;
    bool stream, ended;
    double written; /* when the stream was written to last */
    http_header headers[HTTP_MOST_HEADERS];
    unsigned n_headers;
    http_exchange *next, *before; /* among the server's streams */
    http_connection *wire;        /* with the server's lock held; NULL: the exchange is over */
};

/* ---- reply.c ---- */

/* Hands what there is of a reply to the library, or suspends the connection until there is one. */
http_result http_proceed(http_exchange *x);

/* With the server's lock held: how long its client has from now on, for that many bytes. */
void http_wait_for(const http_server *s, http_connection *c, size_t bytes);

/* Takes a stream out of the server's list. */
void http_stream_forget(http_exchange *x);

/* ---- listen.c ---- */

/* A socket that listens as the config says, and its address as text; -1 with the error set. */
int http_listen(const http_config *config, char *address, size_t size, tern_error *err);

#endif
