/* SPDX-License-Identifier: Apache-2.0 */

#include "threads/team.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "threads/bind.h"

/*
 * Polls before a waiting thread sleeps. A poll is a pause of some 40 cycles, so this is roughly 50
 * us: longer than the short single-threaded steps of a token, shorter than a scheduler tick. Where
 * threads outnumber processors, a polling thread would keep others from working: 1 us.
 */
enum { SPIN_POLLS = 4000, CROWDED_POLLS = 80 };

enum { CACHE_LINE = 64 }; /* what one worker writes, others do not fetch by accident */

typedef struct gate {
    atomic_uint generation; /* counts how often the gate has opened */
    atomic_uint arrived;
    int polls; /* before a waiting thread sleeps */
    pthread_mutex_t mutex;
    pthread_cond_t opened;
} gate;

/*
 * The units taken of one worker's parts: those from the front in the upper half of a word, those
 * from the back in the lower half. Two sets of words take turns: after a barrier each worker clears
 * its own of the next turn, which no other worker reads at that time. Only the worker itself
 * touches the other members. One cache line.
 */
typedef struct ticket {
    _Alignas(CACHE_LINE) atomic_uint_least64_t gone[2][TERN_TEAM_SHARED];
    uint32_t turn;  /* barriers that the worker passed */
    uint32_t works; /* that it began since the last one */
} ticket;

struct tern_team {
    uint32_t size;
    gate gate;
    tern_team_body *body; /* NULL: the team is being stopped */
    void *argument;
    pthread_t *threads;
    tern_worker *workers;
    tern_place *places; /* [size] */
    ticket *tickets;    /* [size] */
    uint64_t *starts;   /* [size + 1] sums of the shares before each worker; NULL: all are equal */
    bool one_node;      /* all places are on the same */
    tern_binding *binding; /* NULL: nothing is bound */
    atomic_int refused;    /* errno of the first binding that failed */
};

