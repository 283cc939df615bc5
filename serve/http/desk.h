/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_HTTP_DESK_H
#define TERN_SERVE_HTTP_DESK_H

/*
 * Threads that parse bodies and tokenize, so that neither the thread that moves bytes nor the one
 * that steps the engine waits for a long prompt. Clients take turns.
 */

#include "serve/http/http.h"

typedef struct desk desk;
typedef void desk_work(void *user, http_exchange *x);

TERN_MUST_CHECK tern_status desk_open(unsigned threads, desk **out, tern_error *err);

typedef enum desk_answer {
    DESK_TAKEN,
    DESK_FULL,  /* the queue, or this owner's share of it, is full */
    DESK_CLOSED /* the desk was stopped, or there is no memory */
} desk_answer;

/*
 * If it answers DESK_TAKEN, work(user, x) is called soon, and x is kept until then. Otherwise work
 * is not called. Owners take turns, so that a key that asks often waits longer than one that asks
 * once; an owner is only compared, never read, and NULL is one, too. Long bodies never occupy all
 * threads, since short ones would have to wait for them.
 */
TERN_MUST_CHECK desk_answer desk_put(desk *d, desk_work *work, void *user, http_exchange *x,
                                     const void *owner);

/* Finishes all queued work, then ends the threads. NULL is fine. */
void desk_stop(desk *d);

/* Stops and frees it. Sets *d to NULL; NULL is fine. */
void desk_free(desk **d);

#endif
