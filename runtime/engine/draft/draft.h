/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_DRAFT_DRAFT_H
#define TERN_RUNTIME_ENGINE_DRAFT_DRAFT_H

/*
 * Guesses of the tokens that follow in a sequence, without a second model: the tokens that followed
 * the same tokens earlier in the sequence. A pass computes guesses together with the last token,
 * and those that the sampler would have picked are kept. So guesses change times, never tokens.
 *
 * The number of guesses is a pure function of three things: what passes of each size have cost
 * lately (tern_draft_costs), how often such guesses were right lately (every token of the sequence
 * counts, guessed in a pass or not), and what else the pass computes. It is 0 where guessing does
 * not pay.
 *
 * A draft belongs to one sequence, and one thread at a time uses it. Memory: 12 bytes a position
 * (runtime/engine/draft/recall.h), allocated when it is made. Work: constant for each token.
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
    double least[TERN_DRAFT_ROWS + 1];   /* of the first few measurements: only it counts */
    uint32_t n[TERN_DRAFT_ROWS + 1];     /* measurements so far */
} tern_draft_costs;

/* Notes that a pass of `rows` (>= 1) took `seconds`. Ignores larger passes, and times of 0. The
 * expected time of larger sizes falls a little each time, so that they are tried again. */
void tern_draft_costs_add(tern_draft_costs *c, uint32_t rows, double seconds);

/* Expected seconds of a pass of 1 .. TERN_DRAFT_ROWS rows; 0 where nothing is known. */
double tern_draft_costs_seconds(const tern_draft_costs *c, uint32_t rows);

/* ---- guesses ------------------------------------------------------------------------------- */

typedef struct tern_draft tern_draft;

/* A draft for a sequence of this many positions. TERN_ERR_NOMEM. */
TERN_MUST_CHECK tern_status tern_draft_new(uint32_t positions, tern_draft **out, tern_error *err);
void tern_draft_free(tern_draft **draft); /* NULL is fine */

/* Tells the draft of given tokens: tokens[n] is the whole sequence, including the tokens of earlier
 * calls. They can be guessed from now on, but do not change the trust in guesses. */
void tern_draft_given(tern_draft *d, const int32_t *tokens, size_t n);

/* Tells the draft that tokens[n - 1] was picked. tokens[n] is the whole sequence, one token longer
 * than at the last call of this function or tern_draft_given. */
void tern_draft_picked(tern_draft *d, const int32_t *tokens, size_t n);

/* Guesses the tokens that follow the sequence: guesses[most], in their order. Returns how many. */
size_t tern_draft_guesses(const tern_draft *d, int32_t *guesses, size_t most);

/* The plan of a pass before a sequence adds its guesses. */
typedef struct tern_draft_pass {
    uint32_t rows; /* including the sequence's own last token */
    double tokens; /* expected to be gained: one for each sequence, and right guesses */
} tern_draft_pass;

/* Chooses how many of n guesses to add, and adds them to *pass. 0: none. */
size_t tern_draft_choose(const tern_draft *d, const tern_draft_costs *c, size_t n,
                         tern_draft_pass *pass);

#endif
