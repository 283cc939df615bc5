/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RECEIPTS_RERUN_H
#define TERN_RECEIPTS_RERUN_H

/* Repeats a recorded answer and compares it step by step with the record. */

#include "receipts/watch.h"
#include "tern/engine.h"

/* The record of an answer; everything is borrowed. */
typedef struct rerun_plan {
    tern_request ask;      /* as it was asked for; `user` is the mask's */
    const int32_t *tokens; /* [n_tokens] that must be picked */
    size_t n_tokens;
    const receipt_point *points; /* [n_points]; points after n_tokens are ignored */
    size_t n_points;
    const char *end;    /* the name of its end; NULL: any */
    const char *digest; /* of its hidden states; NULL: any */
} rerun_plan;

typedef enum rerun_part {
    RERUN_SAME,
    RERUN_TOKEN,
    RERUN_LOGITS,
    RERUN_END,
    RERUN_HIDDEN
} rerun_part;

/* The first difference. */
typedef struct rerun_result {
    rerun_part part;
    uint64_t position;        /* generated tokens before it */
    int32_t expected, got;    /* RERUN_TOKEN; -1: none, the answer is over */
    tern_end end;             /* RERUN_END: in this run */
    char digest[RECEIPT_HEX]; /* RERUN_LOGITS, RERUN_HIDDEN: in this run */
} rerun_result;

/*
 * Asks the engine of an empty session again, within its context, and stops at the first difference.
 * Errors are the engine's.
 */
TERN_MUST_CHECK tern_status receipt_rerun(tern_session *session, const rerun_plan *plan,
                                          rerun_result *out, tern_error *err);

/* The threads and batch that a second repetition uses instead of a run's, for a prompt of n tokens.
 * The batch divides the prompt differently, if it can be divided. */
uint32_t receipt_other_threads(uint32_t threads);
uint32_t receipt_other_batch(uint32_t batch, uint64_t n);

/* Describes a difference without a newline: "output.ids[17]: recorded 512, this run picks 300", for
 * example. */
void rerun_describe(const rerun_plan *plan, const rerun_result *r, char *text, size_t size);

#endif
