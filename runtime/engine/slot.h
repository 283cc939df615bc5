/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_SLOT_H
#define TERN_RUNTIME_ENGINE_SLOT_H

/*
 * The engine of a session: one slot, which is the session's own sequence. It replaces the schedule
 * of other engines, with nothing to schedule: the sequence has its pages, and the request's tokens
 * are in it.
 */

#include "runtime/engine/internal.h"

/* Makes the engine; the session must have its runner, pool and sequence. TERN_ERR_NOMEM. */
TERN_MUST_CHECK tern_status tern_slot_open(tern_session *s, tern_engine **out, tern_error *err);

/* Checks that a request fits together with `more` further tokens. Errors as for
 * tern_schedule_fits. */
TERN_MUST_CHECK tern_status tern_slot_fits(const tern_engine *e, const tern_request *r, size_t more,
                                           tern_error *err);

/* Empties the slot for a request: the session goes back to the tokens that it shares with the
 * request. TERN_ERR_QUEUE. */
TERN_MUST_CHECK tern_status tern_slot_begin(tern_engine *e, const tern_request *r, tern_error *err);

/* Puts the request's branch into the slot. */
void tern_slot_place(tern_engine *e, tern_branch *b);

/*
 * Puts a branch of tern_generate into the slot: the prompt follows the session's tokens, and must
 * fit. Everything is borrowed until the branch is over. TERN_ERR_QUEUE, TERN_ERR_NOMEM.
 */
TERN_MUST_CHECK tern_status tern_slot_lend(tern_engine *e, const tern_request *prompt,
                                           tern_lent *lent, tern_error *err);

/* The counterpart of tern_schedule_plan. */
size_t tern_slot_plan(tern_engine *e);

/* Notes that the session holds `position` tokens, and that this row of the pass is the last
 * one's. */
void tern_slot_stand(tern_engine *e, uint32_t position, size_t row);

/* The counterpart of tern_schedule_computed; s: the results of the span. */
void tern_slot_computed(tern_engine *e, const tern_plan_span *p, uint32_t kept,
                        const tern_engine_span *s);

/* Finishes a branch that is over: computes the token that it ended with, if that is not computed
 * yet, or restores the session to its state before a prompt that failed. */
void tern_slot_finish(tern_engine *e, tern_branch *b);

#endif
