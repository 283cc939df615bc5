/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tern tune: measures thoroughly which kernels and layouts are fastest here, and saves the choices.
 */

#include <string.h>

#include "tern/processor.h"
#include "tern/team.h"
#include "tern/tune.h"
#include "tools/cli/json_line.h"
#include "tools/cli/output.h"
#include "tools/commands/commands.h"
#include "tools/load/loader.h"
#include "tools/load/model_hint.h"

typedef struct tuning_run {
    const options *o;
    tern_model *model;
    tern_tune_run *run;
    bool json;
    json_t *list; /* for all kinds of matrices */
} tuning_run;

/* The figures of one candidate. */
typedef struct figure {
    double gweights; /* 1e9 weights per second, counted once per token */
    double gbs;      /* of weights, read once per sample; gemv only */
} figure;

static figure figure_of(const tern_tune_result *r, const tern_tune_candidate *c) {
    const double weights = (double)r->rows * (double)r->cols;
    const tern_format_info *info = tern_format_describe(c->row->format);
    const size_t packed = tern_packed_bytes(c->row->layout, r->rows, r->cols);
    const double bytes =
        packed > 0 ? (double)packed : weights / info->block_elements * info->block_bytes;
    figure f = {0.0, 0.0};
    if (c->seconds > 0.0) {
        f.gweights = weights / c->seconds * 1e-9;
        f.gbs = c->row->op == TERN_OP_GEMV ? bytes / c->seconds * 1e-9 : 0.0;
    }
    return f;
}

static void print_candidate(const tern_tune_candidate *c, const figure *f) {
    if (c->seconds <= 0.0)
        return; /* excluded before it was measured as often as the others */
    if (f->gbs > 0.0) {
        out_print("  %-36s %7.1f us %12.1f %8.1f%s\n", c->row->name, 1e6 * c->seconds, f->gweights,
                  f->gbs, c->chosen ? "  chosen" : "");
    } else {
        out_print("  %-36s %7.1f us %12.1f %8s%s\n", c->row->name, 1e6 * c->seconds, f->gweights,
                  "", c->chosen ? "  chosen" : "");
    }
}

static json_t *candidate_json(const tern_tune_candidate *c, const figure *f) {
    return json_pack("{s:s, s:s, s:o, s:o, s:b, s:b}", "kernel", c->row->name, "layout",
                     tern_layout_name(c->row->layout), "seconds", json_number(c->seconds),
                     "gweights_per_second", json_number(f->gweights), "measured", c->seconds > 0.0,
                     "chosen", c->chosen);
}

static void print_result(const tern_tune_result *r) {
    out_print("%s %zu x %zu, %u thread%s: %s\n", tern_format_describe(r->format)->name, r->rows,
              r->cols, r->threads, r->threads > 1 ? "s" : "", tern_layout_name(r->layout));
    for (size_t i = 0; i < r->n; i++) {
        const figure f = figure_of(r, &r->candidates[i]);
        print_candidate(&r->candidates[i], &f);
    }
}

static json_t *result_json(const tern_tune_result *r) {
    json_t *list = json_array();
    for (size_t i = 0; i < r->n; i++) {
        const figure f = figure_of(r, &r->candidates[i]);
        json_array_append_new(list, candidate_json(&r->candidates[i], &f));
    }
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:s, s:s, s:s, s:o}", "format",
                     tern_format_describe(r->format)->name, "rows", (json_int_t)r->rows, "cols",
                     (json_int_t)r->cols, "threads", (json_int_t)r->threads, "stream",
                     (json_int_t)r->stream, "layout", tern_layout_name(r->layout), "gemv",
                     r->gemv->name, "gemm", r->gemm->name, "candidates", list);
}

/* Prints or collects the result for one kind of matrices. */
static void report(const tern_tune_result *r, void *user) {
    const tuning_run *t = user;
    if (r->gemv == NULL)
        complain("no room to measure %zu x %zu: the table decides", r->rows, r->cols);
    else if (t->json)
        json_array_append_new(t->list, result_json(r));
    else
        print_result(r);
}

static int tune_all(tuning_run *t) {
    const uint64_t asked = options_integer(t->o, OPT_THREADS);
    const uint32_t most = asked > 0 ? (uint32_t)asked : tern_processor_count();
    tern_error err = {0};
    tern_status status = TERN_OK;
    if (!t->json) {
        out_print("%s, %s\n%-38s %10s %12s %8s\n", tern_cpu_name(), tern_model_isa(t->model), "",
                  "a token", "G weights/s", "GB/s");
    }
    for (uint32_t threads = 1; status == TERN_OK && threads <= most; threads++)
        status = tern_tune_measure(t->run, threads, report, t, &err);
    return status == TERN_OK ? EXIT_DONE : complain_error(&err);
}

/* Opens the folder for the choices; EXIT_DONE, or the exit status after a complaint. */
static int open_folder(tuning_run *t) {
    char path[PATH_MAX];
    const char *where = params_cache(t->o, path);
    tern_error err = {0};
    if (where == NULL) {
        complain("no folder to keep the choices in: use --cache-dir FOLDER or set HOME");
        return EXIT_FAILED;
    }
    return tern_tune_open_folder(t->run, where, &err) == TERN_OK ? EXIT_DONE : complain_error(&err);
}

static int finish(tuning_run *t) {
    tern_error err = {0};
    const char *where = tern_tune_folder(t->run);
    if (tern_tune_keep(t->run, &err) != TERN_OK)
        return complain_error(&err);
    if (t->json) {
        return json_print(json_pack("{s:o, s:s, s:o, s:O}", "processor",
                                    json_text(tern_cpu_name(), strlen(tern_cpu_name())), "isa",
                                    tern_model_isa(t->model), "folder",
                                    json_text(where, strlen(where)), "choices", t->list));
    }
    out_print("%zu choices kept in %s\n", tern_tune_count(t->run), where);
    return EXIT_DONE;
}

static int tune_model(tuning_run *t, const char *path) {
    tern_model_params params = tern_model_params_default();
    tern_error err = {0};
    params.isa = options_text(t->o, OPT_ISA);
    params.disable = options_text(t->o, OPT_DISABLE);
    params.no_weights = true;
    params.no_sidecar = options_switch(t->o, OPT_NO_SIDECAR);
    if (tern_model_open(path, &params, &t->model, &err) != TERN_OK)
        return complain_of_model(path, t->o->model_may_be_prompt, &err);
    if (tern_tune_run_new(t->model, &t->run, &err) != TERN_OK)
        return complain_error(&err);
    int status = open_folder(t);
    if (status == EXIT_DONE)
        status = tune_all(t);
    return status == EXIT_DONE ? finish(t) : status;
}

int cmd_tune(const options *o) {
    tuning_run t = {.o = o, .json = options_switch(o, OPT_JSON)};
    loader_report_isas();
    const char *path = loader_model_path(o, true);
    if (path == NULL)
        return EXIT_USAGE;
    t.list = json_array();
    const int status = tune_model(&t, path);
    json_decref(t.list);
    tern_tune_run_free(&t.run);
    tern_model_free(&t.model);
    return status;
}
