/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_SERVER_H
#define TERN_SERVE_SERVER_H

/*
 * A model that answers over HTTP: docs/serving.md says what is asked and answered. The threads: one
 * that moves bytes (serve/http/http.h), two that read requests (serve/http/desk.h), one that steps
 * the engine (serve/work/worker.h), and those of the engine. All block every signal but faults of
 * their own (base/thread_signals.h).
 */

#include "serve/http/http.h"
#include "serve/http/keys.h"
#include "serve/http/log.h"
#include "tern/engine.h"

typedef struct server server;

/* How receipts of answers are made; serve/work/receipt.h. */
typedef struct receipt_maker receipt_maker;

typedef struct server_config {
    http_config http;        /* but its hooks */
    const tern_model *model; /* with a tokenizer */
    const tern_model *audit; /* the same with other kernels, to repeat answers on; NULL: none */
    tern_engine_params engine;
    const char *name;              /* of the model, as clients call it */
    bool any_model;                /* any other name is the model's too */
    keys *keys;                    /* that clients may show, taken over; n is 0: none is needed */
    const char *allowed_hosts;     /* where none is needed, as gate.h has them; NULL: none */
    tern_sampler_params sampling;  /* where a request says nothing */
    bool seeded;                   /* so does the seed */
    size_t max_tokens;             /* 0: until the context is full */
    tern_draft_mode draft;         /* of all requests */
    tern_pooling pooling;          /* of vectors; NONE: none are made */
    const receipt_maker *receipts; /* NULL: there are none */
    double stalled_seconds;        /* that a pass takes when something is wrong */
    bool logs;                     /* a line for each request */
    log_config log;
} server_config;

/*
 * Makes the engine and listens. Errors as tern_engine_new, TERN_ERR_TOKENIZER_MISSING, TERN_ERR_IO
 * (it cannot listen there). What the config points at must outlive the server.
 */
TERN_MUST_CHECK tern_status server_open(const server_config *config, server **out, tern_error *err);

const char *server_address(const server *s);     /* as http_address */
const char *server_fingerprint(const server *s); /* "b" and 16 hexadecimal digits */
uint32_t server_context(const server *s);        /* positions of a sequence */

/* Once a second, while it serves. */
void server_tick(server *s);

/* From now on these keys count, as keys_replace says. Empties fresh. */
void server_set_keys(server *s, keys *fresh);

/* As log_reopen, if there is a log. */
TERN_MUST_CHECK tern_status server_reopen_log(server *s, tern_error *err);

/* From now on requests for text are refused with 503, and /ready says so. */
void server_drain(server *s);

/* Requests that are not over. */
unsigned server_active(const server *s);

/* Ends answers that are not complete; their clients are told. */
void server_cancel(server *s);

/* Cancels, waits a few seconds until all is sent, stops. Sets *s to NULL; NULL is fine. */
void server_close(server **s);

#endif
