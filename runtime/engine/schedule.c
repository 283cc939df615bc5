/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/engine/schedule.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct tern_schedule {
    tern_schedule_params params;
    uint32_t pages_each;              /* for a sequence of n_ctx positions */
    tern_pages *pages, *window_pages; /* of layers with a window; NULL: these have no own pages */
    tern_job **running;               /* [n_jobs], in the order of jobs */
    tern_job **waiting;               /* [n_queue + n_jobs], in the same order */
    uint32_t n_running, n_waiting;
    tern_schedule_totals totals;
    uint32_t *tables, *window_tables; /* [n_jobs][pages_each] */
    uint32_t *slots;                  /* [n_jobs - n_running] numbers that no running job has */
};

static uint32_t smaller(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

/* ---- life ---------------------------------------------------------------------------------- */

static tern_status check_window(const tern_schedule_params *p, tern_error *err) {
    const uint64_t positions = (uint64_t)p->n_pages * TERN_PAGE;
    const uint32_t most = positions < p->n_ctx ? (uint32_t)positions : p->n_ctx;
    if (p->window > 0 &&
        (p->whole || p->n_window_pages < tern_window_quota(p->window, p->n_batch, most)))
        return tern_fail(err, TERN_ERR_ARG, "%u pages for windows of %u positions",
                         p->n_window_pages, p->window);
    return TERN_OK;
}

static tern_status check_params(const tern_schedule_params *p, tern_error *err) {
    if (p->n_ctx == 0 || p->n_jobs == 0 || p->n_queue == 0 || p->n_batch == 0)
        return tern_fail(err, TERN_ERR_ARG,
                         "an engine without positions, sequences, queue or rows");
    if (p->n_jobs > p->n_batch)
        return tern_fail(err, TERN_ERR_ARG, "%u sequences at once exceed the %u rows of a pass",
                         p->n_jobs, p->n_batch);
    if (p->whole && p->n_batch < p->n_ctx)
        return tern_fail(err, TERN_ERR_ARG,
                         "whole texts of %u positions exceed the %u rows of a pass", p->n_ctx,
                         p->n_batch);
    if (p->n_queue > UINT32_MAX - p->n_jobs)
        return tern_fail(err, TERN_ERR_ARG, "a queue of %u", p->n_queue);
    return check_window(p, err);
}

tern_status tern_schedule_new(const tern_schedule_params *params, tern_schedule **out,
                              tern_error *err) {
    tern_status status = check_params(params, err);
    if (status != TERN_OK)
        return status;
    tern_schedule *s = calloc(1, sizeof *s);
    if (s == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for a schedule");
    s->params = *params;
    s->pages_each = smaller(tern_pages_of(params->n_ctx), params->n_pages);
    status = tern_pages_new(params->n_pages, &s->pages, err);
    if (status == TERN_OK && params->window > 0)
        status = tern_pages_new(params->n_window_pages, &s->window_pages, err);
    s->running = calloc(params->n_jobs, sizeof(tern_job *));
    s->waiting = calloc((size_t)params->n_queue + params->n_jobs, sizeof(tern_job *));
    s->tables = calloc((size_t)params->n_jobs * s->pages_each, sizeof *s->tables);
    s->window_tables = calloc((size_t)params->n_jobs * s->pages_each, sizeof *s->window_tables);
    s->slots = calloc(params->n_jobs, sizeof *s->slots);
    if (status == TERN_OK && (s->running == NULL || s->waiting == NULL || s->tables == NULL ||
                              s->window_tables == NULL || s->slots == NULL))
        status = tern_fail(err, TERN_ERR_NOMEM, "no memory for a schedule of %u sequences",
                           params->n_jobs);
    if (status != TERN_OK) {
        tern_schedule_free(&s);
        return status;
    }
    for (uint32_t i = 0; i < params->n_jobs; i++)
        s->slots[i] = params->n_jobs - 1 - i;
    *out = s;
    return TERN_OK;
}

void tern_schedule_free(tern_schedule **schedule) {
    if (schedule == NULL || *schedule == NULL)
        return;
    tern_schedule *s = *schedule;
    tern_pages_free(&s->pages);
    tern_pages_free(&s->window_pages);
    free((void *)s->running);
    free((void *)s->waiting);
    free(s->tables);
    free(s->window_tables);
    free(s->slots);
    free(s);
    *schedule = NULL;
}

uint32_t tern_schedule_waiting(const tern_schedule *s) {
    return s->n_waiting;
}
uint32_t tern_schedule_running(const tern_schedule *s) {
    return s->n_running;
}
const tern_pages *tern_schedule_pages(const tern_schedule *s) {
    return s->pages;
}
const tern_pages *tern_schedule_window_pages(const tern_schedule *s) {
    return s->window_pages;
}
tern_schedule_totals tern_schedule_done(const tern_schedule *s) {
    return s->totals;
}
void tern_schedule_forget(tern_schedule *s) {
    tern_pages_forget(s->pages);
    if (s->window_pages != NULL)
        tern_pages_forget(s->window_pages);
}

/* ---- the order of jobs ----------------------------------------------------------------------- */

static bool comes_before(const tern_job *a, const tern_job *b) {
    return a->priority != b->priority ? a->priority > b->priority : a->number < b->number;
}

static void insert(tern_job **list, uint32_t *n, tern_job *job) {
    uint32_t i = (*n)++;
    for (; i > 0 && comes_before(job, list[i - 1]); i--)
        list[i] = list[i - 1];
    list[i] = job;
}

static void take_out(tern_job **list, uint32_t *n, const tern_job *job) {
    uint32_t i = 0;
    while (list[i] != job)
        i++;
    for (--*n; i < *n; i++)
        list[i] = list[i + 1];
}

tern_status tern_schedule_fits(const tern_schedule *s, uint32_t n_tokens, uint64_t most,
                               tern_error *err) {
    if (n_tokens == 0)
        return tern_fail(err, TERN_ERR_EMPTY, "a request without tokens");
    if (most > s->params.n_ctx)
        return tern_fail(err, TERN_ERR_CONTEXT,
                         "a request of %" PRIu64 " positions exceeds the context of %u", most,
                         s->params.n_ctx);
    if (tern_pages_of((uint32_t)most) > s->params.n_pages)
        return tern_fail(err, TERN_ERR_CONTEXT,
                         "a request of %" PRIu64 " positions exceeds the cache of %" PRIu64, most,
                         (uint64_t)s->params.n_pages * TERN_PAGE);
    return TERN_OK;
}

bool tern_schedule_add(tern_schedule *s, tern_job *job) {
    if (s->n_waiting >= s->params.n_queue)
        return false;
    job->is_running = job->has_read = false;
    job->n_first = job->n_tokens;
    job->computed = job->n_pages = job->promised = job->n_known = 0;
    job->window = (tern_job_window){.pages = NULL};
    job->n_shared = job->set_aside = 0;
    insert(s->waiting, &s->n_waiting, job);
    return true;
}

/* ---- memory of layers with a window ---------------------------------------------------------- */

/* The content of a page of layers with a window is determined by the whole sequence up to its end,
 * for which the page of the other layers at the same index is known. */
static tern_page_key window_key_of(const tern_schedule *s, const tern_job *job, uint32_t i) {
    return (tern_page_key){
        .after = tern_pages_serial(s->pages, job->pages[i]),
        .space = job->space,
        .tokens = job->tokens + (size_t)i * TERN_PAGE,
    };
}

/* Counts how many of the job's first n pages, which are known, can be shared: those for which the
 * window before their end is known as well. */
static uint32_t find_windows(const tern_schedule *s, tern_job *job, uint32_t n) {
    tern_job_window *w = &job->window;
    uint32_t found = 0; /* consecutive known pages, up to page i */
    uint32_t most = 0;
    for (uint32_t i = 0; i < n; i++) {
        const tern_page_key key = window_key_of(s, job, i);
        const uint32_t first = tern_window_first(s->params.window, (i + 1) * TERN_PAGE);
        w->pages[i] = tern_pages_find(s->window_pages, &key);
        found = w->pages[i] != TERN_NO_PAGE ? found + 1 : 0;
        if (i + 1 - first <= found) {
            most = i + 1;
            w->first = first;
        }
    }
    return most;
}

/* Opens the window of a job that goes on after n shared pages; true if layers with a window have no
 * pages of their own. */
static bool open_window(tern_schedule *s, tern_job *job, uint32_t n) {
    const tern_schedule_params *p = &s->params;
    return s->window_pages == NULL ||
           tern_window_open(s->window_pages, &job->window,
                            tern_window_quota(p->window, p->n_batch, job->most),
                            tern_window_first(p->window, n * TERN_PAGE), n);
}

/* The same with new pages, to be filled, for the tokens that follow `all` pages. */
static bool open_last_window(tern_schedule *s, tern_job *job, uint32_t all) {
    if (s->window_pages == NULL)
        return true;
    const uint32_t first = tern_window_first(s->params.window, all * TERN_PAGE);
    return tern_window_open(s->window_pages, &job->window, all - first, first, first);
}

/* ---- memory of a job ------------------------------------------------------------------------- */

/* Releases pages from the last one to the first, so that the first is the most recently used: a
 * page must be evicted after the pages that follow it. */
static void release(tern_schedule *s, tern_job *job) {
    while (job->n_pages > 0)
        tern_pages_release(s->pages, job->pages[--job->n_pages]);
    tern_pages_unreserve(s->pages, job->promised);
    job->promised = job->computed = job->n_known = 0;
    if (s->window_pages != NULL)
        tern_window_close(s->window_pages, &job->window);
}

static void stop(tern_schedule *s, tern_job *job) {
    take_out(s->running, &s->n_running, job);
    release(s, job);
    job->is_running = false;
    s->slots[s->params.n_jobs - 1 - s->n_running] = job->slot;
}

void tern_schedule_remove(tern_schedule *s, tern_job *job) {
    if (job->is_running)
        stop(s, job);
    else
        take_out(s->waiting, &s->n_waiting, job);
}

static void set_aside(tern_schedule *s, tern_job *job) {
    stop(s, job);
    job->set_aside++;
    s->totals.set_aside++;
    job->n_guesses = 0;
    insert(s->waiting, &s->n_waiting, job);
}

/* End of the positions that are promised to a job at a time. */
static uint32_t horizon(const tern_job *job) {
    return job->most - job->n_tokens < job->ahead ? job->most : job->n_tokens + job->ahead;
}

static tern_page_key key_of(const tern_schedule *s, const tern_job *job, uint32_t i) {
    return (tern_page_key){
        .after = i > 0 ? tern_pages_serial(s->pages, job->pages[i - 1]) : 0,
        .space = job->space,
        .tokens = job->tokens + (size_t)i * TERN_PAGE,
    };
}

/* Finds pages that hold the first tokens of a job, at most `most`, and puts them into its table. */
static uint32_t find_known(const tern_schedule *s, tern_job *job, uint32_t most) {
    uint32_t n = 0;
    for (; n < most; n++) {
        const tern_page_key key = key_of(s, job, n);
        const uint32_t page = tern_pages_find(s->pages, &key);
        if (page == TERN_NO_PAGE)
            break;
        job->pages[n] = page;
    }
    return n;
}

/* The same, but only the pages that can be shared. */
static uint32_t find_shared(const tern_schedule *s, tern_job *job, uint32_t most) {
    const uint32_t n = find_known(s, job, most);
    return s->window_pages != NULL ? find_windows(s, job, n) : n;
}

/* True if there is memory for `all` pages of a job, the first `shared` of which are shared. */
static bool has_room(const tern_schedule *s, const tern_job *job, uint32_t shared, uint32_t all) {
    uint32_t used = 0;
    for (uint32_t i = 0; i < shared; i++)
        used += tern_pages_users(s->pages, job->pages[i]) > 0;
    return all - used <= tern_pages_available(s->pages);
}

/* Gives a job known pages of its first tokens, and promises it others, `all` pages together. */
static void share_and_promise(tern_schedule *s, tern_job *job, uint32_t shared, uint32_t all) {
    for (uint32_t i = 0; i < shared; i++)
        (void)tern_pages_share(s->pages, job->pages[i]); /* has_room has counted it */
    (void)tern_pages_reserve(s->pages, all - shared);
    job->promised = all - shared;
    job->n_pages = job->n_known = shared;
    job->computed = shared * TERN_PAGE;
}

/* Starts a waiting job; false when its memory is not available. The last token is always computed,
 * because its result is needed, and so are the rows that the job wants. */
static bool admit(tern_schedule *s, tern_job *job) {
    const uint32_t last = job->n_tokens - 1;
    const uint32_t most = (job->wants ? smaller(job->wanted_from, last) : last) / TERN_PAGE;
    job->slot = s->slots[s->params.n_jobs - 1 - s->n_running];
    job->pages = s->tables + (size_t)job->slot * s->pages_each;
    job->window.pages = s->window_tables + (size_t)job->slot * s->pages_each;
    const uint32_t shared = find_shared(s, job, most), all = tern_pages_of(horizon(job));
    if (!has_room(s, job, shared, all) || !open_window(s, job, shared))
        return false;
    share_and_promise(s, job, shared, all);
    job->n_shared = job->computed;
    job->is_running = true;
    s->totals.shared += job->n_shared;
    take_out(s->waiting, &s->n_waiting, job);
    insert(s->running, &s->n_running, job);
    return true;
}

static bool must_wait(const tern_job *job) {
    return job->first != NULL && !job->first->has_read;
}

static void admit_all(tern_schedule *s) {
    uint32_t i = 0;
    while (i < s->n_waiting && s->n_running < s->params.n_jobs) {
        tern_job *job = s->waiting[i];
        if (must_wait(job))
            i++;
        else if (!admit(s, job)) /* an admitted job leaves the list */
            return;
    }
}

/* Promises memory for that many positions of a running job, up to its horizon where there is
 * enough. */
static bool extend(tern_schedule *s, tern_job *job, uint32_t positions) {
    const uint32_t have = job->n_pages + job->promised;
    if (tern_pages_of(positions) <= have)
        return true;
    const uint32_t wish = tern_pages_of(horizon(job)) - have;
    const uint32_t need = tern_pages_of(positions) - have;
    const uint32_t n = wish > need && tern_pages_reserve(s->pages, wish) ? wish : need;
    if (n == need && !tern_pages_reserve(s->pages, need))
        return false;
    job->promised += n;
    return true;
}

/* Makes room for the positions that the next pass needs; drops guesses that do not fit. */
static bool extend_or_trim(tern_schedule *s, tern_job *job) {
    const uint32_t room = job->most - job->n_tokens;
    job->n_guesses = smaller(job->n_guesses, room);
    if (extend(s, job, job->n_tokens + job->n_guesses))
        return true;
    job->n_guesses = 0;
    return extend(s, job, job->n_tokens);
}

/* Makes room for the next token of every running job; false when some of them were set aside for
 * it. */
static bool extend_all(tern_schedule *s) {
    bool enough = true;
    for (uint32_t i = 0; i < s->n_running; i++)
        while (i < s->n_running && !extend_or_trim(s, s->running[i])) {
            set_aside(s, s->running[s->n_running - 1]);
            enough = false;
        }
    return enough;
}

/* ---- a pass ---------------------------------------------------------------------------------- */

static void take_pages(tern_schedule *s, tern_job *job, uint32_t positions) {
    while (job->n_pages < tern_pages_of(positions)) {
        job->pages[job->n_pages++] = tern_pages_take(s->pages);
        job->promised--;
    }
    if (s->window_pages != NULL)
        tern_window_take(s->window_pages, &job->window, tern_pages_of(positions));
}

static tern_plan_span span_of(tern_schedule *s, tern_job *job, uint32_t n) {
    take_pages(s, job, job->computed + n);
    return tern_plan_next(job, n);
}

tern_plan_span tern_plan_next(tern_job *job, uint32_t n) {
    const uint32_t end = job->computed + n;
    const uint32_t picks = end >= job->n_tokens ? end - job->n_tokens + 1 : 0;
    const uint32_t rest = job->wants && job->wanted_from < end ? end - job->wanted_from : 0;
    return (tern_plan_span){.job = job,
                            .position = job->computed,
                            .n = n,
                            .picks = picks,
                            .wanted = rest > picks ? smaller(rest, n) : picks};
}

/* Most rows of a pass when that many jobs decode. */
static uint32_t rows_of_pass(const tern_schedule *s, const tern_pass_costs *costs, double gap,
                             uint32_t n_decode) {
    if (n_decode == 0 || gap <= 0.0)
        return s->params.n_batch;
    const uint32_t rows = tern_pass_costs_rows(costs, gap, s->params.n_batch);
    return rows > n_decode ? rows : n_decode;
}

size_t tern_schedule_plan(tern_schedule *s, const tern_pass_costs *costs, double gap,
                          tern_plan_span *spans) {
    if (extend_all(s))
        admit_all(s);
    uint32_t n_decode = 0;
    for (uint32_t i = 0; i < s->n_running; i++)
        n_decode += tern_job_decodes(s->running[i]);
    const uint32_t n_read = s->n_running - n_decode;
    const uint32_t rows = rows_of_pass(s, costs, gap, n_decode);
    uint32_t left = rows - n_decode;
    if (left == 0 && n_read > 0 && n_decode < s->params.n_batch)
        left = 1; /* for the first job that reads, so that it makes progress */
    uint32_t guesses = left - smaller(left, n_read > 0);
    size_t n = 0;
    for (uint32_t i = 0; i < s->n_running; i++) {
        tern_job *job = s->running[i];
        if (!tern_job_decodes(job))
            continue;
        job->n_guesses = smaller(job->n_guesses, guesses);
        guesses -= job->n_guesses;
        left -= job->n_guesses;
        spans[n++] = span_of(s, job, 1 + job->n_guesses);
    }
    for (uint32_t i = 0; i < s->n_running && left > 0; i++) {
        tern_job *job = s->running[i];
        if (tern_job_decodes(job))
            continue;
        const uint32_t piece = smaller(job->n_tokens - job->computed, left);
        if (s->params.whole && piece < job->n_tokens)
            continue;
        left -= piece;
        spans[n++] = span_of(s, job, piece);
    }
    return n;
}

/* Makes full pages known by the job's tokens. */
static void make_known(tern_schedule *s, tern_job *job) {
    for (; (job->n_known + 1) * TERN_PAGE <= job->computed; job->n_known++) {
        const tern_page_key key = key_of(s, job, job->n_known);
        job->pages[job->n_known] = tern_pages_know(s->pages, job->pages[job->n_known], &key);
    }
    while (s->window_pages != NULL && job->window.known < job->n_known) {
        const tern_page_key key = window_key_of(s, job, job->window.known);
        tern_window_know(s->window_pages, &job->window, &key);
    }
}

void tern_schedule_computed(tern_schedule *s, const tern_plan_span *span, uint32_t kept) {
    tern_job *job = span->job;
    job->computed += kept;
    job->n_guesses = 0;
    job->has_read |= job->computed >= job->n_first;
    if (!s->params.whole && !s->params.apart)
        make_known(s, job);
    if (s->window_pages != NULL) /* release pages that no later token of the job sees */
        tern_window_leave(s->window_pages, &job->window,
                          tern_window_first(s->params.window, job->computed));
}

/* ---- sequences that are computed elsewhere --------------------------------------------------- */

uint32_t tern_schedule_find(const tern_schedule *s, tern_job *job) {
    return find_shared(s, job, job->n_tokens / TERN_PAGE);
}

bool tern_schedule_lend(tern_schedule *s, tern_job *job) {
    const uint32_t all = job->n_tokens / TERN_PAGE;
    const uint32_t shared = find_known(s, job, all);
    if (!has_room(s, job, shared, all) || !open_last_window(s, job, all))
        return false;
    share_and_promise(s, job, shared, all);
    take_pages(s, job, all * TERN_PAGE);
    return true;
}

void tern_schedule_take_back(tern_schedule *s, tern_job *job, bool filled) {
    if (filled) {
        job->computed = job->n_pages * TERN_PAGE;
        make_known(s, job);
    }
    release(s, job);
}

/* ---- consistency ----------------------------------------------------------------------------- */

static bool list_is_sound(tern_job *const *list, uint32_t n, bool running) {
    for (uint32_t i = 0; i < n; i++)
        if (list[i]->is_running != running || (i > 0 && !comes_before(list[i - 1], list[i])))
            return false;
    return true;
}

/* How often a page is in the tables of running jobs. */
static uint32_t uses_of(const tern_schedule *s, uint32_t page) {
    uint32_t uses = 0;
    for (uint32_t i = 0; i < s->n_running; i++)
        for (uint32_t j = 0; j < s->running[i]->n_pages; j++)
            uses += s->running[i]->pages[j] == page;
    return uses;
}

/* The same for pages of layers with a window. */
static uint32_t window_uses_of(const tern_schedule *s, uint32_t page) {
    uint32_t uses = 0;
    for (uint32_t i = 0; i < s->n_running; i++) {
        const tern_job_window *w = &s->running[i]->window;
        for (uint32_t j = w->first; j < w->end; j++)
            uses += w->pages[j] == page;
    }
    return uses;
}

/* True if every job has the pages that its next token sees, no more than its quota, and a promise
 * of the rest. */
static bool windows_are_sound(const tern_schedule *s) {
    uint32_t quotas = 0;
    for (uint32_t i = 0; i < s->n_running; i++) {
        const tern_job *job = s->running[i];
        const tern_job_window *w = &job->window;
        quotas += w->quota;
        if (w->first != tern_window_first(s->params.window, job->computed) ||
            w->end < tern_pages_of(job->computed) || w->end - w->first > w->quota)
            return false;
    }
    for (uint32_t i = 0; i < s->params.n_window_pages; i++)
        if (window_uses_of(s, i) != tern_pages_users(s->window_pages, i))
            return false;
    const tern_page_counts counts = tern_pages_count(s->window_pages);
    return quotas == counts.reserved + counts.used && tern_pages_sound(s->window_pages);
}

bool tern_schedule_sound(const tern_schedule *s) {
    uint32_t promised = 0;
    for (uint32_t i = 0; i < s->n_running; i++) {
        const tern_job *job = s->running[i];
        promised += job->promised;
        if (job->computed > job->n_tokens || job->n_tokens > job->most + 1 ||
            tern_pages_of(job->computed) > job->n_pages)
            return false;
    }
    for (uint32_t i = 0; i < s->params.n_pages; i++)
        if (uses_of(s, i) != tern_pages_users(s->pages, i))
            return false;
    return promised == tern_pages_count(s->pages).reserved &&
           list_is_sound(s->running, s->n_running, true) &&
           list_is_sound(s->waiting, s->n_waiting, false) && tern_pages_sound(s->pages) &&
           (s->window_pages == NULL || windows_are_sound(s));
}
