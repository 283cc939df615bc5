/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_HTTP_VISIT_H
#define TERN_SERVE_HTTP_VISIT_H

/*
 * What is known of a request besides its text: who asked, and what it took so far. The exchange and
 * the job share it, from any thread; it lives until it is released as often as kept.
 */

#include "serve/http/keys.h"
#include "serve/http/refusal.h"
#include "tern/engine.h"

struct route;

typedef struct visit {
    atomic_uint owners;
    const struct route *route; /* that it goes to; NULL: there is none */
    key *key;                  /* that was shown, kept; NULL: none is needed */
    atomic_bool entered;       /* it counts among the requests of its key */
    atomic_ullong prompt_tokens, cached_tokens, generated_tokens; /* of answers that ended */
} visit;

/* NULL: no memory. */
visit *visit_new(const struct route *route);
void visit_keep(visit *v);
void visit_release(visit *v); /* NULL is fine */

/* It asks for text: false after a refusal, when its key has reached a limit. */
bool visit_enter(visit *v, refusal *r);

/* Everything this request asked for is computed. It no longer counts against its key's limit, so a
 * client that has its reply may send the next one. visit_release does the same if this was not
 * called. */
void visit_leave(visit *v);

/* An answer ended; those of one prompt share its tokens, which the first of them tells. */
void visit_note(visit *v, const tern_event *end);

#endif
