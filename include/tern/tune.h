/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TUNE_H
#define TERN_TUNE_H

/*
 * Measuring at leisure which kernels and layouts are fastest for the matrices of a model here, and
 * keeping the choices where models look for them (docs/tuning.md). A choice changes speed alone.
 */

#include <stddef.h>
#include <stdint.h>

#include "tern/tern.h"

TERN_API_BEGIN

/* A kernel that could multiply by a matrix. */
typedef struct tern_tune_candidate {
    const tern_kernel_row *row;
    double seconds; /* of one token, the median of all rounds; 0: ruled out before */
    bool chosen;
} tern_tune_candidate;

/* The choice for all matrices of one kind. */
typedef struct tern_tune_result {
    tern_format format;
    size_t rows, cols;
    uint32_t threads;
    uint64_t stream;                       /* bytes of weights between two uses of a matrix */
    tern_layout layout;                    /* the choice: this, and two kernels */
    const tern_kernel_row *gemv, *gemm;    /* NULL: there was no memory to measure */
    const tern_tune_candidate *candidates; /* [n], those of gemv first */
    size_t n;
} tern_tune_result;

/* Called for each kind of matrices; the result is gone when it returns. */
typedef void tern_tune_report(const tern_tune_result *result, void *user);

/* Measurements for one model, which must outlive them. */
typedef struct tern_tune_run tern_tune_run;

TERN_MUST_CHECK tern_status tern_tune_run_new(const tern_model *model, tern_tune_run **out,
                                              tern_error *err);
void tern_tune_run_free(tern_tune_run **run); /* NULL and *NULL are fine */

/*
 * Measures every kind of matrix with this number of threads, which takes seconds for each; kinds
 * whose layout was asked for are left out. Only their shapes matter: a model without weights will
 * do.
 */
TERN_MUST_CHECK tern_status tern_tune_measure(tern_tune_run *run, uint32_t threads,
                                              tern_tune_report *report, void *user,
                                              tern_error *err);

/* Choices so far: one for each kind and number of threads. */
size_t tern_tune_count(const tern_tune_run *run);

/*
 * The folder that choices are kept in, which is made if need be: TERN_ERR_IO when it cannot be, or
 * when nothing can be written there. tern_tune_keep writes the choices, and those that others have
 * written meanwhile.
 */
TERN_MUST_CHECK tern_status tern_tune_open_folder(tern_tune_run *run, const char *path,
                                                  tern_error *err);
TERN_MUST_CHECK tern_status tern_tune_keep(const tern_tune_run *run, tern_error *err);

/* The whole path of the folder; NULL before it is open. */
const char *tern_tune_folder(const tern_tune_run *run);

/* ---- after an answer --------------------------------------------------------------------------
 */

/* Asked between two rounds of measurements, each of milliseconds; true ends them. */
typedef bool tern_tune_stop(void *user);

/* The outcome. */
typedef struct tern_tune_news {
    size_t measured; /* kinds of matrices that had no choice and have one now */
    size_t again;    /* whose choice was measured again, because runs disagreed with it */
    size_t changed;  /* of these, choices that are others now */
    bool stopped;    /* there may be more to do */
    double seconds;
} tern_tune_news;

/*
 * For a model that was opened with tune_later: measures the kernels that it has no choice for, and
 * again those that runs disagree with, and keeps the choices in its cache for models opened later.
 * This one stays as it is. For moments in which nothing else of the process computes: it takes a
 * team of threads, and some tenths of a second at most. Nothing is measured without a cache, or
 * where all is known. `stop` NULL: never. TERN_ERR_NULL, TERN_ERR_NOMEM.
 */
TERN_MUST_CHECK tern_status tern_model_tune(const tern_model *model, tern_tune_stop *stop,
                                            void *user, tern_tune_news *news, tern_error *err);

/*
 * Tells the tuner how long a token took, the median of a run of this model: `tokens` of them, one
 * in each pass, up to position `end`. Where later runs with tuned kernels take longer than earlier
 * ones with the table's, tern_model_tune measures again. Runs that are short, or end far into a
 * context, say nothing; nor do those of a model without tune_later or cache.
 */
void tern_model_note_pace(const tern_model *model, size_t tokens, size_t end, double token_seconds);

TERN_API_END

#endif
