/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_ENGINE_SCHEDULE_CASE_H
#define TERN_TESTS_ENGINE_SCHEDULE_CASE_H

/*
 * Scheduling without a clock and without arithmetic. A test stands for the engine: "computing" a
 * position writes a number that depends on all tokens up to there, so that a page which does not
 * hold what its sequence needs is noticed.
 */

#include "runtime/engine/schedule.h"

enum { MOST = 700, JOBS = 16, PAGES = 30 };

typedef struct schedule_sequence {
    tern_job job;
    int32_t tokens[MOST + 1];
    uint64_t sums[MOST + 2]; /* of the first i tokens */
    uint8_t space[TERN_SPACE_BYTES];
    uint32_t limit; /* tokens when it ends */
    bool is_there;
} schedule_sequence;

/* What the positions of pages hold, and which space wrote it. */
typedef struct schedule_memory {
    uint64_t sums[PAGES][TERN_PAGE];
    uint8_t spaces[PAGES][TERN_PAGE];
} schedule_memory;

enum { WINDOW_PAGES = 18 }; /* four jobs have four each, and two are left */

typedef struct schedule_world {
    tern_schedule *schedule;
    tern_pass_costs costs;
    double gap;
    schedule_sequence *sequences;
    schedule_memory *memory, *window_memory; /* of layers with a window */
    uint32_t window;                         /* 0: no layers have pages apart */
    uint64_t numbers;
    size_t computed, shared, finished, set_aside;
} schedule_world;

/* Of all layers; the same, in which layers have a window. */
extern const tern_schedule_params schedule_case_small;
tern_schedule_params schedule_case_windowed(uint32_t window);

schedule_world schedule_case_open(tern_schedule_params params);
void schedule_case_close(schedule_world *w);

/* A sequence of n tokens of a family that begin alike, which ends with `limit` tokens. */
schedule_sequence *schedule_case_begin(schedule_world *w, size_t at, int32_t family, uint32_t n,
                                       uint32_t limit, uint32_t ahead);
void schedule_case_end(schedule_world *w, schedule_sequence *s);

/* Lets it wait. */
void schedule_case_add(schedule_world *w, schedule_sequence *s);

void schedule_case_append(schedule_sequence *s, int32_t token);

/* What follows the first n tokens of a sequence. */
int32_t schedule_case_token(const schedule_sequence *s, uint32_t n);

/* The number of some tokens and one more. */
uint64_t schedule_case_mixed(uint64_t sum, int32_t token);

/* Looks at all that a span's positions see, and writes its own. */
void schedule_case_compute(schedule_world *w, const tern_plan_span *span);

/* A pass; returns its rows. */
uint32_t schedule_case_pass(schedule_world *w);

/* Seconds of a pass on the machine that the tests think of. */
double schedule_case_seconds(uint32_t rows);

/* How many steps $TERN_TEST_STEPS asks for. */
size_t schedule_case_steps(void);

/* A random walk: sequences arrive, guess, are cancelled, and every position that is seen is looked
 * at in every pass. */
void schedule_case_soak(tern_schedule_params params, size_t steps);

#endif
