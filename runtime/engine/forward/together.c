/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/engine/forward/together.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash64.h"
#include "runtime/engine/forward/internal.h"

bool tern_together_leads(const tern_runner *r) {
    return tern_split_is(&r->model->split) && r->model->split.rank == 0;
}

static tern_ranks *ranks_of(const tern_runner *r) {
    return r->model->split.ranks;
}

/* ---- orders -------------------------------------------------------------------------------- */

/* Makes room in memory that grows; false, and nothing is changed: there is none. */
static bool make_room(void **memory, size_t *room, size_t bytes) {
    void *larger = bytes > *room ? realloc(*memory, bytes) : *memory;
    if (bytes > *room && larger == NULL)
        return false;
    *memory = larger;
    *room = bytes > *room ? bytes : *room;
    return true;
}

/* Room for so many bytes of payload, kept for the next time; NULL: no memory. */
static unsigned char *room_for_payload(tern_runner *r, size_t bytes) {
    void *memory = r->far.payload;
    const bool there = make_room(&memory, &r->far.payload_room, bytes > 0 ? bytes : 1);
    r->far.payload = memory;
    return there ? r->far.payload : NULL;
}

/* Sends an order. A failure stays with the ranks, and the next exchange reports it. */
static void send_order(tern_runner *r, tern_order order, const void *payload) {
    order.runner = r->far.number;
    (void)!tern_ranks_broadcast(ranks_of(r), &order, sizeof order, true, NULL);
    if (order.bytes > 0)
        (void)!tern_ranks_broadcast(ranks_of(r), (void *)(uintptr_t)payload, order.bytes, false,
                                    NULL);
}

void tern_together_begin(tern_runner *r, tern_order order) {
    tern_ranks_lock(ranks_of(r));
    send_order(r, order, NULL);
}

void tern_together_end(tern_runner *r) {
    tern_ranks_unlock(ranks_of(r));
}

static size_t span_bytes(const tern_order_span *s, size_t n_embd) {
    const size_t row = s->has_tokens ? sizeof(int32_t) : n_embd * sizeof(float);
    return sizeof *s + (s->pages + s->window_pages) * sizeof(uint32_t) + s->n * row;
}

static tern_order_span describe(const tern_pass_span *span) {
    const uint32_t pages = tern_pages_of(span->position + (uint32_t)span->n);
    return (tern_order_span){.position = span->position,
                             .n = (uint32_t)span->n,
                             .wanted = (uint32_t)span->wanted,
                             .pages = span->pages != NULL ? pages : 0,
                             .window_pages = span->window_pages != NULL ? pages : 0,
                             .has_tokens = span->tokens != NULL,
                             .second = span->second};
}

static unsigned char *put(unsigned char *at, const void *data, size_t bytes) {
    if (bytes > 0)
        memcpy(at, data, bytes);
    return at + bytes;
}

static unsigned char *put_span(unsigned char *at, const tern_pass_span *span, size_t n_embd) {
    const tern_order_span s = describe(span);
    at = put(at, &s, sizeof s);
    at = put(at, span->pages, s.pages * sizeof *span->pages);
    at = put(at, span->window_pages, s.window_pages * sizeof *span->window_pages);
    return s.has_tokens ? put(at, span->tokens, span->n * sizeof *span->tokens)
                        : put(at, span->rows, span->n * n_embd * sizeof *span->rows);
}

void tern_together_begin_pass(tern_runner *r, const tern_pass_span *spans, size_t n) {
    const size_t n_embd = r->model->config.n_embd;
    tern_order order = {.kind = TERN_ORDER_PASS, .a = {n}};
    for (size_t i = 0; i < n; i++) {
        const tern_order_span s = describe(&spans[i]);
        order.bytes += span_bytes(&s, n_embd);
    }
    unsigned char *at = room_for_payload(r, order.bytes);
    for (size_t i = 0; at != NULL && i < n; i++)
        at = put_span(at, &spans[i], n_embd);
    if (at == NULL) /* others see at once that nothing follows */
        order = (tern_order){.kind = TERN_ORDER_PASS};
    tern_ranks_lock(ranks_of(r));
    send_order(r, order, r->far.payload);
}

