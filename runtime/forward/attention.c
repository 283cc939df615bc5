/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/forward/attention.h"

#include "runtime/forward/internal.h"

/* ---- memory -------------------------------------------------------------------------------- */

static size_t group_of(const tern_config *c) {
    return c->n_head / c->n_head_kv;
}

void tern_attend_lay_out(const tern_config *c, uint32_t threads, uint32_t n_ctx,
                         tern_attend_scratch *s, tern_taker *t) {
    const size_t heads = group_of(c) * TERN_ATTEND_TOKENS;
    s->scratch_begin = tern_attend_state_bytes(heads, c->head_dim);
    s->stride = s->scratch_begin + tern_attend_scratch_bytes(heads, c->head_dim);
    s->heads = tern_take(t, threads, s->stride);
    if (threads == 1) /* shares nothing */
        return;
    const size_t of_head = tern_taker_times(t, tern_pages_of(n_ctx), s->scratch_begin);
    s->states_bytes = tern_taker_times(t, c->n_head_kv, of_head);
    s->states = tern_take(t, s->states_bytes, 1);
    s->n_shares = threads - 1 > c->n_head_kv ? threads - 1 : c->n_head_kv;
    s->shares = tern_take(t, s->n_shares, sizeof *s->shares);
}

/* ---- the plan ------------------------------------------------------------------------------ */

/* Whether the row goes on where the one before it ends: rows of a span stand in order. */
static bool follows(const tern_batch *b, size_t row) {
    return b->rows[row].span == b->rows[row - 1].span;
}

static tern_attend_block block_at(const tern_batch *b, size_t row) {
    tern_attend_block block = {.row = row, .rows = 1};
    while (block.rows < TERN_ATTEND_TOKENS && row + block.rows < b->n &&
           follows(b, row + block.rows))
        block.rows++;
    block.chunks = tern_pages_of(tern_batch_position(b, row + block.rows - 1) + 1);
    return block;
}

/* Where what workers share is kept: every head and block has a slot, or every worker has one. */
static void find_slots(tern_attend_plan *plan, size_t bytes, const tern_config *c,
                       const tern_attend_scratch *s, uint32_t threads) {
    const size_t items = c->n_head_kv * plan->n;
    const size_t room = bytes > 0 ? s->states_bytes / bytes : 0;
    const size_t slots = room < s->n_shares ? room : s->n_shares;
    plan->slot_by_worker = items > slots;
    plan->slot_bytes = items <= slots || threads - 1 <= slots ? bytes : 0;
}

void tern_attend_make_plan(const tern_batch *batch, size_t first, const tern_config *c,
                           const tern_attend_scratch *s, uint32_t threads, tern_attend_plan *plan) {
    size_t chunks = 0, rows = 0; /* the most of any block */
    plan->n = plan->chunks = 0;
    for (size_t row = first; row < batch->n; row += plan->blocks[plan->n++].rows) {
        const tern_attend_block block = block_at(batch, row);
        plan->blocks[plan->n] = block;
        plan->chunks += block.chunks;
        chunks = block.chunks > chunks ? block.chunks : chunks;
        rows = block.rows > rows ? block.rows : rows;
    }
    find_slots(plan, chunks * tern_attend_state_bytes(rows * group_of(c), c->head_dim), c, s,
               threads);
}

/* ---- a worker's part ----------------------------------------------------------------------- */

/* One key/value head and a block. */
typedef struct item {
    const tern_attend_block *block;
    size_t head;
    size_t number; /* in the order of the plan */
    size_t at;     /* of its first chunk among the chunks of all items */
} item;

/* What one worker does of a layer. */
typedef struct task {
    const tern_runner *r;
    const tern_attend_plan *plan;
    size_t layer;
    tern_worker worker;
    tern_part mine; /* of the chunks of all items */
} task;

static tern_part part_of(const tern_runner *r, const tern_attend_plan *plan, tern_worker worker) {
    return tern_team_split(worker, r->model->config.n_head_kv * plan->chunks, 1);
}

/* The first query head of an item within a row of all heads, in floats. */
static size_t first_of(const tern_config *c, const item *i) {
    return i->head * group_of(c) * c->head_dim;
}

/* Memory of this worker alone. */
static uint8_t *own_of(const task *t) {
    const tern_attend_scratch *s = &t->r->scratch.attend;
    return s->heads + t->worker.index * s->stride;
}

