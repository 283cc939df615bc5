/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/models_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/metrics.h"
#include "base/os/os.h"
#include "base/word_list.h"
#include "tern/inspect.h"

enum { RETRY_SECONDS = 30 }; /* before a model is tried again whose file is the same */

const char *model_state_name(model_state state) {
    static const char *const names[] = {"unloaded", "loading", "loaded", "failed"};
    return names[state];
}

/* ---- with the lock held ---------------------------------------------------------------------- */

/* When the file of a model was changed last; zeros: there is none. */
static struct timespec changed_at(const model_entry *e) {
    struct stat info;
    return stat(e->path, &info) == 0 ? tern_os_write_time(&info) : (struct timespec){0};
}

/* True if a model that failed is not to be tried again. */
static bool is_hopeless(const model_entry *e) {
    const struct timespec now = changed_at(e);
    return e->state == MODEL_FAILED && now.tv_sec == e->failed_file.tv_sec &&
           now.tv_nsec == e->failed_file.tv_nsec &&
           tern_clock_seconds() < e->failed_at + RETRY_SECONDS;
}

static bool has_leases(const models *all, const model_entry *e) {
    return e->state == MODEL_LOADED && !e->stale && all->room_for == NULL;
}

/* Keeps an exchange until there is a lease for it; false: no memory. */
static bool let_wait(models *all, model_entry *e, http_exchange *x) {
    waiter *w = malloc(sizeof *w);
    if (w == NULL)
        return false;
    *w = (waiter){.x = x};
    http_keep(x);
    if (e->first == NULL)
        e->asked = ++all->clock;
    *e->last = w;
    e->last = &w->next;
    if (e->state == MODEL_FAILED)
        e->state = MODEL_UNLOADED;
    (void)pthread_cond_broadcast(&all->changed);
    return true;
}

/* Keeps the reason why a model failed, with its file's name without the folder: clients see it. */
static void note_problem(model_entry *e, const tern_error *err) {
    const size_t folder = (size_t)(file_base_name(e->path) - e->path);
    const bool named = strncmp(err->message, e->path, folder) == 0;
    (void)tern_fail(&e->problem, err->status, "%s", err->message + (named ? folder : 0));
    e->failed_file = changed_at(e);
    e->failed_at = tern_clock_seconds();
}

static void refuse_failed(refusal *r, const model_entry *e) {
    (void)refuse(r, 500, "model", "the model '%.100s' cannot be loaded: %s", e->name,
                 e->problem.message);
    r->code = "model_not_loadable";
}

/* Hands all exchanges that wait for a model to `ready`, with a lease or a reason. Lets go of the
 * lock meanwhile. */
static void hand_out(models *all, model_entry *e, const refusal *why) {
    waiter *w = e->first;
    e->first = NULL;
    e->last = &e->first;
    for (const waiter *at = w; at != NULL && why == NULL; at = at->next)
        e->leases++;
    if (why == NULL)
        e->used = ++all->clock;
    (void)pthread_mutex_unlock(&all->lock);
    while (w != NULL) {
        waiter *done = w;
        w = w->next;
        all->config.ready(all->config.user, done->x, why == NULL ? &e->served : NULL, why);
        http_release(done->x);
        free(done);
    }
    (void)pthread_mutex_lock(&all->lock);
}

/* Gives leases to all who wait for models that have some. */
static void serve_waiters(models *all) {
    for (size_t i = 0; i < all->n; i++)
        if (all->entries[i].first != NULL && has_leases(all, &all->entries[i]))
            hand_out(all, &all->entries[i], NULL);
}

/* The model that was wanted first of those that are not loaded; NULL: none is. */
static model_entry *next_wanted(models *all) {
    model_entry *found = NULL;
    for (size_t i = 0; i < all->n; i++) {
        model_entry *e = &all->entries[i];
        if (e->state == MODEL_UNLOADED && e->first != NULL &&
            (found == NULL || e->asked < found->asked))
            found = e;
    }
    return found;
}

/* A loaded model that is free, and was used the longest ago; NULL: there is none. `stale`: only
 * one whose file has changed. */
