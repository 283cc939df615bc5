/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention on the processor. Blocks of up to TERN_ATTEND_TOKENS consecutive positions of one
 * sequence are taken together, each with every key/value head. The chunks of positions of all heads
 * and blocks stand in a row, and each lane gets an equal part of it: so no lane is idle because
 * there are fewer heads than would divide evenly, or because one sequence is longer than the
 * others. A head and block whose chunks several lanes share is merged by the lane that completes
 * it, in the order of the chunks: no split changes a bit.
 */

#include <stdlib.h>

#include "device/processor.h"
#include "kernels/cache_row.h"

void tern_attend_scratch_sizes(size_t group, size_t dim, tern_attend_scratch *s) {
    s->scratch_begin = tern_attend_state_bytes(group * TERN_ATTEND_TOKENS, dim);
    s->stride = s->scratch_begin + tern_attend_scratch_bytes(group * TERN_ATTEND_TOKENS, dim);
}

/* ---- blocks -------------------------------------------------------------------------------- */

/* Tokens that follow each other in one sequence. */
typedef struct block {
    size_t first, tokens;
    size_t skipped; /* chunks that lie before the windows of all of them */
    size_t chunks;  /* after those, up to the last that the last token sees */
} block;

/* True if a token goes on where the one before it ends. */
static bool follows(const tern_device_attend_pages *a, size_t token) {
    const tern_device_place at = a->at[token], before = a->at[token - 1];
    return at.sequence == before.sequence && at.position == before.position + 1;
}

/* The chunk in which what the token sees begins. */
static size_t first_chunk(const tern_device_attend_pages *a, size_t token) {
    const size_t seen = (size_t)a->at[token].position + 1;
    return a->window > 0 && seen > a->window ? (seen - a->window) / TERN_ATTEND_CHUNK : 0;
}

/* The windows of a block's tokens begin in one chunk. */
static block block_at(const tern_device_attend_pages *a, size_t first) {
    block b = {.first = first, .tokens = 1, .skipped = first_chunk(a, first)};
    while (b.tokens < TERN_ATTEND_TOKENS && first + b.tokens < a->tokens &&
           follows(a, first + b.tokens) && first_chunk(a, first + b.tokens) == b.skipped)
        b.tokens++;
    b.chunks = a->at[first + b.tokens - 1].position / TERN_ATTEND_CHUNK + 1 - b.skipped;
    return b;
}

/* ---- the plan ------------------------------------------------------------------------------ */

/* One operation, as one lane sees it. */
typedef struct task {
    const tern_device_attend_pages *a;
    const tern_attend_scratch *s;
    const tern_attend_functions *f;
    const tern_kernel_row *kernel;
    const tern_lane *lane;
    size_t group;
    size_t chunks;       /* of all blocks of one head */
    size_t slot_bytes;   /* of the states of a head and block that lanes share; 0: there is no room
                            for them, whoever has the middle of a head and block gets all of it */
    bool slot_by_worker; /* the slot is that of the lane with the first chunk, else the item's */
    tern_part mine;      /* of the chunks of all items */
} task;

/* One key/value head and a block. */
typedef struct item {
    block block;
    size_t head;
    size_t number; /* in the order of all items */
    size_t at;     /* of its first chunk among the chunks of all items */
} item;

static size_t lanes_of(const task *t) {
    return t->lane != NULL ? t->lane->worker.count : 1;
}

static tern_part part_of(const task *t, uint32_t worker) {
    tern_worker owner = t->lane->worker;
    owner.index = worker;
    return tern_worker_part(owner, t->a->kv_heads * t->chunks, 1);
}

/* The place of shared results: each head and block has a slot, or each lane has one. */
static void find_slots(task *t, size_t blocks, size_t bytes) {
    const size_t items = t->a->kv_heads * blocks;
    const size_t room = bytes > 0 ? t->s->states_bytes / bytes : 0;
    const size_t slots = room < t->s->n_shares ? room : t->s->n_shares;
    t->slot_by_worker = items > slots;
    t->slot_bytes = items <= slots || lanes_of(t) - 1 <= slots ? bytes : 0;
}

static void make_plan(task *t) {
    size_t blocks = 0, chunks = 0, tokens = 0; /* the most of any block */
    for (size_t first = 0; first < t->a->tokens; blocks++) {
        const block b = block_at(t->a, first);
        t->chunks += b.chunks;
        chunks = b.chunks > chunks ? b.chunks : chunks;
        tokens = b.tokens > tokens ? b.tokens : tokens;
        first += b.tokens;
    }
    find_slots(t, blocks, chunks * tern_attend_state_bytes(tokens * t->group, t->a->dim));
    t->mine = tern_lane_part(t->lane, t->a->kv_heads * t->chunks);
}

