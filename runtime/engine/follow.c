/* SPDX-License-Identifier: Apache-2.0 */

/* A rank other than 0: carries out the orders of rank 0 (forward/together.h). */

#include <stdlib.h>
#include <string.h>

#include "runtime/engine/forward/internal.h"
#include "runtime/engine/forward/together.h"

/* A runner that rank 0 asked for, with its pool. */
typedef struct followed {
    struct followed *next;
    tern_runner *runner;
    tern_pool pool;
    tern_pass_span *spans; /* [n_batch] */
} followed;

typedef struct follower {
    const tern_model *model;
    tern_ranks *ranks;
    followed *all;
} follower;

static followed *find(const follower *f, uint32_t number) {
    followed *x = f->all;
    while (x != NULL && x->runner->far.number != number)
        x = x->next;
    return x;
}

/* ---- life of runners ----------------------------------------------------------------------- */

static void free_followed(followed *x) {
    if (x == NULL)
        return;
    tern_runner_free(&x->runner);
    tern_pool_close(&x->pool);
    free(x->spans);
    free(x);
}

/* Opens a runner; the status of opening is exchanged in tern_runner_new. */
static tern_status open_runner(follower *f, const tern_order *o, tern_error *err) {
    const tern_runner_params params = {.threads = (uint32_t)o->a[0],
                                       .n_batch = (uint32_t)o->a[1],
                                       .n_ctx = (uint32_t)o->a[2],
                                       .n_picks = (uint32_t)o->a[3]};
    followed *x = calloc(1, sizeof *x);
    tern_pass_span *spans = calloc(params.n_batch, sizeof *spans);
    if (x == NULL || spans == NULL) {
        free(x);
        free(spans);
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for a session");
    }
    x->spans = spans;
    tern_error failure = {0};
    if (tern_runner_new(f->model, &params, &x->runner, &failure) != TERN_OK) {
        free_followed(x);
        return TERN_OK; /* rank 0 knows, too */
    }
    x->runner->far.number = o->runner;
    x->next = f->all;
    f->all = x;
    return TERN_OK;
}

static tern_status hold_pool(const follower *f, followed *x, const tern_order *o) {
    const tern_pool_size size = {.pages = (uint32_t)o->a[1], .window_pages = (uint32_t)o->a[2]};
    tern_error failure = {0};
    int refused = 0;
    const tern_status status =
        tern_pool_open(f->model, (tern_format)o->a[0], size, &x->pool, &refused, &failure);
    return tern_ranks_agree(f->ranks, status, &failure) == TERN_ERR_RANKS ? TERN_ERR_RANKS
                                                                          : TERN_OK;
}

static void close_runner(follower *f, uint32_t number) {
    for (followed **at = &f->all; *at != NULL; at = &(*at)->next)
        if ((*at)->runner->far.number == number) {
            followed *x = *at;
            *at = x->next;
            free_followed(x);
            return;
        }
}

/* ---- passes -------------------------------------------------------------------------------- */

static const void *take(const unsigned char **at, size_t bytes) {
    const void *here = *at;
    *at += bytes;
    return here;
}

static tern_pass_span take_span(const unsigned char **at, size_t n_embd) {
    tern_order_span s;
    memcpy(&s, take(at, sizeof s), sizeof s);
    tern_pass_span span = {
        .position = s.position, .n = s.n, .wanted = s.wanted, .second = s.second};
    if (s.pages > 0)
        span.pages = take(at, s.pages * sizeof *span.pages);
    if (s.window_pages > 0)
        span.window_pages = take(at, s.window_pages * sizeof *span.window_pages);
    if (s.has_tokens)
        span.tokens = take(at, s.n * sizeof *span.tokens);
    else
        span.rows = take(at, s.n * n_embd * sizeof *span.rows);
    return span;
}

static tern_status run_pass(followed *x, const tern_order *o, const unsigned char *payload) {
    for (size_t i = 0; i < o->a[0]; i++)
        x->spans[i] = take_span(&payload, x->runner->model->config.n_embd);
    if (o->a[0] == 0)
        return TERN_ERR_NOMEM;
    tern_runner_run(x->runner, &x->pool, x->spans, (size_t)o->a[0]);
    return TERN_OK;
}

/* ---- the head ------------------------------------------------------------------------------ */

