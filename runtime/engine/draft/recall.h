/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_DRAFT_RECALL_H
#define TERN_RUNTIME_ENGINE_DRAFT_RECALL_H

/*
 * A memory of text: the last tokens that were added, and where among them a few given tokens stood
 * before.
 *
 * Memory: a capacity, rounded up to a power of two, at 12 bytes a token, mapped when it is made.
 * Older tokens are forgotten one by one as new ones come. (A suffix automaton finds the same
 * places, but cannot forget, and needs three to five times as much memory.) Work: constant for each
 * token; at most TERN_RECALL_CANDIDATES places are compared over TERN_RECALL_LONGEST tokens.
 *
 * A negative token equals no token: it separates texts that do not belong together. No function
 * fails once the memory is there. One caller at a time.
 */

#include <stddef.h>
#include <stdint.h>

#include "tern/status.h"

enum {
    TERN_RECALL_SHORTEST = 3,  /* shorter matches are ignored */
    TERN_RECALL_LONGEST = 32,  /* longer matches count as this long */
    TERN_RECALL_CANDIDATES = 8 /* places with the same last tokens, latest first */
};

typedef struct tern_recall tern_recall;

/* A place in a memory: the tokens that stood there are expected to follow. Zeros: no place. */
typedef struct tern_recall_place {
    uint64_t next;   /* number of the token that stood next, from 1; 0: no place */
    uint32_t length; /* tokens before it that equal the sequence's last ones, at most LONGEST */
    uint32_t misses; /* unexpected tokens in a row */
} tern_recall_place;

/* A memory of `capacity` tokens, at least 1. TERN_ERR_NOMEM. */
TERN_MUST_CHECK tern_status tern_recall_new(size_t capacity, tern_recall **out, tern_error *err);
void tern_recall_free(tern_recall **recall); /* NULL is fine */

void tern_recall_add(tern_recall *r, int32_t token);

/* Number of tokens added so far. */
uint64_t tern_recall_count(const tern_recall *r);

/*
 * Moves a place on past tokens[n - 1], which the sequence got since the last call. If that token
 * was expected, the place goes on along its text; else it moves to where the last tokens stood
 * before: the longest match, the latest of equal ones. After an unexpected token without a match
 * the place goes on nearby (a word of a copy was replaced, inserted or left out) with a length of 0
 * to 2, until a few tokens match again. To find only earlier places, add a token to the memory
 * after this call.
 */
void tern_recall_follow(const tern_recall *r, const int32_t *tokens, size_t n,
                        tern_recall_place *place);

/* Reads the tokens at a place and after it: up to `most`, none of them negative. At the end of the
 * memory it starts again at the place, as a text that repeats itself goes on. Returns how many. */
size_t tern_recall_read(const tern_recall *r, const tern_recall_place *place, int32_t *tokens,
                        size_t most);

#endif
