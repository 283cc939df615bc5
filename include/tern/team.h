/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TEAM_H
#define TERN_TEAM_H

/*
 * A team of threads that runs one body at a time: the caller is worker 0. Between the steps of a
 * body the workers meet at barriers. Waiting threads spin briefly and then sleep. How work is split
 * never changes a result.
 */

#include <stddef.h>
#include <stdint.h>

#include "tern/status.h"

TERN_API_BEGIN

typedef struct tern_team tern_team;

typedef struct tern_worker {
    tern_team *team;
    uint32_t index; /* 0 .. count-1 */
    uint32_t count;
} tern_worker;

typedef void tern_team_body(tern_worker worker, void *argument);

/*
 * Starts threads - 1 threads, threads >= 1; fewer where the system refuses them (memory, a limit on
 * processes), which no result depends on: tern_team_size tells.
 */
TERN_MUST_CHECK tern_status tern_team_new(uint32_t threads, tern_team **out, tern_error *err);

/* Stops and joins the threads. NULL and *NULL are fine. */
void tern_team_free(tern_team **team);

uint32_t tern_team_size(const tern_team *team);

/* Runs body on every worker and returns when all have finished. Not reentrant. */
void tern_team_run(tern_team *team, tern_team_body *body, void *argument);

/* Called by every worker of a running body: returns when all have come. */
void tern_team_barrier(tern_worker worker);

/*
 * This worker's part [begin, end) of `count` items in multiples of `unit`. Parts follow each other
 * in the order of the workers; their sizes follow the workers' shares, which are equal but where
 * cores differ. A single unit is worker 0's.
 */
typedef struct tern_part {
    size_t begin, end;
} tern_part;
tern_part tern_team_split(tern_worker worker, size_t count, size_t unit);

/* Processors that this process may use, at least 1. */
uint32_t tern_processor_count(void);

TERN_API_END

#endif