static tern_status make_logits(followed *x, const tern_order *o, tern_error *err) {
    tern_far *far = &x->runner->far;
    const size_t n = (size_t)o->a[1], count = n * x->runner->model->config.n_vocab;
    if (count > far->logits_room) {
        free(far->logits);
        far->logits = aligned_alloc(TERN_ALIGN, (count * sizeof *far->logits + TERN_ALIGN - 1) /
                                                    TERN_ALIGN * TERN_ALIGN);
        far->logits_room = far->logits != NULL ? count : 0;
    }
    if (far->logits == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for logits of %zu rows", n);
    const tern_status status =
        tern_runner_multiply_own(x->runner, (size_t)o->a[0], n, far->logits, err);
    return status == TERN_OK ? tern_runner_join_head(x->runner, far->logits, n, err) : status;
}

static tern_status scan(followed *x, const tern_order *o, const unsigned char *payload,
                        tern_error *err) {
    const size_t n = (size_t)o->a[0];
    tern_runner *r = x->runner;
    uint32_t row;
    for (size_t i = 0; i < n; i++) {
        memcpy(&row, payload + i * sizeof row, sizeof row);
        r->slots[i] = (tern_pick_slot){.row = row, .open = true};
    }
    const size_t rows = r->slots[n - 1].row - r->slots[0].row + 1;
    tern_runner_scan_own(r, n);
    const tern_status status = tern_runner_join_head(r, r->scratch.lower, rows, err);
    return status == TERN_OK ? tern_runner_join_head(r, r->scratch.upper, rows, err) : status;
}

/* ---- orders -------------------------------------------------------------------------------- */

static tern_status fetch(followed *x, const tern_order *o, tern_error *err) {
    return tern_together_give(x->runner, x->pool.arena.base + o->a[0], (size_t)o->a[1],
                              (uint32_t)o->a[2], err);
}

static tern_status send(const follower *f, followed *x, const tern_order *o,
                        const unsigned char *payload, tern_error *err) {
    const bool takes = o->a[3] == 0 || o->a[2] == tern_ranks_rank(f->ranks);
    if (takes)
        memcpy(x->pool.arena.base + o->a[0], payload, (size_t)o->a[1]);
    return tern_ranks_agree(f->ranks, TERN_OK, err);
}

static tern_status carry_out(follower *f, const tern_order *o, const unsigned char *payload,
                             tern_error *err) {
    followed *x = find(f, o->runner);
    if (o->kind == TERN_ORDER_OPEN)
        return open_runner(f, o, err);
    if (o->kind == TERN_ORDER_CLOSE) {
        close_runner(f, o->runner);
        return TERN_OK;
    }
    if (x == NULL)
        return tern_fail(err, TERN_ERR_RANKS, "rank 0 means a session that is not there");
    switch (o->kind) {
    case TERN_ORDER_HOLD:
        return hold_pool(f, x, o);
    case TERN_ORDER_PASS:
        return run_pass(x, o, payload);
    case TERN_ORDER_LOGITS:
        return make_logits(x, o, err);
    case TERN_ORDER_SCAN:
        return scan(x, o, payload, err);
    case TERN_ORDER_FETCH:
        return fetch(x, o, err);
    default:
        return send(f, x, o, payload, err);
    }
}

/* Receives the payload of an order, in memory that the caller frees. */
static tern_status receive(const follower *f, const tern_order *o, unsigned char **payload,
                           tern_error *err) {
    *payload = NULL;
    if (o->bytes == 0)
        return TERN_OK;
    *payload = malloc(o->bytes);
    if (*payload == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for an order of rank 0");
    return tern_ranks_broadcast(f->ranks, *payload, o->bytes, false, err);
}

tern_status tern_model_follow(tern_model *model, tern_error *err) {
    follower f = {.model = model, .ranks = model != NULL ? model->split.ranks : NULL};
    tern_status status = TERN_OK;
    if (f.ranks == NULL || model->split.rank == 0)
        return tern_fail(err, TERN_ERR_STATE, "only ranks other than 0 follow");
    while (status == TERN_OK) {
        tern_order o;
        unsigned char *payload = NULL;
        status = tern_ranks_broadcast(f.ranks, &o, sizeof o, true, err);
        if (status != TERN_OK || o.kind == TERN_ORDER_END)
            break;
        status = receive(&f, &o, &payload, err);
        if (status == TERN_OK)
            status = carry_out(&f, &o, payload, err);
        free(payload);
    }
    for (followed *x = f.all, *next; x != NULL; x = next) {
        next = x->next;
        free_followed(x);
    }
    return status;
}
