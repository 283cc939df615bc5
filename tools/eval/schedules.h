/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_EVAL_SCHEDULES_H
#define TERN_TOOLS_EVAL_SCHEDULES_H

/*
 * Random schedules of an engine: sequences arrive, share prompts, guess, are masked, ask for
 * log-probabilities of their prompts, are cancelled and set aside for want of memory, in passes of
 * any size, with 1 to 4 threads and each format of the cache. Tokens, digest and probabilities of
 * each are those of the sequence alone, computed with another instruction set (where there is one)
 * and, if it asks for no more than that can do, by tern_generate. In one of five no request shares
 * pages with another one.
 *
 * A schedule is its number: the same number on the same model gives the same schedule.
 */

#include <stdbool.h>
#include <stdint.h>

#include "tern/engine.h"

enum { SCHEDULES_MESSAGE_BYTES = 512, SCHEDULES_MIN_CTX = 16 };

typedef struct schedules_totals {
    uint64_t schedules, sequences, tokens, cancelled;
    uint64_t guesses_right, shared_tokens, set_aside;
} schedules_totals;

/* Zero-initialise what is not set. */
typedef struct schedules {
    size_t n_isas; /* >= 1 */
    size_t only;   /* schedules run on this one, alone on the next one; n_isas: on each in turn */
    /* The model of a schedule for an instruction set, open until the schedule is over, with
     * SCHEDULES_MIN_CTX positions of context at least; NULL after an error. */
    const tern_model *(*model)(void *user, uint64_t number, size_t isa, tern_error *err);
    void *user;
    schedules_totals totals;               /* of all that were run */
    char message[SCHEDULES_MESSAGE_BYTES]; /* of the first one that failed: what differs, or why */
} schedules;

/* Runs a schedule; false after a difference or an error, see message. */
bool schedules_run(schedules *s, uint64_t number);

#endif
