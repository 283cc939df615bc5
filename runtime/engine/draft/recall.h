/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_ENGINE_DRAFT_RECALL_H
#define TERN_RUNTIME_ENGINE_DRAFT_RECALL_H

/*
 * A memory of text: the last tokens that it was told, and where among them some tokens stood
 * before.
 *
 * Memory: a capacity, rounded up to a power of two, of 12 bytes a token, mapped when it is made.
 * Older tokens are forgotten one by one as new ones come. (A suffix automaton finds the same
 * places, but cannot forget, and needs three to five times as much memory.) Work: constant for each
 * token, TERN_RECALL_CANDIDATES places at most are compared over TERN_RECALL_LONGEST tokens.
 *
 * Negative tokens equal no token: they stand between texts that do not belong together.
 * Nothing here fails once the memory is there; one caller at a time.
 */

#include <stddef.h>
#include <stdint.h>

#include "tern/status.h"

enum {
    TERN_RECALL_SHORTEST = 3,  /* tokens that make a place worth a look */
    TERN_RECALL_LONGEST = 32,  /* longer matches count as this long */
    TERN_RECALL_CANDIDATES = 8 /* places of the same beginning, latest first */
};

typedef struct tern_recall tern_recall;

/* A place in a memory: what stood there is expected to follow. Zero-initialise it: none. */
typedef struct tern_recall_place {
    uint64_t next;   /* number of the token that stood next, from 1; 0: there is no place */
    uint32_t length; /* tokens before it that equal the sequence's last ones, LONGEST at most */
    uint32_t misses; /* tokens in a row that were not what was expected */
} tern_recall_place;

/* Of `capacity` tokens, 1 at least. TERN_ERR_NOMEM. */
TERN_MUST_CHECK tern_status tern_recall_new(size_t capacity, tern_recall **out, tern_error *err);
void tern_recall_free(tern_recall **recall); /* NULL is fine */

void tern_recall_add(tern_recall *r, int32_t token);

/* Tokens that it was told of so far. */
uint64_t tern_recall_count(const tern_recall *r);

/*
 * Moves a place on to after tokens[n - 1], which the sequence got since the last call: along the
 * text where that is what was expected; else to where the last tokens stood before, the longest
 * match, the latest of equal ones. After a token that was not expected the place goes on beside it
 * (a word of a copy was replaced, put in or left out) with a length of 0 to 2 until either fits
 * again, a few tokens long. To find earlier places only, tell the memory of a token after this.
 */
void tern_recall_follow(const tern_recall *r, const int32_t *tokens, size_t n,
                        tern_recall_place *place);

/* What stood at a place and after it: up to `most` tokens, none negative. Where the memory ends it
 * begins again at the place, as a text that repeats itself goes on. Returns how many. */
size_t tern_recall_read(const tern_recall *r, const tern_recall_place *place, int32_t *tokens,
                        size_t most);

#endif
