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

typedef struct worker worker;

/* Starts the worker thread. Engine, audit and model belong to the caller and must outlive it; only
 * the worker steps the engine. The audit (may be NULL) runs while there are no jobs. The model is
 * tuned for later starts in the first such moment after a job. TERN_ERR_NOMEM. */
TERN_MUST_CHECK tern_status worker_open(tern_engine *engine, const tern_model *model, audit *checks,
                                        worker **out, tern_error *err);

/* Takes the job over, and frees it when all of it has ended. If the engine refuses it, the client
 * is told. */
void worker_submit(worker *w, job *j);

/* Appends the answers in work, at most `most`, as elements of a JSON array: slots in llama.cpp's
 * dialect, without texts. Returns their number. */
size_t worker_write_slots(worker *w, size_t most, text *out);

answer_metrics worker_metrics(worker *w); /* the counts so far */

/* Returns the seconds that the current pass has taken so far; 0: no pass is under way. */
double worker_stalled(worker *w);

/* Ends the thread. Clients of unfinished jobs are told, and the jobs are freed. Nothing may be
 * submitted any more. NULL is fine. */
void worker_stop(worker *w);

/* Stops and frees it. Sets *w to NULL; NULL is fine. */
void worker_free(worker **w);

#endif
