/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_HTTP_ACCOUNT_H
#define TERN_SERVE_HTTP_ACCOUNT_H

/*
 * The data about a request besides its text: the key that was shown, and the tokens used so far.
 * The exchange and the job share an account, from any thread; it lives until it is released
 * as often as kept.
 */

#include "serve/http/keys.h"
#include "serve/http/refusal.h"
#include "tern/engine.h"

struct route;
struct served;

typedef struct account {
    atomic_uint owners;
    const struct route *route; /* the route of the request; NULL: there is none */
    const struct served *model; /* leased while the request is read; NULL: no model */
    key *key;                  /* the key that was shown, kept; NULL: none is needed */
    atomic_bool entered;       /* it counts against its key's limit of requests */
    atomic_ullong prompt_tokens, cached_tokens, generated_tokens; /* of answers that have ended */
} account;

/* NULL: no memory. */
account *account_new(const struct route *route);
void account_keep(account *a);
void account_release(account *a); /* NULL is fine */

/* Counts a request for text against its key's limits; false after a refusal, if one is reached. */
bool account_enter(account *a, refusal *r);

/* Everything this request asked for is computed. It no longer counts against its key's limit, so a
 * client that has its reply may send the next one. account_release does the same if this was not
 * called. */
void account_leave(account *a);

/* Adds the tokens of an answer that ended. Answers to one prompt share its tokens, which count
 * once, with the first of them. */
void account_note(account *a, const tern_event *end);

#endif
