/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_CROSSVAL_RUN_H
#define TERN_TOOLS_CROSSVAL_RUN_H

/*
 * Cases of a reference, evaluated by tern and compared: logits, the choice of each greedy token,
 * keys and values. tern is given the reference's own tokens throughout, so every step is compared
 * in the same situation; up to the first difference that is what tern would generate by itself.
 */

#include "tern/engine.h"
#include "tools/crossval/compare.h"
#include "tools/crossval/reference.h"

/* A greedy step at which the best tokens differ. */
typedef struct greedy_difference {
    size_t step; /* from 0 */
    int32_t reference, ours;
    double reference_margin; /* its best logit - its second best; NaN: not told */
    double our_margin;       /* tern's best logit - that of the reference's token */
    bool near_tie;           /* reference_margin <= the case's tie_margin */
} greedy_difference;

typedef struct case_result {
    sum_figures logits;         /* every row compared, whole or of some ids */
    size_t whole, top1;         /* rows with all logits; those of them with the same best token */
    double kl_sum, kl_max;      /* over the whole rows, nats */
    bool text_told, text_equal; /* tern's tokenizer gives the reference's tokens for its text */
    size_t steps;               /* of the greedy continuation */
    greedy_difference *differences; /* owned */
    size_t n_differences;
    double tie_margin;          /* see crossval_run; NaN without logits */
    size_t n_layer;             /* of keys and values; 0: not compared */
    sum_figures *keys, *values; /* [n_layer]; a pair is the row of a head at a position; owned */
} case_result;

/* Positions that a sequence needs for the case. */
size_t crossval_positions(const reference_case *c);

/* Whether the keys and values of a case are compared, which takes a session. */
bool crossval_wants_cache(const reference_case *c);

/*
 * Evaluates and compares n cases, whose tokens share the passes of an engine that does nothing
 * else: results[i] of cases[i]. session: with room for each case whose keys and values are compared
 * (what it held is forgotten); NULL where there is none.
 *
 * A difference counts as a near-tie when the reference's own margin is at most 3 sqrt(2) sigma,
 * with sigma the root mean square of the differences of the case's logits: if errors of two logits
 * are independent, their difference has standard deviation sqrt(2) sigma, and three of those are
 * where chance ends.
 *
 * Errors: a file that is missing or has the wrong size, a token id or position that the model does
 * not have, numbers that are not finite. Free the results in any case; zero-initialise them. After
 * an error some cases may still be in the engine, which must not make a step any more.
 */
TERN_MUST_CHECK tern_status crossval_run(tern_engine *engine, const tern_model *model,
                                         tern_session *session, const reference *r,
                                         const reference_case *const *cases, size_t n,
                                         case_result *results, tern_error *err);
void case_result_free(case_result *r);

/* By how much more than the mean a single position may be off. */
#define CROSSVAL_SINGLE 10.0

/*
 * Whether something was compared, the text has its tokens, every difference is a near-tie, and the
 * logits, the keys and the values of each layer have cosines whose mean is at least `tolerance` and
 * each at least 1 - CROSSVAL_SINGLE * (1 - tolerance).
 */
bool crossval_passed(const case_result *r, double tolerance);

/* Steps before the first difference. */
size_t crossval_equal_steps(const case_result *r);

#endif
