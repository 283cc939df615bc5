/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/metrics.h"
#include "runtime/engine/internal.h"
#include "runtime/engine/slot.h"
#include "tern/inspect.h"

enum {
    DEFAULT_AHEAD = 1024,
    LEAST_PICKS = 8 /* for few sequences: picks of guessed tokens that read the head together */
};

tern_engine_params tern_engine_params_default(void) {
    return (tern_engine_params){.kv = TERN_FORMAT_F16};
}

double tern_engine_clock(const tern_engine *e) {
    return e->params.clock != NULL ? e->params.clock(e->params.clock_user) : tern_clock_seconds();
}

/* ---- life ---------------------------------------------------------------------------------- */

static uint32_t or_default(uint32_t n, uint32_t otherwise) {
    return n ? n : otherwise;
}

static void find_frame(tern_engine *e) {
    const uint64_t positions = (uint64_t)e->size.pages * TERN_PAGE;
    tern_branch_frame *f = &e->frame;
    f->n_vocab = e->model->config.n_vocab;
    f->n_embd = e->model->config.n_embd;
    f->adapters = &e->model->adapters;
    f->n_ahead = or_default(e->params.n_ahead, DEFAULT_AHEAD);
    f->n_batch = e->params.n_batch;
    f->no_guesses = tern_config_delta_layers(&e->model->config) > 0;
    f->n_ctx = positions < e->params.n_ctx ? (uint32_t)positions : e->params.n_ctx;
    if (tern_model_tokenizer(e->model, &f->tokenizer, NULL) != TERN_OK)
        f->tokenizer = NULL;
    f->piece_bytes = f->tokenizer != NULL ? tern_tokenizer_longest(f->tokenizer) : 0;
}

tern_status tern_engine_reserve(tern_engine *e, tern_error *err) {
    const size_t n = e->params.n_sequences, all = e->n_branches;
    e->words = (e->frame.n_vocab + 63) / 64;
    e->now = calloc(all, sizeof(tern_branch *));
    e->over = calloc(all, sizeof(tern_branch *));
    e->live = calloc(all, sizeof(tern_branch *));
    e->events = calloc(e->params.n_batch + all, sizeof *e->events);
    e->plan = calloc(n, sizeof *e->plan);
    e->passing = calloc(n, sizeof *e->passing);
    e->spans = calloc(n, sizeof *e->spans);
    e->picks = calloc(n, sizeof *e->picks);
    e->picking = calloc(n, sizeof(tern_engine_span *));
    e->sums = calloc(e->n_picks, sizeof *e->sums);
    e->allowed = calloc(n * e->words, sizeof *e->allowed);
    const bool all_there = e->now != NULL && e->over != NULL && e->live != NULL &&
                           e->events != NULL && e->plan != NULL && e->passing != NULL &&
                           e->spans != NULL && e->picks != NULL && e->picking != NULL &&
                           e->sums != NULL && e->allowed != NULL;
    return all_there
               ? TERN_OK
               : tern_fail(err, TERN_ERR_NOMEM, "no memory for an engine of %zu sequences", n);
}

static tern_status open_parts(tern_engine *e, tern_error *err) {
    const tern_engine_params *p = &e->params;
    const tern_runner_params runner = {.threads = p->threads,
                                       .n_batch = p->n_batch,
                                       .n_ctx = e->frame.n_ctx,
                                       .n_picks = e->n_picks};
    const uint32_t window = tern_config_window(&e->model->config);
    const tern_schedule_params schedule = {.n_pages = e->size.pages,
                                           .n_ctx = p->n_ctx,
                                           .n_jobs = p->n_sequences,
                                           .n_queue = p->n_queue,
                                           .n_batch = p->n_batch,
                                           .window = e->size.window_pages > 0 ? window : 0,
                                           .n_window_pages = e->size.window_pages,
                                           .apart = tern_config_delta_layers(&e->model->config) > 0,
                                           .whole = !tern_model_continues(e->model)};
    tern_status status = tern_schedule_new(&schedule, &e->schedule, err);
    if (status == TERN_OK)
        status = tern_engine_reserve(e, err);
    if (status == TERN_OK)
        status = tern_pool_open(e->model, p->kv, e->size, &e->own_pool, &e->refused, err);
    if (status == TERN_OK)
        status = tern_runner_new(e->model, &runner, &e->runner, err);
    if (status == TERN_OK)
        status = tern_runner_hold(e->runner, e->pool, err);
    return status == TERN_OK ? tern_engine_open_drafter(e, p->draft_model, err) : status;
}

