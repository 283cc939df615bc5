/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_PULLS_H
#define TERN_SERVE_PULLS_H

/*
 * Models that are being fetched for clients (POST /api/pull). Each has a thread, and all requests
 * for one model share it: what was told last is told to those who come later, too. When the last of
 * them has left, the work stops. From any thread.
 */

#include "serve/models.h"

typedef struct pulls pulls;

/* NULL: no memory. Both must outlive it. */
pulls *pulls_new(const model_fetcher *fetcher, models *all);

/* Fetches a model for a request, which is kept until it has its reply: a stream of statuses, or the
 * last of them. False after a refusal. */
bool pulls_join(pulls *p, http_exchange *x, const char *name, bool stream, refusal *r);

/* True if a model of that name is being fetched. */
bool pulls_has(pulls *p, const char *name);

/* Ends all work; later requests are refused. NULL is fine. */
void pulls_stop(pulls *p);

/* Stops and frees it. NULL is fine. */
void pulls_free(pulls *p);

#endif
