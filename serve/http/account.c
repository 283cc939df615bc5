/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/account.h"

#include <stdlib.h>

#include "base/metrics.h"

account *account_new(const struct route *route) {
    account *a = calloc(1, sizeof *a);
    if (a == NULL)
        return NULL;
    atomic_init(&a->owners, 1);
    a->route = route;
    return a;
}

void account_keep(account *a) {
    (void)atomic_fetch_add(&a->owners, 1);
}

void account_release(account *a) {
    if (a == NULL || atomic_fetch_sub(&a->owners, 1) > 1)
        return;
    account_leave(a);
    key_release(a->key);
    free(a);
}

void account_leave(account *a) {
    if (atomic_exchange(&a->entered, false))
        key_leave(a->key);
}

bool account_enter(account *a, refusal *r) {
    uint32_t limit = 0;
    double seconds = 0.0;
    const key_verdict verdict =
        a->key != NULL ? key_enter(a->key, tern_clock_seconds(), &limit, &seconds) : KEY_MAY;
    atomic_store(&a->entered, a->key != NULL && verdict == KEY_MAY);
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

void account_note(account *a, const tern_event *end) {
    const tern_branch_figures *f = &end->figures;
    const bool first = end->branch == 0;
    const uint64_t prompt = first ? f->n_prompt : 0;
    (void)atomic_fetch_add(&a->prompt_tokens, prompt);
    (void)atomic_fetch_add(&a->cached_tokens, first ? f->n_shared : 0);
    (void)atomic_fetch_add(&a->generated_tokens, f->n_generated);
    if (a->key != NULL)
        key_spend(a->key, tern_clock_seconds(), prompt + f->n_generated);
}
