/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_THREADS_STAGES_H
#define TERN_THREADS_STAGES_H

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
#include "threads/worker.h"

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

/* Counts the time since the worker's last mark as `spent`. */
static inline void tern_stage_mark(tern_stage_record *r, uint64_t *spent, uint64_t now) {
    *spent += now - r->mark;
    r->mark = now;
}

/* A worker's marks within a region; s must not be NULL. */
static inline void tern_stages_note_work(tern_stages *s, uint32_t worker, tern_stage stage) {
    tern_stage_record *r = &s->records[worker];
    tern_stage_mark(r, &r->work[stage], s->clock(s->user));
}
static inline void tern_stages_note_wait(tern_stages *s, uint32_t worker, tern_stage stage) {
    tern_stage_record *r = &s->records[worker];
    tern_stage_mark(r, &r->wait[stage], s->clock(s->user));
}

static inline void tern_stage_end(tern_stages *s, tern_worker worker, tern_stage stage) {
    if (s != NULL)
        tern_stages_note_work(s, worker.index, stage);
}

/* Ends a stage at a barrier. */
static inline void tern_stage_meet(tern_stages *s, tern_worker worker, tern_stage stage) {
    tern_stage_end(s, worker, stage);
    tern_worker_meet(worker);
    if (s != NULL)
        tern_stages_note_wait(s, worker.index, stage);
}

#endif
