/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_THREADS_WORKER_H
#define TERN_THREADS_WORKER_H

/*
 * The side of a team that a worker sees within a body: it meets the others, and takes its part of
 * the work.
 * Lanes of the processor (device/lane.h) need no more of a team, and libtern-kernels has no more of
 * it: making and placing teams (threads/team.h) takes libraries that kernels do without.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "tern/team.h"
#include "threads/bind.h"

/* ---- meeting and dividing -------------------------------------------------------------------- */

/* tern_team_barrier and tern_team_split. */
void tern_worker_meet(tern_worker worker);
tern_part tern_worker_part(tern_worker worker, size_t count, size_t unit);

/*
 * True if worker `other` runs on the same NUMA node. Only then is its work taken over, because the
 * memory of that work lies there.
 */
bool tern_team_is_near(tern_worker worker, uint32_t other);

/* True if all workers run on the same NUMA node, or none is known. */
bool tern_team_is_on_one_node(tern_worker worker);

/*
 * The items of tern_team_split, taken piece by piece as workers come free. Each worker takes pieces
 * from the front of its own part, then from the back of its next neighbours' parts on the same
 * node. So none waits long for a worker that the system stopped, that the memory served last, or
 * whose processor is slower than announced. Pieces get smaller towards the end of a part.
 *
 *     tern_pieces pieces = tern_team_pieces(worker, count, unit);
 *     for (tern_part piece; tern_pieces_next(&pieces, &piece);)
 *         ...
 *
 * Every worker does so for the same works in the same order. Between two barriers the first
 * TERN_TEAM_SHARED of them are shared, later ones are split. count / unit < 2^32.
 */
enum { TERN_TEAM_SHARED = 3 };
typedef struct tern_pieces {
    tern_worker worker;
    size_t count, unit;
    uint32_t number; /* since the last barrier */
    bool split;      /* the worker's part is one piece */
} tern_pieces;
tern_pieces tern_team_pieces(tern_worker worker, size_t count, size_t unit);

/* The worker's part as its only piece, which nobody else takes from. */
tern_pieces tern_worker_piece(tern_worker worker, size_t count, size_t unit);

/* The next piece, not empty, that is this worker's to do; false: nothing is left for it. */
bool tern_pieces_next(tern_pieces *pieces, tern_part *piece);

/* ---- the team as its workers see it ---------------------------------------------------------- */

enum { TERN_TEAM_LINE = 64 }; /* what one worker writes, others do not fetch by accident */

/*
 * Polls before a waiting thread sleeps. A poll is a pause of some 40 cycles, so many polls are
 * roughly 50 us: longer than the short single-threaded steps of a token, shorter than a scheduler
 * tick. Where the awaited thread has no processor, a polling one may keep it from getting one: few
 * polls are 1 us.
 */
enum { TERN_MANY_POLLS = 4000, TERN_FEW_POLLS = 80 };

/*
 * A worker learns from its own waits whether many polls pay. They do where each worker has a
 * processor. Beside other programs two workers may get the same one, and then each wait would cost
 * 50 us for nothing. All members 0: they are expected to pay.
 */
typedef struct tern_patience {
    uint32_t doubt; /* up to TERN_DOUBTFUL, at which few polls are made */
    uint32_t waits; /* that began in doubt */
} tern_patience;

/*
 * A wait that polls did not end adds 4 to the doubt, one that polls ended takes 1 away: many
 * polls pay if they end four waits of five, since sleeping costs about a fifth of them. In doubt,
 * every 64th wait tries many polls.
 */
enum { TERN_DOUBTFUL = 16, TERN_DOUBT_OF_A_MISS = 4, TERN_DOUBTFUL_TRIES = 64 };

/* How often the next wait polls, where `most` is the gate's number. */
int tern_patience_polls(tern_patience *patience, int most);

/* Takes in whether polls ended a wait. */
void tern_patience_learn(tern_patience *patience, bool opened);

typedef struct tern_gate {
    atomic_uint generation; /* counts how often the gate has opened */
    atomic_uint arrived;
    int polls; /* the most before a waiting thread sleeps */
    pthread_mutex_t mutex;
    pthread_cond_t opened;
} tern_gate;

/*
 * The units taken of one worker's parts: those from the front in the upper half of a word, those
 * from the back in the lower half. Two sets of words take turns: after a barrier each worker clears
 * its own of the next turn, which no other worker reads at that time. Only the worker itself
 * touches the other members. One cache line.
 */
typedef struct tern_ticket {
    _Alignas(TERN_TEAM_LINE) atomic_uint_least64_t gone[2][TERN_TEAM_SHARED];
    uint32_t turn;  /* barriers that the worker passed */
    uint32_t works; /* that it began since the last one */
    tern_patience patience;
} tern_ticket;

struct tern_team {
    uint32_t size;
    tern_gate gate;
    tern_team_body *body; /* NULL: the team is being stopped */
    void *argument;
    pthread_t *threads;
    tern_worker *workers;
    tern_place *places;   /* [size] */
    tern_ticket *tickets; /* [size] */
    uint64_t *starts; /* [size + 1] sums of the shares before each worker; NULL: all are equal */
    bool one_node;    /* all places are on the same */
    tern_binding *binding; /* NULL: nothing is bound */
    atomic_int refused;    /* errno of the first binding that failed */
};

/* Returns when `size` threads have come. The last of them opens the gate for all. `patience` is the
 * caller's own. */
void tern_gate_pass(tern_gate *g, uint32_t size, tern_patience *patience);

#endif
