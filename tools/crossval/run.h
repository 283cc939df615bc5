/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_CROSSVAL_RUN_H
#define TERN_TOOLS_CROSSVAL_RUN_H

/*
 * Evaluates the cases of a reference with tern and compares logits, the choice of each greedy
 * token, keys and values. tern always gets the reference's own tokens, so every step is compared in
 * the same situation. Up to the first difference this is what tern would generate by itself.
 */

#include "tern/engine.h"
#include "tools/crossval/compare.h"
#include "tools/crossval/reference.h"

/* A greedy step at which the best tokens differ. */
typedef struct greedy_difference {
    size_t step; /* from 0 */
    int32_t reference, ours;
    double reference_margin; /* its best logit - its second best; NaN: not recorded */
    double our_margin;       /* tern's best logit - that of the reference's token */
    bool near_tie;           /* reference_margin <= the case's tie_margin */
} greedy_difference;

typedef struct case_result {
    sum_figures logits;         /* every row compared, with all or some logits */
    size_t whole, top1;         /* rows with all logits; those of them with the same best token */
    double kl_sum, kl_max;      /* over rows with all logits, in nats */
    bool text_told, text_equal; /* tern's tokenizer gives the reference's tokens for its text */
    size_t steps;               /* of the greedy continuation */
    greedy_difference *differences; /* owned */
    size_t n_differences;
    double tie_margin;          /* see crossval_run; NaN without logits */
    size_t n_layer;             /* with keys and values; 0: not compared */
    sum_figures *keys, *values; /* [n_layer]; a pair is one head's row at one position; owned */
} case_result;

/* Positions that a sequence of the case needs. */
size_t crossval_positions(const reference_case *c);

/* True if the keys and values of a case are compared, which needs a session. */
bool crossval_wants_cache(const reference_case *c);

/*
 * Evaluates and compares n cases; results[i] belongs to cases[i]. Their tokens share the passes of
 * an engine that does nothing else. session must have room for each case whose keys and values are
 * compared (its contents are lost); NULL if there is none.
 *
 * A difference counts as a near-tie if the reference's own margin is at most 3 sqrt(2) sigma, where
 * sigma is the root mean square of the differences of the case's logits: if the errors of two
 * logits are independent, their difference has standard deviation sqrt(2) sigma, and beyond three
 * of those chance is unlikely.
 *
 * Errors: a file is missing or has the wrong size, the model does not have a token id or position,
 * or numbers are not finite. Zero-initialise the results and free them. After an error some cases
 * may still be in the engine, which must not make another step.
 */
TERN_MUST_CHECK tern_status crossval_run(tern_engine *engine, const tern_model *model,
                                         tern_session *session, const reference *r,
                                         const reference_case *const *cases, size_t n,
                                         case_result *results, tern_error *err);
void case_result_free(case_result *r);

/* The factor by which a single position may deviate more than the mean. */
#define CROSSVAL_SINGLE 10.0

/*
 * True if something was compared, the text has its tokens, every difference is a near-tie, and the
 * cosines of the logits and of each layer's keys and values have a mean of at least `tolerance` and
 * are each at least 1 - CROSSVAL_SINGLE * (1 - tolerance).
 */
bool crossval_passed(const case_result *r, double tolerance);

/* The number of steps before the first difference. */
size_t crossval_equal_steps(const case_result *r);

#endif
