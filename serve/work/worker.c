/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/work/worker.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/metrics.h"
#include "base/os/os.h"
#include "tern/tune.h"

enum { TEXTS_AT_ONCE = 32 }; /* texts for embeddings in the engine, or one for each job */

struct worker {
    tern_engine *engine;
    const tern_model *model;
    audit *audit; /* NULL: no audits */
    slots *slots; /* NULL: none are kept */
    turns *turns;
    turn turn;
    bool tuned; /* the model was tuned for later starts, or cannot be */
    pthread_t thread;
    atomic_ullong pass_began; /* tern_clock_nanoseconds; 0: no pass is under way */

    pthread_mutex_t lock; /* protects the members below */
    pthread_cond_t wanted;
    slot_order *order;      /* to be carried out; NULL: none */
    pthread_cond_t ordered; /* there is none any more */
    job **jobs;             /* [n_jobs] submitted and not ended */
    struct pollfd *sockets; /* [n_jobs] their clients' sockets, used by `look` */
    size_t n_jobs, capacity;
    bool stop;
    answer_metrics metrics;
};

/* ---- with the lock held ---------------------------------------------------------------------- */

static void cancel(worker *w, const job *j) {
    for (size_t i = 0; i < j->n_requests; i++)
        if (j->ids[i] != 0)
            (void)tern_engine_cancel(w->engine, j->ids[i]);
}

static void drop(worker *w, size_t at) {
    job_free(w->jobs[at]);
    w->jobs[at] = w->jobs[--w->n_jobs];
}

/* Ends jobs whose clients have left. Called before each pass; polls all sockets in one call. */
static void look(worker *w) {
    for (size_t i = 0; i < w->n_jobs; i++)
        w->sockets[i] =
            (struct pollfd){.fd = http_socket(w->jobs[i]->x), .events = TERN_OS_HALF_CLOSED};
    (void)poll(w->sockets, w->n_jobs, 0);
    for (size_t i = 0; i < w->n_jobs; i++) {
        job *j = w->jobs[i];
        const bool suspect = w->sockets[i].fd < 0 || w->sockets[i].revents != 0;
        if (suspect && !j->over && http_gone(j->x)) {
            j->over = true;
            http_stream_end(j->x);
            cancel(w, j);
        }
    }
}

static bool makes_vectors(const job *j) {
    return (j->ask.kind & ASK_VECTORS) != 0;
}

/* Returns the number of texts for embeddings that the engine is computing. */
static size_t count_texts(const worker *w) {
    size_t n = 0;
    for (size_t i = 0; i < w->n_jobs; i++)
        n += makes_vectors(w->jobs[i]) ? job_under_way(w->jobs[i]) : 0;
    return n;
}

/* Submits a job's requests to the engine: all of them, or a few of the texts for embeddings, so
 * that other jobs find room in the queue. False after a refusal. */
static bool submit(worker *w, job *j, refusal *r) {
    const bool vectors = makes_vectors(j);
    size_t texts = vectors ? count_texts(w) : 0;
    while (job_unasked(j) > 0 && (!vectors || texts++ < TEXTS_AT_ONCE || job_under_way(j) == 0)) {
        const tern_request request = job_request(j, j->n_asked);
        tern_error err = {0};
        const tern_status status =
            tern_engine_submit(w->engine, &request, &j->ids[j->n_asked], &err);
        if (status == TERN_ERR_QUEUE && vectors && j->n_asked > 0)
            return true;
        if (status == TERN_ERR_QUEUE) {
            (void)refuse(r, 429, NULL, "too many requests wait already: %s", err.message);
            r->code = "queue_full";
            return false;
        }
        const tern_engine_state now = tern_engine_now(w->engine);
        if (status != TERN_OK)
            return status == TERN_ERR_CONTEXT ? refuse_length(r, request.n_tokens, now.n_ctx)
                                              : refuse_error(r, NULL, &err);
        j->n_asked++;
    }
    return true;
}

