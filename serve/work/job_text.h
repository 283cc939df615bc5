/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_WORK_JOB_TEXT_H
#define TERN_SERVE_WORK_JOB_TEXT_H

/* The text of a job's answers, and calls in it, on their way to the client. */

#include "serve/work/job.h"

/* More text of choice i; bytes NULL: no more follows. False: the client is gone, or memory failed.
 */
bool job_give(job *j, size_t i, const char *bytes, size_t size);

/* Sends the events that were written. */
bool job_send(job *j);

#endif
