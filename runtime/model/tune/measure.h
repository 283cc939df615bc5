/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_MODEL_TUNE_MEASURE_H
#define TERN_RUNTIME_MODEL_TUNE_MEASURE_H

/*
 * Measures how long the candidates of a matrix take, as they will run: by all threads of the team
 * at once, each with its part of the rows, on weights that come from where the model's will come
 * from. For that the tuner walks through memory of `stream` bytes as decoding walks through a
 * model. The bytes themselves do not matter: no kernel's time depends on values.
 */

#include "runtime/model/tune/tune.h"
#include "threads/team.h"

/* Tokens of a batch with which gemm kernels are measured: the default batch of a session. */
enum { TERN_TUNE_TOKENS = 128 };

typedef struct tern_tune_effort {
    size_t rounds;         /* measurements of each candidate, at most TERN_TUNE_ROUNDS */
    double sample_seconds; /* of one measurement, at least */
    double budget_seconds; /* for all keys together; 0: as long as it takes */
} tern_tune_effort;

enum { TERN_TUNE_ROUNDS = TERN_ESTIMATE_ROUNDS };

/* For the first start of a model; for `tern tune`; and for choices that runs disagree with. */
extern const tern_tune_effort tern_tune_quick, tern_tune_thorough, tern_tune_again;

typedef struct tern_tuner tern_tuner;

/* Makes a tuner that borrows `guard` and `team`; `stream` is as in the key. Takes stream bytes of
 * memory. */
TERN_MUST_CHECK tern_status tern_tuner_new(const tern_guard *guard, tern_team *team,
                                           uint64_t stream, const tern_tune_effort *effort,
                                           tern_tuner **out, tern_error *err);

/* Frees and sets to NULL. NULL and *NULL are fine. */
void tern_tuner_free(tern_tuner **tuner);

/* Puts kernels over this layout first among the candidates: others must lead to be chosen. */
void tern_tuner_prefer(tern_tuner *tuner, tern_layout layout);

/* Sets the function that is asked before each round. True ends the measuring, of all further keys,
 * too. NULL: never. */
void tern_tuner_stop(tern_tuner *tuner, bool (*stop)(void *user), void *user);

/*
 * Compares the layouts of layout_rule.h by products of a rows x cols matrix with one token, and
 * with as many as passes over `together` sequences may have. *probe gets the tuner's threads and
 * stream. False: one of the layouts has only a scalar kernel, memory is short, or it was stopped.
 */
bool tern_tuner_compare(tern_tuner *tuner, size_t rows, size_t cols, uint32_t together,
                        tern_layout_probe *probe);

/*
 * Measures the candidates for a rows x cols matrix of `format`; candidates that cannot win have
 * seconds 0. False: nothing is known, because there are no candidates, the budget is spent, memory
 * is short, or it was stopped. The arrays of *times belong to the tuner, until its next call.
 */
bool tern_tuner_measure(tern_tuner *tuner, tern_format format, size_t rows, size_t cols,
                        tern_tune_times *times);

/* The same for two alternatives alone: what the table prefers, and this choice. */
bool tern_tuner_measure_pair(tern_tuner *tuner, const tern_tune_choice *choice,
                             tern_tune_times *times);

/*
 * Seconds that the team takes for a batch of tokens with the table's own kernel for the format,
 * the least of all rounds; 0: there is none, or memory is short.
 */
double tern_tuner_batch_seconds(tern_tuner *tuner, tern_format format, size_t rows, size_t cols);

#endif
