/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/served/served_models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/word_list.h"
#include "tern/inspect.h"
#include "tools/answer/sampling.h"
#include "tools/cli/output.h"
#include "tools/embed/pooling.h"
#include "tools/hub/short_names.h"
#include "tools/inspect/memory_plan.h"
#include "tools/inspect/planned_weights.h"
#include "tools/load/model_folder.h"
#include "tools/served/fetched.h"

enum { CONTEXTS = 4 }; /* default of --kv-memory, in contexts */

/* ---- the list -------------------------------------------------------------------------------- */

/* The name of a file without its folder and ending. */
static void name_of(const char *path, char name[SERVED_NAME_BYTES]) {
    (void)snprintf(name, SERVED_NAME_BYTES, "%s", file_base_name(path));
    char *ending = strrchr(name, '.');
    if (ending != NULL && ending != name && strcmp(ending, ".gguf") == 0)
        *ending = '\0';
}

static bool add(served_models *all, const char *path) {
    served_model *grown = realloc(all->models, (all->n + 1) * sizeof *grown);
    if (grown == NULL)
        return false;
    all->models = grown;
    grown[all->n] = (served_model){.path = strdup(path)};
    name_of(path, grown[all->n].name);
    return grown[all->n++].path != NULL;
}

static int report_memory(bool added) {
    if (!added)
        complain("no memory for the list of models");
    return added ? EXIT_DONE : EXIT_FAILED;
}

/* Adds the models of a folder; *n: how many there are. */
static int add_folder(served_models *all, const char *folder, size_t *n) {
    char **paths;
    if (!models_in_folder(folder, &paths, n))
        return EXIT_FAILED;
    bool added = true;
    for (size_t i = 0; i < *n; i++) {
        added = added && add(all, paths[i]);
        free(paths[i]);
    }
    free(paths);
    return report_memory(added);
}

/* Adds what -m names: a file, a model of the Hub, or a folder of models. */
static int add_named(served_models *all, const char *given) {
    size_t n = 0;
    const char *folder = options_text(all->o, OPT_MODEL_DIR);
    const char *found = folder != NULL ? model_in_folder(folder, given) : model_or_hub_name(given);
    char path[PATH_MAX]; /* what was found is valid until the next question */
    if (found == NULL)
        return EXIT_USAGE;
    (void)snprintf(path, sizeof path, "%s", found);
    const int status = add_folder(all, path, &n);
    all->first_waits = all->first_waits || (n > 0 && n == all->n);
    if (status != EXIT_DONE || n > 0)
        return status;
    const bool added = add(all, path);
    short_name known;
    if (added && strcmp(path, given) != 0 &&
        short_name_find(given, &known)) /* clients use it, too */
        (void)snprintf(all->models[all->n - 1].name, SERVED_NAME_BYTES, "%s", known.name);
    return report_memory(added);
}

/* Adds the model that is used if none is named. */
static int add_default(served_models *all) {
    const char *path = loader_model_path(all->o, true);
    return path != NULL ? report_memory(add(all, path)) : EXIT_USAGE;
}

/* Adds a model that a client fetched earlier, unless an option names another one like it. */
static bool add_fetched(void *user, const char *name, const char *path) {
    served_models *all = user;
    for (size_t i = 0; i < all->n; i++) {
        if (strcmp(all->models[i].name, name) == 0) {
            complain("%s: another model has the name %s", path, name);
            return true;
        }
    }
    if (!add(all, path))
        return false;
    served_model *m = &all->models[all->n - 1];
    (void)snprintf(m->name, sizeof m->name, "%s", name);
    m->fetched = true;
    return true;
}

/* Adds the models of clients, and room for those that will come. */
static int add_all_fetched(served_models *all) {
    const char *folder = options_text(all->o, OPT_PULL_PATH);
    tern_error err = {0};
    if (folder == NULL)
        return EXIT_DONE;
    if (fetched_list(folder, add_fetched, all, &err) != TERN_OK)
        return complain_error(&err);
    served_model *grown = realloc(all->models, (all->n + MODELS_FETCHED) * sizeof *grown);
    if (grown == NULL)
        return report_memory(false);
    memset(grown + all->n, 0, MODELS_FETCHED * sizeof *grown);
    all->models = grown;
    return EXIT_DONE;
}

