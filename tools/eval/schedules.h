/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_EVAL_SCHEDULES_H
#define TERN_TOOLS_EVAL_SCHEDULES_H

/*
 * Random schedules of an engine: sequences arrive, share prompts, guess, are masked, ask for
 * log-probabilities of their prompts, are cancelled, and are set aside when memory is short, in
 * passes of any size, with 1 to 4 threads and each format of the cache. Each sequence must give the
 * same tokens, digest and probabilities as alone, computed with another instruction set (if there
 * is one) and, if it asks for nothing that tern_generate lacks, by tern_generate. In one of five
 * schedules no request shares pages with another.
 *
 * A schedule is determined by its number: the same number on the same model gives the same
 * schedule.
 */

#include <stdbool.h>
#include <stdint.h>

#include "tern/engine.h"

enum { SCHEDULES_MESSAGE_BYTES = 512, SCHEDULES_MIN_CTX = 16 };

typedef struct schedules_totals {
    uint64_t schedules, sequences, tokens, cancelled;
    uint64_t guesses_right, shared_tokens, set_aside;
} schedules_totals;

/* Zero-initialise members that are not set. */
typedef struct schedules {
    size_t n_isas; /* >= 1 */
    size_t only;   /* schedules run on this one, single sequences on the next one; n_isas: each in
                      turn */
    /* The model of a schedule for an instruction set. It stays open until the schedule is over and
     * has a context of at least SCHEDULES_MIN_CTX positions. NULL after an error. */
    const tern_model *(*model)(void *user, uint64_t number, size_t isa, tern_error *err);
    void *user;
    schedules_totals totals;               /* of all schedules that were run */
    char message[SCHEDULES_MESSAGE_BYTES]; /* of the first one that failed: difference or error */
} schedules;

/* Runs a schedule; false after a difference or an error, which is in message. */
bool schedules_run(schedules *s, uint64_t number);

#endif
