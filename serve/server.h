/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_SERVER_H
#define TERN_SERVE_SERVER_H

/*
 * A server that lets a model answer over HTTP; docs/serving.md describes the interface. Its
 * threads: one that moves bytes (serve/http/http.h), two that read requests (serve/http/readers.h),
 * one that steps the engine (serve/work/worker.h), one that writes the log (serve/http/log.h), and
 * those of the engine. All block every signal except faults of their own (base/thread_signals.h).
 */

#include "serve/http/http.h"
#include "serve/http/keys.h"
#include "serve/http/log.h"
#include "tern/engine.h"

typedef struct server server;

/* Makes receipts of answers: serve/work/receipt.h. */
typedef struct receipt_maker receipt_maker;

/* An open model, and what is its own of how it answers. */
typedef struct model_setup {
    const tern_model *model; /* must have a tokenizer */
    const tern_model *audit; /* the same model with other kernels, to repeat answers on; NULL:
                                none */
    tern_engine_params engine;
    tern_sampler_params sampling;  /* defaults for fields that a request leaves out */
    tern_pooling pooling;          /* for embeddings; NONE: the server makes none */
    const receipt_maker *receipts; /* NULL: receipts cannot be made */
} model_setup;

typedef struct server_config {
    http_config http; /* without its hooks */
    model_setup with;
    const char *name;              /* the name under which clients ask for the model */
    bool any_model;                /* any other name is accepted, too */
    keys *keys;                    /* keys that clients may show, taken over; n is 0: no key is
                                      needed */
    const char *allowed_hosts;     /* the gate's list of hosts if no key is needed (gate.h); NULL:
                                      none */
    bool seeded;                   /* use the seed of `sampling`; false: draw one for each
                                      request */
    size_t max_tokens;             /* 0: until the context is full */
    tern_draft_mode draft;         /* for all requests */
    double stalled_seconds;        /* a pass that takes longer means that something is wrong */
    bool logs;                     /* write a line for each request */
    log_config log;
} server_config;

/*
 * Makes the engine and listens. Errors as tern_engine_new, TERN_ERR_TOKENIZER_MISSING, TERN_ERR_IO
 * (it cannot listen there). Everything that the config points to must outlive the server.
 */
TERN_MUST_CHECK tern_status server_open(const server_config *config, server **out, tern_error *err);

const char *server_address(const server *s);     /* see http_address */
const char *server_fingerprint(const server *s); /* "b" and 16 hexadecimal digits */
uint32_t server_context(const server *s);        /* positions of a sequence */

/* Call it once a second while the server runs. */
void server_tick(server *s);

/* Replaces the keys (see keys_replace). Empties fresh. */
void server_set_keys(server *s, keys *fresh);

/* Calls log_reopen, if there is a log. */
TERN_MUST_CHECK tern_status server_reopen_log(server *s, tern_error *err);

/* Refuses requests for text with 503 from now on. /ready then replies with 503, too. */
void server_drain(server *s);

/* Number of requests that are not over. */
unsigned server_active(const server *s);

/* Cancels all answers, waits a few seconds until all replies are sent, then stops. Sets *s to NULL;
 * NULL is fine. */
void server_close(server **s);

#endif
