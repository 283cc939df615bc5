/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_HTTP_DESK_H
#define TERN_SERVE_HTTP_DESK_H

/*
 * Threads that read bodies and tokenize, so that neither the thread that moves bytes nor the one
 * that steps the engine waits for a long prompt. What they do is done in turns.
 */

#include "serve/http/http.h"

typedef struct desk desk;
typedef void desk_work(void *user, http_exchange *x);

TERN_MUST_CHECK tern_status desk_open(unsigned threads, desk **out, tern_error *err);

typedef enum desk_answer {
    DESK_TAKEN,
    DESK_FULL,  /* as many wait as may wait, or as many of that owner */
    DESK_CLOSED /* it was stopped, or there is no memory */
} desk_answer;

/*
 * Calls work(user, x) soon; keeps x until then. Otherwise work is not called. Owners (what they are
 * is not looked at; NULL is one, too) take turns, so that a key that asks often waits longer than
 * one that asks once. Long bodies never have all threads: behind them short ones would wait.
 */
TERN_MUST_CHECK desk_answer desk_put(desk *d, desk_work *work, void *user, http_exchange *x,
                                     const void *owner);

/* Does all that was put, then ends the threads. NULL is fine. */
void desk_stop(desk *d);

/* Stops and frees it. Sets *d to NULL; NULL is fine. */
void desk_free(desk **d);

#endif
