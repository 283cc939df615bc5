/* SPDX-License-Identifier: Apache-2.0 */

#include "runtime/team.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

/*
 * Polls before a waiting thread sleeps. A poll is a pause of some 40 cycles, so this is roughly
 * 50 us: longer than the short single-threaded steps of a token, shorter than a scheduler tick.
 */
enum { SPIN_POLLS = 4000 };

typedef struct gate {
    atomic_uint generation; /* counts how often the gate has opened */
    atomic_uint arrived;
    pthread_mutex_t mutex;
    pthread_cond_t opened;
} gate;

struct tern_team {
    uint32_t size;
    gate gate;
    tern_team_body *body; /* NULL: the team is being stopped */
    void *argument;
    pthread_t *threads;
    tern_worker *workers;
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
    for (int i = 0; i < SPIN_POLLS; i++) {
        if (atomic_load_explicit(&g->generation, memory_order_acquire) != generation)
            return;
        pause_briefly();
    }
    pthread_mutex_lock(&g->mutex);
    while (atomic_load_explicit(&g->generation, memory_order_acquire) == generation)
        pthread_cond_wait(&g->opened, &g->mutex);
    pthread_mutex_unlock(&g->mutex);
}

static void *worker_main(void *argument) {
    const tern_worker worker = *(const tern_worker *)argument;
    tern_team *team = worker.team;
    for (;;) {
        gate_pass(&team->gate, team->size); /* a body is there */
        if (!team->body)
            return NULL;
        team->body(worker, team->argument);
        gate_pass(&team->gate, team->size); /* all have finished it */
    }
}

static void team_release(tern_team *team) {
    pthread_cond_destroy(&team->gate.opened);
    pthread_mutex_destroy(&team->gate.mutex);
    free(team->threads);
    free(team->workers);
    free(team);
}

/* Passes the gate with no body, which ends the threads behind it, and joins the started ones. */
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
    for (uint32_t i = 0; i + 1 < threads; i++) {
        team->workers[i] = (tern_worker){.team = team, .index = i + 1, .count = threads};
        if (pthread_create(&team->threads[i], NULL, worker_main, &team->workers[i]) != 0) {
            /* The started ones wait for `threads` arrivals: stand in for those that never came. */
            atomic_fetch_add(&team->gate.arrived, threads - (i + 1));
            stop_threads(team, i);
            return i + 1;
        }
    }
    return threads;
}

tern_status tern_team_new(uint32_t threads, tern_team **out, tern_error *err) {
    if (threads == 0)
        return tern_fail(err, TERN_ERR_ARG, "a thread team needs at least one thread");
    tern_team *team = calloc(1, sizeof *team);
    if (!team)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for a thread team");
    team->threads = calloc(threads, sizeof *team->threads);
    team->workers = calloc(threads, sizeof *team->workers);
    pthread_mutex_init(&team->gate.mutex, NULL);
    pthread_cond_init(&team->gate.opened, NULL);
    if (!team->threads || !team->workers) {
        team_release(team);
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for %u threads", threads);
    }
    /* As many as the system gives: the next try asks for those that could be started. */
    for (uint32_t wanted = threads, got; (got = start_threads(team, wanted)) != wanted;)
        wanted = got;
    *out = team;
    return TERN_OK;
}

void tern_team_free(tern_team **team) {
    if (!team || !*team)
        return;
    if ((*team)->size > 1)
        stop_threads(*team, (*team)->size - 1);
    team_release(*team);
    *team = NULL;
}

uint32_t tern_team_size(const tern_team *team) {
    return team->size;
}

void tern_team_run(tern_team *team, tern_team_body *body, void *argument) {
    const tern_worker caller = {.team = team, .index = 0, .count = team->size};
    if (team->size == 1) {
        body(caller, argument);
        return;
    }
    team->body = body;
    team->argument = argument;
    gate_pass(&team->gate, team->size);
    body(caller, argument);
    gate_pass(&team->gate, team->size);
}

void tern_team_barrier(tern_worker worker) {
    if (worker.count > 1)
        gate_pass(&worker.team->gate, worker.count);
}

tern_part tern_team_split(tern_worker worker, size_t count, size_t unit) {
    const size_t units = (count + unit - 1) / unit;
    const size_t begin = units * worker.index / worker.count * unit;
    const size_t end = units * (worker.index + 1) / worker.count * unit;
    return (tern_part){.begin = begin < count ? begin : count, .end = end < count ? end : count};
}

uint32_t tern_processor_count(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return (uint32_t)CPU_COUNT(&set);
    return 1;
}
