/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_THREADS_TEAM_H
#define TERN_THREADS_TEAM_H

/* Functions of a team (tern/team.h) for the library alone: where workers run, and shared work. */

#include "tern/team.h"
#include "threads/placement.h"

/*
 * tern_team_new with each worker where tern_place_threads puts it and a part of the work that suits
 * its processor. The caller is bound only while a body runs. A refusal of the system is not an
 * error here: tern_team_refused tells of it. The topology must outlive the team.
 */
TERN_MUST_CHECK tern_status tern_team_new_placed(uint32_t threads, const tern_topology *topology,
                                                 const tern_places *wish, tern_team **out,
                                                 tern_error *err);

/* errno of the first binding of a thread that the system refused; 0: none. */
int tern_team_refused(const tern_team *team);

/* The place of worker i of the team. */
tern_place tern_team_place(const tern_team *team, uint32_t i);

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

/* The next piece, not empty, that is this worker's to do; false: nothing is left for it. */
bool tern_pieces_next(tern_pieces *pieces, tern_part *piece);

#endif
