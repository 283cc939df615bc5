/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_THREADS_REPLICA_H
#define TERN_THREADS_REPLICA_H

/*
 * Copies of hot weights, one on each NUMA node that workers run on.
 *
 * The worker that multiplies rows of a packed matrix has packed them, so they lie on its node.
 * Weights that are not packed lie elsewhere: matrices of floats where the system's file cache holds
 * them, norms and biases where the thread ran that opened the model; the workers of every other
 * node fetch them from there, token for token. A replica is memory of a node that holds the same
 * bytes.
 *
 * It is an anonymous map: a second map of the file would show the same pages of the same cache. The
 * map is bound to its node and filled by the workers that run there, so it lies right even where
 * the system refuses to bind memory but not threads. MADV_WILLNEED is for the source, so that the
 * file is read ahead of the copying; pages that were never written cannot be read ahead.
 */

#include "base/arena.h"
#include "threads/team.h"

/* Pieces by the bytes that a token reads for each byte of the copy, largest first. */
typedef enum tern_heat {
    TERN_HEAT_EVERYBODY, /* all of it, by every worker: norms, biases */
    TERN_HEAT_ONCE,      /* all of it, each byte by one worker: matrices of floats */
    TERN_HEAT_SOME,      /* some rows: embeddings, a head that is scanned in int8 */
    TERN_HEATS
} tern_heat;

typedef struct tern_hot_piece {
    const void *data; /* NULL: planned, not there yet */
    size_t bytes;
    tern_heat heat;
    bool in_file;  /* where the file is mapped */
    bool chosen;   /* has a place in replicas */
    size_t offset; /* there */
} tern_hot_piece;

/* The pieces that could be copied. Starts as zeros. */
typedef struct tern_hot_list {
    tern_hot_piece *pieces; /* [n], each `data` once */
    size_t n, capacity;
} tern_hot_list;

/* Adds a piece; where its data is listed already (a head that is the embedding too) the hotter use
 * counts. No list (NULL) takes nothing. TERN_ERR_NOMEM. */
TERN_MUST_CHECK tern_status tern_hot_add(tern_hot_list *list, tern_hot_piece piece,
                                         tern_error *err);

/* Forgets the pieces, keeps the memory. NULL is fine. */
void tern_hot_clear(tern_hot_list *list);
void tern_hot_free(tern_hot_list *list);

/*
 * Chooses the hottest pieces, in the order of the list among equals, each as a whole as long as it
 * fits: a replica has at most `limit` bytes (0: as many as there are). Returns the bytes of one.
 */
size_t tern_hot_choose(tern_hot_list *list, uint64_t limit);

/* Nodes that the workers at places[n] are bound to; 0 where the machine has one node. */
uint32_t tern_replica_nodes(const tern_topology *t, const tern_place *places, uint32_t n);

/* Replicas by node. Starts as zeros. */
typedef struct tern_replicas {
    tern_arena *arenas; /* [n_nodes] of the topology; without a base: none on this node */
    uint32_t n_nodes;
    int refused;        /* errno of the first binding that the system refused; 0: none */
    tern_error problem; /* status other than TERN_OK: why a node has none, the first one */
} tern_replicas;

/*
 * Copies the chosen pieces, `bytes` in all, to the nodes of the team's workers, which run where the
 * wish wants them. A node without memory for them is left out (`problem`); TERN_ERR_NOMEM only when
 * not even the list of nodes fits. *out is to be freed in any case.
 */
TERN_MUST_CHECK tern_status tern_replicas_new(const tern_hot_list *list, size_t bytes,
                                              const tern_topology *t, const tern_places *wish,
                                              tern_team *team, tern_replicas *out, tern_error *err);
void tern_replicas_free(tern_replicas *replicas);

/* The node's copy of data that starts a piece; data itself where there is none. */
const void *tern_replica_find(const tern_hot_list *list, const tern_replicas *replicas,
                              uint32_t node, const void *data);

#endif
