/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_SERVER_INTERNAL_H
#define TERN_SERVE_SERVER_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "base/fingerprint.h"
#include "serve/http/desk.h"
#include "serve/interfaces/ask.h"
#include "serve/server.h"
#include "serve/work/job.h"
#include "serve/work/worker.h"

enum { SERVER_STATUSES = 500 }; /* of HTTP, from 100 on */

struct server {
    server_config config;
    const tern_tokenizer *tokenizer;
    tern_model_info info;
    char fingerprint[TERN_FINGERPRINT];
    ask_rules rules;
    job_place place;
    grammars *grammars;
    time_t started;
    atomic_bool draining;
    atomic_bool stopping;                   /* nothing is worked on any more */
    atomic_ullong tokenized_bytes;          /* of texts that tokens were looked for in */
    atomic_ullong unread_requests;          /* refused because too many wait to be read */
    size_t text_bytes;                      /* of texts that are tokenized, but not answered */
    atomic_ullong replies[SERVER_STATUSES]; /* sent, by status - 100; [0]: none was sent */
    pthread_mutex_t keys_lock;              /* of keys */
    keys keys;
    access_log *log; /* NULL: none is kept */
    tern_engine *engine;
    audit *audit; /* NULL: there is none */
    worker *worker;
    desk *desk;
    http_server *http;
};

/* ---- server.c ---- */

/* Whether requests must show a key, but for routes that are open. From any thread. */
bool server_needs_key(server *s);

typedef void route_handler(server *s, http_exchange *x);

typedef struct route {
    const char *method; /* "GET" stands for HEAD too */
    const char *path;   /* without /v1 */
    route_handler *handle;
    bool at_desk; /* reads a body, or takes time in another way */
    bool open;    /* asks for no key */

    /* For its description; shapes as serve/interfaces/shape.h has them. */
    ask_kind kind;     /* whose fields the body has; 0: none of them */
    const char *body;  /* of another body */
    bool streams;      /* a reply may be a stream */
    const char *reply; /* "s" for text that is not JSON; NULL: there is none but errors */
    const char *what;  /* it does; NULL: a part of the page at /, which is not described */
} route;

/* ---- routes.c ---- */

/* The route of a request; NULL: there is none. *methods gets those that its path has, "" for none.
 */
const route *route_find(const char *method, const char *path, char *methods, size_t size);

/* Row number i of the table; NULL after the last one. */
const route *route_at(size_t i);

/* All that are described, one in a line, with what they do. */
void route_list(text *out);

/* ---- pages.c: what a server says of itself and its model ---- */

route_handler page_home, page_health, page_ready, page_models, page_model, page_props, page_slots;
route_handler page_tokenizer;

/* ---- page_parts.c: the page at / ---- */

/* Whether a request is a browser's, which shows pages. In hooks only. */
bool page_is_wanted(const http_exchange *x);

/* Replies with the page itself, or with the part of it that the path names. */
void page_whole(http_exchange *x);
route_handler page_part;

/* ---- describe.c ---- */

route_handler page_openapi;

/* ---- page_metrics.c ---- */

route_handler page_metrics;

/* ---- answers.c: what a body is answered with ---- */

route_handler answer_chat, answer_completion, answer_response, answer_message, answer_native;
route_handler answer_count_chat, answer_count_response, answer_count_message;
route_handler answer_embeddings, answer_native_embedding;
route_handler answer_tokenize, answer_detokenize, answer_template;

/* A request that is read: rules whose limits know its client. Do not copy it. */
typedef struct reading {
    server *s;
    http_exchange *x;
    ask_rules rules;
} reading;

/* answers: its prompts have to fit into the context; else they are only counted or shown. */
void reading_open(reading *in, server *s, http_exchange *x, bool answers);

/* Replies with a document. Empties t. */
void reply_with(http_exchange *x, unsigned status, const char *type, text *t);

#endif
