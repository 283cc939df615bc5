/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/load/loader.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tern/inspect.h"
#include "tools/cli/output.h"
#include "tools/cli/targets.h"
#include "tools/inspect/model_facts.h"
#include "tools/load/late_tuning.h"
#include "tools/load/model_folder.h"
#include "tools/load/model_hint.h"
#include "tools/load/placement.h"

const char *loader_shipped_model(void) {
    static const char *const places[] = {TERN_DEFAULT_MODEL, TERN_INSTALLED_MODEL};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (access(places[i], R_OK) == 0)
            return places[i];
    return NULL;
}

const char *loader_model_path(const options *o, bool may_use_shipped) {
    const char *path = options_text(o, OPT_MODEL);
    if (options_text(o, OPT_MODEL_DIR) != NULL)
        return model_in_folder(options_text(o, OPT_MODEL_DIR), path);
    if (path != NULL)
        return model_or_hub_name(path);
    if (!may_use_shipped || options_switch(o, OPT_REQUIRE_MODEL)) {
        complain("no model: name its file after the command, or set TERN_MODEL");
        return NULL;
    }
    const char *shipped = loader_shipped_model();
    if (shipped != NULL)
        return shipped;
    complain("no model given and the small one is not at %s or %s: use -m FILE", TERN_DEFAULT_MODEL,
             TERN_INSTALLED_MODEL);
    return NULL;
}

void loader_report_isas(void) {
    const char *refused[16];
    const size_t capacity = sizeof refused / sizeof *refused;
    const size_t n = tern_cpu_refused(refused, capacity);
    for (size_t i = 0; i < n && i < capacity; i++)
        complain("this processor announces %s, which does not work here: not used", refused[i]);
}

int loader_check_isa(const options *o, uint64_t *mask) {
    tern_error err = {0};
    loader_report_isas();
    if (tern_cpu_mask(options_text(o, OPT_ISA), options_text(o, OPT_DISABLE), mask, &err) !=
        TERN_OK)
        return complain_error(&err);
    return EXIT_DONE;
}

static void report_refusals(const tern_model *model) {
    const tern_kernel_refusal *refusals;
    const size_t n = tern_model_refusals(model, &refusals);
    for (size_t i = 0; i < n; i++) {
        complain("kernel %s gives wrong results on this machine (seen at %s): another is used",
                 refusals[i].row->name, refusals[i].where);
    }
}

void loader_report_unused(const tern_model *model, const char *path) {
    enum { SHOWN = 6 };
    const char *const *names;
    const size_t n = tern_model_unused(model, &names);
    char line[SHOWN * 100] = "";
    size_t used = 0;
    for (size_t i = 0; i < n && i < SHOWN; i++) {
        used +=
            (size_t)snprintf(line + used, sizeof line - used, "%s%s", i > 0 ? ", " : "", names[i]);
    }
    if (n > SHOWN)
        complain("%s: not known, and left out: %s and %zu more", path, line, n - SHOWN);
    else if (n > 0)
        complain("%s: not known, and left out: %s", path, line);
}

void loader_report_doubt(const tern_model *model, const char *path) {
    const char *doubt = tern_model_doubt(model);
    if (doubt != NULL)
        complain("%s: %s", path, doubt);
}

void loader_report_activations(const tern_model *model, const char *path) {
    const char *note = tern_model_activations_note(model);
    if (note != NULL)
        complain("%s: %s", path, note);
}

void loader_describe(const options *o, loaded *l) {
    if (tern_model_tokenizer(l->model, &l->tokenizer, &l->tokenizer_error) != TERN_OK)
        l->tokenizer = NULL;
    tern_model_describe(l->model, &l->info);
    const size_t capacity = sizeof l->kernels / sizeof *l->kernels;
    const size_t n = tern_model_kernels(l->model, loader_kv_format(o), l->kernels, capacity);
    l->n_kernels = n < capacity ? n : capacity;
}