/* Refuses two models of one name, of which clients could reach only the first. */
static int check_names(const served_models *all) {
    for (size_t i = 0; i < all->n; i++) {
        for (size_t k = 0; k < i; k++) {
            if (strcmp(all->models[i].name, all->models[k].name) == 0) {
                complain("%s and %s would both be called %s", all->models[k].path,
                         all->models[i].path, all->models[i].name);
                return EXIT_USAGE;
            }
        }
    }
    if (all->n > 1 && options_given(all->o, OPT_ALIAS)) {
        complain("--alias names one model, and there are %zu", all->n);
        return EXIT_USAGE;
    }
    return EXIT_DONE;
}

static int list(served_models *all) {
    all->listed = calloc(all->n, sizeof *all->listed);
    if (all->listed == NULL)
        return report_memory(false);
    if (options_given(all->o, OPT_ALIAS))
        (void)snprintf(all->models[0].name, sizeof all->models[0].name, "%s",
                       options_text(all->o, OPT_ALIAS));
    for (size_t i = 0; i < all->n; i++)
        all->listed[i] =
            (model_listed){all->models[i].name, all->models[i].path, all->models[i].fetched};
    return EXIT_DONE;
}

int served_models_read(const options *o, served_models *all) {
    const char *folder = options_text(o, OPT_MODELS);
    const option_value *named;
    int status = EXIT_DONE;
    size_t n = 0;
    *all = (served_models){.o = o};
    for (size_t i = 0; status == EXIT_DONE && (named = options_nth(o, OPT_SERVED, i)) != NULL; i++)
        status = add_named(all, named->text);
    if (status == EXIT_DONE && folder != NULL) {
        all->first_waits = all->first_waits || all->n == 0;
        status = add_folder(all, folder, &n);
        if (status == EXIT_DONE && n == 0) {
            complain("%s: no models (*.gguf, *.ie.json) are in this folder", folder);
            status = EXIT_USAGE;
        }
    }
    if (status == EXIT_DONE && all->n == 0)
        status = add_default(all);
    if (status == EXIT_DONE)
        status = check_names(all);
    if (status == EXIT_DONE)
        status = add_all_fetched(all);
    return status == EXIT_DONE ? list(all) : status;
}

/* ---- opening --------------------------------------------------------------------------------- */

static tern_engine_params engine_params(const options *o, const loaded *l) {
    tern_engine_params p = loader_engine_params(o, l);
    p.n_sequences = (uint32_t)options_integer(o, OPT_PARALLEL);
    p.n_queue = (uint32_t)options_integer(o, OPT_QUEUE);
    p.pool_bytes = options_integer(o, OPT_KV_MEMORY) << 20;
    if (p.pool_bytes == 0)
        p.pool_bytes = loader_pool_bytes(l, &p, loader_positions(CONTEXTS, p.n_ctx));
    return p;
}

static void close_model(void *user, size_t i) {
    served_models *all = user;
    served_model *m = &all->models[i];
    answer_receipts_close(&m->receipts);
    m->receipts = (answer_receipts){0};
    tern_model_free(&m->other);
    loader_close(&m->l);
    m->l = (loaded){0};
    m->is_open = false;
}

static int check(const loaded *l) {
    if (l->tokenizer != NULL)
        return EXIT_DONE;
    complain("%s: a server needs a tokenizer", l->tokenizer_error.message);
    return EXIT_FAILED;
}

/* An open model, beside which others are opened; NULL: there is none. */
static tern_model *any_open(const served_models *all) {
    for (size_t i = 0; i < all->n; i++)
        if (all->models[i].l.model != NULL)
            return all->models[i].l.model;
    return NULL;
}

/* Opens the files of a model, and once more for audits. Returns the exit status. */
static int open_files(const served_models *all, served_model *m) {
    int status = loader_open_beside(all->o, m->path, any_open(all), &m->l);
    m->is_open = true;
    if (status == EXIT_DONE)
        status = check(&m->l);
    if (status == EXIT_DONE && options_switch(all->o, OPT_SELF_AUDIT))
        status = loader_open_other(all->o, &m->l, &m->other);
    return status;
}

int served_models_begin(served_models *all) {
    served_model *m = &all->models[0];
    const int status = all->first_waits ? EXIT_DONE : open_files(all, m);
    if (status == EXIT_DONE && m->other != NULL) {
        tern_model_info info;
        tern_model_describe(m->other, &info);
        all->audit_bytes = info.equal_bytes;
    }
    return status;
}

