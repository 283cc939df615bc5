/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/engine/draft/recall.h"

#include <stdbool.h>
#include <stdlib.h>

enum {
    BACK = 4,       /* after an unexpected token the text may go on this far before */
    AHEAD = 8,      /* or this far after the place */
    MOST_MISSES = 8 /* with more in a row the place is given up */
};

/* Tokens are numbered from 1 in the order in which they came; number x lies in slot x & mask. */
struct tern_recall {
    uint64_t count; /* tokens so far */
    size_t mask;    /* capacity - 1 */
    unsigned shift; /* of hashes, so that they are indexes of heads */
    int32_t *tokens;
    uint32_t *heads;  /* [capacity] by hash: the token that last followed these tokens; low bits */
    uint32_t *before; /* [capacity] by token: the one before it with the same hash, low bits */
};

tern_status tern_recall_new(size_t capacity, tern_recall **out, tern_error *err) {
    size_t size = 16;
    unsigned bits = 4;
    for (; size < capacity && bits < 31; bits++)
        size *= 2;
    tern_recall *r = calloc(1, sizeof *r);
    if (r != NULL) {
        r->mask = size - 1;
        r->shift = 64 - bits;
        r->tokens = calloc(size, sizeof *r->tokens);
        r->heads = calloc(size, sizeof *r->heads);
        r->before = calloc(size, sizeof *r->before);
    }
    if (r == NULL || r->tokens == NULL || r->heads == NULL || r->before == NULL) {
        tern_recall_free(&r);
        return tern_fail(err, TERN_ERR_NOMEM, "no memory to recall %zu tokens", capacity);
    }
    *out = r;
    return TERN_OK;
}

void tern_recall_free(tern_recall **recall) {
    tern_recall *r = *recall;
    if (r == NULL)
        return;
    free(r->tokens);
    free(r->heads);
    free(r->before);
    free(r);
    *recall = NULL;
}

uint64_t tern_recall_count(const tern_recall *r) {
    return r->count;
}

/* ---- reading ------------------------------------------------------------------------------- */

/* The token with this number; -1 if it is forgotten or not there yet. */
static int32_t token_at(const tern_recall *r, uint64_t number) {
    const bool known = number > 0 && number <= r->count && r->count - number <= r->mask;
    return known ? r->tokens[number & r->mask] : -1;
}

static size_t hash(const tern_recall *r, int32_t a, int32_t b, int32_t c) {
    uint64_t h = (uint64_t)(uint32_t)a * UINT64_C(0x9e3779b97f4a7c15);
    h = (h ^ (h >> 29) ^ (uint32_t)b) * UINT64_C(0xbf58476d1ce4e5b9);
    h = (h ^ (h >> 32) ^ (uint32_t)c) * UINT64_C(0x94d049bb133111eb);
    return (size_t)(h >> r->shift);
}

/* The number of a recent token whose low bits these are. For low bits of an old one the result is
 * some number that is not there. */
static uint64_t number_of(const tern_recall *r, uint32_t low) {
    return r->count + 1 - (uint32_t)((uint32_t)(r->count + 1) - low);
}

void tern_recall_add(tern_recall *r, int32_t token) {
    const uint64_t next = r->count + 2;
    r->count++;
    r->tokens[r->count & r->mask] = token;
    const int32_t a = token_at(r, r->count - 2), b = token_at(r, r->count - 1);
    uint32_t *slot = &r->before[next & r->mask];
    *slot = 0;
    if (r->count < TERN_RECALL_SHORTEST || a < 0 || b < 0 || token < 0)
        return;
    uint32_t *head = &r->heads[hash(r, a, b, token)];
    *slot = *head;
    *head = (uint32_t)next;
}

/* ---- places -------------------------------------------------------------------------------- */

/* How many tokens before number `next` equal the last ones of the sequence, at most `most`. */
static uint32_t length_at(const tern_recall *r, const int32_t *tokens, size_t n, uint64_t next,
                          uint32_t most) {
    uint32_t length = 0;
    while (length < most && length < n && next > length + 1 && tokens[n - 1 - length] >= 0 &&
           token_at(r, next - 1 - length) == tokens[n - 1 - length])
        length++;
    return length;
}

/* Follows the text of the place: the expected token came, or the text goes on nearby. */
static tern_recall_place go_on(const tern_recall *r, const int32_t *tokens, size_t n,
                               const tern_recall_place *place) {
    tern_recall_place best = {.next = place->next + 1, .misses = place->misses + 1};
    if (token_at(r, place->next) == tokens[n - 1]) {
        best.length = place->length < TERN_RECALL_LONGEST ? place->length + 1 : place->length;
        best.misses = 0;
        return best;
    }
    if (best.misses > MOST_MISSES)
        return (tern_recall_place){0};
    const uint64_t first = place->next > BACK ? place->next - BACK : 1;
    for (uint64_t next = first; next <= place->next + AHEAD; next++) {
        const uint32_t length = length_at(r, tokens, n, next, TERN_RECALL_SHORTEST - 1);
        if (length > best.length) {
            best.next = next;
            best.length = length;
        }
    }
    return best;
}

void tern_recall_follow(const tern_recall *r, const int32_t *tokens, size_t n,
                        tern_recall_place *place) {
    tern_recall_place best = {0};
    if (place->next > 0)
        best = go_on(r, tokens, n, place);
    const bool known = n >= TERN_RECALL_SHORTEST && best.length < TERN_RECALL_LONGEST;
    uint64_t next =
        known ? number_of(r, r->heads[hash(r, tokens[n - 3], tokens[n - 2], tokens[n - 1])]) : 0;
    for (int i = 0; i < TERN_RECALL_CANDIDATES && next > 0 && next <= r->count; i++) {
        const uint32_t length = length_at(r, tokens, n, next, TERN_RECALL_LONGEST);
        const uint64_t older = number_of(r, r->before[next & r->mask]);
        if (length >= TERN_RECALL_SHORTEST && length > best.length)
            best = (tern_recall_place){.next = next, .length = length};
        if (r->count - next >= r->mask || older >= next)
            break;
        next = older;
    }
    *place = best;
}

size_t tern_recall_read(const tern_recall *r, const tern_recall_place *place, int32_t *tokens,
                        size_t most) {
    const uint64_t known = place->next <= r->count ? r->count + 1 - place->next : 0;
    size_t n = 0;
    while (known > 0 && place->next > 0 && n < most) {
        const int32_t token = n < known ? token_at(r, place->next + n) : tokens[n - known];
        if (token < 0)
            break;
        tokens[n++] = token;
    }
    return n;
}