static void report_loading(const loaded *l) {
    const tern_model_loading *t = &l->loading;
    remark("loaded in %.3f s: ", t->seconds);
    if (t->content_seconds > 0.0)
        remark("contents %.3f, cache %.3f, ", t->content_seconds, t->image_seconds);
    remark("weights %.3f, %s\n", t->weights_seconds,
           t->mapped ? "mapped from the cache" : "packed");
    remark("activations: %s, precision %s\n", tern_model_activation_forms(l->model),
           tern_model_activations(l->model));
    const tern_fetch fetch = tern_model_fetch(l->model);
    if (fetch.ahead > 0)
        remark("fetched ahead: %u bytes of each matrix for each thread, %s\n", fetch.ahead,
               fetch.hint == TERN_FETCH_PASSING ? "not to be kept in caches" : "to be kept");
    if (tern_model_device(l->model) != NULL)
        remark("device: %s, %" PRIu64 " bytes of weights\n", tern_model_device(l->model),
               tern_model_device_bytes(l->model));
    if (tern_model_device_note(l->model)[0] != '\0')
        remark("device: the processor; %s\n", tern_model_device_note(l->model));
    if (tern_model_layout_reason(l->model)[0] != '\0')
        remark("layout: %s; %s\n", tern_model_layout(l->model), tern_model_layout_reason(l->model));
    size_t n;
    const char *sidecar = tern_gguf_sidecar(tern_model_file(l->model), &n);
    if (sidecar != NULL)
        remark("sparse layers: %zu, from %s\n", n, sidecar);
    if (t->problem.status != TERN_OK)
        remark("cache not used: %s\n", t->problem.message);
}

void loader_report_dedup(const options *o, const tern_model *model) {
    const tern_dedup_info d = tern_model_dedup(model);
    if (d.problem != NULL)
        complain("%s: the folder's own bytes are used", d.problem);
    if (d.tensors > 0 && (options_switch(o, OPT_DEDUP_DEBUG) || options_switch(o, OPT_VERBOSE)))
        remark("shared bytes: %" PRIu64 " tensors of %" PRIu64 " bytes, %" PRIu64
               " in place, %" PRIu64 " in memory, %" PRIu64 " in a file; %" PRIu64 " differ\n",
               d.tensors, d.bytes, d.in_place, d.in_memory, d.in_file, d.exceptions);
}

/* The best instruction set below the model's; the model's own if there is none. */
static const char *other_isa(const tern_model *model) {
    const char *below = tern_model_isa(model);
    for (size_t i = 0; strcmp(tern_isa_name(i), tern_model_isa(model)) != 0; i++)
        below = tern_isa_runs(i, tern_model_features(model)) ? tern_isa_name(i) : below;
    return below;
}

/* Like params_read, but reports errors. */
static int take_params(const options *o, char cache[PATH_MAX], tern_model_params *params) {
    tern_error err = {0};
    if (params_read(o, cache, params, &err) == TERN_OK)
        return EXIT_DONE;
    (void)complain_error(&err);
    return EXIT_USAGE;
}

int loader_open_other(const options *o, const loaded *l, tern_model **out) {
    char cache[PATH_MAX];
    tern_model_params params;
    tern_error err = {0};
    if (take_params(o, cache, &params) != EXIT_DONE)
        return EXIT_USAGE;
    params.isa = other_isa(l->model);
    params.tune = false;
    params.device = NULL; /* a run on a device is compared with one on the processor */
    /* a rank has only parts of matrices */
    params.share = params.ranks == NULL ? l->model : NULL;
    params.ranks = NULL;
    return tern_model_open(l->info.path, &params, out, &err) == TERN_OK ? EXIT_DONE
                                                                        : complain_error(&err);
}

int loader_open_model(const options *o, bool may_use_shipped, loaded *l) {
    const char *path = loader_model_path(o, may_use_shipped);
    return path != NULL ? loader_open_file(o, path, l) : EXIT_USAGE;
}

tern_model *loader_share(const tern_model_params *params, tern_model *share) {
    const bool here = params->device == NULL || strcmp(params->device, "cpu") == 0;
    return here && params->ranks == NULL ? share : NULL;
}

int loader_open_file(const options *o, const char *path, loaded *l) {
    return loader_open_beside(o, path, NULL, l);
}

/* Opens the model of --draft-model, if one is given, and checks that its tokens are the model's. It
 * reads those of its matrices that are equal from the model, and has no adapters. */
