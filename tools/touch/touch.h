/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_TOUCH_TOUCH_H
#define TERN_TOOLS_TOUCH_TOUCH_H

/*
 * Work-touch: besides decoding, every token reads a given number of bytes that no optimisation can
 * leave out. A program that claims to read its weights for each token without doing so is found out
 * by what the same reads cost; tern has it for those who compare engines by this rule.
 *
 * The bytes come from a ring of made-up words in memory of our own, TOUCH_RING bytes or twice what
 * a token reads, whichever is less: one 8-byte word every `stride` bytes, and each token goes on
 * where the one before stopped. `bytes` is what the walk covers; with a stride of at most a cache
 * line, 64 bytes, memory has to deliver all of it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOUCH_RING ((size_t)256 << 20)
#define TOUCH_WHOLE (UINT64_C(1) << 32)

/* Whether to ask the processor not to keep what is read in its caches. */
typedef enum touch_hint { TOUCH_HINT_AUTO, TOUCH_HINT_ON, TOUCH_HINT_OFF } touch_hint;

enum { TOUCH_AHEAD = 4096 }; /* bytes between a read that is not to be kept and what it fetches */

/* What to read, and how. None of it changes which words are read. */
typedef struct touch_plan {
    size_t bytes, stride; /* of a token, > 0; a positive multiple of 8 */
    touch_hint hint;
    size_t cache;        /* bytes of the last-level cache, for TOUCH_HINT_AUTO */
    bool ahead_is_given; /* else TOUCH_AHEAD where reads are not to be kept, and 0 elsewhere */
    size_t ahead;        /* bytes that each read fetches ahead; 0: none, and so no hint either */
    double keep_not;     /* of the reads with a hint, percent that have it, evenly spread: 0 to 100;
                            the others fetch ahead to keep */
} touch_plan;

typedef struct touch {
    uint64_t *words; /* owned */
    size_t n_words;
    size_t stride;     /* words */
    size_t steps;      /* words that a token reads */
    size_t at;         /* next word */
    bool non_temporal; /* fetch ahead without keeping, `keep_not` percent of the words */
    double keep_not;
    uint64_t part;   /* TOUCH_WHOLE times the share of words with the hint */
    uint64_t due;    /* of the next one with it, below TOUCH_WHOLE */
    size_t ahead;    /* words; 0: nothing is fetched ahead */
    uint64_t sum;    /* of everything read */
    uint64_t tokens; /* touched so far */
    double seconds;  /* that took */
} touch;

/*
 * Makes and fills the ring, outside of what is timed. hint AUTO: not keeping is asked for only
 * where the ring does not fit into the last-level cache; a small one is wanted in the cache. False
 * without memory. Free in any case.
 */
bool touch_open(touch *t, const touch_plan *plan);
void touch_free(touch *t);

/* The reads of one token. */
void touch_token(touch *t);

/* Whether `sum` is what reading every word of `tokens` tokens gives: nothing was left out. */
bool touch_is_complete(const touch *t);

#endif
