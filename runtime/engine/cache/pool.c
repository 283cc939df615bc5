/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/engine/cache/pool.h"

#include "kernels/cache_row.h"
#include "runtime/engine/cache/placed.h"

/* Number of layers before this one in its part, which holds all layers or those of one kind. */
static uint32_t layers_before(const tern_pool *p, uint32_t layer) {
    const uint32_t first = layer / p->config->period; /* layers of the first kind before it */
    if (p->parts[tern_pool_part_of(p, layer)].n_layer == p->config->n_layer)
        return layer;
    return tern_config_kind_of(p->config, layer) == 0 ? first : layer - first;
}

uint8_t *tern_pool_head(const tern_pool *p, bool value, uint32_t layer, size_t head) {
    const tern_pool_pages *part = &p->parts[tern_pool_part_of(p, layer)];
    const size_t heads = (size_t)layers_before(p, layer) * p->n_head_kv + head;
    return (value ? part->v : part->k) + heads * p->head_stride;
}

/* Fills in everything but the memory. */
static void describe(const tern_model *m, tern_format kv, tern_pool_size size, tern_pool *p) {
    const tern_config *c = &m->config;
    *p = (tern_pool){.config = c,
                     .row_bytes = tern_cache_row_bytes(kv, c->head_dim),
                     .n_head_kv = c->n_head_kv,
                     .kv = kv};
    p->head_stride = TERN_PAGE * p->row_bytes;
    p->parts[TERN_PART_ALL].n = size.pages;
    p->parts[TERN_PART_WINDOW].n = size.window_pages;
    for (uint32_t i = 0; i < c->n_layer; i++)
        p->parts[tern_pool_part_of(p, i)].n_layer += tern_pool_has(p, i);
    p->state_stride = tern_config_delta_layers(c) * tern_pool_state_floats(&c->delta);
    p->n_states = p->state_stride > 0 ? size.states : 0;
    for (size_t i = 0; i < TERN_POOL_PARTS; i++)
        p->parts[i].page_stride = (size_t)p->parts[i].n_layer * c->n_head_kv * p->head_stride;
}

size_t tern_pool_history_floats(const tern_delta_sizes *d) {
    return d->n_taps > 0 ? (d->n_taps - 1) * tern_delta_channels(d) : 0;
}

size_t tern_pool_state_floats(const tern_delta_sizes *d) {
    return tern_pool_history_floats(d) + tern_delta_inner(d) * d->state_dim;
}

float *tern_pool_state(const tern_pool *p, uint32_t sequence, uint32_t layer) {
    const uint32_t before = layer - layer / p->config->period; /* delta nets */
    return p->states + sequence * p->state_stride +
           before * tern_pool_state_floats(&p->config->delta);
}

static void lay_out(tern_pool *p, tern_taker *t) {
    for (size_t i = 0; i < TERN_POOL_PARTS; i++) {
        tern_pool_pages *part = &p->parts[i];
        const size_t heads = tern_taker_times(t, part->n_layer, p->n_head_kv);
        const size_t rows = tern_taker_times(t, heads, (size_t)part->n * TERN_PAGE);
        part->k = tern_take(t, rows, p->row_bytes);
        part->v = tern_take(t, rows, p->row_bytes);
    }
    p->states = tern_take(t, tern_taker_times(t, p->n_states, p->state_stride), sizeof *p->states);
}

tern_status tern_pool_bytes(const tern_model *model, tern_format kv, tern_pool_size size,
                            size_t *bytes, tern_error *err) {
    tern_pool pool;
    tern_taker planner = {.arena = NULL};
    describe(model, kv, size, &pool);
    lay_out(&pool, &planner);
    return tern_taker_total(&planner, size.pages * TERN_PAGE, bytes, err);
}

tern_status tern_pool_open(const tern_model *model, tern_format kv, tern_pool_size size,
                           tern_pool *pool, int *refused, tern_error *err) {
    size_t bytes = 0;
    describe(model, kv, size, pool);
    tern_status status = tern_pool_bytes(model, kv, size, &bytes, err);
    const tern_placed_size wanted = {.bytes = bytes,
                                     .positions = size.pages * TERN_PAGE,
                                     .huge_pages = !tern_split_is(&model->split), /* in pieces */
                                     .missing = TERN_ERR_CACHE_MEMORY};
    if (status == TERN_OK)
        status = tern_arena_new_placed(model, &wanted, &pool->arena, refused, err);
    tern_taker filler = {.arena = &pool->arena, .status = status, .err = err};
    lay_out(pool, &filler);
    if (filler.status != TERN_OK)
        tern_pool_close(pool);
    return filler.status;
}

size_t tern_pool_head_of(const tern_pool *p, const uint8_t *rows) {
    for (size_t i = 0; i < 2 * TERN_POOL_PARTS; i++) {
        const tern_pool_pages *part = &p->parts[i / 2];
        const uint8_t *begin = i % 2 == 0 ? part->k : part->v;
        const size_t bytes = part->page_stride * part->n;
        if (rows >= begin && (size_t)(rows - begin) < bytes)
            return (size_t)(rows - begin) / p->head_stride % p->n_head_kv;
    }
    return 0;
}

tern_status tern_pool_fetch(const tern_pool *p, uint8_t *rows, size_t bytes, tern_error *err) {
    if (p->far != NULL)
        return p->far->fetch(p->leader, p, rows, bytes, err);
    return p->mirror != NULL ? tern_mirror_fetch(p->mirror, rows, rows, bytes, err) : TERN_OK;
}

tern_status tern_pool_send(const tern_pool *p, const uint8_t *rows, size_t bytes, tern_error *err) {
    if (p->far != NULL)
        return p->far->send(p->leader, p, rows, bytes, err);
    return p->mirror != NULL ? tern_mirror_send(p->mirror, rows, bytes, err) : TERN_OK;
}

void tern_pool_close(tern_pool *pool) {
    tern_arena_free(&pool->arena);
    *pool = (tern_pool){.n_head_kv = 0};
}
