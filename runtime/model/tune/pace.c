/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/model/tune/pace.h"

#include <string.h>

/* In thousandths: a difference between runs that says nothing, and the range in which medians
 * repeat. */
enum { NEWS = 10, MARGIN = 30 };

bool tern_tune_pace_note(tern_tune_pace *p, bool chosen, uint64_t ns) {
    uint64_t *least = chosen ? &p->chosen_ns : &p->table_ns;
    const bool counts = chosen && p->runs < TERN_TUNE_PACE_RUNS;
    if (ns == 0 || ns >= (uint64_t)TERN_TUNE_PACE_LIMIT)
        return false;
    p->runs += counts;
    if (*least > 0 && ns * 1000 >= *least * (1000 - NEWS))
        return counts;
    *least = ns;
    return true;
}

bool tern_tune_pace_disagrees(const tern_tune_pace *p, uint32_t noise) {
    const uint64_t margin = noise > MARGIN ? noise : MARGIN;
    return p->rechecks < TERN_TUNE_RECHECKS && p->runs >= TERN_TUNE_PACE_RUNS && p->table_ns > 0 &&
           p->chosen_ns * 1000 > p->table_ns * (1000 + margin);
}

void tern_tune_pace_renew(tern_tune_pace *p) {
    p->chosen_ns = 0;
    p->runs = 0;
}

const tern_tune_pace *tern_tune_pace_find(const tern_tune_paces *paces, uint32_t threads,
                                          uint64_t shape) {
    for (size_t i = 0; i < paces->n; i++)
        if (paces->list[i].threads == threads && paces->list[i].shape == shape)
            return &paces->list[i];
    return NULL;
}

void tern_tune_pace_keep(tern_tune_paces *paces, const tern_tune_pace *pace) {
    tern_tune_pace *list = paces->list;
    size_t i = 0;
    while (i < paces->n && (list[i].threads != pace->threads || list[i].shape != pace->shape))
        i++;
    if (i == TERN_TUNE_PACES) {
        memmove(list, list + 1, (TERN_TUNE_PACES - 1) * sizeof *list);
        i--;
    }
    list[i] = *pace;
    paces->n = i < paces->n ? paces->n : i + 1;
}
