/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_SCHEDULE_H
#define TERN_RUNTIME_ENGINE_SCHEDULE_H

/*
 * Which sequences run, which tokens of them the next pass computes, and in which pages their keys
 * and values lie. What is decided depends on what was called in which order and on the measurements
 * that are handed in: there is no clock and no arithmetic here, and tests drive it as the engine
 * does.
 *
 * Jobs come in their order: priority, then arrival. A job that waits is admitted when all memory
 * that it may need is there: its tokens and `ahead` positions more. The first one in the order that
 * does not fit holds up those after it, so that no job waits for ever. What its first tokens have
 * in known pages is shared, not computed.
 *
 * Layers with a window may have pages of their own (runtime/engine/cache/pool.h). Of these a job
 * has only those that its next token sees, and leaves the others as it goes on; they stay known.
 * How many it has at once is promised to it when it is admitted (window.h). Known pages of its
 * first tokens are shared up to a place only where the window before that place is known, too.
 *
 * A job whose memory is used up is promised more. Where there is none the last job in the order is
 * set aside: its pages are released, it waits again, and later computes its tokens again, those
 * that were picked too. So the first job in the order always goes on.
 *
 * A pass has a row of every job that decodes. What is left of it goes to jobs that still read their
 * tokens, in order, as far as the time between two tokens of the others allows.
 */

#include "runtime/engine/cache/pages.h"
#include "runtime/engine/cost.h"
#include "runtime/engine/window.h"

/* A sequence as scheduling sees it. Its owner sets the first part. */
typedef struct tern_job tern_job;
struct tern_job {
    uint64_t number;       /* order of arrival, all different */
    int32_t priority;      /* larger first */
    const uint8_t *space;  /* [TERN_SPACE_BYTES]: equal ones may share pages */
    const int32_t *tokens; /* [n_tokens] that are known, then [n_guesses] that are only guessed */
    uint32_t n_tokens;     /* >= 1; grows */
    uint32_t n_guesses;    /* of the next pass */
    uint32_t most;         /* positions that it may ever store, >= n_tokens at first */
    uint32_t ahead;        /* positions after its tokens that are promised at a time */
    const tern_job *first; /* not NULL: begins alike, and is to be waited for until it has_read */
    bool wants;            /* the results of all rows from wanted_from < n_tokens on. They are */
    uint32_t wanted_from;  /* computed, not shared; the owner moves it on as they come */

    /* Set by the schedule. */
    bool is_running;
    bool has_read;     /* all tokens that it had when it was added were computed */
    uint32_t n_first;  /* how many those were */
    uint32_t computed; /* positions whose keys and values are there */
    uint32_t *pages;   /* [n_pages] of its positions, while it runs */
    uint32_t n_pages;
    uint32_t promised;      /* pages beside these */
    uint32_t n_known;       /* of its pages, whose content is known to tern_pages */
    uint32_t n_shared;      /* tokens found in pages when it was admitted last */
    tern_job_window window; /* pages of layers with a window, where these have theirs apart */
    uint32_t set_aside;     /* how often */
    uint32_t slot;          /* while it runs: 0 .. n_jobs - 1, no two alike */
};

/* Whether the job has computed all its tokens but the last, as one that waits for its next one. */
static inline bool tern_job_decodes(const tern_job *job) {
    return job->computed + 1 == job->n_tokens;
}

typedef struct tern_schedule_params {
    uint32_t n_pages; /* of the cache */
    uint32_t n_ctx;   /* positions of a sequence at most */
    uint32_t n_jobs;  /* that run at once at most, <= n_batch */
    uint32_t n_queue; /* that wait at most, before any of them is admitted */
    uint32_t n_batch; /* rows of a pass */
    uint32_t window;  /* positions that a token sees in layers whose pages are apart; 0: none are */
    uint32_t n_window_pages; /* of those: at least what one job may have */
    bool whole; /* a job's tokens are computed in one pass, and its pages are not another's: what
                   they hold depends on all of them. n_ctx <= n_batch; without windows */
} tern_schedule_params;

