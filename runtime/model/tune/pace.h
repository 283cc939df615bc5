/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_TUNE_PACE_H
#define TERN_RUNTIME_MODEL_TUNE_PACE_H

/*
 * The times of runs check the tuner's choices. A first run decodes with the table's kernels,
 * because it is tuned after its answer; later runs decode with the chosen ones. If tokens of later
 * runs take longer than those of the first, the tuner was wrong, and its choice is measured again
 * against the table's. For each kind of run the least time of a token counts: a busy machine only
 * adds to it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The times for models of one shape and a number of threads. */
typedef struct tern_tune_pace {
    uint32_t threads;
    uint64_t shape;     /* a hash of its matrices (tune_later.c) */
    uint64_t table_ns;  /* of a token in runs with the table's kernels; 0: there was none */
    uint64_t chosen_ns; /* ... with what the tuner chose */
    uint32_t runs;      /* runs with what it chose, counted to TERN_TUNE_PACE_RUNS */
    uint32_t rechecks;  /* how often the choices were measured again */
} tern_tune_pace;

enum {
    TERN_TUNE_PACES = 16,           /* kept for one machine; the newest */
    TERN_TUNE_PACE_RUNS = 2,        /* with chosen kernels, before they can be doubted */
    TERN_TUNE_PACE_TOKENS = 16,     /* of a run, at least */
    TERN_TUNE_PACE_POSITIONS = 512, /* of its context, at most: more take longer */
    TERN_TUNE_RECHECKS = 3          /* then the choice stays, whatever runs say */
};

/* Longer than any token takes. */
#define TERN_TUNE_PACE_LIMIT INT64_C(1000000000000)

/* Notes a run's time of a token; `chosen`: with what the tuner chose, not the table's kernels.
 * False: it says nothing new, because it is not clearly less than the known time. */
bool tern_tune_pace_note(tern_tune_pace *pace, bool chosen, uint64_t token_ns);

/*
 * True if runs contradict the choices: in several runs a token took longer than with the table's
 * kernels, by more than the noise that the tuner measured (thousandths) and more than its margin.
 */
bool tern_tune_pace_disagrees(const tern_tune_pace *pace, uint32_t noise);

/* Forgets the times of choices that were replaced. */
void tern_tune_pace_renew(tern_tune_pace *pace);

/* Paces of several models. Zero-initialise it. */
typedef struct tern_tune_paces {
    tern_tune_pace list[TERN_TUNE_PACES];
    size_t n;
} tern_tune_paces;

/* NULL: there is none. */
const tern_tune_pace *tern_tune_pace_find(const tern_tune_paces *paces, uint32_t threads,
                                          uint64_t shape);

/*
 * Adds a pace or replaces the one of its threads and shape. If the list is full, the oldest goes.
 */
void tern_tune_pace_keep(tern_tune_paces *paces, const tern_tune_pace *pace);

#endif
