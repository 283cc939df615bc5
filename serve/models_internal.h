/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_MODELS_INTERNAL_H
#define TERN_SERVE_MODELS_INTERNAL_H

/* The parts of models that models.c and models_fetched.c share. */

#include <pthread.h>
#include <stdatomic.h>

#include "serve/models.h"

/* An exchange that waits for a lease. */
typedef struct waiter {
    struct waiter *next;
    http_exchange *x; /* kept */
} waiter;

struct model_entry {
    models *all;
    const char *name, *path;
    size_t index;
    served served; /* constant while it is loaded */
    bool fetched;  /* by a client */
    char *owned;   /* its name and path; NULL: they are the config's */
    atomic_bool removed;

    /* protected by the lock of all */
    model_state state;
    bool stale; /* its file has changed: no new leases */
    unsigned leases;
    uint64_t bytes; /* memory that it takes; 0: not known yet */
    uint64_t used;  /* number of its last lease */
    uint64_t asked; /* number of its first waiter */
    waiter *first, **last;
    tern_error problem; /* of MODEL_FAILED */
    struct timespec failed_file;
    double failed_at;
    model_facts facts;     /* from when it was loaded first */
    answer_metrics counts; /* up to when it was given up */
    tern_engine_state engine;
};

struct models {
    models_config config;
    turns *turns;
    pthread_t thread;
    bool has_thread;
    uint64_t limit; /* bytes of all loaded models */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t clock;              /* numbers leases and waiters */
    const model_entry *room_for; /* waits until a model can be given up */
    bool stops;
    size_t most;     /* places for entries */
    atomic_size_t n; /* entries, which are complete before they count */
    model_entry entries[];
};

/* Sets entry i, before it counts. The texts must outlive the models. */
void models_set(models *all, size_t i, const char *name, const char *path, bool fetched);

#endif