static void note_state(tern_engine *e);

tern_status tern_engine_new(const tern_model *model, const tern_engine_params *params,
                            tern_engine **out, tern_error *err) {
    const tern_engine_params defaults = tern_engine_params_default();
    if (model == NULL || out == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_engine_new needs a model and a place");
    if (!model->runnable)
        return tern_fail(err, TERN_ERR_STATE, "the model was opened without its weights");
    tern_engine *e = calloc(1, sizeof *e);
    if (e == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for an engine");
    e->model = model;
    e->pool = &e->own_pool;
    (void)pthread_mutex_init(&e->lock, NULL);
    tern_status status =
        tern_engine_set_params(model, params != NULL ? params : &defaults, &e->params, err);
    if (status == TERN_OK)
        status = tern_engine_find_pages(model, &e->params, &e->size, err);
    if (status == TERN_OK) {
        e->n_branches = e->params.n_sequences + e->params.n_queue;
        e->n_picks = e->params.n_sequences > LEAST_PICKS ? e->params.n_sequences : LEAST_PICKS;
        find_frame(e);
        status = open_parts(e, err);
    }
    if (status != TERN_OK) {
        tern_engine_free(&e);
        return status;
    }
    note_state(e);
    *out = e;
    return TERN_OK;
}

static void free_over(tern_engine *e) {
    while (e->n_over > 0)
        tern_branch_free(&e->over[--e->n_over]);
}

void tern_engine_free(tern_engine **engine) {
    if (engine == NULL || *engine == NULL)
        return;
    tern_engine *e = *engine;
    free_over(e);
    while (e->n_live > 0)
        tern_branch_free(&e->live[--e->n_live]);
    tern_engine_close_drafter(e);
    if (e->session == NULL) {
        tern_runner_free(&e->runner);
        tern_pool_close(&e->own_pool);
    }
    tern_schedule_free(&e->schedule);
    (void)pthread_mutex_destroy(&e->lock);
    free((void *)e->now);
    free((void *)e->over);
    free((void *)e->live);
    free(e->events);
    free(e->plan);
    free(e->passing);
    free(e->spans);
    free(e->picks);
    free((void *)e->picking);
    free(e->sums);
    free(e->allowed);
    free(e);
    *engine = NULL;
}

/* ---- requests ------------------------------------------------------------------------------ */

static tern_status check_prompt(const tern_engine *e, const tern_request *r, tern_error *err) {
    if (r->n_tokens > 0 && r->prompt_from >= r->n_tokens)
        return tern_fail(err, TERN_ERR_ARG, "results from position %zu on of %zu tokens",
                         r->prompt_from, r->n_tokens);
    if (r->prompt_only && (r->max_tokens > 0 || r->branches > 1))
        return tern_fail(err, TERN_ERR_ARG, "%zu tokens and %u branches after a prompt alone",
                         r->max_tokens, r->branches);
    if (r->pooling == TERN_POOLING_NONE && !tern_model_continues(e->model))
        return tern_fail(err, TERN_ERR_ARCH,
                         "%s: architecture %s makes vectors of texts, it continues none",
                         tern_gguf_name(e->model->file), e->model->config.arch->name);
    if ((unsigned)r->pooling > TERN_POOLING_RANK)
        return tern_fail(err, TERN_ERR_ARG, "there is no pooling %u", (unsigned)r->pooling);
    if (r->pooling == TERN_POOLING_RANK && !tern_model_ranks(e->model))
        return tern_fail(err, TERN_ERR_ARCH, "%s: it has no head that scores pairs of texts",
                         tern_gguf_name(e->model->file));
    if (r->second_from > 0 && (tern_model_continues(e->model) || r->second_from >= r->n_tokens))
        return tern_fail(err, TERN_ERR_ARG, "a second text from position %zu on of %zu tokens",
                         r->second_from, r->n_tokens);
    if (r->pooling != TERN_POOLING_NONE &&
        (!r->prompt_only || r->prompt_logprobs || r->prompt_from > 0 || r->logits != NULL))
        return tern_fail(err, TERN_ERR_ARG,
                         "a vector is all that comes of a prompt that is pooled");
    return TERN_OK;
}

static tern_status check_request(const tern_engine *e, const tern_request *r, tern_error *err) {
    if ((r->tokens == NULL && r->n_tokens > 0) ||
        (r->stop_tokens == NULL && r->n_stop_tokens > 0) ||
        (r->stop_texts == NULL && r->n_stop_texts > 0))
        return tern_fail(err, TERN_ERR_NULL, "a request without its tokens or stops");
    if (r->adapters == NULL && r->n_adapters > 0)
        return tern_fail(err, TERN_ERR_NULL, "a request without its adapters");
    if (r->adapters != NULL && e->session != NULL)
        return tern_fail(err, TERN_ERR_ARG,
                         "the engine of a session: its adapters are those of the model");
    if (r->n_logprobs > TERN_MOST_LOGPROBS)
        return tern_fail(err, TERN_ERR_ARG, "%u likeliest tokens exceed %d", r->n_logprobs,
                         TERN_MOST_LOGPROBS);
    if (r->branches > e->params.n_queue)
        return tern_fail(err, TERN_ERR_ARG, "%u branches exceed the queue of %u", r->branches,
                         e->params.n_queue);
    if (!(r->deadline_seconds >= 0.0))
        return tern_fail(err, TERN_ERR_ARG, "a deadline in %g seconds", r->deadline_seconds);
    const tern_status status = check_prompt(e, r, err);
    if (status != TERN_OK)
        return status;
    /* Without a limit there must be room for at least one token. */
    const size_t wanted = r->max_tokens > 0 || r->prompt_only ? r->max_tokens : 1;
    const size_t room = e->frame.n_ctx > r->n_tokens ? e->frame.n_ctx - r->n_tokens : 0;
    const size_t limit = r->within_context && wanted > room ? room : wanted;
    if (e->session != NULL)
        return tern_slot_fits(e, r, limit, err);
    if (r->n_tokens > UINT32_MAX || limit > UINT32_MAX)
        return tern_fail(err, TERN_ERR_CONTEXT,
                         "a request of %zu tokens and %zu more exceeds the context of %u",
                         r->n_tokens, limit, e->params.n_ctx);
    return tern_schedule_fits(e->schedule, (uint32_t)r->n_tokens, (uint64_t)r->n_tokens + limit,
                              err);
}

/* Makes n branches of a request; on an error none remain. */
static tern_status make_branches(tern_engine *e, const tern_request *r, tern_branch **branches,
                                 uint32_t n, tern_error *err) {
    for (uint32_t i = 0; i < n; i++) {
        const tern_status status = tern_branch_new(&e->frame, r, i, &branches[i], err);
        if (status != TERN_OK) {
            while (i > 0)
                tern_branch_free(&branches[--i]);
            return status;
        }
        branches[i]->submitted = tern_engine_clock(e);
        branches[i]->deadline =
            r->deadline_seconds > 0.0 ? branches[i]->submitted + r->deadline_seconds : INFINITY;
        branches[i]->job.first = i > 0 ? &branches[0]->job : NULL;
        if (e->session != NULL)
            tern_slot_place(e, branches[i]);
    }
    return TERN_OK;
}

uint64_t tern_engine_enter(tern_engine *e, tern_branch *const *branches, uint32_t n) {
    const uint64_t id = ++e->requests;
    for (uint32_t i = 0; i < n; i++) {
        branches[i]->request = id;
        branches[i]->job.number = e->numbers++;
        e->live[e->n_live++] = branches[i];
    }
    e->state.waiting += n;
    return id;
}

/* Puts branches of a request into the queue. The caller holds the lock. */
static tern_status enqueue(tern_engine *e, tern_branch **branches, uint32_t n, uint64_t *id,
                           tern_error *err) {
    const uint32_t waiting = e->state.waiting;
    if (waiting + n > e->params.n_queue)
        return tern_fail(err, TERN_ERR_QUEUE, "%u requests wait, %u may", waiting,
                         e->params.n_queue);
    *id = tern_engine_enter(e, branches, n);
    return TERN_OK;
}

tern_status tern_engine_submit(tern_engine *e, const tern_request *request, uint64_t *id,
                               tern_error *err) {
    if (e == NULL || request == NULL || id == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_engine_submit: NULL argument");
    tern_status status = check_request(e, request, err);
    if (status == TERN_OK && e->session != NULL)
        status = tern_slot_begin(e, request, err);
    if (status != TERN_OK)
        return status;
    const uint32_t n = or_default(request->branches, 1);
    tern_branch **branches = calloc(n, sizeof(tern_branch *));
    if (branches == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for %u branches", n);
    status = make_branches(e, request, branches, n, err);
    if (status == TERN_OK) {
        (void)pthread_mutex_lock(&e->lock);
        status = enqueue(e, branches, n, id, err);
        (void)pthread_mutex_unlock(&e->lock);
        for (uint32_t i = 0; i < n && status != TERN_OK; i++)
            tern_branch_free(&branches[i]);
    }
    free((void *)branches);
    return status;
}

bool tern_engine_cancel(tern_engine *e, uint64_t id) {
    bool found = false;
    (void)pthread_mutex_lock(&e->lock);
    for (size_t i = 0; i < e->n_live; i++)
        if (e->live[i]->request == id)
            e->live[i]->cancelled = found = true;
    (void)pthread_mutex_unlock(&e->lock);
    return found;
}

tern_engine_state tern_engine_now(tern_engine *e) {
    (void)pthread_mutex_lock(&e->lock);
    const tern_engine_state state = e->state;
    (void)pthread_mutex_unlock(&e->lock);
    return state;
}

void tern_engine_show(tern_engine *e) {
    (void)pthread_mutex_lock(&e->lock);
    note_state(e);
    (void)pthread_mutex_unlock(&e->lock);
}

void tern_engine_forget(tern_engine *e) {
    if (e->schedule != NULL)
        tern_schedule_forget(e->schedule);
    tern_engine_show(e);
}

/* ---- a step -------------------------------------------------------------------------------- */

tern_event *tern_engine_event(tern_engine *e, const tern_branch *b, tern_event_kind kind) {
    tern_event *event = &e->events[e->n_events++];
    *event = (tern_event){.request = b->request,
                          .branch = b->index,
                          .kind = kind,
                          .seconds = tern_engine_clock(e) - b->submitted,
                          .text = ""};
    return event;
}

/* Collects the branches of this step, and stops those that are cancelled or late. Under the
 * lock. */
static void look(tern_engine *e) {
    const double now = tern_engine_clock(e);
    e->n_now = e->n_live;
    for (size_t i = 0; i < e->n_live; i++) {
        tern_branch *b = e->now[i] = e->live[i];
        if (b->text != NULL)
            tern_answer_text_turn(b->text);
        b->n_likeliest = 0;
        if (b->cancelled)
            tern_branch_stop(b, TERN_END_CANCELLED);
        else if (now >= b->deadline)
            tern_branch_stop(b, TERN_END_DEADLINE);
    }
}

/* Reports the token that ended a text, in the event of its end. */
static void report_last(tern_event *event, const tern_branch *b) {
    event->token = b->last.token;
    event->position = b->job.n_tokens;
    event->logprob = b->last.logprob;
    event->likeliest = b->likeliest + b->n_likeliest - b->last.n_likeliest;
    event->n_likeliest = b->last.n_likeliest;
}

/* An answer is valid only while the model's files are unchanged since they were mapped, because
 * weights are read from there. */
static void check_model(const tern_engine *e, tern_branch *b) {
    const bool answers =
        b->end != TERN_END_ERROR && b->end != TERN_END_CANCELLED && b->end != TERN_END_DEADLINE;
    if (answers && tern_model_unchanged(e->model, &b->error) != TERN_OK)
        b->end = TERN_END_ERROR;
}

/* Reports a branch that is over, and removes it from the schedule. */
static void finish(tern_engine *e, tern_branch *b) {
    check_model(e, b);
    tern_drafter_leave(&b->place);
    if (e->session != NULL)
        tern_slot_finish(e, b);
    tern_event *event = tern_engine_event(e, b, TERN_EVENT_END);
    if (b->is_scheduled && e->schedule != NULL)
        tern_schedule_remove(e->schedule, &b->job);
    b->figures.n_set_aside = b->job.set_aside;
    b->figures.seconds = event->seconds;
    if (!b->was_admitted)
        b->figures.queued_seconds = event->seconds;
    if (b->text != NULL) {
        event->text = tern_answer_text_finish(b->text, &event->size);
        (void)tern_answer_text_stopped(b->text, &event->stop_text);
    }
    if (b->end == TERN_END_OF_TEXT || b->end == TERN_END_STOP_TOKEN)
        report_last(event, b);
    event->end = b->end;
    event->error = b->end == TERN_END_ERROR ? &b->error : NULL;
    event->figures = b->figures;
    event->pooled = b->end == TERN_END_LENGTH ? b->pooled.vector : NULL;
    if (b->digests)
        tern_sha256_finish(&b->digest, event->digest);
    e->over[e->n_over++] = b;
}

/* Finishes the branches of this step that are over and removes them from its list. */
static void finish_over(tern_engine *e) {
    size_t kept = 0;
    for (size_t i = 0; i < e->n_now; i++)
        if (e->now[i]->is_over)
            finish(e, e->now[i]);
        else
            e->now[kept++] = e->now[i];
    e->n_now = kept;
}

/* Hands new branches to the schedule, as many as may wait there. */
static void schedule_new(tern_engine *e) {
    for (size_t i = 0; i < e->n_now; i++) {
        tern_branch *b = e->now[i];
        if (!b->is_scheduled && !(b->is_scheduled = tern_schedule_add(e->schedule, &b->job)))
            return;
    }
}

static void note_admissions(tern_engine *e) {
    for (size_t i = 0; i < e->n_now; i++) {
        tern_branch *b = e->now[i];
        if (b->was_admitted || !b->job.is_running)
            continue;
        b->was_admitted = true;
        if (b->draft != NULL)
            tern_draft_given(b->draft, b->tokens, b->job.n_tokens);
        b->figures.n_shared = b->job.n_shared;
        b->figures.queued_seconds = tern_engine_clock(e) - b->submitted;
    }
}

/* Copies the figures of the schedule into the state. Under the lock. */
static void note_schedule(tern_engine *e) {
    const tern_page_counts pages = tern_pages_count(tern_schedule_pages(e->schedule));
    const tern_pages *apart = tern_schedule_window_pages(e->schedule);
    const tern_page_counts windows =
        apart != NULL ? tern_pages_count(apart) : (tern_page_counts){.all = 0};
    const tern_schedule_totals totals = tern_schedule_done(e->schedule);
    tern_engine_state *s = &e->state;
    s->running = tern_schedule_running(e->schedule);
    s->shared_tokens = totals.shared;
    s->set_aside = totals.set_aside;
    s->pages = pages.all;
    s->free_pages = pages.free;
    s->used_pages = pages.used;
    s->cached_pages = pages.cached;
    s->window_pages = windows.all;
    s->free_window_pages = windows.free;
    s->used_window_pages = windows.used;
    s->cached_window_pages = windows.cached;
}

/* Updates the state that other threads see. Under the lock. */
static void note_state(tern_engine *e) {
    tern_engine_state *s = &e->state;
    if (e->schedule != NULL)
        note_schedule(e);
    else
        s->running = (uint32_t)e->n_live;
    s->waiting = (uint32_t)e->n_live - s->running;
    s->passes = tern_runner_work(e->runner).passes;
    s->tokens = tern_runner_work(e->runner).tokens;
    s->n_ctx = e->frame.n_ctx;
    s->threads = tern_runner_threads(e->runner);
    s->refused = e->refused ? e->refused : tern_runner_refused(e->runner);
}

/* Removes branches that are over from the list of all. Branches that waited for one of them no
 * longer wait. Under the lock. */
static void sweep(tern_engine *e) {
    size_t kept = 0;
    for (size_t i = 0; i < e->n_live; i++) {
        tern_branch *b = e->live[i];
        const tern_branch *first = (const tern_branch *)b->job.first;
        if (first != NULL && first->is_over)
            b->job.first = NULL;
        if (!b->is_over)
            e->live[kept++] = b;
    }
    e->n_live = kept;
}

tern_status tern_engine_step(tern_engine *e, const tern_event **events, size_t *n,
                             tern_error *err) {
    if (e == NULL || events == NULL || n == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_engine_step: NULL argument");
    free_over(e);
    e->n_events = 0;
    (void)pthread_mutex_lock(&e->lock);
    look(e);
    (void)pthread_mutex_unlock(&e->lock);
    finish_over(e);
    schedule_new(e);
    tern_engine_guess(e);
    const size_t spans = e->session != NULL ? tern_slot_plan(e)
                                            : tern_schedule_plan(e->schedule, &e->costs,
                                                                 e->params.gap_seconds, e->plan);
    note_admissions(e);
    if (spans > 0)
        tern_engine_pass(e, spans);
    finish_over(e);
    (void)pthread_mutex_lock(&e->lock);
    sweep(e);
    note_state(e);
    (void)pthread_mutex_unlock(&e->lock);
    *events = e->events;
    *n = e->n_events;
    return TERN_OK;
}
