/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_HTTP_LOG_H
#define TERN_SERVE_HTTP_LOG_H

/*
 * The access log: a line for each request, as text or as a JSON object. A separate thread writes
 * the lines, so that a slow or full disk or pipe delays no answer. Lines that do not fit are
 * dropped and counted. Lines are never written in part.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/status.h"

typedef struct access_log access_log;

typedef struct log_config {
    const char *path; /* the file that lines are appended to; NULL: standard error */
    bool json;
    bool prompts; /* lines include the bodies that clients sent */
} log_config;

typedef struct log_entry {
    const char *label; /* label of the key; NULL: none was shown */
    const char *method, *path;
    unsigned status;
    uint64_t bytes; /* size of the reply's body */
    double seconds; /* from the beginning of the request to the end of the reply */
    bool whole;     /* all of the reply was sent */
    uint64_t prompt_tokens, cached_tokens, generated_tokens;
    const char *body; /* [body_size] the body of the request */
    size_t body_size;
} log_entry;

/* TERN_ERR_IO: the file cannot be opened; TERN_ERR_NOMEM. The path must outlive the log. */
TERN_MUST_CHECK tern_status log_open(const log_config *config, access_log **out, tern_error *err);

/* Adds a line. Does not wait for the file. */
void log_add(access_log *l, const log_entry *e);

/* Opens the path anew, so that later lines go to the file that has the name now. If it cannot be
 * opened, lines still go to the old one: TERN_ERR_IO. */
TERN_MUST_CHECK tern_status log_reopen(access_log *l, tern_error *err);

uint64_t log_dropped(access_log *l); /* number of lines so far */

/* Writes the waiting lines, for a second at most. Sets *l to NULL; NULL is fine. */
void log_close(access_log **l);

#endif
