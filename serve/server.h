/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_SERVER_H
#define TERN_SERVE_SERVER_H

/*
 * A server that lets a model answer over HTTP; docs/serving.md describes the interface. Its
 * threads: one that moves bytes (serve/http/http.h), two that read requests (serve/http/readers.h),
 * one that steps the engine (serve/work/worker.h), one that writes the log (serve/http/log.h), and
 * those of the engine. All block every signal except faults of their own (base/thread_signals.h).
 */

#include <limits.h>

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

/* A model of the list: the name under which clients ask for it, and its file. */
typedef struct model_listed {
    const char *name, *path;
    bool fetched; /* by a client: it can be removed again */
} model_listed;

/* Opens the models of the list. Called by one thread at a time. */
typedef struct model_source {
    void *user;
    /* Sets *bytes to the memory that model i would take: alone, or beside those that are open,
     * whose equal matrices it reads; to find these takes time. Loads nothing. */
    tern_status (*measure)(void *user, size_t i, bool beside, uint64_t *bytes, tern_error *err);
    /* The memory that the open models take less together than each would alone. */
    uint64_t (*saved)(void *user);
    tern_status (*open)(void *user, size_t i, model_setup *out, tern_error *err);
    /* Closes model i, which was opened. */
    void (*close)(void *user, size_t i);
    /* Adds model i, the next one, which a client has fetched. NULL: nothing is fetched. */
    tern_status (*add)(void *user, size_t i, const char *name, const char *path, tern_error *err);
} model_source;

enum {
    MODEL_FETCHED_BYTES = 100, /* of the name of a model that clients fetch */
    MODELS_FETCHED = 256       /* in the life of a server */
};

/* Fetches models for clients, and removes them. Called from several threads, but never for the same
 * name at once. */
typedef struct model_fetcher {
    void *user;
    /* Sets path to the model's file. Meanwhile it hands each status, a JSON document, to `tell`,
     * and NULL several times a second; when that returns false it stops: TERN_ERR_STATE. */
    tern_status (*fetch)(void *user, const char *name, bool (*tell)(void *to, const char *line),
                         void *to, char path[PATH_MAX], tern_error *err);
    tern_status (*remove)(void *user, const char *name, const char *path, tern_error *err);
} model_fetcher;

typedef struct server_config {
    http_config http;           /* without its hooks */
    const model_listed *models; /* [n_models >= 1]; loaded when they are asked for
                                   (serve/models.h), but for the first, which is loaded at once */
    size_t n_models;
    bool first_waits; /* is loaded when it is asked for, too */
    model_source source;
    const model_fetcher *fetcher; /* NULL: clients fetch nothing */
    uint64_t models_bytes;        /* memory of all loaded models; 0: what the machine has */
    unsigned most_models;         /* loaded at the same time; 0: as many as have room */
    bool ollama;                  /* GET / says so, as Ollama does */
    bool any_model;               /* any other name is accepted, too, for the first model */
    keys *keys;                   /* keys that clients may show, taken over; n is 0: no key is
                                     needed */
    const char *allowed_hosts;    /* the gate's list of hosts if no key is needed (gate.h); NULL:
                                     none */
    bool seeded;                  /* use the seed of `sampling`; false: draw one for each
                                     request */
    size_t max_tokens;            /* 0: until the context is full */
    bool open_objects;            /* objects of schemas that name their properties may have
                                     others, and numbers any number of digits */
    size_t keep_responses;        /* for previous_response_id; 0: none */
    const char *slot_path;        /* folder of saved slots; NULL: none are saved */
    tern_draft_mode draft;        /* for all requests */
    double stalled_seconds;       /* a pass that takes longer means that something is wrong */
    bool logs;                    /* write a line for each request */
    log_config log;
} server_config;

/*
 * Loads the first model and listens. Errors of the source, as tern_engine_new,
 * TERN_ERR_TOKENIZER_MISSING, TERN_ERR_IO (it cannot listen there). Everything that the config
 * points to must outlive the server.
 */
TERN_MUST_CHECK tern_status server_open(const server_config *config, server **out, tern_error *err);

const char *server_address(const server *s); /* see http_address */

/* The first model of the list, if it was loaded at once; else "" and 0. */
const char *server_fingerprint(const server *s); /* "b" and 16 hexadecimal digits */
uint32_t server_context(const server *s);        /* positions of a sequence */

/* Call it once a second while the server runs. */
void server_tick(server *s);

/* Replaces the keys (see keys_replace). Empties fresh. */
void server_set_keys(server *s, keys *fresh);

/* Calls log_reopen, if there is a log. */
TERN_MUST_CHECK tern_status server_reopen_log(server *s, tern_error *err);

/* TERN_ERR_CHANGED: the file of a loaded model has changed. In a server of several models, all
 * answers of this model end, and it is loaded again when it is asked for; any other server must
 * end. Call it once a second while the server runs. */
TERN_MUST_CHECK tern_status server_check(server *s, tern_error *err);

/* Refuses requests for text with 503 from now on. /ready then replies with 503, too. */
void server_drain(server *s);

/* Number of requests that are not over. */
unsigned server_active(const server *s);

/* Cancels all answers, waits a few seconds until all replies are sent, then stops. Sets *s to NULL;
 * NULL is fine. */
void server_close(server **s);

#endif
