/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_DRAFT_WORTH_H
#define TERN_RUNTIME_ENGINE_DRAFT_WORTH_H

/*
 * The worth of a second model's guesses, from measured times and from how often they were right.
 * Everything comes in as data, so tests need neither a clock nor a model.
 *
 * A plain pass takes c and gives a token. With k guesses, each of which costs d and is right with a
 * chance of a once those before it are, a pass takes c(1 + k) + k d and gives 1 + a + ... + a^k
 * tokens. The plan is the k with the most tokens a second. So guesses pay where a pass of several
 * rows costs little more than one of a single row, d is a small part of c, and a is large.
 *
 * A guess is as good as it is sure: its margin is the logit of the guessed token less the largest
 * other one, and each range of margins has its own trust. A sequence stops guessing ahead, and
 * leaves out what is guessed already, where the chance that all guesses are right is worth less
 * than the time of the next one.
 *
 * The debt bounds what guesses may cost where they do not pay: it is the time that they took less
 * the time of the passes that they saved. Above a few passes of debt nothing more is guessed, until
 * a share of the time that passes take has paid it back.
 */

#include <stdbool.h>
#include <stddef.h>

#include "runtime/engine/draft/draft.h"

enum { TERN_WORTH_KINDS = 10 }; /* ranges of margins */

/* Recent guesses: how many were right, of how many. */
typedef struct tern_worth_trust {
    double right, all;
} tern_worth_trust;

typedef struct tern_worth {
    tern_draft_costs costs; /* of the second model's passes, picks included */
    double share;   /* of a pass of the model that it is expected to take, until one is measured */
    double reading; /* seconds that it takes for each row of a long pass; 0: not measured */
    tern_worth_trust trust[2][TERN_WORTH_KINDS]; /* [sampled][kind] */
    tern_worth_trust all;                        /* of every kind */
    double debt;                                 /* seconds */
} tern_worth;

/* share: bytes that a pass of the second model reads, of those of a pass of the model. */
tern_worth tern_worth_begin(double share);

/* The kind of a guess with this margin. */
size_t tern_worth_kind(float margin);

/* The chance that a guess of this kind is right when all before it are. */
double tern_worth_chance(const tern_worth *w, bool sampled, size_t kind);

/* Notes whether a guess was right, all guesses before it being right. */
void tern_worth_seen(tern_worth *w, bool sampled, size_t kind, bool right);

/* Forgets a part of what was seen: before a new sequence, which may be easier. */
void tern_worth_forget(tern_worth *w);

/* Expected seconds of a pass of the second model with this many rows; 0 where nothing is known. */
double tern_worth_seconds(const tern_worth *w, const tern_draft_costs *passes, uint32_t rows);

typedef struct tern_worth_plan {
    uint32_t n;  /* guesses for each sequence; 0: a plain pass gives more */
    double rate; /* tokens a second with them */
    double gain; /* the rate, relative to that without them */
} tern_worth_plan;

/* Plans the guesses of n sequences, `most` of each. passes: costs of the model; pass: what is
 * planned already, these sequences' last tokens included. */
tern_worth_plan tern_worth_choose(const tern_worth *w, const tern_draft_costs *passes,
                                  const tern_draft_pass *pass, size_t n, uint32_t most);

/* True if so many seconds of reading will be won back by a factor of `gain`: the sequence is
 * expected to get `ahead` further ones, each of which takes `plain` seconds without guesses. */
bool tern_worth_reading(double gain, double seconds, uint32_t ahead, double plain);

/* Settles a pass of n sequences: with guesses it had `rows` and gave `tokens`, after `seconds` of
 * guessing. */
void tern_worth_settle(tern_worth *w, const tern_draft_costs *passes, uint32_t n, uint32_t rows,
                       size_t tokens, double seconds);

/* True if so much was lost that guessing must stop; `plain`: seconds of a pass without guesses. */
bool tern_worth_is_lost(const tern_worth *w, double plain);

/* True if a new sequence may try: what was lost is paid back. */
bool tern_worth_may_try(const tern_worth *w);

#endif
