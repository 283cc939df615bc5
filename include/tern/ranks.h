/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RANKS_H
#define TERN_RANKS_H

/*
 * Several processes that compute one model together, on one machine or on several. Each of them, a
 * rank, holds its rows of every matrix and its key/value heads. Floats are gathered, never added
 * up across ranks, so the results are the same bits for any number of ranks (docs/ranks.md).
 *
 * Every rank opens the same model with tern_model_params.ranks set. Rank 0 then works with the
 * model as if it were alone. Every other rank calls tern_model_follow, which computes what rank 0
 * asks for until that frees the model. A rank that fails or does not answer in time makes the
 * calls of all others fail with TERN_ERR_RANKS, whose message names it.
 */

#include <stdbool.h>
#include <stdint.h>

#include "tern/status.h"
#include "tern/tern.h"

TERN_API_BEGIN

typedef struct tern_ranks tern_ranks;

enum { TERN_RANKS_MOST = 64 };

/*
 * Makes the process one of several. `how` is
 *   "mpi"   the process was started by mpirun or srun, as one of MPI's world. The module
 *           libtern-mpi.so is opened for it. TERN_ERR_DEVICE: it is not installed, or MPI failed;
 *   "2" ..  the process is copied (fork) until there are so many ranks, which share memory. Before
 *           that it must not have started threads. The copies end when the first process does.
 * limit: seconds after which a rank that does not answer counts as lost, > 0.
 * TERN_ERR_ARG, TERN_ERR_NOMEM.
 */
TERN_MUST_CHECK tern_status tern_ranks_open(const char *how, double limit, tern_ranks **out,
                                            tern_error *err);

/* True if the environment says that mpirun or srun started the process as one of several. */
bool tern_ranks_are_started(void);

uint32_t tern_ranks_rank(const tern_ranks *ranks); /* of this process: 0 .. size - 1 */
uint32_t tern_ranks_size(const tern_ranks *ranks);

/* This rank's share of so many threads: all of them where mpirun gave each rank processors of its
 * own, else a part, since other ranks on this machine have the same. */
uint32_t tern_ranks_share(const tern_ranks *ranks, uint32_t threads);

/* The exchanges of this rank since the ranks were opened. */
typedef struct tern_ranks_work {
    uint64_t gathers; /* exchanges in which every rank gives a part */
    uint64_t bytes;   /* received by this rank */
    double seconds;   /* spent in exchanges, waiting for other ranks included */
    double waiting;   /* of these: until the last of the others had come */
} tern_ranks_work;
tern_ranks_work tern_ranks_done(const tern_ranks *ranks);

/* Ends the others where one is lost; otherwise waits for them. NULL is fine. All models of the
 * ranks must have been freed. */
void tern_ranks_free(tern_ranks **ranks);

/*
 * Computes what rank 0 asks for with this model; returns TERN_OK when rank 0 has freed it. Only
 * ranks other than 0 call this. TERN_ERR_RANKS, TERN_ERR_NOMEM.
 */
TERN_MUST_CHECK tern_status tern_model_follow(tern_model *model, tern_error *err);

TERN_API_END

#endif
