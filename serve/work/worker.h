/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_WORK_WORKER_H
#define TERN_SERVE_WORK_WORKER_H

/*
 * The only thread that steps the engine. Between passes it ends jobs whose clients have left, and
 * hands the engine's events to the jobs. It never waits for a socket.
 */

#include "serve/work/answer_metrics.h"
#include "serve/work/audit.h"
#include "serve/work/job.h"
#include "serve/work/slots.h"
#include "serve/work/turns.h"

typedef struct worker worker;

/* Everything belongs to the caller and must outlive the worker. */
typedef struct worker_params {
    tern_engine *engine; /* only the worker steps it, in its turns */
    const tern_model
        *model;   /* tuned for later starts, in the first moment without jobs after one */
    audit *audit; /* runs while there are no jobs; NULL: there is none */
    turns *turns;
    size_t slots;          /* places whose last tokens are kept, to be saved; 0: none are */
    answer_metrics counts; /* to begin with */
} worker_params;

/* Starts the worker thread. TERN_ERR_NOMEM. */
TERN_MUST_CHECK tern_status worker_open(const worker_params *params, worker **out, tern_error *err);

/* Takes the job over, and frees it when all of it has ended. If the engine refuses it, the client
 * is told. */
void worker_submit(worker *w, job *j);

/* Appends the answers in work, at most `most`, to a JSON array that `out` ends with: slots in
 * llama.cpp's dialect, without texts; `named`: with the model. Returns their number. */
size_t worker_write_slots(worker *w, size_t most, bool named, text *out);

/* Carries an order out between two passes, and waits for that. False: the worker ends, and nothing
 * was done. The worker must keep the tokens of places. */
bool worker_do(worker *w, slot_order *order);

answer_metrics worker_metrics(worker *w); /* the counts so far */

/* Gives all jobs up for this reason, but takes others. */
void worker_end_all(worker *w, const refusal *why);

/* Returns the seconds that the current pass has taken so far; 0: no pass is under way. */
double worker_stalled(worker *w);

/* Ends the thread. Clients of unfinished jobs are told, and the jobs are freed. Nothing may be
 * submitted any more. NULL is fine. */
void worker_stop(worker *w);

/* Stops and frees it. Sets *w to NULL; NULL is fine. */
void worker_free(worker **w);

#endif
