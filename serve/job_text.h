/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_JOB_TEXT_H
#define TERN_SERVE_JOB_TEXT_H

/* The documents of a job's reply, appended to its `out`, as clients of this interface read them. */

#include "serve/job.h"

/* What a choice's stream begins with: the role of a chat, the echoed prompt of a completion. False:
 * with nothing. */
bool job_write_first(job *j, size_t i);

/* Text of a choice and what is noted of its tokens, which is forgotten then; `last` says why it
 * ended. */
void job_write_chunk(job *j, size_t i, const char *bytes, size_t size, bool last);

/* The chunk behind all choices. */
void job_write_usage_chunk(job *j);

/* A reply that is no stream. */
void job_write_whole(job *j);

/* Notes a token with the logarithms of its probability and of others'. */
void job_note_token(job *j, size_t i, const tern_event *e);

#endif
