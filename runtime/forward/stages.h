/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_FORWARD_STAGES_H
#define TERN_RUNTIME_FORWARD_STAGES_H

/*
 * Where the time of passes goes, by stage and by thread. Every worker has a record with the moment
 * of its last mark; a mark says what it did since: work on a stage, or wait behind one for others.
 * So no moment is left out or counted twice: between tern_stages_begin and the end of the last
 * region, work and wait of all stages add up to the same time for each worker.
 *
 * Who measures owns the stages and hands them to a session (tern_session.stages); where that is
 * NULL, each end of a stage costs a look at the pointer. What is measured never changes a result.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/threads/team.h"

/* X(constant, name in tables and JSON, what it is), in the order of a pass. */
#define TERN_STAGE_LIST(X)                                                                         \
    X(START, "start", "wake the threads")                                                          \
    X(EMBED, "embed", "embedding, angles")                                                         \
    X(NORM, "norm", "residual, norm, quantize")                                                    \
    X(QKV, "qkv", "q, k, v")                                                                       \
    X(ROPE, "rope", "rope, store")                                                                 \
    X(ATTENTION, "attention", "attention")                                                         \
    X(ATTENDED, "attended", "sub-norm, quantize")                                                  \
    X(OUT, "out", "output projection")                                                             \
    X(GATE_UP, "gate_up", "gate, up")                                                              \
    X(ACTIVATION, "activation", "act(gate) * up, sub-norm, quantize")                              \
    X(DOWN, "down", "down projection")                                                             \
    X(HEAD, "head", "all of the head")                                                             \
    X(SCAN, "scan", "int8 scan of the head")                                                       \
    X(ROWS, "rows", "exact rows of the head")                                                      \
    X(ALONE, "alone", "one thread: choice of a token, checks")

typedef enum tern_stage {
#define TERN_STAGE_CONSTANT(constant, name, what) TERN_STAGE_##constant,
    TERN_STAGE_LIST(TERN_STAGE_CONSTANT)
#undef TERN_STAGE_CONSTANT
        TERN_STAGE_COUNT
} tern_stage;

const char *tern_stage_name(tern_stage stage);
const char *tern_stage_what(tern_stage stage);

/* Nanoseconds that never go back; asked by all workers at once. */
typedef uint64_t tern_stage_clock(void *user);

enum { TERN_STAGE_LINE = 64 }; /* bytes of a cache line: no worker writes into another one's */

/* Of one worker, which alone writes it while a region runs. In nanoseconds. */
typedef struct tern_stage_record {
    _Alignas(TERN_STAGE_LINE) uint64_t mark; /* the moment of the last one */
    uint64_t work[TERN_STAGE_COUNT];
    uint64_t wait[TERN_STAGE_COUNT]; /* behind the stage, for who has not finished it */
} tern_stage_record;

typedef struct tern_stages {
    tern_stage_clock *clock;
    void *user;
    uint32_t count;             /* workers of the team */
    tern_stage_record *records; /* [count] owned */
} tern_stages;

/* False without memory. user must outlive the stages. Free in any case. */
bool tern_stages_open(tern_stages *s, uint32_t count, tern_stage_clock *clock, void *user);
void tern_stages_free(tern_stages *s);

/* Forgets everything; from now on is measured. */
void tern_stages_begin(tern_stages *s);

/*
 * tern_team_run with what it takes, by a team of s->count workers. Since the last mark of the
 * caller it worked alone and the others waited; what each worker did behind the body's own marks is
 * work on `last`, and behind the body it waits for the others. Without stages (NULL) tern_team_run.
 */
void tern_stages_run(tern_stages *s, tern_team *team, tern_team_body *body, void *argument,
                     tern_stage last);

/* A worker's marks within a region; nothing without stages (NULL). */
void tern_stages_note_work(tern_stages *s, uint32_t worker, tern_stage stage);
void tern_stages_note_wait(tern_stages *s, uint32_t worker, tern_stage stage);

static inline void tern_stage_end(tern_stages *s, tern_worker worker, tern_stage stage) {
    if (s)
        tern_stages_note_work(s, worker.index, stage);
}

/* The end of a stage at a barrier. */
static inline void tern_stage_meet(tern_stages *s, tern_worker worker, tern_stage stage) {
    tern_stage_end(s, worker, stage);
    tern_team_barrier(worker);
    if (s)
        tern_stages_note_wait(s, worker.index, stage);
}

/* Nanoseconds of a stage, the mean of the workers; between regions only. */
double tern_stages_work(const tern_stages *s, tern_stage stage);
double tern_stages_wait(const tern_stages *s, tern_stage stage);

#endif
