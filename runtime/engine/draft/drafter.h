/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_DRAFT_DRAFTER_H
#define TERN_RUNTIME_ENGINE_DRAFT_DRAFTER_H

/*
 * Guesses of a second, smaller model with the same tokens: it reads the sequences of an engine and
 * continues them. A guess is the token that the sequence's own sampler, with its next random
 * numbers, picks from the second model's logits; the sampler's state is restored afterwards. So
 * guesses change times, never tokens, and sampled answers are guessed nearly as well as greedy
 * ones.
 *
 * A drafter has a runner, which may use the threads of the engine's, and places: each follows one
 * sequence, and has cache for n_ctx positions. A place keeps what it holds when its sequence ends,
 * so the next one that begins alike reads only the rest. When guesses were wrong, the place goes
 * back to the last token that was right.
 *
 * How many tokens are guessed is decided by runtime/engine/draft/worth.h, for all sequences of a
 * pass together. A sequence whose guesses do not pay is not followed any more.
 *
 * One thread at a time. Nothing is allocated after tern_drafter_new.
 */

#include "runtime/engine/draft/worth.h"
#include "runtime/engine/forward/runner.h"
#include "tern/engine.h"

typedef struct tern_drafter tern_drafter;
typedef struct tern_drafter_place tern_drafter_place;

typedef struct tern_drafter_params {
    const tern_model *model;  /* that guesses; outlives the drafter */
    const tern_model *target; /* whose tokens are guessed */
    uint32_t n_ctx;           /* of the engine's sequences */
    uint32_t n_places;        /* sequences that are followed at once, >= 1 */
    uint32_t n_batch;         /* tokens that are read at once, >= 1 */
    tern_format kv;
    tern_runner *beside;         /* the target's: its threads are used, where they can be */
    double (*clock)(void *user); /* NULL: the machine's */
    void *clock_user;
} tern_drafter_params;

/* Errors of tern_model_may_draft and tern_session_new. */
TERN_MUST_CHECK tern_status tern_drafter_new(const tern_drafter_params *params, tern_drafter **out,
                                             tern_error *err);
void tern_drafter_free(tern_drafter **drafter); /* NULL is fine */

/* A place for a sequence: the free one that holds most of its first tokens, tokens[n]. always: it
 * is followed whether its guesses pay or not, for tests. NULL: none is free, or new sequences are
 * not followed at present. */
tern_drafter_place *tern_drafter_enter(tern_drafter *d, const int32_t *tokens, size_t n,
                                       bool always);

/* The place is free again; *place becomes NULL. NULL is fine. */
void tern_drafter_leave(tern_drafter_place **place);

/* The sequence is not followed any more. */
void tern_drafter_give_up(tern_drafter_place *place);

/* Tells the place's trust that tokens[n - 1] was picked. */
void tern_drafter_picked(tern_drafter_place *place, const int32_t *tokens, size_t n);

/* A sequence that wants guesses. */
typedef struct tern_drafting {
    tern_drafter_place *place;
    const int32_t *tokens; /* [n_tokens] */
    uint32_t n_tokens;
    uint32_t ahead; /* tokens that it is expected to get */
    tern_sampler *sampler;
    int32_t *guesses; /* [most]; n are set */
    uint32_t most, n;
} tern_drafting;

/*
 * The expected gain of guesses for one further sequence, a factor on tokens a second; 1: they do
 * not pay. passes: costs of the target; pass: what is planned so far, the sequence's own last token
 * included.
 */
double tern_drafter_gain(const tern_drafter *d, const tern_draft_costs *passes,
                         const tern_draft_pass *pass);

/* Guesses for list[n], whose last tokens are in *pass; adds the guesses to it. Those that have much
 * to read read a part of it instead. */
void tern_drafter_guess(tern_drafter *d, const tern_draft_costs *passes, tern_drafting *list,
                        size_t n, tern_draft_pass *pass);

/* Settles the pass of n decoding sequences that followed: it had `rows` and gave `tokens`. */
void tern_drafter_settle(tern_drafter *d, const tern_draft_costs *passes, uint32_t n, uint32_t rows,
                         size_t tokens);

#endif