/* Submits more requests of jobs that had to wait with some of them. */
static void go_on(worker *w) {
    for (size_t i = w->n_jobs; i-- > 0;) {
        job *j = w->jobs[i];
        refusal r = {0};
        if (!j->over && job_unasked(j) > 0 && !submit(w, j, &r)) {
            job_refuse(j, &r);
            cancel(w, j);
        }
        if (job_is_done(j))
            drop(w, i);
    }
}

static void note(worker *w, choice *c, const tern_event *e) {
    if (e->kind == TERN_EVENT_END) {
        answer_metrics_note_end(&w->metrics, e);
    } else if (e->kind == TERN_EVENT_TOKEN) {
        answer_metrics_note_token(&w->metrics, c->told_seconds, e->seconds);
        c->told_seconds = e->seconds;
    }
}

/* Notes the tokens of a job's first answer in a place. An answer that shares no pages has none that
 * could be found later. */
static void note_slot(worker *w, const job *j) {
    if (w->slots == NULL || j->n_left > 0 || makes_vectors(j) || j->ask.alone ||
        !job_is_whole(j, 0))
        return;
    const receipt_answer a = job_answer(j, 0);
    slots_note(w->slots, (long)j->ask.slot - 1,
               j->account->key != NULL ? j->account->key->digest : NULL, a.prompt, a.n_prompt,
               a.tokens, a.n_tokens);
}

static void hand_over(worker *w, const tern_event *e) {
    for (size_t k = 0; k < w->n_jobs; k++) {
        job *j = w->jobs[k];
        for (size_t i = 0; i < j->n_requests; i++) {
            if (j->ids[i] != e->request)
                continue;
            if (i < j->ask.n_prompts)
                note(w, &j->choices[i * j->ask.n + e->branch], e);
            const bool wanted = job_take(j, i, e);
            if (j->ask.receipt && j->n_left == 0 && !j->cut)
                answer_metrics_note_replay(&w->metrics, !job_differs(j));
            if (!wanted && j->n_left > 0) {
                j->over = true;
                cancel(w, j);
            }
            if (j->n_left == 0 && w->audit != NULL && job_is_whole(j, 0)) {
                const receipt_answer answer = job_answer(j, 0);
                audit_note(w->audit, &answer);
            }
            note_slot(w, j);
            if (job_is_done(j))
                drop(w, k);
            return;
        }
    }
}

/* Ends all jobs if the engine has nothing to do although jobs wait. That would be an error of the
 * engine; clients are told, so that they do not wait for ever. */
static void end_lost(worker *w) {
    const tern_engine_state now = tern_engine_now(w->engine);
    refusal r;
    if (now.waiting + now.running > 0)
        return;
    (void)refuse(&r, 500, NULL, "the answer was lost");
    while (w->n_jobs > 0) {
        job_refuse(w->jobs[0], &r);
        drop(w, 0);
    }
}

/* True if there is something to do, here or for another engine. Takes the lock. */
static bool is_wanted(void *user) {
    worker *w = user;
    (void)pthread_mutex_lock(&w->lock);
    const bool wanted = w->n_jobs > 0 || w->order != NULL || w->stop;
    (void)pthread_mutex_unlock(&w->lock);
    return wanted || turns_wanted(w->turns);
}

/* Gets the turn before a pass, or lets others have it between two. */
static void have_turn(worker *w) {
    if (w->turn.holds)
        turns_offer(w->turns, &w->turn);
    else
        turns_take(w->turns, &w->turn);
}

static void leave_turn(worker *w) {
    if (w->turn.holds)
        turns_leave(w->turns, &w->turn);
}

/* Tunes the model until a job comes. Call it without the lock. */
static void tune(worker *w) {
    tern_tune_news news;
    w->tuned = tern_model_tune(w->model, is_wanted, w, &news, NULL) != TERN_OK || !news.stopped;
}

/* Uses the time when there are no jobs: tunes for later starts, computes a pass of the audit, or
 * waits. */