static model_entry *find_free(models *all, bool stale) {
    model_entry *found = NULL;
    for (size_t i = 0; i < all->n; i++) {
        model_entry *e = &all->entries[i];
        if (e->state == MODEL_LOADED && e->leases == 0 && (e->stale || !stale) &&
            (found == NULL || e->used < found->used))
            found = e;
    }
    return found;
}

/* The number of loaded models, and the memory that they take together. */
static size_t count_loaded(const models *all, uint64_t *bytes) {
    const model_source *source = &all->config.server->source;
    const uint64_t saved = source->saved(source->user);
    size_t n = 0;
    *bytes = 0;
    for (size_t i = 0; i < all->n; i++) {
        if (all->entries[i].state == MODEL_LOADED) {
            *bytes += all->entries[i].bytes;
            n++;
        }
    }
    *bytes -= saved < *bytes ? saved : *bytes;
    return n;
}

static bool is_crowded(const models *all) {
    const unsigned most = all->config.server->most_models;
    uint64_t bytes;
    return most > 0 && count_loaded(all, &bytes) >= most;
}

/* True if so many bytes have room beside the models that are loaded. Where nobody set a limit,
 * memory that other programs took meanwhile counts, too. */
static bool fits(const models *all, uint64_t bytes) {
    const server_config *c = all->config.server;
    uint64_t taken;
    (void)count_loaded(all, &taken);
    const uint64_t left = c->models_bytes == 0 ? tern_memory_available() : 0;
    return (all->limit == 0 || taken + bytes <= all->limit) && (left == 0 || bytes <= left);
}

/* ---- loading --------------------------------------------------------------------------------- */

static void note_counts(model_entry *e, const answer_metrics *counts, tern_engine_state now) {
    e->counts = *counts;
    e->engine.passes += now.passes;
    e->engine.tokens += now.tokens;
    e->engine.set_aside += now.set_aside;
}

/* Closes a model without leases, unless it gets one. Lets go of the lock meanwhile, also to ask the
 * worker, whose lock comes before this one. */
static void give_up(models *all, model_entry *e) {
    const model_source *source = &all->config.server->source;
    (void)pthread_mutex_unlock(&all->lock);
    const answer_metrics counts = worker_metrics(e->served.worker);
    const tern_engine_state now = tern_engine_now(e->served.engine);
    (void)pthread_mutex_lock(&all->lock);
    if (e->leases > 0)
        return;
    e->state = MODEL_UNLOADED;
    e->stale = false;
    note_counts(e, &counts, now);
    (void)pthread_mutex_unlock(&all->lock);
    served_close(&e->served);
    source->close(source->user, e->index);
    (void)pthread_mutex_lock(&all->lock);
}

/* The memory that a model would take beside those that are loaded now. Lets go of the lock
 * meanwhile. */
static uint64_t measure_beside(models *all, const model_entry *e) {
    const model_source *source = &all->config.server->source;
    uint64_t bytes = 0;
    tern_error err;
    (void)pthread_mutex_unlock(&all->lock);
    const tern_status status = source->measure(source->user, e->index, true, &bytes, &err);
    (void)pthread_mutex_lock(&all->lock);
    return status == TERN_OK ? bytes : e->bytes;
}

/* Gives models up until there is room for one; waits for models that are in use. What it would
 * share is looked for only where it has no room as it is. */
static void make_room(models *all, const model_entry *e) {
    uint64_t bytes, beside = 0;
    while (!all->stops && (is_crowded(all) || !fits(all, e->bytes)) &&
           count_loaded(all, &bytes) > 0) {
        if (!is_crowded(all) && beside == 0)
            beside = measure_beside(all, e);
        if (!is_crowded(all) && fits(all, beside))
            break;
        model_entry *least = find_free(all, false);
        if (least != NULL) {
            give_up(all, least);
            beside = 0;
        } else {
            all->room_for = e;
            (void)pthread_cond_wait(&all->changed, &all->lock);
        }
    }
    all->room_for = NULL;
}

