/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_DRAFT_DRAFT_H
#define TERN_RUNTIME_ENGINE_DRAFT_DRAFT_H

/*
 * Guesses of what follows in a sequence, without a second model: what followed the same tokens
 * before in the sequence itself. A pass computes guesses together with
 * the last token, and those that the sampler would have picked are kept. So guesses change times,
 * never tokens.
 *
 * How many tokens to guess is a pure function of three things: what passes of so many rows have
 * cost lately (tern_draft_costs), how often such guesses were right lately (each token of the
 * sequence tells, guessed in a pass or not), and what else the pass computes. Where it does not pay
 * the answer is 0.
 *
 * A draft belongs to one sequence, and one thread at a time uses it. Memory: 12 bytes a position
 * (runtime/engine/draft/recall.h), when it is made; nothing later. Work: constant for each token.
 */

#include "runtime/engine/draft/recall.h"
#include "tern/tern.h"

enum {
    TERN_DRAFT_ROWS = 32,    /* rows of the largest pass whose cost is noted */
    TERN_DRAFT_LONGEST = 16, /* tokens guessed for one pass, at most */
    TERN_DRAFT_KINDS = 10    /* of guesses, by how many tokens before them matched */
};

/* ---- what passes cost ---------------------------------------------------------------------- */

/* Seconds of passes by their rows, on this machine and for this model. Zero-initialise it. */
typedef struct tern_draft_costs {
    double seconds[TERN_DRAFT_ROWS + 1]; /* 0: none was measured */
    double least[TERN_DRAFT_ROWS + 1];   /* of the first few measurements, which counts alone */
    uint32_t n[TERN_DRAFT_ROWS + 1];     /* measurements so far */
} tern_draft_costs;

/* A pass of `rows` (>= 1) took `seconds`; nothing is noted of larger ones and of 0 seconds. Sizes
 * that are not measured any more become cheaper by little, so that they are tried again. */
void tern_draft_costs_add(tern_draft_costs *c, uint32_t rows, double seconds);

/* What a pass of 1 .. TERN_DRAFT_ROWS rows is expected to take; 0 where nothing is known. */
double tern_draft_costs_seconds(const tern_draft_costs *c, uint32_t rows);

/* ---- what is guessed ----------------------------------------------------------------------- */

typedef struct tern_draft tern_draft;

/* For a sequence of so many positions. TERN_ERR_NOMEM. */
TERN_MUST_CHECK tern_status tern_draft_new(uint32_t positions, tern_draft **out, tern_error *err);
void tern_draft_free(tern_draft **draft); /* NULL is fine */

/* Tokens that were given, tokens[n], those of the calls before among them: they can be guessed from
 * now on, and say nothing of how good guesses are. */
void tern_draft_given(tern_draft *d, const int32_t *tokens, size_t n);

/* tokens[n - 1] was picked: tokens[n] is the sequence now, one token longer than at the last call
 * of tern_draft_given or this. */
void tern_draft_picked(tern_draft *d, const int32_t *tokens, size_t n);

/* What follows the sequence: guesses[most], likeliest first in time. Returns how many. */
size_t tern_draft_guesses(const tern_draft *d, int32_t *guesses, size_t most);

/* A pass as it is planned before a sequence adds its guesses to it. */
typedef struct tern_draft_pass {
    uint32_t rows; /* the sequence's own last token among them */
    double tokens; /* that are expected of them: one of each sequence, and its guesses' */
} tern_draft_pass;

/* How many of n guesses to add, and adds them to *pass; 0: none. */
size_t tern_draft_choose(const tern_draft *d, const tern_draft_costs *c, size_t n,
                         tern_draft_pass *pass);

#endif
