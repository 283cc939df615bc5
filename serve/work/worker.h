/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_WORK_WORKER_H
#define TERN_SERVE_WORK_WORKER_H

/*
 * The one thread that steps the engine. Between two passes it ends what no client waits for any
 * more, and hands what happened to the jobs. It never waits for a socket.
 */

#include "serve/work/audit.h"
#include "serve/work/figures.h"
#include "serve/work/job.h"

typedef struct worker worker;

/* Starts the worker thread. Engine, audit and model belong to the caller and must outlive it; only
 * the worker steps the engine. The audit (may be NULL) runs while there are no jobs. The model is
 * tuned for later starts in the first such moment after a job. TERN_ERR_NOMEM. */
TERN_MUST_CHECK tern_status worker_open(tern_engine *engine, const tern_model *model, audit *checks,
                                        worker **out, tern_error *err);

/* Takes a job over: it is freed when all of it has ended. What is refused is refused to its client.
 */
void worker_submit(worker *w, job *j);

/* Ends all jobs; they are told so. */
void worker_cancel(worker *w);

unsigned worker_jobs(worker *w); /* that have not ended */

/* Appends the answers that are computed, at most `most`, as elements of a JSON array: slots as
 * llama.cpp shows them, without texts. */
size_t worker_write_slots(worker *w, size_t most, text *out);

figures worker_figures(worker *w); /* so far */

/* Seconds that the pass which is under way has taken so far; 0: there is none. */
double worker_stalled(worker *w);

/* Ends the thread; jobs that have not ended are told so and freed. Nothing may be submitted any
 * more. NULL is fine. */
void worker_stop(worker *w);

/* Stops and frees it. Sets *w to NULL; NULL is fine. */
void worker_free(worker **w);

#endif