/* Opens a model and its engine. Without the lock. */
static tern_status open_entry(models *all, model_entry *e, tern_error *err) {
    const server_config *c = all->config.server;
    model_setup with = {0};
    tern_status status = c->source.open(c->source.user, e->index, &with, err);
    if (status != TERN_OK)
        return status;
    status = served_open(
        &e->served,
        &(const served_params){
            .config = c, .entry = e, .name = e->name, .turns = all->turns, .counts = e->counts},
        &with, err);
    if (status != TERN_OK) {
        served_close(&e->served);
        c->source.close(c->source.user, e->index);
    }
    return status;
}

/* Refuses a model that is larger than all models may be together. */
static tern_status check_size(const models *all, const model_entry *e, tern_error *err) {
    const uint64_t limit = all->config.server->models_bytes;
    if (limit == 0 || e->bytes <= limit)
        return TERN_OK;
    return tern_fail(err, TERN_ERR_NOMEM,
                     "%s: it takes %" PRIu64 " MiB, and all models together may take %" PRIu64,
                     e->path, (e->bytes >> 20) + 1, limit >> 20);
}

/* Keeps what can be told about a model when it is not loaded any more. */
static void note_facts(model_entry *e) {
    const served *m = &e->served;
    e->facts = (model_facts){.known = true,
                             .identity = tern_model_identity(m->with.model),
                             .info = m->info,
                             .n_ctx = m->rules.n_ctx,
                             .isa = tern_model_isa(m->with.model)};
    memcpy(e->facts.fingerprint, m->fingerprint, sizeof e->facts.fingerprint);
    e->facts.info.path = e->facts.info.architecture = e->facts.info.name = NULL;
}

/* Finds out what a model takes, makes room, and opens it. With the lock, which it lets go. The
 * first step reads the file, so that a file that is none costs no other model its place. */
static tern_status load(models *all, model_entry *e, tern_error *err) {
    const model_source *source = &all->config.server->source;
    uint64_t bytes = 0;
    e->state = MODEL_LOADING;
    (void)pthread_mutex_unlock(&all->lock);
    tern_status status = source->measure(source->user, e->index, false, &bytes, err);
    (void)pthread_mutex_lock(&all->lock);
    e->bytes = bytes;
    if (status == TERN_OK)
        status = check_size(all, e, err);
    if (status != TERN_OK)
        return status;
    make_room(all, e);
    serve_waiters(all);
    if (all->stops)
        return tern_fail(err, TERN_ERR_STATE, "the server is ending");
    (void)pthread_mutex_unlock(&all->lock);
    status = open_entry(all, e, err);
    (void)pthread_mutex_lock(&all->lock);
    if (status == TERN_OK)
        note_facts(e);
    return status;
}

static void load_and_tell(models *all, model_entry *e) {
    tern_error err = {0};
    refusal r = {0};
    if (load(all, e, &err) == TERN_OK) {
        e->state = MODEL_LOADED;
        e->stale = !model_is_there(e); /* it was removed meanwhile */
        hand_out(all, e, NULL);
        return;
    }
    if (all->stops) { /* models_stop refuses those who wait */
        e->state = MODEL_UNLOADED;
        return;
    }
    e->state = MODEL_FAILED;
    note_problem(e, &err);
    refuse_failed(&r, e);
    hand_out(all, e, &r);
}

