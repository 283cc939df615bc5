/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_REMOTE_EXCHANGE_H
#define TERN_TOOLS_REMOTE_EXCHANGE_H

/* A request to a server and its reply, by libcurl. Nothing of libcurl is visible outside. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json_tree/text.h"
#include "tern/status.h"

typedef struct exchange exchange; /* a server, and the connection to it */

typedef struct exchange_config {
    const char *base;      /* URL without a trailing slash */
    const char *unix_path; /* socket that is used instead; NULL: none */
    const char *key;       /* key to send; NULL: none */
    const char *ca_path;   /* trusted certificates; NULL: those of the system */
    unsigned idle_seconds; /* it gives up after so long without a byte */
} exchange_config;

/* Gets bytes of a reply whose status is below 300; false: it wants no more. */
typedef bool exchange_sink(void *user, const char *bytes, size_t size);

/* Gets a header line of a reply: the name in lower case, both terminated. */
typedef void exchange_header(void *user, const char *name, const char *value);

typedef struct exchange_request {
    const char *path;        /* appended to the server's base; or a whole URL */
    const char *body;        /* JSON to POST; NULL: GET or HEAD */
    bool head;               /* HEAD */
    bool follow;             /* follow redirections; no other server gets the key */
    uint64_t from;           /* the first byte that is wanted */
    exchange_header *header; /* NULL: headers are ignored */
    exchange_sink *sink;
    void *user; /* for both functions */
} exchange_request;

typedef struct exchange_reply {
    long status;        /* HTTP status */
    bool stream;        /* its type is text/event-stream */
    bool interrupted;   /* Ctrl-C ended it */
    bool unwanted;      /* the sink ended it */
    text refusal;       /* the beginning of the body if the status is 300 or above; to be freed */
    long retry_seconds; /* the wait that the server asks for; 0: none */
    char place[4000];   /* redirection that was not followed; "": none */
} exchange_reply;

/* TERN_ERR_NOMEM; TERN_ERR_IO in builds without libcurl. The config's texts must outlive it. */
TERN_MUST_CHECK tern_status exchange_open(const exchange_config *config, exchange **out,
                                          tern_error *err);
void exchange_close(exchange **e);

/* True if a URL has the scheme, host and port of the server that was named. No other server gets
 * the key. */
bool exchange_is_own(const exchange *e, const char *url);

/*
 * Makes a request. TERN_ERR_IO names the server and why no reply, or no complete one, came; a reply
 * of any status is not an error. TERN_ERR_ARG: the redirection is not allowed (from https to http,
 * to an invalid address, or too many); asking again does not help. *reply is valid if TERN_OK was
 * returned; its status and stream are set before the first call of the sink.
 */
TERN_MUST_CHECK tern_status exchange_ask(exchange *e, const exchange_request *request,
                                         exchange_reply *reply, tern_error *err);

/* GET, or POST with a body of JSON. */
TERN_MUST_CHECK tern_status exchange_make(exchange *e, const char *path, const char *body,
                                          exchange_sink *sink, void *user, exchange_reply *reply,
                                          tern_error *err);

#endif