/* What a pass computes of a job: n positions from `position` on. */
typedef struct tern_plan_span {
    tern_job *job;
    uint32_t position, n;
    uint32_t picks;  /* a token is picked from this many last rows: 0, or 1 and its guesses */
    uint32_t wanted; /* this many last rows have results, >= picks */
} tern_plan_span;

/* What a pass computes of a job's next n rows. */
tern_plan_span tern_plan_next(tern_job *job, uint32_t n);

typedef struct tern_schedule tern_schedule;

/* TERN_ERR_ARG when params contradict each other, TERN_ERR_NOMEM. */
TERN_MUST_CHECK tern_status tern_schedule_new(const tern_schedule_params *params,
                                              tern_schedule **out, tern_error *err);
void tern_schedule_free(tern_schedule **s);

/*
 * Whether a job of so many tokens that stores `most` positions could ever run: TERN_ERR_EMPTY, else
 * TERN_ERR_CONTEXT with what it needs and what there is. */
TERN_MUST_CHECK tern_status tern_schedule_fits(const tern_schedule *s, uint32_t n_tokens,
                                               uint64_t most, tern_error *err);

/* Lets a job wait that fits; false when n_queue jobs wait. The schedule keeps the pointer until
 * tern_schedule_remove. */
bool tern_schedule_add(tern_schedule *s, tern_job *job);

/* Takes a job out, whether it waits or runs, and releases its pages. Known ones stay cached. */
void tern_schedule_remove(tern_schedule *s, tern_job *job);

/*
 * The next pass: sets aside, admits, and fills spans[n_jobs]; returns how many there are, 0 when
 * nothing runs. gap: seconds that a pass should take at most while jobs decode, by `costs`; 0: any
 * number. Jobs that decode and one row of those that read are in a pass however long it takes.
 */
size_t tern_schedule_plan(tern_schedule *s, const tern_pass_costs *costs, double gap,
                          tern_plan_span *spans);

/*
 * The first `kept` rows of a planned span hold what the job's tokens say; later ones were guesses
 * that came to nothing. Pages that are full now can be found by others. The owner has put what was
 * picked after the job's tokens, one for each row that picks, or takes the job out before the next
 * plan: it must, where it has no position left for the last of them.
 */
void tern_schedule_computed(tern_schedule *s, const tern_plan_span *span, uint32_t kept);

uint32_t tern_schedule_waiting(const tern_schedule *s);
uint32_t tern_schedule_running(const tern_schedule *s);
/* What came of all plans so far. */
typedef struct tern_schedule_totals {
    uint64_t shared; /* tokens found in pages by jobs when they were admitted */
    uint64_t set_aside;
} tern_schedule_totals;

tern_schedule_totals tern_schedule_done(const tern_schedule *s);
const tern_pages *tern_schedule_pages(const tern_schedule *s);
const tern_pages *tern_schedule_window_pages(const tern_schedule *s); /* NULL: there are none */

/*
 * Sequences whose keys and values come from elsewhere, or go there. Of such a job, which is never
 * added, its owner sets tokens, n_tokens, space, and tables of n_tokens / TERN_PAGE: pages, and
 * window.pages where layers with a window have theirs apart.
 */

/* The known pages that hold the first tokens, as far as a job could share them, into the tables;
 * returns how many. Those of layers with a window begin with window.first. */
uint32_t tern_schedule_find(const tern_schedule *s, tern_job *job);

/*
 * Lends the job all pages of its table: the first n_known are known, the others, up to n_pages, are
 * to be filled, and so are all from window.first to window.end. False, and nothing is changed, when
 * there are not enough that no running job has or may need. tern_schedule_take_back before the next
 * plan.
 */
bool tern_schedule_lend(tern_schedule *s, tern_job *job);

/* The job is done with its pages. filled: they hold what its tokens say, and stay cached. */
void tern_schedule_take_back(tern_schedule *s, tern_job *job, bool filled);

/* Forgets what no job uses. */
void tern_schedule_forget(tern_schedule *s);

/* Whether the books of pages, promises and jobs agree; looks at everything, for tests. */
bool tern_schedule_sound(const tern_schedule *s);

#endif