static void *run(void *user) {
    models *all = user;
    (void)pthread_mutex_lock(&all->lock);
    while (!all->stops) {
        model_entry *stale = find_free(all, true), *wanted = next_wanted(all);
        if (stale != NULL)
            give_up(all, stale);
        else if (wanted != NULL)
            load_and_tell(all, wanted);
        else
            (void)pthread_cond_wait(&all->changed, &all->lock);
    }
    (void)pthread_mutex_unlock(&all->lock);
    return NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

/* Loads the first model in the caller's thread, then starts the one that loads the others. */
static tern_status begin(models *all, tern_error *err) {
    model_entry *e = &all->entries[0];
    tern_status status = TERN_OK;
    (void)pthread_mutex_lock(&all->lock);
    if (!all->config.server->first_waits) {
        status = load(all, e, err);
        e->state = status == TERN_OK ? MODEL_LOADED : MODEL_FAILED;
    }
    (void)pthread_mutex_unlock(&all->lock);
    if (status != TERN_OK)
        return status;
    all->has_thread = pthread_create(&all->thread, NULL, run, all) == 0;
    return all->has_thread ? TERN_OK
                           : tern_fail(err, TERN_ERR_NOMEM, "no thread that loads models");
}

tern_status models_open(const models_config *config, models **out, tern_error *err) {
    const size_t n = config->server->n_models;
    const size_t most = n + (config->server->fetcher != NULL ? MODELS_FETCHED : 0);
    models *all = calloc(1, sizeof *all + most * sizeof all->entries[0]);
    if (all == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for %zu models", n);
    all->config = *config;
    all->most = most;
    atomic_init(&all->n, n);
    all->turns = turns_new(tern_clock_seconds);
    all->limit = config->server->models_bytes > 0 ? config->server->models_bytes
                                                  : tern_memory_available() / 10 * 9;
    (void)pthread_mutex_init(&all->lock, NULL);
    (void)pthread_cond_init(&all->changed, NULL);
    for (size_t i = 0; i < n; i++) {
        const model_listed *m = &config->server->models[i];
        models_set(all, i, m->name, m->path, m->fetched);
    }
    const tern_status status = all->turns != NULL
                                   ? begin(all, err)
                                   : tern_fail(err, TERN_ERR_NOMEM, "no memory for %zu models", n);
    if (status != TERN_OK)
        models_free(&all);
    *out = all;
    return status;
}

void models_stop(models *all) {
    refusal r;
    if (all == NULL)
        return;
    (void)refuse(&r, 503, NULL, "the server is ending, or the client has left");
    (void)pthread_mutex_lock(&all->lock);
    all->stops = true;
    (void)pthread_cond_broadcast(&all->changed);
    (void)pthread_mutex_unlock(&all->lock);
    if (all->has_thread)
        (void)pthread_join(all->thread, NULL);
    all->has_thread = false;
    (void)pthread_mutex_lock(&all->lock);
    for (size_t i = 0; i < all->n; i++)
        hand_out(all, &all->entries[i], &r);
    (void)pthread_mutex_unlock(&all->lock);
    for (size_t i = 0; i < all->n; i++)
        if (all->entries[i].state == MODEL_LOADED)
            worker_stop(all->entries[i].served.worker);
}

void models_free(models **all_) {
    models *all = *all_;
    if (all == NULL)
        return;
    models_stop(all);
    (void)pthread_mutex_lock(&all->lock);
    for (size_t i = 0; i < all->n; i++)
        if (all->entries[i].state == MODEL_LOADED)
            give_up(all, &all->entries[i]);
    for (size_t i = 0; i < all->n; i++)
        free(all->entries[i].owned);
    (void)pthread_mutex_unlock(&all->lock);
    turns_free(&all->turns);
    (void)pthread_cond_destroy(&all->changed);
    (void)pthread_mutex_destroy(&all->lock);
    free(all);
    *all_ = NULL;
}

/* ---- what there is --------------------------------------------------------------------------- */

size_t models_count(const models *all) {
    return all->n;
}

model_entry *models_at(models *all, size_t i) {
    return &all->entries[i];
}

const char *model_name(const model_entry *e) {
    return e->name;
}

bool model_is_there(const model_entry *e) {
    return !atomic_load(&e->removed);
}

model_entry *models_find(models *all, const char *name) {
    for (size_t i = 0; i < all->n; i++) {
        model_entry *e = &all->entries[i];
        const size_t n = strlen(e->name);
        if (model_is_there(e) && strncmp(name, e->name, n) == 0 &&
            (name[n] == '\0' || strcmp(name + n, ":latest") == 0))
            return e;
    }
    return NULL;
}

/* ---- what can be told ------------------------------------------------------------------------ */

static void tell_sharing(models *all, model_entry *e, model_facts *out) {
    const served *m = models_borrow(all, e);
    if (m == NULL)
        return;
    tern_sharing now;
    tern_model_sharing(m->with.model, &now);
    out->shared_bytes = now.shared_bytes;
    models_give_back(m);
}

void models_tell(models *all, model_entry *e, model_facts *out) {
    struct stat info = {0};
    (void)pthread_mutex_lock(&all->lock);
    *out = e->facts;
    out->name = e->name;
    out->path = e->path;
    out->state = e->state;
    out->memory_bytes = e->bytes;
    if (e->state == MODEL_FAILED)
        memcpy(out->problem, e->problem.message, sizeof out->problem);
    (void)pthread_mutex_unlock(&all->lock);
    tell_sharing(all, e, out);
    if (stat(e->path, &info) == 0) {
        out->file_bytes = (uint64_t)info.st_size;
        out->file_time = tern_os_write_time(&info);
    }
}

void models_count_answers(models *all, model_entry *e, answer_metrics *counts,
                          tern_engine_state *now) {
    const served *m = models_borrow(all, e);
    (void)pthread_mutex_lock(&all->lock);
    const tern_engine_state before = e->engine;
    *counts = e->counts;
    (void)pthread_mutex_unlock(&all->lock);
    *now = before;
    if (m == NULL)
        return;
    *counts = worker_metrics(m->worker);
    *now = tern_engine_now(m->engine);
    now->passes += before.passes;
    now->tokens += before.tokens;
    now->set_aside += before.set_aside;
    models_give_back(m);
}

/* ---- leases ---------------------------------------------------------------------------------- */

models_answer models_take(models *all, model_entry *e, http_exchange *x, const served **m,
                          refusal *r) {
    models_answer answer = MODELS_REFUSED;
    (void)pthread_mutex_lock(&all->lock);
    if (all->stops) {
        (void)refuse(r, 503, NULL, "the server is ending, or the client has left");
    } else if (has_leases(all, e)) {
        e->leases++;
        e->used = ++all->clock;
        *m = &e->served;
        answer = MODELS_TAKEN;
    } else if (is_hopeless(e)) {
        refuse_failed(r, e);
    } else if (let_wait(all, e, x)) {
        answer = MODELS_WAITS;
    } else {
        (void)refuse(r, 503, NULL, "no memory for the request");
    }
    (void)pthread_mutex_unlock(&all->lock);
    return answer;
}

const served *models_borrow(models *all, model_entry *e) {
    (void)pthread_mutex_lock(&all->lock);
    const bool loaded = e->state == MODEL_LOADED;
    e->leases += loaded;
    (void)pthread_mutex_unlock(&all->lock);
    return loaded ? &e->served : NULL;
}

void models_keep(const served *m) {
    model_entry *e = m->params.entry;
    (void)pthread_mutex_lock(&e->all->lock);
    e->leases++;
    (void)pthread_mutex_unlock(&e->all->lock);
}

void models_give_back(const served *m) {
    model_entry *e = m->params.entry;
    models *all = e->all;
    (void)pthread_mutex_lock(&all->lock);
    if (--e->leases == 0)
        (void)pthread_cond_broadcast(&all->changed);
    (void)pthread_mutex_unlock(&all->lock);
}

/* Ends the answers of a leased model whose file has changed. */
static void end_stale(models *all, model_entry *e, const tern_error *err) {
    refusal r;
    (void)pthread_mutex_lock(&all->lock);
    e->stale = true;
    (void)pthread_mutex_unlock(&all->lock);
    (void)refuse_error(&r, NULL, err);
    worker_end_all(e->served.worker, &r);
}

tern_status models_check(models *all, tern_error *err) {
    tern_status status = TERN_OK;
    for (size_t i = 0; i < all->n && status == TERN_OK; i++) {
        model_entry *e = &all->entries[i];
        (void)pthread_mutex_lock(&all->lock);
        const bool fresh = e->state == MODEL_LOADED && !e->stale;
        e->leases += fresh;
        (void)pthread_mutex_unlock(&all->lock);
        if (!fresh)
            continue;
        status = tern_model_unchanged(e->served.with.model, err);
        if (status != TERN_OK && (all->n > 1 || all->most > all->n))
            end_stale(all, e, err);
        models_give_back(&e->served);
    }
    return status;
}
