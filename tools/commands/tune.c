/* SPDX-License-Identifier: Apache-2.0 */
/* tern tune: the kernels and layouts that are fastest here, measured at leisure and kept. */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/metrics.h"
#include "dispatch/cpu.h"
#include "runtime/model/tune_model.h"
#include "runtime/tune/file.h"
#include "tools/cli/out.h"
#include "tools/commands/commands.h"
#include "tools/model/json.h"
#include "tools/model/loader.h"
#include "tools/model/model_hint.h"

typedef struct tuning_run {
    const options *o;
    tern_model *model;
    tern_tuning choices;
    tern_cache_folder *folder;
    bool json;
    json_t *list; /* of all keys */
} tuning_run;

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of candidate i; 0 when it was ruled out. */
static double median(const double *seconds, size_t n, size_t rounds, size_t i) {
    double column[TERN_TUNE_ROUNDS];
    for (size_t r = 0; r < rounds; r++) {
        column[r] = seconds[r * n + i];
    }
    qsort(column, rounds, sizeof *column, compare);
    return column[rounds / 2];
}

/* What is said of one candidate. */
typedef struct figure {
    const tern_kernel_row *row;
    double seconds;  /* of one token; 0: ruled out */
    double gweights; /* G weights/s, times tokens */
    double gbs;      /* of weights, read once for each sample; gemv only */
    bool chosen;
} figure;

static figure figure_of(const tern_tune_key *key, const tern_kernel_row *row, double seconds,
                        const tern_tune_choice *choice) {
    const double weights = (double)key->rows * (double)key->cols;
    const tern_format_info *info = tern_format_describe(row->format);
    const size_t packed = tern_packed_bytes(row->layout, key->rows, key->cols);
    const double bytes =
        packed > 0 ? (double)packed : weights / info->block_elements * info->block_bytes;
    figure f = {
        .row = row, .seconds = seconds, .chosen = row == choice->gemv || row == choice->gemm};
    if (seconds > 0.0) {
        f.gweights = weights / seconds * 1e-9;
        f.gbs = row->op == TERN_OP_GEMV ? bytes / seconds * 1e-9 : 0.0;
    }
    return f;
}

static void print_figure(const figure *f) {
    if (f->seconds <= 0.0) {
        return; /* ruled out before it was measured as the others were */
    }
    if (f->gbs > 0.0) {
        out_print("  %-36s %7.1f us %12.1f %8.1f%s\n", f->row->name, 1e6 * f->seconds, f->gweights,
                  f->gbs, f->chosen ? "  chosen" : "");
    } else {
        out_print("  %-36s %7.1f us %12.1f %8s%s\n", f->row->name, 1e6 * f->seconds, f->gweights,
                  "", f->chosen ? "  chosen" : "");
    }
}

static json_t *figure_json(const figure *f) {
    return json_pack("{s:s, s:s, s:o, s:o, s:b, s:b}", "kernel", f->row->name, "layout",
                     tern_layout_name(f->row->layout), "seconds", json_number(f->seconds),
                     "gweights_per_second", json_number(f->gweights), "measured", f->seconds > 0.0,
                     "chosen", f->chosen);
}

/* Prints or collects the candidates of one key. */
static void report(tuning_run *t, const tern_tune_times *times, const tern_tune_choice *choice) {
    const tern_tune_key *key = &choice->key;
    const size_t n = times->n_gemv + times->n_gemm;
    json_t *list = json_array();
    if (!t->json) {
        out_print("%s %zu x %zu, %u thread%s: %s\n", tern_format_describe(key->format)->name,
                  key->rows, key->cols, key->threads, key->threads > 1 ? "s" : "",
                  tern_layout_name(choice->layout));
    }
    for (size_t i = 0; i < n; i++) {
        const size_t k = i < times->n_gemv ? i : i - times->n_gemv;
        const bool gemv = i < times->n_gemv;
        const double seconds = gemv ? median(times->gemv_seconds, times->n_gemv, times->rounds, k)
                                    : median(times->gemm_seconds, times->n_gemm, times->rounds, k);
        const figure f = figure_of(key, gemv ? times->gemv[k] : times->gemm[k], seconds, choice);
        if (!t->json) {
            print_figure(&f);
        }
        json_array_append_new(list, figure_json(&f));
    }
    json_array_append_new(
        t->list,
        json_pack("{s:s, s:I, s:I, s:I, s:I, s:s, s:s, s:s, s:o}", "format",
                  tern_format_describe(key->format)->name, "rows", (json_int_t)key->rows, "cols",
                  (json_int_t)key->cols, "threads", (json_int_t)key->threads, "stream",
                  (json_int_t)key->stream, "layout", tern_layout_name(choice->layout), "gemv",
                  choice->gemv->name, "gemm", choice->gemm->name, "candidates", list));
}