static inline void pause_briefly(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* The last of `size` threads opens the gate for all. */
static void gate_pass(gate *g, uint32_t size) {
    const unsigned generation = atomic_load_explicit(&g->generation, memory_order_acquire);
    if (atomic_fetch_add_explicit(&g->arrived, 1, memory_order_acq_rel) + 1 == size) {
        atomic_store_explicit(&g->arrived, 0, memory_order_relaxed);
        pthread_mutex_lock(&g->mutex);
        atomic_fetch_add_explicit(&g->generation, 1, memory_order_acq_rel);
        pthread_mutex_unlock(&g->mutex);
        pthread_cond_broadcast(&g->opened);
        return;
    }
    for (int i = 0; i < g->polls; i++) {
        if (atomic_load_explicit(&g->generation, memory_order_acquire) != generation)
            return;
        pause_briefly();
    }
    pthread_mutex_lock(&g->mutex);
    while (atomic_load_explicit(&g->generation, memory_order_acquire) == generation)
        pthread_cond_wait(&g->opened, &g->mutex);
    pthread_mutex_unlock(&g->mutex);
}

void tern_team_barrier(tern_worker worker) {
    if (worker.count > 1)
        gate_pass(&worker.team->gate, worker.count);
    ticket *own = &worker.team->tickets[worker.index];
    own->turn++;
    own->works = 0;
    for (int i = 0; i < TERN_TEAM_SHARED; i++)
        atomic_store_explicit(&own->gone[(own->turn + 1) % 2][i], 0, memory_order_relaxed);
}

/* Keeps the first failure. */
static void note_refusal(tern_team *team, int error) {
    int none = 0;
    if (error)
        (void)atomic_compare_exchange_strong(&team->refused, &none, error);
}

static void *worker_main(void *argument) {
    const tern_worker worker = *(const tern_worker *)argument;
    tern_team *team = worker.team;
    note_refusal(team, tern_bind_own_memory(team->binding, worker.index));
    for (;;) {
        tern_team_barrier(worker); /* a body is there */
        if (team->body == NULL)
            return NULL;
        team->body(worker, team->argument);
        tern_team_barrier(worker); /* all have finished it */
    }
}

static void team_release(tern_team *team) {
    pthread_cond_destroy(&team->gate.opened);
    pthread_mutex_destroy(&team->gate.mutex);
    tern_binding_free(&team->binding);
    free(team->starts);
    free(team->tickets);
    free(team->places);
    free(team->threads);
    free(team->workers);
    free(team);
}

/* Passes the gate with no body, which ends the threads that wait there, and joins the started ones.
 */
static void stop_threads(tern_team *team, uint32_t started) {
    team->body = NULL;
    gate_pass(&team->gate, team->size);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(team->threads[i], NULL);
}

/* Starts workers for a team of `threads`; how many threads the team has then, the caller included.
 */
static uint32_t start_threads(tern_team *team, uint32_t threads) {
    team->size = threads;
    memset(team->tickets, 0, threads * sizeof *team->tickets); /* a failed start used them */
    for (uint32_t i = 0; i + 1 < threads; i++) {
        team->workers[i] = (tern_worker){.team = team, .index = i + 1, .count = threads};
        if (pthread_create(&team->threads[i], NULL, worker_main, &team->workers[i]) != 0) {
            /* The started ones wait for `threads` arrivals: stand in for those that never came. */
            atomic_fetch_add(&team->gate.arrived, threads - (i + 1));
            stop_threads(team, i);
            return i + 1;
        }
        note_refusal(team, tern_bind_thread(team->binding, i + 1, team->threads[i]));
    }
    return threads;
}

/* Places for `threads` workers, which shares they get, and the masks to bind them by. */
static tern_status place_workers(tern_team *team, uint32_t threads, const tern_topology *topology,
                                 const tern_places *wish, tern_error *err) {
    bool equal = true;
    if (topology == NULL) {
        for (uint32_t i = 0; i < threads; i++)
            team->places[i] = (tern_place){.share = TERN_FULL_SPEED};
        return TERN_OK;
    }
    tern_binding_free(&team->binding);
    free(team->starts);
    team->starts = NULL;
    tern_status status = tern_place_threads(topology, wish, threads, team->places, err);
    if (status == TERN_OK)
        status = tern_binding_new(topology, wish, team->places, threads, &team->binding, err);
    for (uint32_t i = 1; i < threads; i++)
        equal &= team->places[i].share == team->places[0].share;
    if (status != TERN_OK || equal)
        return status;
    team->starts = calloc((size_t)threads + 1, sizeof *team->starts);
    if (team->starts == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for %u threads", threads);
    for (uint32_t i = 0; i < threads; i++)
        team->starts[i + 1] = team->starts[i] + team->places[i].share;
    return TERN_OK;
}

/*
 * Starts as many as the system gives: the next try asks for those that could be started, and places
 * them anew.
 */
static tern_status start(tern_team *team, uint32_t threads, const tern_topology *topology,
                         const tern_places *wish, tern_error *err) {
    for (uint32_t wanted = threads;;) {
        const tern_status status = place_workers(team, wanted, topology, wish, err);
        if (status != TERN_OK)
            return status;
        const uint32_t got = start_threads(team, wanted);
        if (got == wanted)
            break;
        wanted = got;
    }
    team->one_node = true;
    for (uint32_t i = 1; i < team->size; i++)
        team->one_node &= team->places[i].node == team->places[0].node;
    note_refusal(team, tern_bind_caller(team->binding)); /* a try, so that it is known now */
    tern_release_caller(team->binding);
    return TERN_OK;
}

static void do_nothing(tern_worker worker, void *argument) {
    (void)worker, (void)argument;
}

tern_status tern_team_new_placed(uint32_t threads, const tern_topology *topology,
                                 const tern_places *wish, tern_team **out, tern_error *err) {
    if (threads == 0)
        return tern_fail(err, TERN_ERR_ARG, "a thread team needs at least one thread");
    tern_team *team = calloc(1, sizeof *team);
    if (team == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for a thread team");
    team->threads = calloc(threads, sizeof *team->threads);
    team->workers = calloc(threads, sizeof *team->workers);
    team->places = calloc(threads, sizeof *team->places);
    team->tickets = aligned_alloc(CACHE_LINE, threads * sizeof *team->tickets);
    team->gate.polls = threads > tern_processor_count() ? CROWDED_POLLS : SPIN_POLLS;
    pthread_mutex_init(&team->gate.mutex, NULL);
    pthread_cond_init(&team->gate.opened, NULL);
    tern_status status = team->threads != NULL && team->workers != NULL && team->places != NULL &&
                                 team->tickets != NULL
                             ? start(team, threads, topology, wish, err)
                             : tern_fail(err, TERN_ERR_NOMEM, "no memory for %u threads", threads);
    if (status != TERN_OK) {
        team_release(team);
        return status;
    }
    if (team->binding != NULL)
        tern_team_run(team, do_nothing, NULL); /* every worker has tried to bind its memory */
    *out = team;
    return TERN_OK;
}

tern_status tern_team_new(uint32_t threads, tern_team **out, tern_error *err) {
    return tern_team_new_placed(threads, NULL, NULL, out, err);
}

void tern_team_free(tern_team **team) {
    if (team == NULL || *team == NULL)
        return;
    if ((*team)->size > 1)
        stop_threads(*team, (*team)->size - 1);
    team_release(*team);
    *team = NULL;
}

uint32_t tern_team_size(const tern_team *team) {
    return team->size;
}

int tern_team_refused(const tern_team *team) {
    return atomic_load(&team->refused);
}

tern_place tern_team_place(const tern_team *team, uint32_t i) {
    return team->places[i];
}

bool tern_team_is_near(tern_worker worker, uint32_t other) {
    const tern_place *places = worker.team->places;
    return places[other].node == places[worker.index].node;
}

bool tern_team_is_on_one_node(tern_worker worker) {
    return worker.team->one_node;
}

/* The caller's part, and everybody's where it is alone. */
static void run_all(tern_team *team, tern_team_body *body, void *argument) {
    const tern_worker caller = {.team = team, .index = 0, .count = team->size};
    team->body = body;
    team->argument = argument;
    tern_team_barrier(caller);
    body(caller, argument);
    tern_team_barrier(caller);
}

void tern_team_run(tern_team *team, tern_team_body *body, void *argument) {
    (void)tern_bind_caller(team->binding);
    run_all(team, body, argument);
    tern_release_caller(team->binding);
}

/* The units, of `units`, of the workers before number i: their share of the sum, rounded up. */
static size_t units_before(tern_worker worker, uint32_t i, size_t units) {
    const uint64_t *starts = worker.team != NULL ? worker.team->starts : NULL;
    const uint64_t part = starts != NULL ? starts[i] : i;
    const uint64_t whole = starts != NULL ? starts[worker.count] : worker.count;
    /* shares are at most 1024 and workers at most 1024: units of up to 2^43 do not overflow */
    return (size_t)((units * part + whole - 1) / whole);
}

tern_part tern_team_split(tern_worker worker, size_t count, size_t unit) {
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

tern_pieces tern_team_pieces(tern_worker worker, size_t count, size_t unit) {
    const uint32_t number = worker.team->tickets[worker.index].works++;
    return (tern_pieces){.worker = worker,
                         .count = count,
                         .unit = unit,
                         .number = number,
                         .split = worker.count == 1 || number >= TERN_TEAM_SHARED};
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
        *piece = tern_team_split(worker, pieces->count, pieces->unit);
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

uint32_t tern_processor_count(void) {
    uint32_t *os = NULL;
    uint32_t n = 0;
    if (tern_allowed_processors(&os, &n, NULL) != TERN_OK)
        return 1;
    free(os);
    return n > 0 ? n : 1;
}
