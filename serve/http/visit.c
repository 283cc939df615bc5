/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/visit.h"

#include <stdlib.h>

#include "base/metrics.h"

visit *visit_new(const struct route *route) {
    visit *v = calloc(1, sizeof *v);
    if (v == NULL)
        return NULL;
    atomic_init(&v->owners, 1);
    v->route = route;
    return v;
}

void visit_keep(visit *v) {
    (void)atomic_fetch_add(&v->owners, 1);
}

void visit_release(visit *v) {
    if (v == NULL || atomic_fetch_sub(&v->owners, 1) > 1)
        return;
    visit_leave(v);
    key_release(v->key);
    free(v);
}

void visit_leave(visit *v) {
    if (atomic_exchange(&v->entered, false))
        key_leave(v->key);
}

bool visit_enter(visit *v, refusal *r) {
    uint32_t limit = 0;
    double seconds = 0.0;
    const key_verdict verdict =
        v->key != NULL ? key_enter(v->key, tern_clock_seconds(), &limit, &seconds) : KEY_MAY;
    atomic_store(&v->entered, v->key != NULL && verdict == KEY_MAY);
    if (verdict == KEY_MAY)
        return true;
    (void)refuse(r, 429, NULL,
                 verdict == KEY_REQUESTS ? "this key may ask for %u answers at once"
                                         : "this key may use %u tokens a minute",
                 (unsigned)limit);
    r->code = "rate_limit_exceeded";
    r->retry_seconds = (unsigned)seconds + 1;
    return false;
}

void visit_note(visit *v, const tern_event *end) {
    const tern_branch_figures *f = &end->figures;
    const bool first = end->branch == 0;
    const uint64_t prompt = first ? f->n_prompt : 0;
    (void)atomic_fetch_add(&v->prompt_tokens, prompt);
    (void)atomic_fetch_add(&v->cached_tokens, first ? f->n_shared : 0);
    (void)atomic_fetch_add(&v->generated_tokens, f->n_generated);
    if (v->key != NULL)
        key_spend(v->key, tern_clock_seconds(), prompt + f->n_generated);
}
