/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_MODELS_H
#define TERN_SERVE_MODELS_H

/*
 * The models of a server, by name.
 *
 * The first model is loaded when the server opens, each other one when a request asks for it. When
 * memory or their number is short, the model whose last request came the longest ago is given up.
 * It comes back when it is asked for again.
 *
 *     UNLOADED -> LOADING -> LOADED -> UNLOADED
 *                    |
 *                    +-----> FAILED -> LOADING, when the file has changed or some time has passed
 *
 * Leases. Whoever uses a loaded model has a lease of it: a request while it is read, then its job.
 * A model that is leased is never given up, and a `served` stays what it is until the lease is
 * given back. The entries (model_entry) live as long as the models, also of one that was removed.
 *
 * Waiting. models_take never waits. If the model has to be loaded first, it keeps the exchange and
 * hands it to the config's `ready` later: with a lease, or with the reason why the model cannot
 * answer. So requests for other models go on meanwhile. While a model waits for room and all loaded
 * ones are in use, new requests wait for a lease, too, until one of the models is free; otherwise a
 * busy model could keep another out for ever.
 *
 * Threads. One thread of this module opens and closes models, one after the other. All functions
 * may be called from any thread; only models_open, models_stop and models_free wait. Engines of
 * different models compute by turns (serve/work/turns.h), since each uses all cores.
 *
 * The lock is held for a moment, never while a model is opened, closed or asked. A thread that
 * holds a worker's lock may take it (a job gives its lease back), never the other way round.
 */

#include <time.h>

#include "serve/http/refusal.h"
#include "serve/served.h"

typedef struct models models;
typedef struct model_entry model_entry;

typedef enum model_state { MODEL_UNLOADED, MODEL_LOADING, MODEL_LOADED, MODEL_FAILED } model_state;

/* "unloaded", "loading", "loaded", "failed" */
const char *model_state_name(model_state state);

/* A model, as it can be told about at any time. */
typedef struct model_facts {
    const char *name, *path; /* live as long as the models */
    model_state state;
    uint64_t file_bytes;                    /* 0: there is no such file */
    uint64_t memory_bytes;                  /* that it takes, or would take; 0: not known yet */
    uint64_t shared_bytes; /* of these, now, what another loaded model reads, too */
    struct timespec file_time;              /* when the file was changed */
    char problem[TERN_ERROR_MESSAGE_BYTES]; /* of MODEL_FAILED: the reason; else "" */

    /* of a model that has been loaded once */
    bool known;
    char fingerprint[TERN_FINGERPRINT];
    uint64_t identity;    /* tern_model_identity */
    const char *isa;      /* instruction set of its kernels */
    tern_model_info info; /* its texts are NULL */
    uint32_t n_ctx;
} model_facts;

typedef struct models_config {
    const server_config *server; /* what they have in common, and their list */
    void *user;                  /* of `ready` */
    /* A request that waited goes on. m: it has a lease of this model; NULL: it is refused for this
     * reason. The exchange is kept until the call returns. From any thread; must not wait. */
    void (*ready)(void *user, http_exchange *x, const served *m, const refusal *why);
} models_config;

/* Loads the first model. Errors of the source, and of served_open. */
TERN_MUST_CHECK tern_status models_open(const models_config *config, models **out, tern_error *err);

/* Ends all answers and refuses requests that wait. Requests that are being read must have ended.
 * NULL is fine. */
void models_stop(models *all);

/* Stops and frees them. Sets *all to NULL; NULL is fine. */
void models_free(models **all);

/* In the order of the list; those that clients fetched come last. Some may have been removed. */
size_t models_count(const models *all);
model_entry *models_at(models *all, size_t i);
bool model_is_there(const model_entry *e);
bool model_is_fetched(const model_entry *e); /* by a client */

/* Adds a model that a client has fetched. It takes the place of an older one of that name, whose
 * answers go on. TERN_ERR_STATE is never returned. */
TERN_MUST_CHECK tern_status models_add(models *all, const char *name, const char *path,
                                       tern_error *err);

/* Removes a model that a client has fetched; its answers go on. False: it was not fetched. */
bool models_remove(models *all, model_entry *e);

/* The model of that name, also as NAME:latest; NULL: there is none. */
model_entry *models_find(models *all, const char *name);

const char *model_name(const model_entry *e);
void models_tell(models *all, model_entry *e, model_facts *out);

/* The counts of a model's answers since the server began, and the state of its engine; of a model
 * that is not loaded, with nothing under way. */
void models_count_answers(models *all, model_entry *e, answer_metrics *counts,
                          tern_engine_state *now);

typedef enum models_answer {
    MODELS_TAKEN,  /* *m is leased */
    MODELS_WAITS,  /* the exchange is kept; `ready` gets it */
    MODELS_REFUSED /* *r says why; 500: it cannot be loaded, 503: the server is ending */
} models_answer;

/* A lease for a request, which may wait until the model is loaded. */
models_answer models_take(models *all, model_entry *e, http_exchange *x, const served **m,
                          refusal *r);

/* A lease of a model that is loaded now; NULL: it is not. It does not count as use. */
const served *models_borrow(models *all, model_entry *e);

/* One more lease of a model that the caller has a lease of; a lease given back. */
void models_keep(const served *m);
void models_give_back(const served *m);

/* Looks for a loaded model whose file has changed: TERN_ERR_CHANGED. If there are several models,
 * all its answers end with that reason, and it is given up; when it is asked for again, it is
 * loaded again. */
TERN_MUST_CHECK tern_status models_check(models *all, tern_error *err);

#endif
