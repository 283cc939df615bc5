/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_FORWARD_STAGES_H
#define TERN_RUNTIME_ENGINE_FORWARD_STAGES_H

/*
 * The time of passes, by stage and by thread. Every worker has a record with the moment of its last
 * mark. Each mark says what the worker did since then: it worked on a stage, or waited after one
 * for others. So no moment is left out or counted twice: between tern_stages_begin and the end of
 * the last region, work and wait of all stages add up to the same time for each worker.
 *
 * The caller that measures owns the stages and hands them to a session (tern_session_watch);
 * without them each end of a stage costs one test of the pointer. A measurement never changes a
 * result.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/inspect.h"
#include "threads/team.h"

enum { TERN_STAGE_LINE = 64 }; /* bytes of a cache line: no two workers write to the same one */

/* The record of one worker, the only one that writes it while a region runs. In nanoseconds. */
typedef struct tern_stage_record {
    _Alignas(TERN_STAGE_LINE) uint64_t mark; /* the moment of the last mark */
    uint64_t work[TERN_STAGE_COUNT];
    uint64_t wait[TERN_STAGE_COUNT]; /* after the stage, for workers that have not finished it */
} tern_stage_record;

struct tern_stages {
    tern_stage_clock *clock;
    void *user;
    uint32_t count;             /* workers of the team */
    tern_stage_record *records; /* [count] owned */
};

/*
 * Runs tern_team_run and measures it, for a team of s->count workers. The time since the caller's
 * last mark counts as work of the caller alone, during which the others waited. The time of each
 * worker after the body's own marks counts as work on `last`; after the body a worker waits for the
 * others. Without stages (NULL) it is just tern_team_run.
 */
void tern_stages_run(tern_stages *s, tern_team *team, tern_team_body *body, void *argument,
                     tern_stage last);

/* A worker's marks within a region; s must not be NULL. */
void tern_stages_note_work(tern_stages *s, uint32_t worker, tern_stage stage);
void tern_stages_note_wait(tern_stages *s, uint32_t worker, tern_stage stage);

static inline void tern_stage_end(tern_stages *s, tern_worker worker, tern_stage stage) {
    if (s != NULL)
        tern_stages_note_work(s, worker.index, stage);
}

/* Ends a stage at a barrier. */
static inline void tern_stage_meet(tern_stages *s, tern_worker worker, tern_stage stage) {
    tern_stage_end(s, worker, stage);
    tern_team_barrier(worker);
    if (s != NULL)
        tern_stages_note_wait(s, worker.index, stage);
}

#endif
