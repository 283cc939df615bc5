/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_FORWARD_STAGES_H
#define TERN_RUNTIME_ENGINE_FORWARD_STAGES_H

/*
 * Where the time of passes goes, by stage and by thread. Every worker has a record with the moment
 * of its last mark; a mark says what it did since: work on a stage, or wait after one for others.
 * So no moment is left out or counted twice: between tern_stages_begin and the end of the last
 * region, work and wait of all stages add up to the same time for each worker.
 *
 * Who measures owns the stages and hands them to a session (tern_session.stages); where that is
 * NULL, each end of a stage costs a look at the pointer. What is measured never changes a result.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/inspect.h"
#include "threads/team.h"

enum { TERN_STAGE_LINE = 64 }; /* bytes of a cache line: no worker writes into another one's */

/* Of one worker, which alone writes it while a region runs. In nanoseconds. */
typedef struct tern_stage_record {
    _Alignas(TERN_STAGE_LINE) uint64_t mark; /* the moment of the last one */
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
 * tern_team_run with what it takes, by a team of s->count workers. Since the last mark of the
 * caller it worked alone and the others waited; what each worker did after the body's own marks is
 * work on `last`, and after the body it waits for the others. Without stages (NULL) tern_team_run.
 */
void tern_stages_run(tern_stages *s, tern_team *team, tern_team_body *body, void *argument,
                     tern_stage last);

/* A worker's marks within a region; nothing without stages (NULL). */
void tern_stages_note_work(tern_stages *s, uint32_t worker, tern_stage stage);
void tern_stages_note_wait(tern_stages *s, uint32_t worker, tern_stage stage);

static inline void tern_stage_end(tern_stages *s, tern_worker worker, tern_stage stage) {
    if (s != NULL)
        tern_stages_note_work(s, worker.index, stage);
}

/* The end of a stage at a barrier. */
static inline void tern_stage_meet(tern_stages *s, tern_worker worker, tern_stage stage) {
    tern_stage_end(s, worker, stage);
    tern_team_barrier(worker);
    if (s != NULL)
        tern_stages_note_wait(s, worker.index, stage);
}

#endif
