/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_REMOTE_EXCHANGE_H
#define TERN_TOOLS_REMOTE_EXCHANGE_H

/* One request to a server and its reply, by libcurl, of which nothing is seen outside. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json_tree/text.h"
#include "tern/status.h"

typedef struct exchange exchange; /* a server, and the connection to it */

typedef struct exchange_config {
    const char *base;      /* URL without a slash at its end */
    const char *unix_path; /* of the socket that is asked in its place; NULL: none */
    const char *key;       /* to show; NULL: none */
    const char *ca_path;   /* certificates that are trusted; NULL: those of the system */
    unsigned idle_seconds; /* without a byte, before it is given up */
} exchange_config;

/* Bytes of a reply whose status is below 300; false: no more are wanted. */
typedef bool exchange_sink(void *user, const char *bytes, size_t size);

/* A line of the head of a reply: the name in small letters, both terminated. */
typedef void exchange_header(void *user, const char *name, const char *value);

typedef struct exchange_request {
    const char *path;        /* after the server's base; or a whole URL */
    const char *body;        /* of JSON, for POST; NULL: GET, or HEAD */
    bool head;               /* HEAD */
    bool follow;             /* go where the server says; the key is shown to nobody else */
    uint64_t from;           /* the first byte that is wanted */
    exchange_header *header; /* NULL: heads are not looked at */
    exchange_sink *sink;
    void *user; /* of both */
} exchange_request;

typedef struct exchange_reply {
    long status;        /* of HTTP */
    bool stream;        /* its type is text/event-stream */
    bool interrupted;   /* Ctrl-C ended it */
    bool unwanted;      /* the sink did */
    text refusal;       /* the body of another status, its beginning; to be freed */
    long retry_seconds; /* that the server asks to wait; 0: it does not */
    char place[4000];   /* where it points to without being followed; "": nowhere */
} exchange_reply;

/* TERN_ERR_NOMEM; TERN_ERR_IO in builds without libcurl. The config's texts must outlive it. */
TERN_MUST_CHECK tern_status exchange_open(const exchange_config *config, exchange **out,
                                          tern_error *err);
void exchange_close(exchange **e);

/* Whether a URL is the server's that was named: the same scheme, host and port. The key is shown to
 * no other. */
bool exchange_is_own(const exchange *e, const char *url);

/*
 * Makes a request. TERN_ERR_IO names the server and why nothing came, or no more; a reply of any
 * status is none. TERN_ERR_ARG: the reply points to where no request goes, from https to http, to
 * what is not an address, or on and on; asking again does not help. *reply is to be looked at when
 * TERN_OK was returned; before the first call of the sink its status and stream are set.
 */
TERN_MUST_CHECK tern_status exchange_ask(exchange *e, const exchange_request *request,
                                         exchange_reply *reply, tern_error *err);

/* GET, or POST with a body of JSON. */
TERN_MUST_CHECK tern_status exchange_make(exchange *e, const char *path, const char *body,
                                          exchange_sink *sink, void *user, exchange_reply *reply,
                                          tern_error *err);

#endif
