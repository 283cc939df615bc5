/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "authoring/dedup/dedup.h"
#include "base/grow.h"
#include "runtime/files/gguf/iebin.h"

tern_status dedup_open(const char *path, bool weights_alone, tern_gguf **out, tern_error *err) {
    return weights_alone && tern_iebin_is(path) ? tern_iebin_open(path, NULL, out, err)
                                                : tern_gguf_open(path, out, err);
}

void dedup_plan_free(dedup_plan *plan) {
    free(plan->parts);
    free(plan->shared);
    *plan = (dedup_plan){.n = 0};
}

dedup_part *dedup_add(dedup_plan *plan, size_t tensor, uint64_t offset, uint64_t bytes) {
    dedup_part *part;
    if (!tern_grow((void **)&plan->parts, &plan->capacity, plan->n, sizeof *part,
                   SIZE_MAX / sizeof *part))
        return NULL;
    part = &plan->parts[plan->n++];
    *part = (dedup_part){.tensor = tensor,
                         .offset = offset,
                         .bytes = bytes,
                         .like = DEDUP_NONE,
                         .first_user = DEDUP_NONE,
                         .next_user = DEDUP_NONE};
    return part;
}

void dedup_make_like(dedup_plan *plan, size_t part, size_t literal) {
    plan->parts[part].like = literal;
    plan->parts[part].next_user = plan->parts[literal].first_user;
    plan->parts[literal].first_user = part;
}

/* Drops the parts of tensors that stay as they are. No other part refers to them, so only indices
 * change. */
static void drop_parts(dedup_plan *plan, size_t *moved) {
    size_t n = 0;
    for (size_t i = 0; i < plan->n; i++) {
        moved[i] = n;
        if (plan->shared[plan->parts[i].tensor])
            plan->parts[n++] = plan->parts[i];
    }
    plan->n = n;
    for (size_t i = 0; i < n; i++) {
        dedup_part *p = &plan->parts[i];
        size_t *const links[] = {&p->like, &p->first_user, &p->next_user};
        for (size_t k = 0; k < sizeof links / sizeof *links; k++)
            if (*links[k] != DEDUP_NONE)
                *links[k] = moved[*links[k]];
    }
}

tern_status dedup_finish(dedup_plan *plan, tern_error *err) {
    const size_t n = tern_gguf_tensor_count(plan->model);
    size_t *moved = calloc(plan->n + 1, sizeof *moved); /* + 1: never 0 bytes */
    plan->shared = calloc(n + 1, sizeof *plan->shared);
    if (moved == NULL || plan->shared == NULL) {
        free(moved);
        return tern_fail(err, TERN_ERR_NOMEM, "no memory to plan %zu tensors", n);
    }
    for (size_t i = 0; i < plan->n; i++) {
        const dedup_part *p = &plan->parts[i];
        if (p->like != DEDUP_NONE || p->base != NULL || p->first_user != DEDUP_NONE)
            plan->shared[p->tensor] = true;
    }
    drop_parts(plan, moved);
    free(moved);
    return TERN_OK;
}
