/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_THREADS_TEAM_H
#define TERN_THREADS_TEAM_H

/* Functions of a team (tern/team.h) for the library alone: where workers run. */

#include "threads/placement.h"
#include "threads/worker.h"

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

#endif
