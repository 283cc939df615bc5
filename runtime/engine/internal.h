/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_INTERNAL_H
#define TERN_RUNTIME_ENGINE_INTERNAL_H

/* The parts of an engine: engine.c, saved.c and size.c hold the public functions, pass.c computes,
 * guess.c asks for guesses, and slot.c replaces the schedule where the engine belongs to a session.
 */

#include <pthread.h>

#include "runtime/engine/branch.h"
#include "runtime/engine/cache/pool.h"
#include "runtime/engine/forward/runner.h"

/* A span of the running pass, and the results of its rows so far. */
typedef struct tern_engine_span {
    tern_branch *branch;
    size_t first;   /* of its rows that pick; those before it only report */
    uint32_t taken; /* rows from which a token was picked */
    bool goes_on;   /* the next row's token is still to be picked */
} tern_engine_span;

struct tern_engine {
    const tern_model *model;
    tern_session *session;     /* whose sequence is the only slot; NULL: pages are scheduled */
    uint32_t slot_start;       /* the session's position when the slot's request came */
    tern_branch lent;          /* the branch of tern_generate, in the slot */
    tern_engine_params params; /* with defaults instead of zeros */
    tern_pool_size size;       /* of the pool */
    tern_branch_frame frame;
    uint32_t n_branches; /* most branches at once */
    uint32_t n_picks;    /* rows of logits kept at once */
    int refused;         /* errno of the first place that the system refused for the pool */

    /* used only by the thread that makes steps */
    tern_pool *pool; /* the engine's own, or the session's; the same holds for the runner */
    tern_pool own_pool;
    tern_runner *runner;
    tern_schedule *schedule; /* NULL: the engine of a session */
    tern_pass_costs costs;
    tern_draft_costs draft_costs; /* of passes in which all sequences decode */
    tern_drafter *drafter;        /* NULL: there is no second model */
    tern_drafting *drafting;      /* [n_sequences], if there is */
    tern_branch **drafted;        /* the branches of these */
    tern_branch **now;            /* [n_now <= n_branches] the branches of this step */
    size_t n_now;
    tern_branch **over; /* [n_over <= n_branches] branches whose events are still to be read */
    size_t n_over;
    tern_event *events; /* [n_batch + n_branches] */
    size_t n_events;
    tern_plan_span *plan; /* [n_sequences], like the next five arrays */
    tern_pass_span *passing;
    tern_engine_span *spans;
    size_t n_spans;
    tern_pick *picks;
    tern_engine_span **picking; /* the spans of these picks */
    double *sums;               /* [n_picks] */
    uint64_t *allowed;          /* [n_sequences][words] */
    size_t words;               /* in a set of tokens */

    pthread_mutex_t lock; /* guards all fields below */
    tern_branch **live;   /* [n_live <= n_branches] in order of arrival */
    size_t n_live;
    uint64_t requests, numbers; /* so far */
    tern_engine_state state;
};

double tern_engine_clock(const tern_engine *e);

/* Fills in defaults for zeros, except in n_ahead and pool_bytes; refuses parameters that a session
 * would refuse. In size.c. */
TERN_MUST_CHECK tern_status tern_engine_set_params(const tern_model *model,
                                                   const tern_engine_params *given,
                                                   tern_engine_params *out, tern_error *err);

/* The number of pages that the parameters give. TERN_ERR_ARG, TERN_ERR_NOMEM. */
TERN_MUST_CHECK tern_status tern_engine_find_pages(const tern_model *model,
                                                   const tern_engine_params *params,
                                                   tern_pool_size *size, tern_error *err);

/* Allocates the engine's lists; params, n_branches, n_picks and frame must be set.
 * TERN_ERR_NOMEM. */
TERN_MUST_CHECK tern_status tern_engine_reserve(tern_engine *e, tern_error *err);

/* Adds the new branches of one request, to be computed from now on; the caller has checked that the
 * queue has room. Returns the request's id. Under the lock. */
uint64_t tern_engine_enter(tern_engine *e, tern_branch *const *branches, uint32_t n);

/* Adds an event of a branch; the caller fills it. */
tern_event *tern_engine_event(tern_engine *e, const tern_branch *b, tern_event_kind kind);

/* Updates the state that other threads see, after pages changed; takes the lock. */
void tern_engine_show(tern_engine *e);

/* Opens the second model that guesses; NULL: there is none. Errors of tern_drafter_new. */
TERN_MUST_CHECK tern_status tern_engine_open_drafter(tern_engine *e, const tern_model *model,
                                                     tern_error *err);
void tern_engine_close_drafter(tern_engine *e);

/* Asks for guesses for all sequences that decode. */
void tern_engine_guess(tern_engine *e);

/* Computes the planned pass of n spans and takes its results. Branches that end are marked as
 * over. */
void tern_engine_pass(tern_engine *e, size_t n);

#endif
