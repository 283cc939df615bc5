/* SPDX-License-Identifier: Apache-2.0 */

#include "threads/team.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "threads/bind.h"

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
        tern_worker_meet(worker); /* a body is there */
        if (team->body == NULL)
            return NULL;
        team->body(worker, team->argument);
        tern_worker_meet(worker); /* all have finished it */
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
    tern_gate_pass(&team->gate, team->size, &team->tickets[0].patience);
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
    team->tickets = aligned_alloc(TERN_TEAM_LINE, threads * sizeof *team->tickets);
    team->gate.polls = threads > tern_processor_count() ? TERN_FEW_POLLS : TERN_MANY_POLLS;
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

/* The caller's part, and everybody's where it is alone. */
static void run_all(tern_team *team, tern_team_body *body, void *argument) {
    const tern_worker caller = {.team = team, .index = 0, .count = team->size};
    team->body = body;
    team->argument = argument;
    tern_worker_meet(caller);
    body(caller, argument);
    tern_worker_meet(caller);
}

void tern_team_run(tern_team *team, tern_team_body *body, void *argument) {
    (void)tern_bind_caller(team->binding);
    run_all(team, body, argument);
    tern_release_caller(team->binding);
}

void tern_team_barrier(tern_worker worker) {
    tern_worker_meet(worker);
}

tern_part tern_team_split(tern_worker worker, size_t count, size_t unit) {
    return tern_worker_part(worker, count, unit);
}

uint32_t tern_processor_count(void) {
    uint32_t *os = NULL;
    uint32_t n = 0;
    if (tern_allowed_processors(&os, &n, NULL) != TERN_OK)
        return 1;
    free(os);
    return n > 0 ? n : 1;
}
