/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_SCHEDULE_H
#define TERN_RUNTIME_ENGINE_SCHEDULE_H

/*
 * Decides which sequences run, which of their tokens the next pass computes, and in which pages
 * their keys and values lie. Decisions depend only on the order of the calls and on the
 * measurements that are handed in: there is no clock and no arithmetic on tensors here, and tests
 * call it as the engine does.
 *
 * Jobs are ordered by priority, then by arrival. A waiting job is admitted when all the memory that
 * it may need is available: for its tokens and `ahead` further positions. The first one in the
 * order that does not fit holds up those after it, so that no job waits for ever. First tokens of a
 * job that are in known pages are shared, not computed.
 *
 * Layers with a window may have pages of their own (runtime/engine/cache/pool.h). A job has only
 * those of these pages that its next token sees, and releases the others as it goes on; they stay
 * known. The number that it has at once is promised to it when it is admitted (window.h). Known
 * pages of its first tokens are shared up to a position only if the window before that position is
 * known, too.
 *
 * A job that has used up its memory is promised more. If there is none, the last job in the order
 * is set aside: its pages are released, it waits again, and later computes its tokens again,
 * including those that were picked. So the first job in the order always goes on.
 *
 * A pass has a row for every job that decodes. The other rows go to jobs that still read their
 * tokens, in order, as many as the allowed time between two tokens of the decoding jobs permits.
 */

#include "runtime/engine/cache/pages.h"
#include "runtime/engine/cost.h"
#include "runtime/engine/window.h"

/* A sequence as the schedule sees it. Its owner sets the first part. */
typedef struct tern_job tern_job;
struct tern_job {
    uint64_t number;       /* order of arrival, all different */
    int32_t priority;      /* larger first */
    const uint8_t *space;  /* [TERN_SPACE_BYTES]: jobs with equal ones may share pages */
    const int32_t *tokens; /* [n_tokens] known, then [n_guesses] only guessed */
    uint32_t n_tokens;     /* >= 1; grows */
    uint32_t n_guesses;    /* for the next pass */
    uint32_t most;         /* positions that it may ever store, >= n_tokens at first */
    uint32_t ahead;        /* positions after its tokens that are promised at a time */
    const tern_job *first; /* not NULL: it begins alike, and this job waits until it has_read */
    bool wants;            /* wants results of all rows from wanted_from < n_tokens on. They */
    uint32_t wanted_from;  /* are computed, not shared; the owner advances it as they come */

    /* Set by the schedule. */
    bool is_running;
    bool has_read;     /* all tokens that it had when it was added are computed */
    uint32_t n_first;  /* the number of those tokens */
    uint32_t computed; /* positions whose keys and values are stored */
    uint32_t *pages;   /* [n_pages] of its positions, while it runs */
    uint32_t n_pages;
    uint32_t promised;      /* further pages promised */
    uint32_t n_known;       /* of its pages: the content is known to tern_pages */
    uint32_t n_shared;      /* tokens found in pages at its last admission */
    tern_job_window window; /* pages of layers with a window, if they have their own */
    uint32_t set_aside;     /* how many times */
    uint32_t slot;          /* while it runs: 0 .. n_jobs - 1, all different */
};

/* True if the job has computed all its tokens but the last, and waits for its next one. */
static inline bool tern_job_decodes(const tern_job *job) {
    return job->computed + 1 == job->n_tokens;
}

typedef struct tern_schedule_params {
    uint32_t n_pages; /* of the cache */
    uint32_t n_ctx;   /* most positions of a sequence */
    uint32_t n_jobs;  /* most running jobs, <= n_batch */
    uint32_t n_queue; /* most waiting jobs that were not admitted yet */
    uint32_t n_batch; /* rows of a pass */
    uint32_t window;  /* positions that a token sees in layers with their own pages; 0: none */
    uint32_t n_window_pages; /* pages of those layers: at least what one job may have */
    bool apart; /* jobs share no pages, because what follows them needs more than pages */
    bool whole; /* all tokens of a job are computed in one pass, and it shares no pages, because
                   their content depends on all tokens. n_ctx <= n_batch; without windows */
} tern_schedule_params;

