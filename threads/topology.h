/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_THREADS_TOPOLOGY_H
#define TERN_THREADS_TOPOLOGY_H

/* The parts of a tern_topology. */

#include <stddef.h>

#include "tern/topology.h"

enum { TERN_FULL_SPEED = 1024, TERN_NODES_ONLINE_BYTES = 64 };

typedef struct tern_processor {
    uint32_t os;      /* the system's number */
    uint32_t node;    /* these three count from 0 over the whole machine */
    uint32_t socket;  /* */
    uint32_t core;    /* */
    uint32_t sibling; /* among the processors of its core, from 0 */
    uint32_t speed;   /* beside the fastest core, which has TERN_FULL_SPEED; 1 or more */
} tern_processor;

struct tern_topology {
    tern_processor *processors; /* [n] by node, socket, falling speed, core, sibling */
    uint32_t n;                 /* at least 1 */
    uint32_t n_cores, n_sockets, n_nodes;
    uint32_t n_classes; /* pairs of node and speed: what the processors' order keeps together */
    uint32_t quota;     /* processors' worth of time that the process may use; 0: no limit */
    uint32_t *node_os;  /* [n_nodes] the system's numbers */
    bool foreign;       /* of another machine: nothing can be bound */
    void *hwloc;        /* hwloc_topology_t, NULL: built without it */
    char nodes_online[TERN_NODES_ONLINE_BYTES];
};

/*
 * A topology of these processors, which are copied, sorted and counted; node_os as in the struct.
 * Processors of a core must agree in all but os and sibling.
 */
TERN_MUST_CHECK tern_status tern_topology_of(const tern_processor *processors, uint32_t n,
                                             const uint32_t *node_os, uint32_t n_nodes,
                                             tern_topology **out, tern_error *err);

/* Orders the processors anew, and counts them, after speeds were changed. */
void tern_topology_sort(tern_topology *t);

/*
 * A speed beside the fastest core's, of TERN_FULL_SPEED: 1 at least, and as full where it is near:
 * cores that are chosen for a slightly higher turbo clock are no other kind of core.
 */
uint32_t tern_speed_rounded(uint64_t scaled);

/*
 * The facts of this machine that the wish needs. Like tern_topology_new, but hwloc is left out
 * where the wish is the usual one and the system itself says that there is nothing to choose
 * (tern_machine_is_plain): hwloc takes milliseconds to look around, and crashes without memory.
 */
TERN_MUST_CHECK tern_status tern_topology_for(const tern_places *wish, tern_topology **out,
                                              tern_error *err);

/*
 * True if files below root ("/sys/devices" of a system) show one NUMA node, one socket, a thread a
 * core and one kind of core for the processors os[n]; false where they do not tell.
 */
bool tern_machine_is_plain(const char *root, const uint32_t *os, uint32_t n);

/* The system's numbers of the processors that the caller may run on: *out [*n], to be freed. */
TERN_MUST_CHECK tern_status tern_allowed_processors(uint32_t **out, uint32_t *n, tern_error *err);

/* The first line of a file of the system into text; "" where there is none. */
void tern_read_line(const char *path, char *text, size_t size);

/* Like tern_topology_new, by hwloc; *out stays NULL without an error where hwloc has nothing to
 * say. In topology_hwloc.c, only built with hwloc. */
TERN_MUST_CHECK tern_status tern_topology_by_hwloc(tern_topology **out, tern_error *err);
void tern_topology_free_hwloc(void *hwloc);

#endif
