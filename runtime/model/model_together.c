/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/model/model_together.h"

#include <stdio.h>
#include <string.h>

#include "runtime/model/orders.h"

/* The facts by which ranks recognise that they have the same model. */
typedef struct facts {
    char version[24];
    uint32_t numerics;
    uint32_t options; /* those that decide which exchanges there are */
    uint64_t identity;
    float largest; /* of the rank's part of the image of the head */
} facts;

static facts facts_of(const tern_model *m) {
    facts f = {.numerics = TERN_NUMERICS_VERSION,
               .options = tern_head_is_imaged(&m->image),
               .identity = tern_model_identity(m),
               .largest = m->image.largest};
    (void)snprintf(f.version, sizeof f.version, "%s", tern_version());
    return f;
}

/* The first thing in which a rank differs from rank 0; NULL: it does not. */
static const char *difference(const facts *a, const facts *b) {
    if (memcmp(a->version, b->version, sizeof a->version) != 0 || a->numerics != b->numerics)
        return "another version of tern";
    if (a->identity != b->identity)
        return "another model";
    return a->options != b->options ? "other options" : NULL;
}

static tern_status compare(tern_model *m, tern_ranks *ranks, tern_error *err) {
    facts all[TERN_RANKS_MOST];
    const uint32_t n = tern_ranks_size(ranks);
    memset(all, 0, sizeof all);
    all[tern_ranks_rank(ranks)] = facts_of(m);
    const tern_status status = tern_ranks_collect(ranks, all, sizeof *all, err);
    if (status != TERN_OK)
        return status;
    for (uint32_t i = 0; i < n; i++) {
        const char *what = difference(&all[0], &all[i]);
        if (what != NULL)
            return tern_fail(err, TERN_ERR_RANKS, "rank %u has %s than rank 0", i, what);
        if (all[i].largest > m->image.largest)
            m->image.largest = all[i].largest;
    }
    return TERN_OK;
}

tern_status tern_model_agree(tern_model *m, tern_ranks *ranks, tern_status status,
                             tern_error *err) {
    tern_ranks_lock(ranks);
    status = tern_ranks_agree(ranks, status, err);
    if (status == TERN_OK)
        status = compare(m, ranks, err);
    tern_ranks_unlock(ranks);
    if (m != NULL)
        m->agreed = status == TERN_OK;
    return status;
}

void tern_model_part(tern_model *m) {
    tern_order order = {.kind = TERN_ORDER_END};
    if (!m->agreed || m->split.rank > 0)
        return;
    tern_ranks_lock(m->split.ranks);
    (void)!tern_ranks_broadcast(m->split.ranks, &order, sizeof order, true, NULL);
    tern_ranks_unlock(m->split.ranks);
}
