/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_SERVED_H
#define TERN_SERVE_SERVED_H

/*
 * A model that answers: its engine, the thread that steps it, and what requests are read with.
 * Nothing in it changes between served_open and served_close but the scales of adapters, which have
 * a lock, so all threads may read it then.
 */

#include "base/fingerprint.h"
#include "serve/server.h"
#include "serve/work/worker.h"

struct model_entry;

typedef struct served_params {
    const server_config *config; /* of the server */
    struct model_entry *entry;   /* whose leases it has (serve/models.h) */
    const char *name;
    turns *turns;
    answer_metrics counts; /* of its answers before */
} served_params;

typedef struct served {
    served_params params;
    model_setup with;
    const tern_tokenizer *tokenizer;
    tern_model_info info;
    char fingerprint[TERN_FINGERPRINT];
    call_form calls;
    ask_rules rules;
    adapter_scales *scales; /* of its adapters */
    job_place place;
    grammars *grammars;
    size_t text_bytes; /* limit of texts that are tokenized but not answered */
    tern_engine *engine;
    audit *audit; /* NULL: there is none */
    worker *worker;
} served;

/* Makes the engine and starts the worker. Errors as tern_engine_new, TERN_ERR_TOKENIZER_MISSING.
 * Call served_close in any case. Params and setup point to what must outlive it. */
TERN_MUST_CHECK tern_status served_open(served *m, const served_params *params,
                                        const model_setup *with, tern_error *err);

/* Ends everything and empties *m; a zeroed struct can be closed, too. Jobs must have ended, or
 * worker_stop ends them. */
void served_close(served *m);

#endif
