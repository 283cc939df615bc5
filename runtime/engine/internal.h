/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_INTERNAL_H
#define TERN_RUNTIME_ENGINE_INTERNAL_H

/* What an engine is made of: engine.c, saved.c and size.c are what users call, pass.c computes, and
 * slot.c takes the place of the schedule where the engine is a session's. */

#include <pthread.h>

#include "runtime/engine/branch.h"
#include "runtime/engine/cache/pool.h"
#include "runtime/engine/forward/runner.h"

/* A span of the running pass, and what came of its rows so far. */
typedef struct tern_engine_span {
    tern_branch *branch;
    size_t first;   /* of its rows that pick; before it lie those that only report */
    uint32_t taken; /* of these, from which a token was picked */
    bool goes_on;   /* the next row's token is to be picked */
} tern_engine_span;

struct tern_engine {
    const tern_model *model;
    tern_session *session;     /* whose sequence the only slot is; NULL: pages are scheduled */
    uint32_t slot_start;       /* where the session stood when the slot's request came */
    tern_branch lent;          /* of tern_generate, in the slot */
    tern_engine_params params; /* without zeros for defaults */
    tern_pool_size size;       /* of the pool */
    tern_branch_frame frame;
    uint32_t n_branches; /* that there may be at once */
    uint32_t n_picks;    /* rows of logits that are there at once */
    int refused;         /* errno of the first place that the system refused to the pool */

    /* of the thread that makes steps */
    tern_pool *pool; /* the engine's own, or the session's, as is the runner */
    tern_pool own_pool;
    tern_runner *runner;
    tern_schedule *schedule; /* NULL: of a session */
    tern_pass_costs costs;
    tern_draft_costs draft_costs; /* of passes in which all sequences decode */
    tern_branch **now;            /* [n_now <= n_branches] those of this step */
    size_t n_now;
    tern_branch **over; /* [n_over <= n_branches] whose events wait to be read */
    size_t n_over;
    tern_event *events; /* [n_batch + n_branches] */
    size_t n_events;
    tern_plan_span *plan; /* [n_sequences], as are the next five */
    tern_pass_span *passing;
    tern_engine_span *spans;
    size_t n_spans;
    tern_pick *picks;
    tern_engine_span **picking; /* whose picks these are */
    double *sums;               /* [n_picks] */
    uint64_t *allowed;          /* [n_sequences][words] */
    size_t words;               /* of a set of tokens */

    pthread_mutex_t lock; /* of all that follows */
    tern_branch **live;   /* [n_live <= n_branches] in the order in which they came */
    size_t n_live;
    uint64_t requests, numbers; /* so far */
    tern_engine_state state;
};

double tern_engine_clock(const tern_engine *e);

/* Parameters with defaults in place of zeros, but for n_ahead and pool_bytes; refuses what a
 * session would refuse. size.c. */
TERN_MUST_CHECK tern_status tern_engine_set_params(const tern_model *model,
                                                   const tern_engine_params *given,
                                                   tern_engine_params *out, tern_error *err);

/* How many pages these give. TERN_ERR_ARG, TERN_ERR_NOMEM. */
TERN_MUST_CHECK tern_status tern_engine_find_pages(const tern_model *model,
                                                   const tern_engine_params *params,
                                                   tern_pool_size *size, tern_error *err);

/* Room for lists of what happens; params, n_branches, n_picks and frame are set. TERN_ERR_NOMEM. */
TERN_MUST_CHECK tern_status tern_engine_reserve(tern_engine *e, tern_error *err);

/* New branches of one request, from now on to be computed; their number is within the queue.
 * Returns the request's id. Under the lock. */
uint64_t tern_engine_enter(tern_engine *e, tern_branch *const *branches, uint32_t n);

/* An event of a branch, to be filled. */
tern_event *tern_engine_event(tern_engine *e, const tern_branch *b, tern_event_kind kind);

/* Shows what the pages are now to those who ask for the state; takes the lock. */
void tern_engine_show(tern_engine *e);

/* Computes the planned pass of n spans and takes what it gives; branches that it ends are over. */
void tern_engine_pass(tern_engine *e, size_t n);

#endif