/* ---- a lane's part ------------------------------------------------------------------------- */

/* Memory of this lane alone. */
static uint8_t *own_of(const task *t) {
    return t->s->heads + (lanes_of(t) > 1 ? t->lane->worker.index * t->s->stride : 0);
}

static tern_attend_args args_of(const task *t, const item *i) {
    const tern_device_attend_pages *a = t->a;
    const tern_device_place at = a->at[i->block.first];
    const float *q = a->q + i->block.first * a->q_stride + i->head * t->group * a->dim;
    const uint32_t *pages = a->k.tables[at.sequence];
    const size_t skipped = i->block.skipped;
    const size_t in_place = pages != NULL ? 0 : skipped * a->k.page_stride;
    return (tern_attend_args){
        .heads = {.positions = (size_t)at.position + 1 - skipped * TERN_ATTEND_CHUNK,
                  .tokens = i->block.tokens,
                  .group = t->group,
                  .dim = a->dim,
                  .sinks = a->sinks != NULL ? a->sinks + i->head * t->group : NULL},
        .q = q,
        .q_stride = a->q_stride,
        .k = (const uint8_t *)a->k.data + i->head * a->k.head_stride + in_place,
        .v = (const uint8_t *)a->v.data + i->head * a->v.head_stride + in_place,
        .pages = pages != NULL ? pages + skipped : NULL,
        .page_stride = a->k.page_stride,
        .scale = a->scale,
        .cap = a->cap,
        .window = a->window,
        .scratch = own_of(t) + t->s->scratch_begin};
}

/* Start of the item's output. */
static float *out_of(const task *t, const item *i) {
    return t->a->out + i->block.first * t->a->out_stride + i->head * t->group * t->a->dim;
}

/* The slot of a head and block that this lane shares. */
static size_t slot_of(const task *t, const item *i) {
    uint32_t owner = t->lane->worker.index;
    if (!t->slot_by_worker)
        return i->number;
    while (part_of(t, owner).begin > i->at)
        owner--;
    return owner;
}

/*
 * Some chunks of an item, and whatever is then left to do for it. Those from chunk 0 on become one
 * state, which stands in the place of chunk 0; others have a place each.
 */
static void attend_shared(const task *t, const item *i, tern_part chunks) {
    const size_t slot = slot_of(t, i);
    const size_t mine = chunks.end - chunks.begin;
    tern_attend_share *share = &t->s->shares[slot];
    const tern_attend_args args = args_of(t, i);
    const size_t heads = args.heads.tokens * args.heads.group;
    const size_t place = tern_attend_state_bytes(heads, args.heads.dim);
    uint8_t *const states = t->s->states + slot * t->slot_bytes;
    t->f->chunks(&args, chunks.begin, chunks.end, states + chunks.begin * place,
                 chunks.begin == 0 ? 0 : place);
    if (chunks.begin == 0)
        share->lead = chunks.end;
    if (atomic_fetch_add_explicit(&share->done, mine, memory_order_acq_rel) + mine <
        i->block.chunks)
        return;
    t->f->merge(&args.heads, share->lead, i->block.chunks, states + share->lead * place, place,
                states);
    t->f->finish(&args.heads, states, out_of(t, i), t->a->out_stride);
    atomic_store_explicit(&share->done, 0, memory_order_relaxed);
}

/* The item's chunks that are this lane's. */
static tern_part chunks_of(const task *t, const item *i) {
    const size_t begin = i->at, end = i->at + i->block.chunks;
    const size_t middle = begin + i->block.chunks / 2;
    tern_part part = {t->mine.begin > begin ? t->mine.begin : begin,
                      t->mine.end < end ? t->mine.end : end};
    if (t->slot_bytes == 0 && lanes_of(t) > 1)
        part = middle >= t->mine.begin && middle < t->mine.end ? (tern_part){begin, end}
                                                               : (tern_part){begin, begin};
    return (tern_part){part.begin - begin, part.end > part.begin ? part.end - begin : 0};
}

static void attend_item(const task *t, const item *i) {
    const tern_part chunks = chunks_of(t, i);
    if (chunks.end == 0)
        return;
    if (chunks.end - chunks.begin < i->block.chunks) {
        attend_shared(t, i, chunks);
        return;
    }
    const tern_attend_args args = args_of(t, i);
    tern_attend_all(t->kernel, &args, own_of(t), out_of(t, i), t->a->out_stride);
}