static int open_draft(const options *o, loaded *l) {
    const bool wanted = option_applies(OPT_DRAFT_MODEL, o->command);
    const char *given = wanted ? options_text(o, OPT_DRAFT_MODEL) : NULL;
    char cache[PATH_MAX];
    tern_model_params params;
    if (given == NULL)
        return EXIT_DONE;
    const char *path = model_or_hub_name(given);
    if (path == NULL || take_params(o, cache, &params) != EXIT_DONE)
        return EXIT_USAGE;
    if (params.ranks != NULL) {
        complain("--draft-model: not where processes compute together");
        return EXIT_USAGE;
    }
    params.share = loader_share(&params, l->model);
    params.adapters = NULL;
    params.n_adapters = 0;
    if (tern_model_open(path, &params, &l->draft, &l->problem) != TERN_OK)
        return complain_of_model(path, false, &l->problem);
    if (tern_model_may_draft(l->draft, l->model, &l->problem) == TERN_OK)
        return EXIT_DONE;
    (void)complain_error(&l->problem);
    return EXIT_USAGE;
}

int loader_open_beside(const options *o, const char *path, tern_model *share, loaded *l) {
    loader_report_isas();
    char cache[PATH_MAX];
    tern_model_params params;
    if (take_params(o, cache, &params) != EXIT_DONE)
        return EXIT_USAGE;
    params.share = loader_share(&params, share);
    if (tern_model_open(path, &params, &l->model, &l->problem) != TERN_OK) {
        if (placement_lack_node(&params, &l->problem)) {
            (void)complain_error(&l->problem);
            return EXIT_USAGE;
        }
        return complain_of_model(path, o->model_may_be_prompt, &l->problem);
    }
    if (tern_model_device(l->model) != NULL && options_given(o, OPT_RECEIPT)) {
        complain("--receipt is of passes on the processor: leave --device out");
        return EXIT_USAGE;
    }
    const int writable = targets_check(o); /* the name of the model's file is known only now */
    if (writable != EXIT_DONE)
        return writable;
    loader_report_unused(l->model, path);
    loader_report_doubt(l->model, path);
    loader_report_activations(l->model, path);
    loader_report_dedup(o, l->model);
    report_refusals(l->model);
    loader_describe(o, l);
    tern_model_describe_loading(l->model, &l->loading);
    placement_report_replicas(&l->loading);
    if (options_switch(o, OPT_VERBOSE))
        report_loading(l);
    if (options_switch(o, OPT_VERBOSE))
        model_facts_remark(l->model);
    if (l->tokenizer != NULL && options_switch(o, OPT_VERBOSE))
        loader_report_tokenizer(l->tokenizer, path);
    return open_draft(o, l);
}

void loader_report_tokenizer(const tern_tokenizer *t, const char *model) {
    if (model == NULL || strcmp(tern_tokenizer_file(t), model) != 0) {
        const char *pre = tern_tokenizer_pre(t);
        remark("tokenizer: %s, %s%s%s, %zu tokens\n", tern_tokenizer_file(t),
               tern_tokenizer_kind(t), pre[0] != '\0' ? ", pre-tokenizer " : "", pre,
               tern_tokenizer_size(t));
    }
}

int loader_check_file(const loaded *l) {
    tern_error err = {0};
    return tern_model_unchanged(l->model, &err) == TERN_OK ? EXIT_DONE : complain_error(&err);
}

tern_format loader_kv_format(const options *o) {
    const char *name = options_text(o, OPT_KV); /* always one of the option's choices */
    int format = 0;
    if (strcmp(name, "int8") == 0)
        return TERN_FORMAT_Q8_0; /* not the weights' int8, which has one scale per row */
    while (strcmp(tern_format_describe((tern_format)format)->name, name) != 0)
        format++;
    return (tern_format)format;
}

/* Reports if fewer threads run than asked for (0: as many as there are cores for), or if the system
 * did not bind one. */
static void report_threads(const loaded *l, uint32_t asked, int refused) {
    const uint32_t wanted = tern_model_threads(l->model, asked);
    placement_report(refused);
    if (l->threads < wanted && tern_model_device(l->model) == NULL) {
        complain("only %u of %u threads could be started: slower, the same answer", l->threads,
                 wanted);
    }
}

