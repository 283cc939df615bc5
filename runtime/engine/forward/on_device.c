/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Passes on another device. The scratch and the pool of caches have counterparts there (the
 * runner's mirror), beside those of the weights. The data that the host knows of a pass, from
 * tokens to angles, lies together and is sent at once; notes of overflows and hidden states come
 * back.
 */

#include <string.h>

#include "runtime/engine/forward/internal.h"
#include "runtime/engine/forward/together.h"
#include "runtime/model/on_device.h"

/* ---- life ---------------------------------------------------------------------------------- */

tern_status tern_runner_open_mirror(tern_runner *r, tern_error *err) {
    tern_status status = tern_mirror_open_beside(r->model->mirror, &r->mirror, err);
    if (status == TERN_OK)
        status = tern_mirror_add(r->mirror, r->arena.base, r->arena.size, err);
    if (status != TERN_OK)
        return status;
    tern_mirror_set_tally(r->mirror, r->tally);
    r->backend = tern_mirror_device(r->mirror);
    return TERN_OK;
}

/* Has the other ranks open pools of their own. */
static tern_status hold_together(tern_runner *r, tern_pool *pool, tern_error *err) {
    static const tern_pool_far far = {tern_together_fetch, tern_together_send};
    const tern_pool_pages *parts = pool->parts;
    tern_together_begin(
        r, (tern_order){.kind = TERN_ORDER_HOLD,
                        .a = {pool->kv, parts[TERN_PART_ALL].n, parts[TERN_PART_WINDOW].n}});
    const tern_status status = tern_ranks_agree(r->model->split.ranks, TERN_OK, err);
    tern_together_end(r);
    pool->far = &far;
    pool->leader = r;
    return status;
}

tern_status tern_runner_hold(tern_runner *r, tern_pool *pool, tern_error *err) {
    if (tern_together_leads(r))
        return hold_together(r, pool, err);
    if (r->mirror == NULL)
        return TERN_OK;
    tern_status status = tern_model_check_cache(r->model, pool->kv, err);
    if (status == TERN_OK)
        status = tern_mirror_add(r->mirror, pool->arena.base, pool->arena.size, err);
    if (status == TERN_OK)
        pool->mirror = r->mirror;
    return status;
}

/* ---- recordings ---------------------------------------------------------------------------- */

static bool is_recorded(const tern_runner *r, const tern_recorded_pass *p) {
    return p->n == r->batch.n && p->first_wanted == r->batch.first_wanted &&
           p->pool == r->batch.pool;
}

static void forget(tern_runner *r, tern_recorded_pass *p) {
    if (p->recording != NULL)
        tern_mirror_free_recording(r->mirror, &p->recording);
    *p = (tern_recorded_pass){.n = 0};
}

void tern_runner_close_mirror(tern_runner *r) {
    for (size_t i = 0; i < TERN_RECORDED_PASSES; i++)
        forget(r, &r->recorded[i]);
    tern_mirror_close(&r->mirror);
}

/* True if passes like this one are worth recording. Rows that stand in for tokens come from the
 * host, which a recording cannot replay. */
static bool may_record(const tern_runner *r) {
    for (size_t i = 0; i < r->batch.n_spans; i++)
        if (r->batch.spans[i].tokens == NULL)
            return false;
    return r->batch.n <= TERN_RECORDED_ROWS && r->observer == NULL;
}

/* The place of a pass like this one, or else that of the pass that ran longest ago. */
static tern_recorded_pass *find_place(tern_runner *r) {
    tern_recorded_pass *oldest = &r->recorded[0];
    for (size_t i = 0; i < TERN_RECORDED_PASSES; i++) {
        tern_recorded_pass *p = &r->recorded[i];
        if (is_recorded(r, p))
            return p;
        oldest = p->last < oldest->last ? p : oldest;
    }
    forget(r, oldest);
    oldest->pool = r->batch.pool;
    oldest->n = r->batch.n;
    oldest->first_wanted = r->batch.first_wanted;
    return oldest;
}

/* Runs the first pass of a kind, records the second one, and replays all later ones. */
static tern_status look_up(tern_runner *r, bool *done, tern_error *err) {
    tern_recorded_pass *p = find_place(r);
    const bool seen = p->seen;
    p->last = r->work.passes + 1;
    p->seen = true;
    *done = p->recording != NULL;
    if (p->recording != NULL)
        return tern_mirror_replay(r->mirror, p->recording, err);
    if (!seen)
        return TERN_OK;
    const tern_status status = tern_mirror_record(r->mirror, err);
    r->recording = status == TERN_OK ? p : NULL;
    return status;
}

/* ---- a pass -------------------------------------------------------------------------------- */

const uint32_t *tern_runner_table(tern_runner *r, const uint32_t *pages, size_t n) {
    tern_batch *b = &r->batch;
    uint32_t *copy = b->numbers + b->n_numbers;
    memcpy(copy, pages, n * sizeof *copy);
    b->n_numbers += n;
    return tern_mirror_at(r->mirror, copy);
}

static size_t count_angles(const tern_runner *r) {
    const tern_config *c = &r->model->config;
    return (size_t)tern_config_angle_tables(c) * r->batch.n * (c->n_rot / 2);
}

void tern_runner_place_angles(tern_runner *r) {
    if (r->mirror != NULL)
        r->scratch.sine = r->scratch.cosine + count_angles(r);
}

/* Sends the host's data of the pass, from `at` to its angles in one copy, then the page numbers. */
static tern_status send_batch(const tern_runner *r, tern_error *err) {
    const tern_batch *b = &r->batch;
    const float *end = r->scratch.sine + count_angles(r);
    const tern_status status =
        tern_mirror_send(r->mirror, b->at, (size_t)((const uint8_t *)end - (uint8_t *)b->at), err);
    return status == TERN_OK
               ? tern_mirror_send(r->mirror, b->numbers, b->n_numbers * sizeof *b->numbers, err)
               : status;
}

tern_status tern_runner_begin_operations(tern_runner *r, bool *done, tern_error *err) {
    *done = false;
    if (r->mirror == NULL)
        return TERN_OK;
    const tern_status status = send_batch(r, err);
    return status == TERN_OK && may_record(r) ? look_up(r, done, err) : status;
}

tern_status tern_runner_end_operations(tern_runner *r, tern_error *err) {
    tern_recorded_pass *p = r->recording;
    if (p == NULL)
        return TERN_OK;
    r->recording = NULL;
    const tern_status status = tern_mirror_end_record(r->mirror, &p->recording, err);
    return status == TERN_OK ? tern_mirror_replay(r->mirror, p->recording, err) : status;
}

/* Fetches the hidden states of the wanted rows to where tern_runner_hidden looks for them. */
static tern_status fetch_hidden(tern_runner *r, tern_error *err) {
    const size_t wanted = tern_batch_wanted(&r->batch), width = r->scratch.width;
    if (wanted == 0)
        return TERN_OK;
    float *rows = r->scratch.in.norm + r->batch.first_wanted * width;
    return tern_mirror_fetch(r->mirror, rows, rows, wanted * width * sizeof *rows, err);
}

void tern_runner_fetch_results(tern_runner *r) {
    tern_batch *b = &r->batch;
    tern_error err = {0};
    if (r->mirror == NULL)
        return;
    tern_status status = tern_mirror_fetch(r->mirror, b->overflow, b->overflow,
                                           b->n_spans * sizeof *b->overflow, &err);
    if (status == TERN_OK)
        status = fetch_hidden(r, &err);
    if (r->failed == TERN_OK) { /* the first error is reported */
        r->failed = status;
        r->failure = err;
    }
}