static void attend(task *t) {
    item i = {.head = 0};
    make_plan(t);
    for (; i.head < t->a->kv_heads; i.head++)
        for (size_t first = 0; first < t->a->tokens; first += i.block.tokens) {
            i.block = block_at(t->a, first);
            attend_item(t, &i);
            i.at += i.block.chunks;
            i.number++;
        }
}

/* ---- the operations ------------------------------------------------------------------------ */

/* Only the addresses of the caches are remembered. */
static void enter(tern_lane *lane, const tern_device_attend_pages *a) {
    const size_t last = a->tokens - 1, width = a->heads * a->dim;
    const tern_lane_use uses[] = {
        tern_lane_use_all(a->q, (last * a->q_stride + width) * sizeof *a->q, false),
        tern_lane_use_all(a->k.data, 1, false), tern_lane_use_all(a->v.data, 1, false),
        tern_lane_use_all(a->out, (last * a->out_stride + width) * sizeof *a->out, true)};
    tern_lane_enter(lane, uses, 4);
}

/* A lane of a team has memory of the device; a stream without one takes its own. */
static tern_status run(task *t, const tern_device *d, tern_lane *lane, tern_error *err) {
    tern_attend_scratch own = {.heads = NULL};
    void *memory = NULL;

    t->lane = lane;
    t->f = &t->kernel->fn.attend;
    t->group = t->a->heads / t->a->kv_heads;
    if (t->s->heads == NULL) {
        tern_attend_scratch_sizes(t->group, t->a->dim, &own);
        const tern_status status = tern_processor_alloc(NULL, own.stride, &memory, err);
        if (status != TERN_OK)
            return status;
        own.heads = memory;
        t->s = &own;
    }
    enter(lane, t->a);
    tern_processor_ran(d, tern_lane_stream(lane), t->kernel);
    attend(t);
    free(memory);
    return TERN_OK;
}

tern_status tern_processor_attend_pages(tern_device *d, tern_device_stream *stream,
                                        const tern_device_attend_pages *a, tern_error *err) {
    const tern_processor_device *p = (const tern_processor_device *)d;
    const tern_status status = tern_check_attend_pages(a, err);
    if (status != TERN_OK)
        return status;
    task t = {.a = a,
              .s = &p->attend,
              .kernel = tern_processor_kernel(d, TERN_OP_ATTEND, a->k.format, err)};
    return t.kernel != NULL ? run(&t, d, tern_lane_of(stream), err) : TERN_ERR_KERNEL;
}

/* Keys and values one after the other: a sequence whose page p is page p. */
tern_status tern_processor_attend(tern_device *d, tern_device_stream *stream,
                                  const tern_device_attend *a, tern_error *err) {
    static const uint32_t *const no_table = NULL;
    const tern_processor_device *p = (const tern_processor_device *)d;
    const tern_status status = tern_check_attend(a, err);
    if (status != TERN_OK)
        return status;
    const tern_kernel_row *kernel = tern_processor_kernel(d, TERN_OP_ATTEND, a->format, err);
    if (kernel == NULL)
        return TERN_ERR_KERNEL;
    tern_device_place *at = malloc(a->tokens * sizeof *at);
    if (at == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "cpu: no memory for %zu tokens", a->tokens);
    for (size_t t = 0; t < a->tokens; t++)
        at[t] = (tern_device_place){.position = (uint32_t)(a->before + t)};
    const tern_device_pages k = {.format = a->format,
                                 .data = (void *)a->k,
                                 .head_stride = tern_elements_bytes(a->format, a->kv_stride),
                                 .page_stride = tern_cache_page_bytes(a->format, a->dim),
                                 .tables = &no_table};
    tern_device_pages v = k;
    v.data = (void *)a->v;
    const tern_device_attend_pages pages = {.k = k,
                                            .v = v,
                                            .at = at,
                                            .q = a->q,
                                            .q_stride = a->q_stride,
                                            .tokens = a->tokens,
                                            .heads = a->heads,
                                            .kv_heads = a->kv_heads,
                                            .dim = a->dim,
                                            .scale = a->scale,
                                            .out = a->out,
                                            .out_stride = a->out_stride};
    task t = {.a = &pages, .s = &p->attend, .kernel = kernel};
    const tern_status done = run(&t, d, tern_lane_of(stream), err);
    free(at);
    return done;
}
