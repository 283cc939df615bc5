/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_SPEED_SEQUENCES_H
#define TERN_TOOLS_SPEED_SEQUENCES_H

/*
 * Many sequences at once on an engine: their speed when they decode together, and the effect of a
 * long prompt that arrives meanwhile. Value i of each series belongs to round i.
 */

#include "tools/speed/series.h"

/* n sequences after the main point's depth. Every pass picks a token for each of them. */
typedef struct bench_sequences {
    size_t n;
    series tps;            /* tokens per second of all of them together */
    series p50_ms, p95_ms; /* between two tokens of a sequence */
} bench_sequences;

/* The effect on n decoding sequences of a prompt that arrives. */
typedef struct bench_arrival {
    size_t n;
    series before_p50_ms, before_p95_ms; /* between two tokens of a sequence before it arrives */
    series during_p50_ms, during_p95_ms; /* the same until it is read */
    series first_ms;                     /* from its arrival to its first token */
} bench_arrival;

struct bench;

/*
 * Measures b->sequences in --repeat rounds, and the arrival of a prompt at each of them if that is
 * asked for. Every sequence must give the same digest as alone. EXIT_DONE, or the exit status after
 * a complaint.
 */
int bench_measure_sequences(struct bench *b);

/* Positions that each sequence of b->sequences needs. */
size_t bench_sequence_end(const struct bench *b);

#endif