static void idle(worker *w) {
    answer_metrics seen = {0};
    bool worked = false;
    const bool tunes = w->metrics.jobs > 0 && !w->tuned;
    (void)pthread_mutex_unlock(&w->lock);
    if (tunes || w->audit != NULL) {
        have_turn(w);
        if (tunes)
            tune(w);
        worked = w->audit != NULL && audit_step(w->audit, &seen);
    }
    if (!worked)
        leave_turn(w);
    (void)pthread_mutex_lock(&w->lock);
    w->metrics.replays += seen.replays;
    w->metrics.mismatches += seen.mismatches;
    if (!worked && w->n_jobs == 0 && w->order == NULL && !w->stop)
        (void)pthread_cond_wait(&w->wanted, &w->lock);
}

/* Carries the order out, without the lock: files may be slow. */
static void carry_out(worker *w) {
    (void)pthread_mutex_unlock(&w->lock);
    slots_do(w->slots, w->engine, w->order);
    (void)pthread_mutex_lock(&w->lock);
    w->order = NULL;
    (void)pthread_cond_broadcast(&w->ordered);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void *run(void *user) {
    worker *w = user;
    (void)pthread_mutex_lock(&w->lock);
    while (!w->stop) {
        if (w->order != NULL)
            carry_out(w);
        if (w->n_jobs == 0) {
            idle(w);
            continue;
        }
        look(w);
        go_on(w);
        (void)pthread_mutex_unlock(&w->lock);
        have_turn(w);
        const tern_event *events;
        size_t n = 0;
        tern_error err = {0};
        atomic_store(&w->pass_began, tern_clock_nanoseconds());
        const tern_status status = tern_engine_step(w->engine, &events, &n, &err);
        atomic_store(&w->pass_began, 0);
        (void)pthread_mutex_lock(&w->lock);
        for (size_t i = 0; i < n && status == TERN_OK; i++)
            hand_over(w, &events[i]);
        if (n == 0)
            end_lost(w);
    }
    if (w->order != NULL)
        carry_out(w);
    (void)pthread_mutex_unlock(&w->lock);
    leave_turn(w);
    return NULL;
}

/* ---- from outside ---------------------------------------------------------------------------- */

tern_status worker_open(const worker_params *params, worker **out, tern_error *err) {
    worker *w = calloc(1, sizeof *w);
    if (w == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for a worker");
    w->engine = params->engine;
    w->model = params->model;
    w->audit = params->audit;
    w->turns = params->turns;
    w->metrics = params->counts;
    w->slots = params->slots > 0 ? slots_new(params->slots) : NULL;
    if (params->slots > 0 && w->slots == NULL) {
        free(w);
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for %zu places", params->slots);
    }
    (void)pthread_mutex_init(&w->lock, NULL);
    (void)pthread_cond_init(&w->wanted, NULL);
    (void)pthread_cond_init(&w->ordered, NULL);
    if (pthread_create(&w->thread, NULL, run, w) != 0) {
        (void)pthread_cond_destroy(&w->ordered);
        (void)pthread_cond_destroy(&w->wanted);
        (void)pthread_mutex_destroy(&w->lock);
        slots_free(&w->slots);
        free(w);
        return tern_fail(err, TERN_ERR_NOMEM, "no thread for the engine");
    }
    *out = w;
    return TERN_OK;
}

static bool reserve(worker *w) {
    if (w->n_jobs < w->capacity)
        return true;
    const size_t capacity = 2 * w->capacity + 16;
    job **grown = realloc(w->jobs, capacity * sizeof *grown);
    if (grown == NULL)
        return false;
    w->jobs = grown;
    struct pollfd *more = realloc(w->sockets, capacity * sizeof *more);
    if (more == NULL)
        return false;
    w->sockets = more;
    w->capacity = capacity;
    return true;
}

void worker_submit(worker *w, job *j) {
    refusal r = {0};
    (void)pthread_mutex_lock(&w->lock);
    const bool taken =
        reserve(w) ? submit(w, j, &r) : refuse(&r, 503, NULL, "no memory for the request");
    if (!taken)
        cancel(w, j);
    if (taken) {
        w->metrics.jobs++;
        w->jobs[w->n_jobs++] = j;
        job_begin(j);
        (void)pthread_cond_signal(&w->wanted);
    }
    (void)pthread_mutex_unlock(&w->lock);
    if (!taken) {
        job_refuse(j, &r);
        job_free(j);
    }
}

static void write_slot(const job *j, size_t i, size_t slot, bool named, text *out) {
    const choice *c = &j->choices[i];
    const size_t n = i / j->ask.n, most = job_request(j, n).max_tokens;
    text_print(out,
               "%s{\"id\":%zu,\"id_task\":%llu,\"n_ctx\":%u,\"speculative\":false,"
               "\"is_processing\":true,\"n_prompt_tokens\":%zu,\"params\":",
               out->size > 1 ? "," : "", slot, (unsigned long long)j->ids[n], j->place.n_ctx,
               j->ask.prompts[n].n);
    ask_write_native(&j->ask, out);
    text_print(out,
               ",\"next_token\":{\"has_next_token\":true,\"has_new_line\":%s,\"n_remain\":%zu,"
               "\"n_decoded\":%zu}",
               c->new_line ? "true" : "false", most > c->n_tokens ? most - c->n_tokens : 0,
               c->n_tokens);
    if (named)
        text_string(out, "model", j->place.model);
    text_print(out, "}");
}

/* An answer with a token has a slot; others may still be waiting. */
size_t worker_write_slots(worker *w, size_t most, bool named, text *out) {
    size_t n = 0;
    (void)pthread_mutex_lock(&w->lock);
    for (size_t k = 0; k < w->n_jobs; k++) {
        const job *j = w->jobs[k];
        for (size_t i = 0; i < j->n_choices && n < most; i++)
            if (j->choices[i].n_tokens > 0 && !j->choices[i].ended)
                write_slot(j, i, n++, named, out);
    }
    (void)pthread_mutex_unlock(&w->lock);
    return n;
}

bool worker_do(worker *w, slot_order *order) {
    (void)pthread_mutex_lock(&w->lock);
    while (w->order != NULL)
        (void)pthread_cond_wait(&w->ordered, &w->lock);
    const bool takes = !w->stop;
    w->order = takes ? order : NULL;
    (void)pthread_cond_signal(&w->wanted);
    while (w->order == order)
        (void)pthread_cond_wait(&w->ordered, &w->lock);
    (void)pthread_mutex_unlock(&w->lock);
    return takes;
}

answer_metrics worker_metrics(worker *w) {
    (void)pthread_mutex_lock(&w->lock);
    const answer_metrics f = w->metrics;
    (void)pthread_mutex_unlock(&w->lock);
    return f;
}

void worker_end_all(worker *w, const refusal *why) {
    (void)pthread_mutex_lock(&w->lock);
    for (size_t i = 0; i < w->n_jobs; i++) {
        job_refuse(w->jobs[i], why);
        cancel(w, w->jobs[i]);
    }
    (void)pthread_mutex_unlock(&w->lock);
}

double worker_stalled(worker *w) {
    const unsigned long long began = atomic_load(&w->pass_began);
    return began != 0 ? tern_seconds_of(tern_clock_nanoseconds() - began) : 0.0;
}

void worker_stop(worker *w) {
    if (w == NULL || w->stop)
        return;
    refusal r;
    (void)refuse(&r, 503, NULL, "the server is ending, and the answer with it");
    (void)pthread_mutex_lock(&w->lock);
    w->stop = true;
    (void)pthread_cond_signal(&w->wanted);
    (void)pthread_mutex_unlock(&w->lock);
    (void)pthread_join(w->thread, NULL);
    while (w->n_jobs > 0) {
        job_refuse(w->jobs[0], &r);
        drop(w, 0);
    }
}

void worker_free(worker **w) {
    if (*w == NULL)
        return;
    worker_stop(*w);
    free((*w)->jobs);
    free((*w)->sockets);
    slots_free(&(*w)->slots);
    (void)pthread_cond_destroy(&(*w)->ordered);
    (void)pthread_cond_destroy(&(*w)->wanted);
    (void)pthread_mutex_destroy(&(*w)->lock);
    free(*w);
    *w = NULL;
}
