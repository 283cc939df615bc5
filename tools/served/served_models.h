/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_SERVED_SERVED_MODELS_H
#define TERN_TOOLS_SERVED_SERVED_MODELS_H

/* The models of tern serve: which there are, their names, and how they are opened. */

#include "serve/server.h"
#include "tools/load/loader.h"
#include "tools/record/served_answer.h"

enum { SERVED_NAME_BYTES = 128 };

typedef struct served_model {
    char name[SERVED_NAME_BYTES];
    char *path;
    bool is_open;
    bool fetched; /* by a client */
    loaded l;
    tern_model *other; /* for audits; NULL: none */
    answer_receipts receipts;
} served_model;

typedef struct served_models {
    const options *o;
    served_model *models; /* [n] */
    model_listed *listed; /* [n] */
    size_t n;
    size_t n_fetched; /* models of clients behind the others, which came while it was served */
    bool first_waits; /* all come from folders: none is named first */
    recording
        *recording; /* of all answers, borrowed; NULL: none. Set it before a model is opened */
    uint64_t audit_bytes; /* of matrices that the first model's audits use, too */
} served_models;

/* Finds the models that the options name. Returns the exit status. Call served_models_free in any
 * case; a zeroed struct can be freed, too. */
int served_models_read(const options *o, served_models *all);

/* Opens the first model, unless it waits. Returns the exit status. */
int served_models_begin(served_models *all);

/* Opens and closes the models for a server. What was opened before is used. */
model_source served_models_source(served_models *all);

void served_models_free(served_models *all);

#endif
