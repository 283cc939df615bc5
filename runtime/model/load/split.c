/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/model/load/split.h"

/* The number of heads, or experts, of so many rows that begin with a whole group of rows together.
 */
static size_t unit_of(size_t rows) {
    size_t unit = 1;
    while (unit * rows % TERN_ROW_GROUP != 0)
        unit *= 2; /* a group has a power of two of rows */
    return unit;
}

/* Divides `count` items in whole units as evenly as these allow. */
static void divide(tern_split *s, tern_split_kind kind, size_t count, size_t unit) {
    const size_t units = (count + unit - 1) / unit;
    s->divided[kind] = true;
    for (uint32_t r = 0; r <= s->size; r++) {
        const size_t end = units * r / s->size * unit;
        s->bounds[kind][r] = end < count ? end : count;
    }
}

/* Divides a kind as another one, each item of which has so many. */
static void divide_with(tern_split *s, tern_split_kind kind, tern_split_kind as, size_t each) {
    s->divided[kind] = s->divided[as];
    for (uint32_t r = 0; r <= s->size; r++)
        s->bounds[kind][r] = s->bounds[as][r] * each;
}

/* Divides experts, whose matrices have n_ff or n_embd rows. */
static void divide_experts(tern_split *s, const tern_config *c) {
    const size_t of_ff = unit_of(c->n_ff), of_embd = unit_of(c->n_embd);
    divide(s, TERN_SPLIT_EXPERTS, c->n_expert, of_ff > of_embd ? of_ff : of_embd);
}

tern_split tern_split_of(tern_ranks *ranks, const tern_config *c) {
    tern_split s = {.ranks = ranks, .size = 1};
    if (ranks == NULL)
        return s;
    s.rank = tern_ranks_rank(ranks);
    s.size = tern_ranks_size(ranks);
    divide(&s, TERN_SPLIT_EMBD, c->n_embd, TERN_ROW_GROUP);
    divide(&s, TERN_SPLIT_VOCAB, c->n_vocab, TERN_ROW_GROUP);
    if (c->n_expert == 0)
        divide(&s, TERN_SPLIT_FF, c->n_ff, TERN_ROW_GROUP);
    else
        divide_experts(&s, c);
    if (c->arch->has & TERN_HAS_WIDE_QK_NORMS)
        return s;
    divide(&s, TERN_SPLIT_HEADS, c->n_head_kv, unit_of(c->head_dim));
    divide_with(&s, TERN_SPLIT_KV, TERN_SPLIT_HEADS, c->head_dim);
    divide_with(&s, TERN_SPLIT_Q, TERN_SPLIT_HEADS, (size_t)c->n_head / c->n_head_kv * c->head_dim);
    return s;
}

tern_part tern_split_part(const tern_split *s, tern_split_kind kind, size_t count) {
    return kind < TERN_SPLIT_KINDS && s->divided[kind]
               ? (tern_part){s->bounds[kind][s->rank], s->bounds[kind][s->rank + 1]}
               : (tern_part){0, count};
}

uint32_t tern_split_owner(const tern_split *s, tern_split_kind kind, size_t at) {
    uint32_t r = 0;
    if (!s->divided[kind])
        return s->rank;
    while (at >= s->bounds[kind][r + 1])
        r++;
    return r;
}

tern_split_kind tern_split_kind_of(const tern_block_tensor *t) {
    if (t->routed)
        return TERN_SPLIT_EXPERTS;
    switch (t->rows) {
    case TERN_SIZE_Q:
    case TERN_SIZE_QUERIES: /* ranks have no models with gates beside queries */
        return TERN_SPLIT_Q;
    case TERN_SIZE_KV:
        return TERN_SPLIT_KV;
    case TERN_SIZE_EMBD:
        return TERN_SPLIT_EMBD;
    case TERN_SIZE_FF:
        return TERN_SPLIT_FF;
    default:
        return TERN_SPLIT_KINDS;
    }
}
