/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_WORK_JOB_TEXT_H
#define TERN_SERVE_WORK_JOB_TEXT_H

/* Passes the text of a job's answers, and the calls in it, on to the client. */

#include "serve/work/job.h"

/* Takes more text of choice i; bytes NULL: no more follows. False: the client has left, or there is
 * no memory. */
bool job_give(job *j, size_t i, const char *bytes, size_t size);

/* Sends the events that were written. False: the client has left, or there is no memory. */
bool job_send(job *j);

#endif