void tern_together_begin_scan(tern_runner *r, size_t n) {
    uint32_t *rows = (uint32_t *)(void *)room_for_payload(r, n * sizeof *rows);
    tern_order order = {.kind = TERN_ORDER_SCAN};
    for (size_t i = 0; rows != NULL && i < n; i++)
        if (r->slots[i].open)
            rows[order.a[0]++] = (uint32_t)r->slots[i].row;
    order.bytes = order.a[0] * sizeof *rows;
    tern_ranks_lock(ranks_of(r));
    send_order(r, order, rows);
}

/* ---- exchanges ----------------------------------------------------------------------------- */

enum { MOST_GATHERED = 1 << 20 }; /* bytes of choices at a time: ranks hold a row of them */

static tern_status join(const tern_runner *r, float *y, size_t rows, size_t width,
                        tern_split_kind kind, int to, tern_error *err) {
    const tern_split *s = &r->model->split;
    size_t bounds[TERN_RANKS_MOST + 1];
    for (uint32_t i = 0; i <= s->size; i++)
        bounds[i] = s->bounds[kind][i] * sizeof *y;
    const tern_ranks_rows all = {
        .data = y, .rows = rows, .stride = width * sizeof *y, .bounds = bounds};
    return tern_ranks_gather(s->ranks, &all, to, err);
}

tern_status tern_runner_join(const tern_runner *r, float *y, size_t rows, size_t width,
                             tern_split_kind kind, tern_error *err) {
    return join(r, y, rows, width, kind, TERN_RANKS_TO_ALL, err);
}

/* The part of choices [begin, end) that comes before choice `at`. */
static size_t before(size_t at, size_t begin, size_t end) {
    return at <= begin ? 0 : (at < end ? at : end) - begin;
}

tern_status tern_runner_join_choices(const tern_runner *r, float *y, const uint32_t *begins,
                                     size_t width, tern_error *err) {
    const tern_split *s = &r->model->split;
    const size_t row = width * sizeof *y, n = begins[s->bounds[TERN_SPLIT_EXPERTS][s->size]];
    const size_t most = MOST_GATHERED / row > 0 ? MOST_GATHERED / row : 1;
    size_t bounds[TERN_RANKS_MOST + 1];
    tern_status status = TERN_OK;
    for (size_t at = 0, end; status == TERN_OK && at < n; at = end) {
        end = at + most < n ? at + most : n;
        for (uint32_t i = 0; i <= s->size; i++)
            bounds[i] = before(begins[s->bounds[TERN_SPLIT_EXPERTS][i]], at, end) * row;
        const tern_ranks_rows some = {
            .data = y + at * width, .rows = 1, .stride = bounds[s->size], .bounds = bounds};
        status = tern_ranks_gather(s->ranks, &some, TERN_RANKS_TO_ALL, err);
    }
    return status;
}

tern_status tern_runner_join_head(const tern_runner *r, float *y, size_t rows, tern_error *err) {
    return join(r, y, rows, r->model->config.n_vocab, TERN_SPLIT_VOCAB, 0, err);
}

/* ---- the end of a pass --------------------------------------------------------------------- */

/* The words of a rank at the end of a pass; the notes of its spans follow. */
typedef struct verdict {
    uint64_t digest;
    uint32_t failed; /* status */
    uint32_t spans;
} verdict;

/* A hash of numbers that every rank computes for itself: inputs of matrices where the pass has one
 * row, and the first wanted row at the end, or else what the last row was before the last layer. */
static uint64_t digest_of(const tern_runner *r) {
    const size_t n_embd = r->model->config.n_embd;
    const float *x = r->scratch.in.x + (r->batch.n - 1) * n_embd;
    return r->far.digest +
           tern_hash64_of(tern_batch_wanted(&r->batch) > 0 ? tern_runner_hidden(r, 0) : x,
                          n_embd * sizeof *x);
}

static void fail(tern_runner *r, tern_status status, const tern_error *failure) {
    if (r->failed != TERN_OK)
        return;
    r->failed = status;
    r->failure = *failure;
}