static tern_attend_args args_of(const task *t, const item *i) {
    const tern_batch *b = &t->r->batch;
    const tern_config *c = &t->r->model->config;
    const tern_scratch *w = &t->r->scratch;
    const tern_attend_scratch *s = &w->attend;
    const size_t width = (size_t)c->n_head * c->head_dim;
    return (tern_attend_args){.heads = {.positions = tern_batch_position(b, i->block->row) + 1,
                                        .tokens = i->block->rows,
                                        .group = group_of(c),
                                        .dim = c->head_dim},
                              .q = w->q + i->block->row * width + first_of(c, i),
                              .q_stride = width,
                              .k = tern_pool_head(b->pool, false, t->layer, i->head),
                              .v = tern_pool_head(b->pool, true, t->layer, i->head),
                              .pages = b->spans[b->rows[i->block->row].span].pages,
                              .page_stride = b->pool->page_stride,
                              .scale = c->attention_scale,
                              .scratch = own_of(t) + s->scratch_begin};
}

/* Where the item's output begins. */
static float *out_of(const task *t, const item *i) {
    const tern_config *c = &t->r->model->config;
    const size_t width = (size_t)c->n_head * c->head_dim;
    return t->r->scratch.attended + i->block->row * width + first_of(c, i);
}

/* The slot of a head and block that this worker shares. */
static size_t slot_of(const task *t, const item *i) {
    tern_worker owner = t->worker;
    if (!t->plan->slot_by_worker)
        return i->number;
    while (part_of(t->r, t->plan, owner).begin > i->at)
        owner.index--;
    return owner.index;
}

/*
 * Some chunks of an item, and whatever is then left to do for it. Those from chunk 0 on become one
 * state, which stands in the place of chunk 0; others have a place each.
 */
static void attend_shared(const task *t, const item *i, tern_part chunks) {
    const tern_attend_scratch *s = &t->r->scratch.attend;
    const size_t slot = slot_of(t, i);
    const size_t mine = chunks.end - chunks.begin;
    tern_attend_share *share = &s->shares[slot];
    const tern_attend_functions *f = &t->r->model->rows.attend[t->r->batch.kv]->fn.attend;
    const tern_attend_args args = args_of(t, i);
    const size_t heads = args.heads.tokens * args.heads.group;
    const size_t place = tern_attend_state_bytes(heads, args.heads.dim);
    uint8_t *const states = s->states + slot * t->plan->slot_bytes;
    f->chunks(&args, chunks.begin, chunks.end, states + chunks.begin * place,
              chunks.begin == 0 ? 0 : place);
    if (chunks.begin == 0)
        share->lead = chunks.end;
    if (atomic_fetch_add_explicit(&share->done, mine, memory_order_acq_rel) + mine <
        i->block->chunks)
        return;
    f->merge(&args.heads, share->lead, i->block->chunks, states + share->lead * place, place,
             states);
    f->finish(&args.heads, states, out_of(t, i), args.q_stride);
    atomic_store_explicit(&share->done, 0, memory_order_relaxed);
}

/* The item's chunks that are this worker's. */
static tern_part chunks_of(const task *t, const item *i) {
    const size_t begin = i->at, end = i->at + i->block->chunks;
    const size_t middle = begin + i->block->chunks / 2;
    tern_part part = {t->mine.begin > begin ? t->mine.begin : begin,
                      t->mine.end < end ? t->mine.end : end};
    if (t->plan->slot_bytes == 0 && t->worker.count > 1)
        part = middle >= t->mine.begin && middle < t->mine.end ? (tern_part){begin, end}
                                                               : (tern_part){begin, begin};
    return (tern_part){part.begin - begin, part.end > part.begin ? part.end - begin : 0};
}

static void attend_item(const task *t, const item *i) {
    const tern_part chunks = chunks_of(t, i);
    if (chunks.end == 0)
        return;
    if (chunks.end - chunks.begin < i->block->chunks) {
        attend_shared(t, i, chunks);
        return;
    }
    const tern_attend_args args = args_of(t, i);
    tern_attend_all(t->r->model->rows.attend[t->r->batch.kv], &args, own_of(t), out_of(t, i),
                    args.q_stride);
}

void tern_attention(const tern_runner *r, tern_worker worker, size_t layer,
                    const tern_attend_plan *plan) {
    const task t = {
        .r = r, .plan = plan, .layer = layer, .worker = worker, .mine = part_of(r, plan, worker)};
    item i = {.head = 0};
    for (; i.head < r->model->config.n_head_kv; i.head++)
        for (size_t n = 0; n < plan->n; n++) {
            i.block = &plan->blocks[n];
            attend_item(&t, &i);
            i.at += i.block->chunks;
            i.number++;
        }
}
