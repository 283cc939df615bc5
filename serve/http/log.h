/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_HTTP_LOG_H
#define TERN_SERVE_HTTP_LOG_H

/*
 * A line for each request, as text or as a JSON object. A thread of its own writes them, so that
 * a disk or a pipe that is slow or full delays no answer: lines that find no place are dropped and
 * counted. Whole lines are written, or none.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/status.h"

typedef struct access_log access_log;

typedef struct log_config {
    const char *path; /* of the file that lines are added to; NULL: standard error */
    bool json;
    bool prompts; /* what clients sent stands in the lines */
} log_config;

typedef struct log_entry {
    const char *label; /* of the key; NULL: none was shown */
    const char *method, *path;
    unsigned status;
    uint64_t bytes; /* of the reply's body */
    double seconds; /* from its beginning to its end */
    bool whole;     /* all of the reply was sent */
    uint64_t prompt_tokens, cached_tokens, generated_tokens;
    const char *body; /* [body_size] what was sent */
    size_t body_size;
} log_entry;

/* TERN_ERR_IO: the file cannot be opened; TERN_ERR_NOMEM. The path must outlive it. */
TERN_MUST_CHECK tern_status log_open(const log_config *config, access_log **out, tern_error *err);

/* Waits for nothing. */
void log_add(access_log *l, const log_entry *e);

/* Lines from now on go to the file that has the name now. Where that cannot be opened they go on to
 * the old one: TERN_ERR_IO. */
TERN_MUST_CHECK tern_status log_reopen(access_log *l, tern_error *err);

uint64_t log_dropped(access_log *l); /* lines */

/* Writes what waits, for a second at most. Sets *l to NULL; NULL is fine. */
void log_close(access_log **l);

#endif
