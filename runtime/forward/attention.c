/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/forward/attention.h"

#include "runtime/session/session.h"

/* One key/value head and a block of tokens. */
typedef struct item {
    size_t head, token, tokens;
    size_t chunks; /* that the last token sees */
} item;

static item item_of(const tern_batch *b, size_t head, size_t block) {
    item i = {.head = head, .token = block * TERN_ATTEND_TOKENS};
    const size_t left = b->n - i.token;
    i.tokens = left < TERN_ATTEND_TOKENS ? left : TERN_ATTEND_TOKENS;
    const size_t seen = b->position + i.token + i.tokens;
    i.chunks = (seen + TERN_ATTEND_CHUNK - 1) / TERN_ATTEND_CHUNK;
    return i;
}

static tern_attend_args args_of(const tern_batch *b, tern_worker worker, size_t layer,
                                const item *i) {
    const tern_session *s = b->session;
    const tern_config *c = &s->model->config;
    const tern_scratch *w = &s->scratch;
    const size_t width = (size_t)c->n_head * c->head_dim;
    const size_t group = c->n_head / c->n_head_kv;
    const size_t first = i->head * group * c->head_dim;
    return (tern_attend_args){.q = w->q + i->token * width + first,
                              .q_stride = width,
                              .k = tern_cache_head(s, s->cache_k, layer, i->head),
                              .v = tern_cache_head(s, s->cache_v, layer, i->head),
                              .positions = b->position + i->token + 1,
                              .tokens = i->tokens,
                              .dim = c->head_dim,
                              .group = group,
                              .scale = s->attend_scale,
                              .out = w->attended + i->token * width + first,
                              .out_stride = width,
                              .scratch = w->attend + worker.index * w->attend_stride};
}

/* Chunks [first, last) of an item, and whatever is then left to do for it. */
static void attend_chunks(const tern_batch *b, tern_worker worker, size_t layer, const item *i,
                          size_t first, size_t last) {
    const tern_session *s = b->session;
    tern_attend_share *share = &s->scratch.shares[i->head];
    tern_attend_args args = args_of(b, worker, layer, i);
    args.step = TERN_ATTEND_CHUNKS;
    args.first = first;
    args.last = last;
    args.states = s->scratch.states + i->head * s->scratch.states_stride;
    s->attend->fn.attend(&args);
    if (first == 0)
        share->lead = last;
    const size_t mine = last - first;
    if (atomic_fetch_add_explicit(&share->done, mine, memory_order_acq_rel) + mine < i->chunks)
        return;
    args.step = TERN_ATTEND_FINISH;
    args.first = share->lead - 1;
    args.last = i->chunks;
    s->attend->fn.attend(&args);
    atomic_store_explicit(&share->done, 0, memory_order_relaxed);
}

/* All heads of one block of tokens, split between chunks. */
static void attend_block(const tern_batch *b, tern_worker worker, size_t layer) {
    const size_t heads = b->session->model->config.n_head_kv;
    const size_t chunks = item_of(b, 0, 0).chunks;
    const tern_part part = tern_team_split(worker, heads * chunks, 1);
    for (size_t at = part.begin, next; at < part.end; at = next) {
        const item i = item_of(b, at / chunks, 0);
        const size_t end = (i.head + 1) * chunks;
        next = part.end < end ? part.end : end;
        if (next - at == chunks) {
            const tern_attend_args args = args_of(b, worker, layer, &i);
            b->session->attend->fn.attend(&args);
        } else {
            attend_chunks(b, worker, layer, &i, at % chunks, at % chunks + next - at);
        }
    }
}

/* Whole items, head by head: a worker gets those whose middle lies in its share of all chunks. */
static void attend_blocks(const tern_batch *b, tern_worker worker, size_t layer) {
    const size_t heads = b->session->model->config.n_head_kv;
    const size_t blocks = (b->n + TERN_ATTEND_TOKENS - 1) / TERN_ATTEND_TOKENS;
    size_t chunks = 0; /* of a head */
    for (size_t n = 0; n < blocks; n++)
        chunks += item_of(b, 0, n).chunks;
    const tern_part part = tern_team_split(worker, heads * chunks, 1);
    size_t at = 0;
    for (size_t n = 0; n < heads * blocks; n++) {
        const item i = item_of(b, n / blocks, n % blocks);
        const size_t middle = at + i.chunks / 2;
        at += i.chunks;
        if (middle < part.begin || middle >= part.end)
            continue;
        const tern_attend_args args = args_of(b, worker, layer, &i);
        b->session->attend->fn.attend(&args);
    }
}

void tern_attention(const tern_batch *batch, tern_worker worker, size_t layer) {
    if (batch->n <= TERN_ATTEND_TOKENS)
        attend_block(batch, worker, layer);
    else
        attend_blocks(batch, worker, layer);
}
