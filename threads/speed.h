/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_THREADS_SPEED_H
#define TERN_THREADS_SPEED_H

/*
 * Measured speeds of kinds of cores in place of announced ones. The system announces clocks, or a
 * capacity for other programs' work; only a measurement shows how fast a kind multiplies. Speeds
 * decide how large the workers' parts are, and no result.
 */

#include "threads/topology.h"

enum { TERN_CORE_KINDS = 8 };

/* Kinds of cores, told apart by their announced speed, the fastest first. */
typedef struct tern_core_speeds {
    uint32_t n; /* 0: one kind, or more than fit */
    uint32_t announced[TERN_CORE_KINDS], measured[TERN_CORE_KINDS]; /* of TERN_FULL_SPEED */
} tern_core_speeds;

/* The kinds of the topology; measured are as announced. */
tern_core_speeds tern_core_kinds(const tern_topology *t);

/* Seconds that some fixed work takes on a core of announced speed; 0: it cannot be told. */
typedef double tern_core_clock(void *user, const tern_topology *t, uint32_t announced);

/*
 * Asks the clock for each kind several times, in turn, and takes the least, because a disturbance
 * only makes a measurement longer. Kinds within a fifth of the fastest count as equal. False, and
 * nothing is changed, where the clock cannot tell.
 */
bool tern_core_measure(const tern_topology *t, tern_core_clock *clock, void *user,
                       tern_core_speeds *speeds);

/* Gives the topology, which has announced speeds, the measured ones. No thread may be using it. */
void tern_topology_set_speeds(tern_topology *t, const tern_core_speeds *speeds);

#endif
