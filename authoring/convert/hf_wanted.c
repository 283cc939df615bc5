/* SPDX-License-Identifier: Apache-2.0 */
#include "authoring/convert/hf_wanted.h"

tern_block_sizes hf_wanted_sizes(const hf_config *c) {
    return (tern_block_sizes){.n_embd = c->n_embd,
                              .n_ff = c->n_ff,
                              .n_head = c->n_head,
                              .n_head_kv = c->n_head_kv,
                              .head_dim = c->head_dim,
                              .n_expert = c->n_expert,
                              .n_ff_shared = c->n_ff_shared,
                              .query_gates = (c->arch->has & TERN_HAS_QUERY_GATES) != 0,
                              .delta = c->delta};
}

/* The order of the states of a delta net along a side of that length. */
static hf_turns turns_of(const hf_config *c, tern_block_size side) {
    const tern_delta_sizes *d = &c->delta;
    hf_turns t = {.each = d->state_dim, .groups = d->n_keys};
    if (c->arch->second->grouped || /* files have the order of folders */
        (side != TERN_SIZE_CHANNELS && side != TERN_SIZE_INNER && side != TERN_SIZE_STATES))
        return (hf_turns){.of = 0};
    t.of = d->n_states / d->n_keys;
    if (side == TERN_SIZE_STATES)
        t.each = 1;
    if (side == TERN_SIZE_CHANNELS) /* q and k stand before the values */
        t.first = 2 * (size_t)d->n_keys * d->state_dim;
    return t;
}

/* Says how a matrix lies in the folder's matrix of q, k, v and gates, where there is one: for each
 * head of q and k its rows, then those of the values and of the gates of its states. */
static void find_packed(const hf_config *c, const tern_block_tensor *t, hf_wanted *w) {
    const tern_delta_sizes *d = &c->delta;
    const size_t dim = d->state_dim, values = d->n_states / d->n_keys * dim;
    const bool gates = t->rows == TERN_SIZE_INNER;
    if (!c->arch->second->grouped || t->kind != TERN_BLOCK_MATRIX ||
        (!gates && t->rows != TERN_SIZE_CHANNELS))
        return;
    w->packed = "linear_attn.in_proj_qkvz.weight";
    w->packing = (hf_packing){.groups = d->n_keys, .rows = 2 * dim + 2 * values};
    if (gates) {
        w->packing.each[0] = values;
        w->packing.at[0] = 2 * dim + values;
        return;
    }
    w->packing.each[0] = w->packing.each[1] = w->packing.at[1] = dim;
    w->packing.each[2] = values;
    w->packing.at[2] = 2 * dim;
}

hf_wanted hf_wanted_of(const hf_config *c, const tern_block_sizes *sizes,
                       const tern_block_tensor *t, const char *name) {
    const bool matrix = t->kind == TERN_BLOCK_MATRIX, taps = t->kind == TERN_BLOCK_TAPS;
    const bool vector = !matrix && !taps;
    const bool columns = t->where == TERN_IN_DELTA && !vector && turns_of(c, t->columns).of > 0;
    hf_wanted w = {.name = name,
                   .rows = tern_block_length(sizes, t->rows),
                   .cols = tern_block_length(sizes, t->columns),
                   .vector = vector,
                   .ternary = matrix,
                   .turned = t->turned,
                   .norm = t->kind == TERN_BLOCK_NORM && t->where != TERN_IN_DELTA,
                   .rates = t->kind == TERN_BLOCK_RATES,
                   .taps = taps,
                   .turns_columns = columns};
    if (t->where == TERN_IN_DELTA)
        w.turns = turns_of(c, columns || vector ? t->columns : t->rows);
    if (t->where == TERN_IN_DELTA)
        find_packed(c, t, &w);
    return w;
}
