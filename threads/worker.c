/* SPDX-License-Identifier: Apache-2.0 */
#include "threads/worker.h"

#include "base/pause.h"

/* ---- meeting --------------------------------------------------------------------------------- */

int tern_patience_polls(tern_patience *patience, int most) {
    if (patience->doubt < TERN_DOUBTFUL || most < TERN_FEW_POLLS)
        return most;
    return ++patience->waits % TERN_DOUBTFUL_TRIES == 0 ? most : TERN_FEW_POLLS;
}

void tern_patience_learn(tern_patience *patience, bool opened) {
    if (opened) {
        patience->doubt -= patience->doubt > 0;
        return;
    }
    patience->doubt += TERN_DOUBT_OF_A_MISS;
    if (patience->doubt > TERN_DOUBTFUL)
        patience->doubt = TERN_DOUBTFUL; /* so that one success is enough to try again */
}

static bool opens_within(const tern_gate *g, unsigned generation, int polls) {
    for (int i = 0; i < polls; i++) {
        if (atomic_load_explicit(&g->generation, memory_order_acquire) != generation)
            return true;
        tern_pause();
    }
    return false;
}

void tern_gate_pass(tern_gate *g, uint32_t size, tern_patience *patience) {
    const unsigned generation = atomic_load_explicit(&g->generation, memory_order_acquire);
    if (atomic_fetch_add_explicit(&g->arrived, 1, memory_order_acq_rel) + 1 == size) {
        atomic_store_explicit(&g->arrived, 0, memory_order_relaxed);
        pthread_mutex_lock(&g->mutex);
        atomic_fetch_add_explicit(&g->generation, 1, memory_order_acq_rel);
        pthread_mutex_unlock(&g->mutex);
        pthread_cond_broadcast(&g->opened);
        return;
    }
    const bool opened = opens_within(g, generation, tern_patience_polls(patience, g->polls));
    tern_patience_learn(patience, opened);
    if (opened)
        return;
    pthread_mutex_lock(&g->mutex);
    while (atomic_load_explicit(&g->generation, memory_order_acquire) == generation)
        pthread_cond_wait(&g->opened, &g->mutex);
    pthread_mutex_unlock(&g->mutex);
}

void tern_worker_meet(tern_worker worker) {
    tern_ticket *own = &worker.team->tickets[worker.index];
    if (worker.count > 1)
        tern_gate_pass(&worker.team->gate, worker.count, &own->patience);
    own->turn++;
    own->works = 0;
    for (int i = 0; i < TERN_TEAM_SHARED; i++)
        atomic_store_explicit(&own->gone[(own->turn + 1) % 2][i], 0, memory_order_relaxed);
}

bool tern_team_is_near(tern_worker worker, uint32_t other) {
    const tern_place *places = worker.team->places;
    return places[other].node == places[worker.index].node;
}

bool tern_team_is_on_one_node(tern_worker worker) {
    return worker.team->one_node;
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* The units, of `units`, of the workers before number i: their share of the sum, rounded up. */
static size_t units_before(tern_worker worker, uint32_t i, size_t units) {
    const uint64_t *starts = worker.team != NULL ? worker.team->starts : NULL;
    const uint64_t part = starts != NULL ? starts[i] : i;
    const uint64_t whole = starts != NULL ? starts[worker.count] : worker.count;
    /* shares are at most 1024 and workers at most 1024: units of up to 2^43 do not overflow */
    return (size_t)((units * part + whole - 1) / whole);
}

tern_part tern_worker_part(tern_worker worker, size_t count, size_t unit) {
    const size_t units = (count + unit - 1) / unit;
    const size_t begin = units_before(worker, worker.index, units) * unit;
    const size_t end = units_before(worker, worker.index + 1, units) * unit;
    return (tern_part){.begin = begin < count ? begin : count, .end = end < count ? end : count};
}

/* ---- pieces ---------------------------------------------------------------------------------- */

enum {
    /*
     * A piece is 1/3 of what is left of a part: a handful of pieces for a matrix, since each
     * interrupts the stream of weights, and small ones where workers finish together.
     */
    FRACTION = 3,
    /* Whose parts are looked at, the own one included: each look may fetch a line from afar. */
    LOOKS = 4
};

tern_pieces tern_worker_piece(tern_worker worker, size_t count, size_t unit) {
    return (tern_pieces){.worker = worker, .count = count, .unit = unit, .split = true};
}

tern_pieces tern_team_pieces(tern_worker worker, size_t count, size_t unit) {
    tern_pieces pieces = tern_worker_piece(worker, count, unit);
    pieces.number = worker.team->tickets[worker.index].works++;
    pieces.split = worker.count == 1 || pieces.number >= TERN_TEAM_SHARED;
    return pieces;
}

/* A piece of owner's part, from its front for the owner, else from its back. */
static bool take_from(const tern_pieces *pieces, uint32_t owner, tern_part *piece) {
    const tern_worker worker = pieces->worker;
    const size_t units = (pieces->count + pieces->unit - 1) / pieces->unit;
    const size_t begin = units_before(worker, owner, units);
    const size_t all = units_before(worker, owner + 1, units) - begin;
    const unsigned turn = worker.team->tickets[worker.index].turn % 2;
    atomic_uint_least64_t *gone = &worker.team->tickets[owner].gone[turn][pieces->number];
    const bool own = owner == worker.index;
    uint64_t now = atomic_load_explicit(gone, memory_order_relaxed);
    size_t front, back, taken;
    do {
        front = (size_t)(now >> 32);
        back = (size_t)(now & UINT32_MAX);
        const size_t left = all - front - back;
        if (left == 0)
            return false;
        taken = (left + FRACTION - 1) / FRACTION;
    } while (!atomic_compare_exchange_weak_explicit(gone, &now,
                                                    now + (own ? (uint64_t)taken << 32 : taken),
                                                    memory_order_relaxed, memory_order_relaxed));
    const size_t first = begin + (own ? front : all - back - taken);
    const size_t end = (first + taken) * pieces->unit;
    *piece = (tern_part){first * pieces->unit, end < pieces->count ? end : pieces->count};
    return true;
}

bool tern_pieces_next(tern_pieces *pieces, tern_part *piece) {
    const tern_worker worker = pieces->worker;
    if (pieces->split) {
        *piece = tern_worker_part(worker, pieces->count, pieces->unit);
        pieces->count = 0;
        return piece->begin < piece->end;
    }
    uint32_t looks = 0;
    for (uint32_t i = 0; i < worker.count && looks < LOOKS; i++) {
        const uint32_t owner = (worker.index + i) % worker.count;
        if (!tern_team_is_near(worker, owner))
            continue;
        if (take_from(pieces, owner, piece))
            return true;
        looks++;
    }
    return false;
}
