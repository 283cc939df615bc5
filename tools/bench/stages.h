/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_BENCH_STAGES_H
#define TERN_TOOLS_BENCH_STAGES_H

/*
 * Where the time of a token goes, and what each stage reads for it. Value i of each series is of
 * round i, in milliseconds a token: of a round, work and wait of all stages and what is outside of
 * them are its whole.
 */

#include <stddef.h>

#include "tern/inspect.h"
#include "tools/bench/series.h"

typedef struct bench_stage {
    series work_ms, wait_ms; /* the mean of the threads */
    double bytes;            /* of weights or of the cache, read for a token */
    double weights;          /* multiplied for a token */
} bench_stage;

typedef struct bench_stages {
    size_t tokens;           /* of a round; 0: not measured */
    uint32_t threads;        /* of the team */
    series whole_ms;         /* around it all, by the caller */
    series work_ms, wait_ms; /* of all stages */
    series outside_ms;       /* whole - work - wait */
    bench_stage stage[TERN_STAGE_COUNT];
} bench_stages;

/* Both kinds of passes: the prompt, and decoding after the main point's depth. */
typedef struct bench_all_stages {
    bench_stages prefill, decode;
} bench_all_stages;

/* Whether anything was seen of a stage: models and passes have not all of them. */
bool bench_stage_ran(const bench_stage *s);

/* 1e9 bytes, and weights, a second of the stage's work. */
double bench_stage_gbs(const bench_stage *s);
double bench_stage_gweights(const bench_stage *s);

#endif
