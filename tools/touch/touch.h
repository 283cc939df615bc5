/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_TOUCH_TOUCH_H
#define TERN_TOOLS_TOUCH_TOUCH_H

/*
 * Work-touch: besides decoding, every token reads a given number of bytes that no optimisation can
 * skip. A program that claims to read its weights for each token without doing so is exposed by the
 * cost of the same reads. tern offers this for comparisons of engines by this rule.
 *
 * The bytes come from a ring of made-up words in memory of its own, of TOUCH_RING bytes or twice
 * what a token reads, whichever is less. A token reads one 8-byte word every `stride` bytes, from
 * where the previous token stopped. `bytes` is the length of the walk; with a stride of at most a
 * cache line, 64 bytes, memory has to deliver all of it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOUCH_RING ((size_t)256 << 20)
#define TOUCH_WHOLE (UINT64_C(1) << 32)

/* Chooses whether the processor is asked not to keep the data in its caches. */
typedef enum touch_hint { TOUCH_HINT_AUTO, TOUCH_HINT_ON, TOUCH_HINT_OFF } touch_hint;

enum { TOUCH_AHEAD = 4096 }; /* default distance in bytes of prefetches that are not to be kept */

/* The reads, and how they are made. The hints do not change which words are read. */
typedef struct touch_plan {
    size_t bytes, stride; /* per token, > 0; a positive multiple of 8 */
    touch_hint hint;
    size_t cache;        /* bytes of the last-level cache, for TOUCH_HINT_AUTO */
    bool ahead_is_given; /* otherwise TOUCH_AHEAD if data is not to be kept, and 0 if it is */
    size_t ahead;        /* distance of prefetches in bytes; 0: none, and so no hint either */
    double keep_not;     /* percentage of prefetches with the hint, evenly spread: 0 to 100; the
                            others fetch data to keep */
} touch_plan;

typedef struct touch {
    uint64_t *words; /* owned */
    size_t n_words;
    size_t stride;     /* words */
    size_t steps;      /* words per token */
    size_t at;         /* next word */
    bool non_temporal; /* prefetch without keeping, for `keep_not` percent of the words */
    double keep_not;
    uint64_t part;   /* TOUCH_WHOLE times the share of words with the hint */
    uint64_t due;    /* accumulates `part` until the next word with the hint; below TOUCH_WHOLE */
    size_t ahead;    /* words; 0: no prefetching */
    uint64_t sum;    /* of all words read */
    uint64_t tokens; /* number of touched tokens */
    double seconds;  /* time for these */
} touch;

/*
 * Allocates and fills the ring, outside of what is timed. hint AUTO: data is not to be kept only if
 * the ring does not fit into the last-level cache; a small ring should stay in the cache. False
 * without memory. Free it in any case.
 */
bool touch_open(touch *t, const touch_plan *plan);
void touch_free(touch *t);

/* Makes the reads of one token. */
void touch_token(touch *t);

/* True if `sum` is the sum of all words of `tokens` tokens: nothing was skipped. */
bool touch_is_complete(const touch *t);

#endif
