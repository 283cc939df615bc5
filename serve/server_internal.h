/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_SERVER_INTERNAL_H
#define TERN_SERVE_SERVER_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "serve/http/readers.h"
#include "serve/models.h"
#include "serve/pulls.h"

enum { SERVER_STATUSES = 500 }; /* statuses of HTTP, from 100 on */

struct server {
    server_config config;
    models *models;
    model_facts first; /* of the models, when the server was opened */
    time_t started;
    atomic_bool draining;
    atomic_bool stopping;                   /* no further work is begun */
    atomic_ullong tokenized_bytes;          /* bytes of texts that were tokenized */
    atomic_ullong unread_requests;          /* requests refused because too many waited to be
                                               read */
    atomic_ullong replies[SERVER_STATUSES]; /* replies by status - 100; [0]: there was no reply */
    pthread_mutex_t keys_lock;              /* protects keys */
    keys keys;
    kept *kept;      /* responses; NULL: none are kept */
    pulls *pulls;    /* models that are fetched; NULL: none are */
    access_log *log; /* NULL: no log is written */
    readers *readers;
    http_server *http;
};

/* ---- server.c ---- */

/* True if requests must show a key, except for open routes. From any thread. */
bool server_needs_key(server *s);

/* The model that a request is answered by, in functions that handle routes with bodies or of a
 * model. It is leased until the function returns. */
const served *server_model(const http_exchange *x);

typedef void route_handler(server *s, http_exchange *x);

typedef struct route {
    const char *method; /* "GET" includes HEAD */
    const char *path;   /* without /v1 */
    route_handler *handle;
    bool reads_body; /* one of the readers calls it */
    bool open;       /* needs no key */
    bool no_model;   /* it needs none, although a reader calls it */
    bool of_model;   /* without a body, but about one model, which "?model=NAME" chooses */

    /* Members for its description. Shapes are written as in serve/interfaces/json_shape.h. */
    ask_kind kind;     /* the body has the fields of this kind; 0: of no kind */
    bool gap;          /* the body has the texts around a gap; a prompt it need not have */
    const char *body;  /* shape of the body if kind is 0 */
    bool streams;      /* the reply may be a stream */
    unsigned ollama;   /* the body has the fields of this ollama_kind */
    bool any_type;     /* Content-Type may be that of forms, which curl sends by itself */
    const char *reply; /* shape of the reply; "s": text that is not JSON; NULL: not described */
    const char *what;  /* describes the route; NULL: a part of the page at /, which is not
                          described */
} route;

/* ---- choose.c ---- */

enum { MODEL_NAME_BYTES = 256 }; /* of an argument "?model=NAME" */

/* Leases the model that a request is for. False: it was refused, or it waits for its model and is
 * handed to models_config.ready. */
bool models_choose(server *s, http_exchange *x, const served **m);

/* The entry of a name; the first one for NULL, or where any name does; NULL after a refusal. */
model_entry *models_entry(const server *s, const char *name, refusal *r);

/* ---- routes.c ---- */

/* Returns the route of a request; NULL: there is none. methods[size] gets the methods that the path
 * has, "" if there is no such path. */
const route *route_find(const char *method, const char *path, char *methods, size_t size);

/* Row number i of the table; NULL after the last one. */
const route *route_at(size_t i);

/* Appends the described routes, one in a line, with their descriptions. */
void route_list(text *out);

/* ---- describe_server.c: the server and its model ---- */

route_handler page_home, page_health, page_ready, page_models, page_model, page_props, page_slots;
route_handler page_tokenizer;

/* ---- page_parts.c: the page at / ---- */

/* True if a request comes from a browser, which shows pages. Call it only in hooks. */
bool page_is_wanted(const http_exchange *x);

/* Each replies: the first with the page itself, the second with the part that the path names. */
void page_whole(http_exchange *x);
route_handler page_part;

/* ---- openapi.c ---- */

route_handler page_openapi;

/* ---- page_metrics.c ---- */

route_handler page_metrics;

/* ---- answers.c: routes that read a body ---- */

route_handler answer_chat, answer_completion, answer_response, answer_message, answer_native,
    answer_infill;
route_handler answer_count_chat, answer_count_response, answer_count_message;
route_handler answer_embeddings, answer_native_embedding;
route_handler answer_tokenize, answer_detokenize, answer_template;

/* ---- slots.c ---- */

route_handler answer_slot;

/* ---- adapters.c ---- */

route_handler page_adapters, answer_adapters;

/* ---- kept_responses.c ---- */

route_handler kept_response, kept_response_delete, kept_response_cancel;

/* ---- rerank.c ---- */

route_handler answer_rerank;

/* ---- ollama.c: the interface of Ollama --------------------------------------------------------
 */

route_handler ollama_tags, ollama_ps, ollama_version, ollama_show;
route_handler ollama_chat, ollama_generate, ollama_embed, ollama_embeddings;
route_handler ollama_pull, ollama_delete;
route_handler ollama_refuse; /* what other servers of this interface do and this one does not */

/* ---- answers.c: steps of an answer ------------------------------------------------------------
 */

/* The kind of result that a request wants. */
typedef enum answer_wish { ANSWER_TEXT, ANSWER_VECTORS, ANSWER_ORDER } answer_wish;

/* Checks that texts or vectors can be asked for now, and counts the request against its key's
 * limits. False after a refusal. */
bool answer_begin(server *s, http_exchange *x, answer_wish wish, refusal *r);

/* Hands a request to the worker, which replies. Takes over what `a` holds. False after a refusal.
 */
bool answer_submit(http_exchange *x, ask *a, refusal *r);

/* Replies with a refusal, ends what answer_begin began, and frees what `a` holds. */
void answer_refuse(http_exchange *x, ask *a, const refusal *r);

/* The rules for reading one request. Their limits point to this struct, so do not copy it. */
typedef struct reading {
    server *s;
    const served *model;
    http_exchange *x;
    ask_rules rules;
} reading;

/* Sets the rules for a request. `answers`: its prompts must fit into the context; otherwise they
 * are only counted or shown. */
void reading_open(reading *in, server *s, http_exchange *x, bool answers);

/* Replies with the text t, and empties t. */
void reply_with(http_exchange *x, unsigned status, const char *type, text *t);

#endif