/* The reason why a model could not be opened, for clients; standard error has more. */
static tern_status tell_reason(const served_model *m, tern_error *err) {
    const tern_error *reason = m->l.problem.status != TERN_OK ? &m->l.problem
                               : m->l.tokenizer == NULL       ? &m->l.tokenizer_error
                                                              : NULL;
    if (reason != NULL && reason->status != TERN_OK)
        return tern_fail(err, reason->status, "%s", reason->message);
    return tern_fail(err, TERN_ERR_CONFIG, "%s: it cannot be served with these options", m->path);
}

static tern_status open_model(void *user, size_t i, model_setup *out, tern_error *err) {
    served_models *all = user;
    served_model *m = &all->models[i];
    sampling chosen;
    int status = m->is_open ? EXIT_DONE : open_files(all, m);
    if (status == EXIT_DONE)
        status = sampling_read(all->o, &m->l, true, &chosen);
    if (status != EXIT_DONE) {
        const tern_status reason = tell_reason(m, err);
        close_model(all, i);
        return reason;
    }
    answer_receipts_open(&m->receipts, all->o, &m->l, all->recording);
    *out = (model_setup){.model = m->l.model,
                         .audit = m->other,
                         .engine = engine_params(all->o, &m->l),
                         .sampling = tern_sampler_params_default(),
                         .pooling = pooling_read(all->o, m->l.model),
                         .receipts = &m->receipts.maker};
    sampling_apply(&chosen, &out->sampling);
    out->sampling.seed = options_integer(all->o, OPT_SEED);
    if (i == 0)
        answer_receipts_begin(&m->receipts); /* for others the first receipt waits a little */
    return TERN_OK;
}

/* Packed weights, and the cache and scratch of the engine. */
static tern_status add_up(const options *o, const loaded *l, uint64_t *bytes, tern_error *err) {
    const tern_engine_params engine = engine_params(o, l);
    tern_session_params session = tern_session_params_default();
    memory_plan plan;
    session.n_ctx = engine.n_ctx;
    session.n_batch = engine.n_batch;
    session.kv = engine.kv;
    const tern_status status =
        memory_plan_make(l->model, &session, planned_in_file(l->model), &plan, err);
    *bytes = status == TERN_OK ? plan.needed - plan.kv + engine.pool_bytes : 0;
    return status;
}

static tern_status measure(void *user, size_t i, bool beside, uint64_t *bytes, tern_error *err) {
    const served_models *all = user;
    const served_model *m = &all->models[i];
    char cache[PATH_MAX];
    tern_model_params params;
    loaded planned = {0};
    if (m->is_open)
        return add_up(all->o, &m->l, bytes, err);
    tern_status status = params_read(all->o, cache, &params, err);
    params.no_weights = true;
    params.share = status == TERN_OK && beside ? loader_share(&params, any_open(all)) : NULL;
    if (status == TERN_OK)
        status = tern_model_open(m->path, &params, &planned.model, err);
    if (status == TERN_OK)
        status = add_up(all->o, &planned, bytes, err);
    tern_model_free(&planned.model);
    if (status != TERN_OK)
        complain("%s", err->message);
    return status;
}

static tern_status add_model(void *user, size_t i, const char *name, const char *path,
                             tern_error *err) {
    served_models *all = user;
    served_model *m = &all->models[i];
    *m = (served_model){.path = strdup(path), .fetched = true};
    (void)snprintf(m->name, sizeof m->name, "%s", name);
    if (m->path == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for the model %s", name);
    all->n_fetched++;
    return TERN_OK;
}

/* The second models of audits are in no plan, so what they share is not in this number. */
static uint64_t saved(void *user) {
    const served_models *all = user;
    tern_sharing now = {.saved_bytes = 0};
    if (any_open(all) != NULL && !options_switch(all->o, OPT_SELF_AUDIT))
        tern_model_sharing(any_open(all), &now);
    return now.saved_bytes;
}

model_source served_models_source(served_models *all) {
    return (model_source){all, measure, saved, open_model, close_model, add_model};
}

void served_models_free(served_models *all) {
    for (size_t i = 0; i < all->n + all->n_fetched; i++) {
        if (all->models[i].is_open)
            close_model(all, i);
        free(all->models[i].path);
    }
    free(all->models);
    free(all->listed);
    *all = (served_models){0};
}