/* The part of a job that a pass computes: n positions from `position` on. */
typedef struct tern_plan_span {
    tern_job *job;
    uint32_t position, n;
    uint32_t picks;  /* number of last rows from which a token is picked: 0, or 1 and its guesses */
    uint32_t wanted; /* number of last rows that have results, >= picks */
} tern_plan_span;

/* The plan for a job's next n rows. */
tern_plan_span tern_plan_next(tern_job *job, uint32_t n);

typedef struct tern_schedule tern_schedule;

/* TERN_ERR_ARG when params contradict each other, TERN_ERR_NOMEM. */
TERN_MUST_CHECK tern_status tern_schedule_new(const tern_schedule_params *params,
                                              tern_schedule **out, tern_error *err);
void tern_schedule_free(tern_schedule **s);

/*
 * Checks that a job of n_tokens tokens that stores `most` positions could ever run: TERN_ERR_EMPTY,
 * else TERN_ERR_CONTEXT with the number it needs and the number available.
 */
TERN_MUST_CHECK tern_status tern_schedule_fits(const tern_schedule *s, uint32_t n_tokens,
                                               uint64_t most, tern_error *err);

/* Puts a job that fits into the queue; false when n_queue jobs wait. The schedule keeps the pointer
 * until tern_schedule_remove. */
bool tern_schedule_add(tern_schedule *s, tern_job *job);

/* Removes a job, waiting or running, and releases its pages. Known ones stay cached. */
void tern_schedule_remove(tern_schedule *s, tern_job *job);

/*
 * Plans the next pass: sets jobs aside, admits others, and fills spans[n_jobs]. Returns the number
 * of spans, 0 when nothing runs. gap: seconds that a pass should take at most while jobs decode, by
 * `costs`; 0: no limit. Decoding jobs and one row of those that read are in every pass, however
 * long it takes.
 */
size_t tern_schedule_plan(tern_schedule *s, const tern_pass_costs *costs, double gap,
                          tern_plan_span *spans);

/*
 * Takes the result of a planned span. Its first `kept` rows hold tokens of the job; later ones were
 * wrong guesses. Other jobs can now find pages that became full. The owner appends the picked
 * tokens to the job's, one for each row that picks, or removes the job before the next plan. It
 * must remove a job that has no position left for the last of them.
 */
void tern_schedule_computed(tern_schedule *s, const tern_plan_span *span, uint32_t kept);

uint32_t tern_schedule_waiting(const tern_schedule *s);
uint32_t tern_schedule_running(const tern_schedule *s);
/* Totals of all plans so far. */
typedef struct tern_schedule_totals {
    uint64_t shared; /* tokens that admitted jobs found in pages */
    uint64_t set_aside;
} tern_schedule_totals;

tern_schedule_totals tern_schedule_done(const tern_schedule *s);
const tern_pages *tern_schedule_pages(const tern_schedule *s);
const tern_pages *tern_schedule_window_pages(const tern_schedule *s); /* NULL: none */

/*
 * Sequences whose keys and values come from elsewhere, or go there. The owner of such a job, which
 * is never added, sets tokens, n_tokens, space, and tables of n_tokens / TERN_PAGE entries: pages,
 * and window.pages if layers with a window have pages of their own.
 */

/* Finds the known pages that hold the first tokens, as many as a job could share, and puts them
 * into the tables; returns how many. Those of layers with a window begin at window.first. */
uint32_t tern_schedule_find(const tern_schedule *s, tern_job *job);

/*
 * Lends the job all pages of its table: the first n_known are known, the others, up to n_pages, are
 * to be filled, and so are all from window.first to window.end. If there are not enough pages that
 * no running job has or may need, the result is false and nothing changes. Call
 * tern_schedule_take_back before the next plan.
 */
bool tern_schedule_lend(tern_schedule *s, tern_job *job);

/* Takes the pages back. filled: they hold the job's tokens, and stay cached. */
void tern_schedule_take_back(tern_schedule *s, tern_job *job, bool filled);

/* Forgets the content of pages that no job uses. */
void tern_schedule_forget(tern_schedule *s);

/* True if the accounts of pages, promises and jobs agree. Looks at everything; for tests. */
bool tern_schedule_sound(const tern_schedule *s);

#endif
