/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_HTTP_READERS_H
#define TERN_SERVE_HTTP_READERS_H

/*
 * Threads that parse bodies and tokenize, so that neither the thread that moves bytes nor the one
 * that steps the engine waits for a long prompt. Clients take turns.
 */

#include "serve/http/http.h"

typedef struct readers readers;
typedef void readers_work(void *user, http_exchange *x);

TERN_MUST_CHECK tern_status readers_open(unsigned threads, readers **out, tern_error *err);

typedef enum readers_answer {
    READERS_TAKEN,
    READERS_FULL,  /* the queue, or this owner's share of it, is full */
    READERS_CLOSED /* they were stopped, or there is no memory */
} readers_answer;

/*
 * If it answers READERS_TAKEN, work(user, x) is called soon, and x is kept until then. Otherwise
 * work is not called. Owners take turns, so that a key that asks often waits longer than one that
 * asks once; an owner is only compared, never read, and NULL is one, too. Long bodies never occupy
 * all threads, since short ones would have to wait for them.
 */
TERN_MUST_CHECK readers_answer readers_put(readers *r, readers_work *work, void *user,
                                           http_exchange *x, const void *owner);

/* The same for an exchange that was taken once and has waited elsewhere: the queue is never full
 * for it. */
TERN_MUST_CHECK readers_answer readers_put_again(readers *r, readers_work *work, void *user,
                                                 http_exchange *x, const void *owner);

/* Finishes all queued work, then ends the threads. NULL is fine. */
void readers_stop(readers *r);

/* Stops and frees it. Sets *r to NULL; NULL is fine. */
void readers_free(readers **r);

#endif