/* Takes over what another rank says. */
static void take(tern_runner *r, uint32_t rank, const verdict *own, const verdict *other) {
    const uint32_t *notes = (const uint32_t *)(const void *)(other + 1);
    tern_error err = {0};
    if (other->failed != TERN_OK)
        fail(r, TERN_ERR_RANKS,
             (tern_fail(&err, TERN_ERR_RANKS, "rank %u: a pass failed: %s", rank,
                        tern_status_str((tern_status)other->failed)),
              &err));
    else if (other->digest != own->digest || other->spans != own->spans)
        fail(r, TERN_ERR_RANKS,
             (tern_fail(&err, TERN_ERR_RANKS,
                        "ranks %u and %u computed different numbers in pass %llu: they do not run "
                        "the same program, or a machine fails",
                        r->model->split.rank, rank, (unsigned long long)r->work.passes),
              &err));
    for (size_t i = 0; i < r->batch.n_spans && i < other->spans; i++)
        if (notes[i] < r->batch.overflow[i])
            r->batch.overflow[i] = notes[i];
}

void tern_together_compare(tern_runner *r) {
    const tern_split *s = &r->model->split;
    const size_t spans = r->batch.n_spans * sizeof *r->batch.overflow;
    const size_t bytes = (sizeof(verdict) + spans + 7) / 8 * 8;
    const verdict own = {digest_of(r), (uint32_t)r->failed, (uint32_t)r->batch.n_spans};
    tern_error err = {0};
    if (!make_room(&r->far.notes, &r->far.notes_room, s->size * bytes)) {
        fail(r, TERN_ERR_NOMEM, (tern_fail(&err, TERN_ERR_NOMEM, "no memory for ranks"), &err));
        return;
    }
    unsigned char *all = r->far.notes, *mine = all + s->rank * bytes;
    (void)put(put(mine, &own, sizeof own), r->batch.overflow, spans);
    const tern_status status = tern_ranks_collect(s->ranks, all, bytes, &err);
    if (status != TERN_OK)
        fail(r, status, &err);
    for (uint32_t i = 0; status == TERN_OK && i < s->size; i++)
        if (i != s->rank)
            take(r, i, &own, (const verdict *)(const void *)(all + i * bytes));
}

/* ---- rows of the cache --------------------------------------------------------------------- */

tern_status tern_together_give(tern_runner *r, uint8_t *rows, size_t bytes, uint32_t owner,
                               tern_error *err) {
    size_t bounds[TERN_RANKS_MOST + 1];
    for (uint32_t i = 0; i <= r->model->split.size; i++)
        bounds[i] = i <= owner ? 0 : bytes;
    const tern_ranks_rows all = {.data = rows, .rows = 1, .stride = bytes, .bounds = bounds};
    return tern_ranks_gather(ranks_of(r), &all, 0, err);
}

static uint32_t owner_of(const tern_runner *r, const tern_pool *pool, const uint8_t *rows) {
    return tern_split_owner(&r->model->split, TERN_SPLIT_HEADS, tern_pool_head_of(pool, rows));
}

static tern_order order_of_rows(tern_order_kind kind, const tern_pool *pool, const uint8_t *rows,
                                size_t bytes, uint32_t owner) {
    return (tern_order){.kind = kind, .a = {(uint64_t)(rows - pool->arena.base), bytes, owner}};
}

tern_status tern_together_fetch(tern_runner *r, const tern_pool *pool, uint8_t *rows, size_t bytes,
                                tern_error *err) {
    const uint32_t owner = owner_of(r, pool, rows);
    if (owner == 0)
        return TERN_OK;
    tern_together_begin(r, order_of_rows(TERN_ORDER_FETCH, pool, rows, bytes, owner));
    const tern_status status = tern_together_give(r, rows, bytes, owner, err);
    tern_together_end(r);
    return status;
}

tern_status tern_together_send(tern_runner *r, const tern_pool *pool, const uint8_t *rows,
                               size_t bytes, tern_error *err) {
    const uint32_t owner = owner_of(r, pool, rows);
    const tern_split *s = &r->model->split;
    tern_order order = order_of_rows(TERN_ORDER_SEND, pool, rows, bytes, owner);
    if (s->divided[TERN_SPLIT_HEADS] && owner == 0)
        return TERN_OK;
    order.a[3] = s->divided[TERN_SPLIT_HEADS]; /* else every rank takes the rows */
    order.bytes = bytes;
    tern_ranks_lock(s->ranks);
    send_order(r, order, rows);
    const tern_status status = tern_ranks_agree(s->ranks, TERN_OK, err);
    tern_ranks_unlock(s->ranks);
    return status;
}
