/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOPOLOGY_H
#define TERN_TOPOLOGY_H

/*
 * The machine as threads and memory see it, and where to put them. None of it changes a result
 * (docs/threads.md).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/status.h"

TERN_API_BEGIN

/* Processors that this process may use, their cores, sockets and NUMA nodes. Immutable. */
typedef struct tern_topology tern_topology;

/*
 * Looks at the machine, by hwloc where the library was built with it; without it, every processor
 * counts as a core of one socket and one node. hwloc's variables HWLOC_XMLFILE and HWLOC_SYNTHETIC
 * put another machine in place of this one: it is planned for, and nothing is bound.
 */
TERN_MUST_CHECK tern_status tern_topology_new(tern_topology **out, tern_error *err);
void tern_topology_free(tern_topology **topology);

uint32_t tern_topology_processors(const tern_topology *t);
uint32_t tern_topology_cores(const tern_topology *t);
uint32_t tern_topology_sockets(const tern_topology *t);
uint32_t tern_topology_nodes(const tern_topology *t);

/* The system's number of the first processor on a socket, counted from 0; -1: no such socket. */
int tern_topology_first_cpu(const tern_topology *t, uint32_t socket);

/* NUMA nodes that the system has, such as "0-1"; "" where it does not tell. */
const char *tern_topology_nodes_online(const tern_topology *t);

/* The system's numbers of node i and of processor i, each counted from 0 as the topology does. */
uint32_t tern_topology_node_number(const tern_topology *t, uint32_t i);
uint32_t tern_topology_processor_number(const tern_topology *t, uint32_t i);

/* True if it is another machine's, given by a variable of hwloc: nothing can be bound. */
bool tern_topology_is_foreign(const tern_topology *t);

/*
 * The number of threads when none is asked for: one a core, or one a processor where there is a
 * single core; no more than the group's processor time allows (a container's limit), at least 1.
 */
uint32_t tern_topology_threads(const tern_topology *t);

/* True if the library can see sockets and nodes, bind threads to them and place memory on them. */
bool tern_topology_supported(void);

/* The processors that threads run on. */
typedef enum tern_affinity {
    TERN_AFFINITY_AUTO,    /* within their node and kind of core; nothing where there is one */
    TERN_AFFINITY_NONE,    /* where the system puts them */
    TERN_AFFINITY_COMPACT, /* a core each, one node after the other */
    TERN_AFFINITY_SCATTER  /* a core each, the nodes in turn */
} tern_affinity;

/* The nodes that memory is placed on. */
typedef enum tern_numa {
    TERN_NUMA_NONE,       /* on the node of the thread that first writes it */
    TERN_NUMA_INTERLEAVE, /* page by page on all nodes */
    TERN_NUMA_NODE,       /* on one node, and threads there too */
    TERN_NUMA_STRICT      /* as NONE, but from no other node; a refused binding is an error */
} tern_numa;

typedef struct tern_places {
    tern_affinity affinity;
    tern_numa numa;
    uint32_t node; /* of TERN_NUMA_NODE, as the system numbers it */
} tern_places;

/* The use of the processor's caches for memory that is asked for ahead: kept or not. */
typedef enum tern_fetch_hint {
    TERN_FETCH_KEPT,
    TERN_FETCH_PASSING, /* no: room is left for what is read again sooner */
    TERN_FETCH_AUTO     /* KEPT where the weights that a token reads fit into the last level */
} tern_fetch_hint;

/*
 * The weights that the threads of passes prefetch, besides those that kernels prefetch while they
 * multiply. When a product comes, each thread asks for the beginning of its part of the matrix, and
 * only then waits for the others where it must. Scans of a head and matrices of sparse blocks are
 * left out.
 */
typedef struct tern_fetch {
    uint32_t ahead; /* bytes of every matrix, for each thread; 0: nothing is asked for */
    tern_fetch_hint hint;
    double kept_percent; /* 0 to 100: of what the hint says is not to be kept, so much is kept
                            nevertheless, evenly spread */
} tern_fetch;

/* Names as the command line has them. */
const char *tern_affinity_name(tern_affinity affinity);

/* "none", "interleave", "node:3", "strict" into text. */
void tern_numa_name(const tern_places *wish, char *text, size_t size);

/* The same back: numa and node of *out; false when the text is not one of them. */
bool tern_numa_parse(const char *text, tern_places *out);

/* One worker's processors: [first, end) of the topology; empty: anywhere. */
typedef struct tern_place {
    uint32_t first, end;
    uint32_t socket, node; /* as the topology counts them; 0 where it may run anywhere */
    uint32_t share;        /* of the work, beside the other workers; at least 1 */
} tern_place;

/*
 * places[threads] for a wish that a model was opened with. Cores are taken before siblings of
 * their threads, fast cores before slow ones; then the workers are ordered by place, so that
 * neighbours in a matrix are neighbours on the machine. Equal arguments give equal places, which is
 * why a worker of a session finds on its node what the worker of the same number packed.
 */
TERN_MUST_CHECK tern_status tern_place_threads(const tern_topology *t, const tern_places *wish,
                                               uint32_t threads, tern_place *places,
                                               tern_error *err);

TERN_API_END

#endif
