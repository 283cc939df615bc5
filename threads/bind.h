/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_THREADS_BIND_H
#define TERN_THREADS_BIND_H

/*
 * Asks the system to keep threads and memory where the placement wants them. It may refuse (a
 * container's filter of system calls, processors that are offline): every function returns 0 or the
 * errno. A refusal changes nothing but speed.
 */

#include <pthread.h>

#include "threads/placement.h"

/* Masks of the workers' places, in the form that the system wants. NULL stands for "anywhere". */
typedef struct tern_binding tern_binding;

/* *out stays NULL where no worker is bound, or the topology is another machine's. */
TERN_MUST_CHECK tern_status tern_binding_new(const tern_topology *t, const tern_places *wish,
                                             const tern_place *places, uint32_t n,
                                             tern_binding **out, tern_error *err);
void tern_binding_free(tern_binding **binding);

/* Binds a started thread to the place of worker i. */
int tern_bind_thread(const tern_binding *b, uint32_t i, pthread_t thread);

/* The calling thread's memory comes from the node of worker i alone, where the wish is strict. */
int tern_bind_own_memory(const tern_binding *b, uint32_t i);

/*
 * Binds the calling thread as worker 0, and gives it back the mask and policy that it had before.
 * One caller at a time. It must not stay bound: threads that it starts later would inherit that.
 */
int tern_bind_caller(tern_binding *b);
void tern_release_caller(tern_binding *b);

/* Puts untouched memory where the wish says: interleaved or on one node; nothing otherwise. */
int tern_place_memory(const tern_topology *t, const tern_places *wish, void *memory, size_t size);

/*
 * Puts untouched memory on a node, as the topology counts them: on no other where the wish is
 * strict, else on that one first. Nothing where the nodes are not known.
 */
int tern_bind_area(const tern_topology *t, const tern_places *wish, uint32_t node, void *memory,
                   size_t size);

#endif
