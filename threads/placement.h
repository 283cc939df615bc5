/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_THREADS_PLACEMENT_H
#define TERN_THREADS_PLACEMENT_H

/* Which thread runs where: a pure function of the topology, the wish and the number of threads. */

#include "threads/topology.h"

/* Checks that the wish can be met on that machine: a node may be missing, or the library to ask. */
TERN_MUST_CHECK tern_status tern_places_check(const tern_topology *t, const tern_places *wish,
                                              tern_error *err);

/* The topology's number of a node that the system calls os; n_nodes: there is none. */
uint32_t tern_find_node(const tern_topology *t, uint32_t os);

#endif
