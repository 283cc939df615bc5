/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_SPEED_STAGES_H
#define TERN_TOOLS_SPEED_STAGES_H

/*
 * The time of a token by stages, and the bytes that each stage reads for it. Value i of each series
 * belongs to round i, in milliseconds per token. In a round, work and wait of all stages plus the
 * time outside add up to the whole.
 */

#include <stddef.h>

#include "tern/inspect.h"
#include "tools/speed/series.h"

typedef struct bench_stage {
    series work_ms, wait_ms; /* averaged over the threads */
    double bytes;            /* of weights or of the cache, read per token */
    double weights;          /* multiplied per token */
} bench_stage;

typedef struct bench_stages {
    size_t tokens;           /* per round; 0: not measured */
    uint32_t threads;        /* of the team */
    series whole_ms;         /* of the whole call, measured by the caller */
    series work_ms, wait_ms; /* of all stages */
    series outside_ms;       /* whole - work - wait */
    bench_stage stage[TERN_STAGE_COUNT];
} bench_stages;

/* Both kinds of passes: the prompt, and decoding after the main point's depth. */
typedef struct bench_all_stages {
    bench_stages prefill, decode;
} bench_all_stages;

/* True if a stage was seen: not all models and passes have all stages. */
bool bench_stage_ran(const bench_stage *s);

/* 1e9 bytes, and 1e9 weights, per second of the stage's work. */
double bench_stage_gbs(const bench_stage *s);
double bench_stage_gweights(const bench_stage *s);

#endif
