/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_DESK_H
#define TERN_SERVE_DESK_H

/*
 * Threads that read bodies and tokenize, so that neither the thread that moves bytes nor the one
 * that steps the engine waits for a long prompt. What they do is done in the order of coming.
 */

#include "serve/http.h"

typedef struct desk desk;
typedef void desk_work(void *user, http_exchange *x);

TERN_MUST_CHECK tern_status desk_open(unsigned threads, desk **out, tern_error *err);

/* Calls work(user, x) soon; keeps x until then. False: no memory, or it was stopped, and work is
 * not called. */
bool desk_put(desk *d, desk_work *work, void *user, http_exchange *x);

/* Does all that was put, then ends the threads. NULL is fine. */
void desk_stop(desk *d);

/* Stops and frees it. Sets *d to NULL; NULL is fine. */
void desk_free(desk **d);

#endif
