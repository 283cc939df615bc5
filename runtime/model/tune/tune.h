/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_TUNE_TUNE_H
#define TERN_RUNTIME_MODEL_TUNE_TUNE_H

/*
 * If the table allows several layouts and kernels for a matrix, the tuner measures them and chooses
 * the fastest, in place of the table's order. Every candidate gives the same bits, so a choice
 * changes speed alone, and a wrong one does no harm. This file holds what is decided and how;
 * measure.h takes the times, file.h keeps the choices on disk, runtime/model/tune_model.c asks for
 * those of a model. tern_load_list_choose uses them.
 */

#include "runtime/model/tune/guard.h"
#include "runtime/model/tune/layout_rule.h"
#include "runtime/model/tune/pace.h"
#include "tern/kernels.h"
#include "threads/speed.h"

/* The most layouts that could hold a matrix, and the most kernels that could run: the table has 5
 * ternary layouts, and on x86-64 at most 23 kernels of one operation over all of them. */
enum { TERN_TUNE_LAYOUTS = 8, TERN_TUNE_CANDIDATES = 32 };

/* The facts that a choice depends on, besides the machine and the build (file.h). */
typedef struct tern_tune_key {
    tern_format format; /* tern_tune_format of the matrix */
    size_t rows, cols;
    uint32_t threads;
    uint64_t stream; /* bytes of weights that pass between two uses of a matrix: tern_tune_stream */
} tern_tune_key;

typedef struct tern_tune_choice {
    tern_tune_key key;
    tern_layout layout;
    const tern_kernel_row *gemv, *gemm; /* over that layout */
    uint32_t noise; /* of products with one token, when they were measured, in thousandths */
} tern_tune_choice;

/* A set of choices, at most one for a key. Zero-initialise it. */
typedef struct tern_tuning {
    tern_tune_choice *choices; /* [n], owned */
    size_t n, capacity;
    tern_core_speeds cores;     /* of kinds of cores (cores.h); n 0: not known */
    tern_layout_probes layouts; /* probes, from which the rule for ternary layouts follows */
    tern_tune_paces paces;      /* times of runs with the choices */
} tern_tuning;

/* NULL when there is none for the key. `tuning` may be NULL. */
const tern_tune_choice *tern_tuning_find(const tern_tuning *tuning, const tern_tune_key *key);

/* Adds the choice or replaces that of its key. */
TERN_MUST_CHECK tern_status tern_tuning_set(tern_tuning *tuning, const tern_tune_choice *choice,
                                            tern_error *err);

void tern_tuning_free(tern_tuning *tuning);

/*
 * The format that stands for all formats whose products have the candidates of (format, layout):
 * kernels of a packed layout serve every format that it holds, and a ternary matrix has the same
 * candidates in whichever ternary layout it is planned.
 */
tern_format tern_tune_format(tern_format format, tern_layout layout);

/* The key of a matrix that is planned in its usual layout. */
tern_tune_key tern_tune_key_of(const tern_matrix *matrix, uint32_t threads, uint64_t stream);

/*
 * The part of the key that says whether weights come from a cache or from memory: `bytes` that one
 * token reads, rounded up to a power of two, but no more than what is certain to push a matrix out
 * of the caches (cache_bytes, 0: unknown).
 */
uint64_t tern_tune_stream(uint64_t bytes, uint64_t cache_bytes);

/*
 * Kernels that could run `op` for a format of tern_tune_format: the one that the table prefers
 * first, then by layout in the order of the table. A kernel that needs no feature is the last
 * resort of the table: it is a candidate only if there is no other. Returns how many there are.
 */
size_t tern_tune_candidates(const tern_guard *guard, tern_op op, tern_format format,
                            const tern_kernel_row *kernels[TERN_TUNE_CANDIDATES]);

/* True if the choice names a candidate of its key's format for each operation. */
bool tern_tune_is_possible(const tern_guard *guard, const tern_tune_choice *choice);

/*
 * The time of alternative i as a share of number 0's, from seconds[round][n]: the median of the
 * ratios, or the ratio of the best rounds of both if that is nearer to 1. 1 if it leads in less
 * than three rounds of four, or was given up (seconds 0 in any round).
 */
double tern_tune_ratio(const double *seconds, size_t n, size_t rounds, size_t i);

/*
 * The best of n alternatives, from seconds[round][n]: each round measured all of them one after the
 * other, so that a disturbance longer than a round hits all alike. Number 0 is the table's choice;
 * another takes its place when it was faster in three rounds of four, and both its median ratio to
 * number 0 and the ratio of their best rounds are below 1 - margin. Alternatives whose seconds are
 * 0 in the first round were not measured.
 */
size_t tern_tune_pick(const double *seconds, size_t n, size_t rounds, double margin);

/* A lead that noise does not make on a quiet machine: medians repeat there within 1 or 2 %. */
#define TERN_TUNE_MARGIN 0.03

/*
 * True if alternative i has lost to alternative `to` in so many of the first `rounds` rounds that
 * it cannot be faster in three of four of all `most` rounds. To go on with it would change no
 * decision.
 */
bool tern_tune_has_lost(const double *seconds, size_t n, size_t rounds, size_t most, size_t i,
                        size_t to);

/*
 * The difference of two measurements of the same thing on this machine: the median of |b / a - 1|
 * over the rounds, where a is seconds[round][0] of n, and b is again[round], taken at the other end
 * of the same round. 0 if `again` is NULL.
 */
double tern_tune_noise(const double *seconds, size_t n, const double *again, size_t rounds);

/* A ratio or a noise in thousandths, rounded; TERN_LAYOUT_RATIO_LIMIT for more, and for NaN. */
uint32_t tern_tune_thousandths(double share);

/* The times of the candidates of one key: seconds of a product with one token (gemv), and for each
 * token of a batch (gemm), as [round][candidate] in the order of tern_tune_candidates. */
typedef struct tern_tune_times {
    const tern_kernel_row *gemv[TERN_TUNE_CANDIDATES], *gemm[TERN_TUNE_CANDIDATES];
    size_t n_gemv, n_gemm, rounds;
    double *gemv_seconds, *gemm_seconds;
    double *gemv_again, *gemm_again; /* [round] of candidate 0, a second time; or NULL */
} tern_tune_times;

/*
 * Sets the choice that the times suggest. Of each layout the best kernel of either operation
 * counts; of the layouts, the one in which a token of the answer and a token of the prompt together
 * cost least. A lead must exceed the margin, and the noise of the same rounds if that is larger.
 * The choice keeps the noise of products with one token. choice->key is left alone.
 */
void tern_tune_decide(const tern_tune_times *times, double margin, tern_tune_choice *choice);

#endif