static int open_session(const options *o, uint32_t n_ctx, uint32_t threads, loaded *l) {
    tern_session_params params = tern_session_params_default();
    params.n_ctx = n_ctx;
    params.n_batch = (uint32_t)options_integer(o, OPT_BATCH);
    params.threads = threads;
    params.kv = loader_kv_format(o);
    params.keep_all = l->keep_all;
    tern_error err = {0};
    if (tern_session_new(l->model, &params, &l->session, &err) != TERN_OK ||
        tern_session_draft_by(l->session, l->draft, &err) != TERN_OK)
        return complain_error(&err);
    l->threads = tern_session_threads(l->session);
    report_threads(l, threads, tern_session_refused(l->session));
    return EXIT_DONE;
}

tern_engine_params loader_engine_params(const options *o, const loaded *l) {
    const uint32_t n_ctx = (uint32_t)options_integer(o, OPT_CONTEXT);
    tern_engine_params p = tern_engine_params_default();
    p.n_ctx = n_ctx > 0 ? n_ctx : tern_model_default_context(l->model);
    p.threads = (uint32_t)options_integer(o, OPT_THREADS);
    p.n_batch = (uint32_t)options_integer(o, OPT_BATCH);
    p.kv = loader_kv_format(o);
    p.draft_model = l->draft;
    return p;
}

int loader_open_engine(const tern_engine_params *params, loaded *l) {
    tern_error err = {0};
    if (tern_engine_new(l->model, params, &l->engine, &err) != TERN_OK)
        return complain_error(&err);
    const tern_engine_state s = tern_engine_now(l->engine);
    l->threads = s.threads;
    report_threads(l, params->threads, s.refused);
    return EXIT_DONE;
}

uint64_t loader_positions(uint64_t n, uint32_t positions) {
    const uint32_t page = TERN_ATTEND_CHUNK;
    return n * (positions / page + (positions % page > 0)) * page;
}

uint64_t loader_pool_bytes(const loaded *l, const tern_engine_params *params, uint64_t positions) {
    uint64_t bytes = 0;
    return tern_engine_pool_bytes(l->model, params, positions, &bytes, NULL) == TERN_OK ? bytes : 0;
}

int loader_open_engine_of(const options *o, uint32_t n_ctx, loaded *l) {
    enum { ROWS = 128, MOST = LOADER_PROMPTS_AT_ONCE }; /* rows per pass; rows with logits */
    tern_engine_params params = loader_engine_params(o, l);
    const uint32_t rows = params.n_batch > 0 ? params.n_batch : ROWS;
    const uint32_t fill = 2 + 2 * rows / (n_ctx > 0 ? n_ctx : 1);
    params.n_ctx = n_ctx;
    params.n_sequences = rows < MOST ? rows : MOST;
    params.n_queue = MOST;
    params.pool_bytes =
        loader_pool_bytes(l, &params, loader_positions(fill < MOST ? fill : MOST, n_ctx));
    return loader_open_engine(&params, l);
}

int loader_open_session(const options *o, loaded *l) {
    return loader_open_session_of(o, (uint32_t)options_integer(o, OPT_CONTEXT), l);
}

int loader_open_session_of(const options *o, uint32_t n_ctx, loaded *l) {
    return open_session(o, n_ctx, (uint32_t)options_integer(o, OPT_THREADS), l);
}

int loader_open_session_on(const options *o, uint32_t threads, loaded *l) {
    return open_session(o, (uint32_t)options_integer(o, OPT_CONTEXT), threads, l);
}

int loader_open(const options *o, bool may_use_shipped, loaded *l) {
    const int status = loader_open_model(o, may_use_shipped, l);
    return status == EXIT_DONE ? loader_open_session(o, l) : status;
}

void loader_close(loaded *l) {
    tern_session_free(&l->session);
    tern_engine_free(&l->engine);
    tern_model_free(&l->draft);
    tern_model_free(&l->model);
}

int loader_open_tokenizer(const options *o, tern_tokenizer **t) {
    const char *own = options_text(o, OPT_TOKENIZER);
    const char *path = own != NULL ? own : loader_model_path(o, true);
    tern_error err = {0};
    if (path == NULL)
        return EXIT_USAGE;
    if (tern_tokenizer_open(path, options_text(o, OPT_PRE), t, &err) != TERN_OK) {
        return own != NULL ? complain_error(&err)
                           : complain_of_model(path, o->model_may_be_prompt, &err);
    }
    if (options_switch(o, OPT_VERBOSE))
        loader_report_tokenizer(*t, NULL);
    return EXIT_DONE;
}
