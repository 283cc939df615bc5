/* SPDX-License-Identifier: Apache-2.0 */

/* The part of tern/tune.h that measures all kinds of a model's matrices thoroughly. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/model/tune/file.h"
#include "runtime/model/tune_model.h"
#include "tern/tune.h"

struct tern_tune_run {
    const tern_model *model;
    tern_tuning choices;
    tern_cache_folder *folder; /* NULL: not open yet */
};

tern_status tern_tune_run_new(const tern_model *model, tern_tune_run **out, tern_error *err) {
    if (model == NULL || out == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_tune_run_new needs a model and a place");
    tern_tune_run *run = calloc(1, sizeof *run);
    if (run == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory to tune");
    run->model = model;
    *out = run;
    return TERN_OK;
}

void tern_tune_run_free(tern_tune_run **run) {
    if (run == NULL || *run == NULL)
        return;
    tern_cache_folder_close(&(*run)->folder);
    tern_tuning_free(&(*run)->choices);
    free(*run);
    *run = NULL;
}

/* ---- measuring ------------------------------------------------------------------------------- */

/* The median time of candidate i of n. */
static double median(const double *seconds, size_t n, size_t rounds, size_t i) {
    double column[TERN_TUNE_ROUNDS];
    for (size_t r = 0; r < rounds; r++)
        column[r] = seconds[r * n + i];
    return tern_estimate_median(column, rounds);
}

/* Writes the candidates for one operation, with the time that each took; returns how many. */
static size_t take_times(const tern_kernel_row *const *kernels, size_t n, const double *seconds,
                         size_t rounds, const tern_kernel_row *chosen, tern_tune_candidate *out) {
    for (size_t i = 0; i < n; i++)
        out[i] = (tern_tune_candidate){.row = kernels[i],
                                       .seconds = median(seconds, n, rounds, i),
                                       .chosen = kernels[i] == chosen};
    return n;
}

static tern_tune_result result_of(const tern_tune_key *key) {
    return (tern_tune_result){.format = key->format,
                              .rows = key->rows,
                              .cols = key->cols,
                              .threads = key->threads,
                              .stream = key->stream};
}

/* Measures one kind of matrices, decides, and reports. */
static tern_status measure_key(tern_tune_run *run, tern_tuner *tuner, const tern_tune_key *key,
                               tern_tune_report *report, void *user, tern_error *err) {
    tern_tune_candidate candidates[2 * TERN_TUNE_CANDIDATES];
    tern_tune_result result = result_of(key);
    tern_tune_choice choice = {.key = *key};
    tern_tune_times times;
    if (!tern_tuner_measure(tuner, key->format, key->rows, key->cols, &times)) {
        report(&result, user);
        return TERN_OK;
    }
    tern_tune_decide(&times, TERN_TUNE_MARGIN, &choice);
    result.n = take_times(times.gemv, times.n_gemv, times.gemv_seconds, times.rounds, choice.gemv,
                          candidates);
    result.n += take_times(times.gemm, times.n_gemm, times.gemm_seconds, times.rounds, choice.gemm,
                           candidates + result.n);
    result.candidates = candidates;
    result.layout = choice.layout;
    result.gemv = choice.gemv;
    result.gemm = choice.gemm;
    report(&result, user);
    return tern_tuning_set(&run->choices, &choice, err);
}

static tern_status measure_with(tern_tune_run *run, tern_team *team, tern_tune_report *report,
                                void *user, tern_error *err) {
    tern_tune_key keys[TERN_TUNE_KEYS];
    tern_tuner *tuner = NULL;
    const size_t n = tern_tune_keys(run->model, tern_team_size(team), keys);
    tern_status status = tern_tuner_new(&run->model->guard, team, tern_tune_stream_of(run->model),
                                        &tern_tune_thorough, &tuner, err);
    for (size_t i = 0; status == TERN_OK && i < n; i++)
        status = measure_key(run, tuner, &keys[i], report, user, err);
    tern_tuner_free(&tuner);
    return status;
}

tern_status tern_tune_measure(tern_tune_run *run, uint32_t threads, tern_tune_report *report,
                              void *user, tern_error *err) {
    tern_team *team = NULL;
    if (run == NULL || report == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_tune_measure needs a run and a report");
    tern_status status = tern_team_new(threads, &team, err);
    if (status == TERN_OK)
        status = measure_with(run, team, report, user, err);
    tern_team_free(&team);
    return status;
}

size_t tern_tune_count(const tern_tune_run *run) {
    return run->choices.n;
}

/* ---- keeping --------------------------------------------------------------------------------- */

tern_status tern_tune_open_folder(tern_tune_run *run, const char *path, tern_error *err) {
    if (run == NULL || path == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_tune_open_folder needs a run and a path");
    if (run->folder != NULL)
        return tern_fail(err, TERN_ERR_STATE, "%s: a folder is open already", path);
    const tern_status status = tern_cache_folder_open(path, &run->folder, err);
    if (status == TERN_OK && access(path, W_OK) != 0)
        return tern_fail(err, TERN_ERR_IO, "%s: no choices can be kept there: %s", path,
                         strerror(errno));
    return status;
}

const char *tern_tune_folder(const tern_tune_run *run) {
    return run->folder != NULL ? tern_cache_folder_path(run->folder) : NULL;
}

tern_status tern_tune_keep(const tern_tune_run *run, tern_error *err) {
    if (run == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_tune_keep needs a run");
    if (run->folder == NULL)
        return tern_fail(err, TERN_ERR_STATE, "choices are kept in a folder that is open");
    return tern_tune_save(run->folder, &run->model->guard, &run->choices, err);
}
