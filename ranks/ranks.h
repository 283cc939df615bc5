/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RANKS_RANKS_H
#define TERN_RANKS_RANKS_H

/*
 * What ranks (tern/ranks.h) do together: two exchanges, on which everything else is built. All
 * ranks make the same exchanges in the same order. How bytes travel is a table of functions:
 * memory that processes share (local.c), or MPI in a module that is opened when it is asked for
 * (load_mpi.c, mpi/module.c).
 *
 * An exchange in which a rank is lost fails with TERN_ERR_RANKS on all ranks that notice, and so
 * does every later one, at once. So a pass goes on to its end without waiting again, and its
 * caller learns of the failure there.
 *
 * One thread at a time makes exchanges: tern_ranks_lock and tern_ranks_unlock enclose an order of
 * rank 0 with all exchanges that belong to it.
 */

#include <stdbool.h>
#include <stddef.h>

#include "tern/ranks.h"

/* Rows of bytes, of which rank i gives columns [bounds[i], bounds[i + 1]). */
typedef struct tern_ranks_rows {
    void *data;
    size_t rows;
    size_t stride;        /* bytes from row to row */
    const size_t *bounds; /* [size + 1], ascending, at most `stride` */
} tern_ranks_rows;

enum { TERN_RANKS_TO_ALL = -1 };

/* Brings the columns of all ranks to rank `to`, or to all of them. */
TERN_MUST_CHECK tern_status tern_ranks_gather(tern_ranks *ranks, const tern_ranks_rows *rows,
                                              int to, tern_error *err);

/* The same for one piece of memory of `bytes` from every rank: all[size][bytes], in which the
 * caller has filled its own piece. */
TERN_MUST_CHECK tern_status tern_ranks_collect(tern_ranks *ranks, void *all, size_t bytes,
                                               tern_error *err);

/* Copies memory of rank 0 to all others. idle: rank 0 may take any time before it sends, so
 * nobody counts as lost meanwhile, and others sleep rather than poll. */
TERN_MUST_CHECK tern_status tern_ranks_broadcast(tern_ranks *ranks, void *data, size_t bytes,
                                                 bool idle, tern_error *err);

/* The same outcome for all: TERN_OK where every rank says so, else the failure of the first rank
 * that has one, whose message then begins with that rank where it is another one. */
TERN_MUST_CHECK tern_status tern_ranks_agree(tern_ranks *ranks, tern_status status,
                                             tern_error *err);

/* The failure of an earlier exchange, or TERN_OK. Any thread may ask at any time. */
TERN_MUST_CHECK tern_status tern_ranks_check(const tern_ranks *ranks, tern_error *err);

void tern_ranks_lock(tern_ranks *ranks);
void tern_ranks_unlock(tern_ranks *ranks);

/* ---- how bytes travel ------------------------------------------------------------------------ */

/* The functions of one way; self is what opening it made. Both exchanges as above; `waiting` gets
 * the seconds until the last of the others had come. */
typedef struct tern_ranks_way {
    tern_status (*gather)(void *self, const tern_ranks_rows *rows, int to, double *waiting,
                          tern_error *err);
    tern_status (*broadcast)(void *self, void *data, size_t bytes, bool idle, tern_error *err);
    void (*close)(void *self, bool broken); /* broken: ends the other ranks, waits for nobody */
} tern_ranks_way;

typedef struct tern_ranks_opened {
    const tern_ranks_way *way;
    void *self;
    uint32_t rank, size;
    uint32_t here; /* ranks on this machine */
} tern_ranks_opened;

/* Copies the process until there are `size` ranks. */
TERN_MUST_CHECK tern_status tern_ranks_open_local(uint32_t size, double limit,
                                                  tern_ranks_opened *out, tern_error *err);

/* Opens the module and MPI's world. */
TERN_MUST_CHECK tern_status tern_ranks_open_mpi(double limit, tern_ranks_opened *out,
                                                tern_error *err);

/* The module's only symbol. */
typedef struct tern_ranks_module {
    const char *version; /* of tern */
    tern_status (*open)(double limit, tern_ranks_opened *out, tern_error *err);
} tern_ranks_module;
#define TERN_RANKS_MODULE_SYMBOL "tern_ranks_module_info"

/* How long a wait has lasted, and what its thread does next: it polls for microseconds, gives the
 * processor to others for milliseconds, then sleeps. All zero but for `polls`: a wait begins. */
typedef struct tern_ranks_wait {
    uint32_t polls; /* before others get the processor; 0 where ranks outnumber processors */
    uint32_t n;
    double begin; /* of the wait; 0: not known yet */
} tern_ranks_wait;

/* Passes some time; true where it is time to look at the clock: *seconds is the time waited. */
bool tern_ranks_pass_time(tern_ranks_wait *wait, double *seconds);

/* Polls that suit so many ranks on this machine. */
uint32_t tern_ranks_polls(uint32_t size);

#endif
