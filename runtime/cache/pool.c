/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/cache/pool.h"

#include "kernels/cache_row.h"
#include "runtime/cache/placed.h"

/* Everything but the memory. */
static void describe(const tern_model *m, tern_format kv, uint32_t pages, tern_pool *p) {
    *p = (tern_pool){.row_bytes = tern_cache_row_bytes(kv, m->config.head_dim),
                     .n_head_kv = m->config.n_head_kv,
                     .pages = pages,
                     .kv = kv};
    p->head_stride = TERN_PAGE * p->row_bytes;
    p->page_stride = (size_t)m->config.n_layer * m->config.n_head_kv * p->head_stride;
}

static void lay_out(const tern_model *m, tern_pool *p, tern_taker *t) {
    const size_t heads = tern_taker_times(t, m->config.n_layer, m->config.n_head_kv);
    const size_t rows = tern_taker_times(t, heads, (size_t)p->pages * TERN_PAGE);
    p->k = tern_take(t, rows, p->row_bytes);
    p->v = tern_take(t, rows, p->row_bytes);
}

tern_status tern_pool_bytes(const tern_model *model, tern_format kv, uint32_t pages, size_t *bytes,
                            tern_error *err) {
    tern_pool pool;
    tern_taker planner = {.arena = NULL};
    describe(model, kv, pages, &pool);
    lay_out(model, &pool, &planner);
    return tern_taker_total(&planner, pages * TERN_PAGE, bytes, err);
}

tern_status tern_pool_open(const tern_model *model, tern_format kv, uint32_t pages, tern_pool *pool,
                           int *refused, tern_error *err) {
    size_t bytes = 0;
    describe(model, kv, pages, pool);
    tern_status status = tern_pool_bytes(model, kv, pages, &bytes, err);
    if (status == TERN_OK)
        status = tern_arena_new_placed(model, bytes, pages * TERN_PAGE, TERN_ERR_CACHE_MEMORY,
                                       &pool->arena, refused, err);
    tern_taker filler = {.arena = &pool->arena, .status = status, .err = err};
    lay_out(model, pool, &filler);
    if (filler.status != TERN_OK)
        tern_pool_close(pool);
    return filler.status;
}

void tern_pool_close(tern_pool *pool) {
    tern_arena_free(&pool->arena);
    *pool = (tern_pool){.pages = 0};
}
