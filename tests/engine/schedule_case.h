/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TESTS_ENGINE_SCHEDULE_CASE_H
#define TERN_TESTS_ENGINE_SCHEDULE_CASE_H

/*
 * Scheduling without a clock and without arithmetic. A test takes the engine's place: "computing" a
 * position writes a number that depends on all tokens up to there, so that a page with wrong
 * contents is noticed.
 */

#include "runtime/engine/schedule.h"

enum { MOST = 700, JOBS = 16, PAGES = 30 };

typedef struct schedule_sequence {
    tern_job job;
    int32_t tokens[MOST + 1];
    uint64_t sums[MOST + 2]; /* sums[i] is of the first i tokens */
    uint8_t space[TERN_SPACE_BYTES];
    uint32_t limit; /* it ends with this many tokens */
    bool is_there;
} schedule_sequence;

/* The contents of pages by position, and the name space that wrote them. */
typedef struct schedule_memory {
    uint64_t sums[PAGES][TERN_PAGE];
    uint8_t spaces[PAGES][TERN_PAGE];
} schedule_memory;

enum { WINDOW_PAGES = 18 }; /* four for each of four jobs, and two to spare */

typedef struct schedule_world {
    tern_schedule *schedule;
    tern_pass_costs costs;
    double gap;
    schedule_sequence *sequences;
    schedule_memory *memory, *window_memory; /* the latter for layers with a window */
    uint32_t window;                         /* 0: no layers have a window */
    uint64_t numbers;
    size_t computed, shared, finished, set_aside;
} schedule_world;

/* Parameters of a schedule without windows, and the same with layers that have a window. */
extern const tern_schedule_params schedule_case_small;
tern_schedule_params schedule_case_windowed(uint32_t window);

schedule_world schedule_case_open(tern_schedule_params params);
void schedule_case_close(schedule_world *w);

/* A sequence with n tokens, which ends at `limit` tokens. Families differ in every hundredth token
 * (family % 4) and in their name space (family / 4). */
schedule_sequence *schedule_case_begin(schedule_world *w, size_t at, int32_t family, uint32_t n,
                                       uint32_t limit, uint32_t ahead);
void schedule_case_end(schedule_world *w, schedule_sequence *s);

/* Adds the sequence to the queue. */
void schedule_case_add(schedule_world *w, schedule_sequence *s);

void schedule_case_append(schedule_sequence *s, int32_t token);

/* The token that follows the first n tokens of a sequence. */
int32_t schedule_case_token(const schedule_sequence *s, uint32_t n);

/* Extends the number for some tokens by one more token. */
uint64_t schedule_case_mixed(uint64_t sum, int32_t token);

/* Checks everything that a span's positions see, and writes its own. */
void schedule_case_compute(schedule_world *w, const tern_plan_span *span);

/* Runs a pass; returns its number of rows. */
uint32_t schedule_case_pass(schedule_world *w);

/* Seconds of a pass on the imagined machine. */
double schedule_case_seconds(uint32_t rows);

/* The number of steps that $TERN_TEST_STEPS asks for. */
size_t schedule_case_steps(void);

/* A random walk: sequences arrive, guess and are cancelled. Every pass checks every position that
 * is seen. */
void schedule_case_soak(tern_schedule_params params, size_t steps);

#endif
