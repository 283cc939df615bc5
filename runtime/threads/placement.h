/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_THREADS_PLACEMENT_H
#define TERN_RUNTIME_THREADS_PLACEMENT_H

/* Which thread runs where: a pure function of the topology, the wish and the number of threads. */

#include "runtime/threads/topology.h"

/* Where one worker runs: on processors [first, end) of the topology; empty: anywhere. */
typedef struct tern_place {
    uint32_t first, end;
    uint32_t socket, node; /* as the topology counts them; 0 where it may run anywhere */
    uint32_t share;        /* of the work, beside the other workers; at least 1 */
} tern_place;

/* Whether the wish can be met on that machine: a node that is not there, no library to ask. */
TERN_MUST_CHECK tern_status tern_places_check(const tern_topology *t, const tern_places *wish,
                                              tern_error *err);

/*
 * places[threads] for a wish that tern_places_check accepts. Cores are taken before siblings of
 * their threads, fast cores before slow ones; then the workers are ordered by place, so that
 * neighbours in a matrix are neighbours on the machine. Equal arguments give equal places, which is
 * why a worker of a session finds on its node what the worker of the same number packed.
 */
TERN_MUST_CHECK tern_status tern_place_threads(const tern_topology *t, const tern_places *wish,
                                               uint32_t threads, tern_place *places,
                                               tern_error *err);

/* The topology's number of a node that the system calls os; n_nodes: there is none. */
uint32_t tern_find_node(const tern_topology *t, uint32_t os);

/* Names as the command line has them. */
const char *tern_affinity_name(tern_affinity affinity);

/* "none", "interleave", "node:3", "strict" into text. */
void tern_numa_name(const tern_places *wish, char *text, size_t size);

#endif