/* All keys of the model for one number of threads. */
static int tune_with(tuning_run *t, tern_team *team) {
    tern_tune_key keys[TERN_TUNE_KEYS];
    tern_tuner *tuner = NULL;
    tern_tune_times times;
    tern_error err = {0};
    const size_t n = tern_tune_keys(t->model, tern_team_size(team), keys);
    tern_status status = tern_tuner_new(&t->model->guard, team, tern_tune_stream_of(t->model),
                                        &tern_tune_thorough, &tuner, &err);
    for (size_t i = 0; status == TERN_OK && i < n; i++) {
        tern_tune_choice choice = {.key = keys[i]};
        if (!tern_tuner_measure(tuner, keys[i].format, keys[i].rows, keys[i].cols, &times)) {
            complain("no room to measure %zu x %zu: the table decides", keys[i].rows, keys[i].cols);
            continue;
        }
        tern_tune_decide(&times, TERN_TUNE_MARGIN, &choice);
        report(t, &times, &choice);
        status = tern_tuning_set(&t->choices, &choice, &err);
    }
    tern_tuner_free(&tuner);
    return status == TERN_OK ? EXIT_DONE : complain_error(&err);
}

static int tune_all(tuning_run *t) {
    const uint64_t asked = options_integer(t->o, OPT_THREADS);
    const uint32_t most = asked > 0 ? (uint32_t)asked : tern_processor_count();
    int status = EXIT_DONE;
    if (!t->json) {
        out_print("%s, %s\n%-38s %10s %12s %8s\n", tern_cpu_name(), tern_model_isa(t->model), "",
                  "a token", "G weights/s", "GB/s");
    }
    for (uint32_t threads = 1; status == EXIT_DONE && threads <= most; threads++) {
        tern_team *team = NULL;
        tern_error err = {0};
        status = tern_team_new(threads, &team, &err) == TERN_OK ? tune_with(t, team)
                                                                : complain_error(&err);
        tern_team_free(&team);
    }
    return status;
}

/* The folder to keep choices in; EXIT_DONE, or the exit status after a complaint. */
static int open_folder(tuning_run *t) {
    char path[PATH_MAX];
    const char *where = loader_cache(t->o, path);
    tern_error err = {0};
    if (where == NULL) {
        complain("no folder to keep the choices in: use --cache-dir FOLDER or set HOME");
        return EXIT_FAILED;
    }
    if (tern_cache_folder_open(where, &t->folder, &err) != TERN_OK) {
        return complain_error(&err);
    }
    if (access(where, W_OK) != 0) { /* said now, not when all is measured */
        complain("%s: no choices can be kept there: %s", where, strerror(errno));
        return EXIT_FAILED;
    }
    return EXIT_DONE;
}

static int finish(tuning_run *t) {
    tern_error err = {0};
    const char *where = tern_cache_folder_path(t->folder);
    if (tern_tune_save(t->folder, &t->model->guard, &t->choices, &err) != TERN_OK) {
        return complain_error(&err);
    }
    if (t->json) {
        return json_print(json_pack("{s:o, s:s, s:o, s:O}", "processor",
                                    json_text(tern_cpu_name(), strlen(tern_cpu_name())), "isa",
                                    tern_model_isa(t->model), "folder",
                                    json_text(where, strlen(where)), "choices", t->list));
    }
    out_print("%zu choices kept in %s\n", t->choices.n, where);
    return EXIT_DONE;
}

static int tune_model(tuning_run *t, const char *path) {
    tern_model_params params = tern_model_params_default();
    tern_error err = {0};
    params.isa = options_text(t->o, OPT_ISA);
    params.disable = options_text(t->o, OPT_DISABLE);
    params.no_weights = true;
    if (tern_model_open(path, &params, &t->model, &err) != TERN_OK) {
        return complain_of_model(path, t->o->model_may_be_prompt, &err);
    }
    int status = open_folder(t);
    if (status == EXIT_DONE) {
        status = tune_all(t);
    }
    return status == EXIT_DONE ? finish(t) : status;
}

int cmd_tune(const options *o) {
    tuning_run t = {.o = o, .json = options_switch(o, OPT_JSON)};
    uint64_t mask;
    const int checked = loader_check_isa(o, &mask);
    if (checked != EXIT_DONE) {
        return checked;
    }
    const char *path = loader_model_path(o, true);
    if (path == NULL) {
        return EXIT_USAGE;
    }
    t.list = json_array();
    const int status = tune_model(&t, path);
    json_decref(t.list);
    tern_cache_folder_close(&t.folder);
    tern_tuning_free(&t.choices);
    tern_model_free(&t.model);
    return status;
}
