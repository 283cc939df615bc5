/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/work/slots.h"

#include <stdlib.h>
#include <string.h>

#include "base/metrics.h"

typedef struct slot {
    int32_t *tokens; /* [n] */
    size_t n;
    uint8_t owner[TERN_SPACE_BYTES]; /* zeros: none */
    uint64_t used;                   /* number of its last use */
} slot;

struct slots {
    uint64_t clock; /* numbers uses */
    size_t n;
    slot all[];
};

slots *slots_new(size_t n) {
    slots *s = calloc(1, sizeof *s + n * sizeof s->all[0]);
    if (s != NULL)
        s->n = n;
    return s;
}

void slots_free(slots **s) {
    for (size_t i = 0; *s != NULL && i < (*s)->n; i++)
        free((*s)->all[i].tokens);
    free(*s);
    *s = NULL;
}

static void empty(slot *at) {
    free(at->tokens);
    at->tokens = NULL;
    at->n = 0;
}

static void set_owner(slot *at, const uint8_t *owner) {
    memset(at->owner, 0, sizeof at->owner);
    if (owner != NULL)
        memcpy(at->owner, owner, sizeof at->owner);
}

static bool is_owner(const slot *at, const uint8_t *owner) {
    static const uint8_t none[TERN_SPACE_BYTES];
    return memcmp(at->owner, owner != NULL ? owner : none, sizeof at->owner) == 0;
}

static slot *choose(slots *s, long wanted) {
    slot *found = &s->all[0];
    if (wanted >= 0 && (size_t)wanted < s->n)
        return &s->all[wanted];
    for (size_t i = 1; i < s->n; i++)
        if (s->all[i].used < found->used)
            found = &s->all[i];
    return found;
}

void slots_note(slots *s, long wanted, const uint8_t *owner, const int32_t *prompt, size_t n_prompt,
                const int32_t *tokens, size_t n_tokens) {
    slot *at = choose(s, wanted);
    empty(at);
    at->used = ++s->clock;
    set_owner(at, owner);
    at->tokens = malloc((n_prompt + n_tokens) * sizeof *tokens);
    if (at->tokens == NULL)
        return;
    memcpy(at->tokens, prompt, n_prompt * sizeof *prompt);
    if (n_tokens > 0)
        memcpy(at->tokens + n_prompt, tokens, n_tokens * sizeof *tokens);
    at->n = n_prompt + n_tokens;
}

void slots_do(slots *s, tern_engine *engine, slot_order *order) {
    slot *at = &s->all[order->at];
    const double began = tern_clock_seconds();
    const bool holds = is_owner(at, order->owner);
    order->n = holds ? at->n : 0;
    order->status = TERN_OK;
    if (order->action == SLOT_SAVE && order->n > 0) {
        order->status = tern_engine_save(engine, at->tokens, order->n, order->owner, order->path,
                                         &order->n, &order->err);
    } else if (order->action == SLOT_RESTORE) {
        order->status = tern_engine_load(engine, order->path, order->owner, &order->n, &order->err);
    }
    if (holds && order->action != SLOT_SAVE && order->status == TERN_OK)
        empty(at);
    order->seconds = tern_clock_seconds() - began;
}
