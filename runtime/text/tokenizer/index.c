/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/text/tokenizer/index.h"

#include <stdlib.h>
#include <string.h>

/* FNV-1a, 64 bits: the strings are a few bytes long, and it can be continued over parts. */
static const uint64_t hash_start = 0xcbf29ce484222325u;

static uint64_t hash_byte(uint64_t hash, char byte) {
    return (hash ^ (unsigned char)byte) * 0x100000001b3u;
}

static uint64_t hash_bytes(uint64_t hash, tern_span bytes) {
    for (size_t i = 0; i < bytes.size; i++)
        hash = hash_byte(hash, bytes.data[i]);
    return hash;
}

/* FNV leaves the low bits weak for short strings; fold the high half in. */
static size_t first_slot(const tern_span_index *index, uint64_t hash) {
    return (size_t)(hash ^ hash >> 32) & index->mask;
}

bool tern_spans_equal(tern_span a, tern_span b) {
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

bool tern_span_index_init(tern_span_index *index, size_t n) {
    size_t slots = 16;
    while (slots < 2 * n) /* at most half full */
        slots *= 2;
    index->slots = calloc(slots, sizeof *index->slots);
    index->mask = slots - 1;
    return index->slots != NULL;
}

void tern_span_index_free(tern_span_index *index) {
    free(index->slots);
    index->slots = NULL;
}

size_t tern_span_index_add(tern_span_index *index, const tern_span *entries, size_t i) {
    size_t slot = first_slot(index, hash_bytes(hash_start, entries[i]));
    for (; index->slots[slot] != 0; slot = (slot + 1) & index->mask) {
        const size_t there = index->slots[slot] - 1;
        if (tern_spans_equal(entries[there], entries[i]))
            return there;
    }
    index->slots[slot] = (uint32_t)i + 1;
    return i;
}

static bool equals_parts(tern_span entry, tern_span head, tern_span tail) {
    return entry.size == head.size + tail.size && memcmp(entry.data, head.data, head.size) == 0 &&
           memcmp(entry.data + head.size, tail.data, tail.size) == 0;
}

static int32_t find_from(const tern_span_index *index, const tern_span *entries, size_t slot,
                         tern_span head, tern_span tail) {
    for (; index->slots[slot] != 0; slot = (slot + 1) & index->mask) {
        const uint32_t there = index->slots[slot] - 1;
        if (equals_parts(entries[there], head, tail))
            return (int32_t)there;
    }
    return -1;
}

int32_t tern_span_index_find(const tern_span_index *index, const tern_span *entries, tern_span head,
                             tern_span tail) {
    if (index->slots == NULL)
        return -1;
    const uint64_t hash = hash_bytes(hash_bytes(hash_start, head), tail);
    return find_from(index, entries, first_slot(index, hash), head, tail);
}

/*
 * A search waits three times for memory, each time for what it found before: the slot, the entry,
 * the entry's bytes. A batch takes each of these steps for all of its texts before the next step.
 */
enum { BATCH = 32 };

static void find_batch(const tern_span_index *index, const tern_span *entries,
                       const tern_span *texts, size_t n, int32_t *found) {
    size_t slots[BATCH];
    const tern_span *first[BATCH];
    for (size_t i = 0; i < n; i++) {
        slots[i] = first_slot(index, hash_bytes(hash_start, texts[i]));
        __builtin_prefetch(&index->slots[slots[i]]);
    }
    for (size_t i = 0; i < n; i++) {
        const uint32_t there = index->slots[slots[i]];
        first[i] = there != 0 ? &entries[there - 1] : NULL;
        __builtin_prefetch(first[i]);
    }
    for (size_t i = 0; i < n; i++)
        if (first[i] != NULL)
            __builtin_prefetch(first[i]->data);
    for (size_t i = 0; i < n; i++)
        found[i] = find_from(index, entries, slots[i], texts[i], (tern_span){"", 0});
}

void tern_span_index_find_all(const tern_span_index *index, const tern_span *entries,
                              const tern_span *texts, size_t n, int32_t *found) {
    for (size_t at = 0; at < n; at += BATCH)
        find_batch(index, entries, texts + at, n - at < BATCH ? n - at : BATCH, found + at);
}

/* ---- prefixes -------------------------------------------------------------------------------- */

bool tern_prefix_set_init(tern_prefix_set *set, const tern_span *entries, size_t n) {
    set->entries = entries;
    return tern_span_index_init(&set->index, n);
}

void tern_prefix_set_free(tern_prefix_set *set) {
    tern_span_index_free(&set->index);
}

void tern_prefix_set_add(tern_prefix_set *set, size_t i) {
    const tern_span entry = set->entries[i];
    uint32_t *longest = &set->longest[(unsigned char)entry.data[0]];
    (void)tern_span_index_add(&set->index, set->entries, i);
    if (*longest < entry.size)
        *longest = (uint32_t)entry.size;
}

int32_t tern_prefix_set_find(const tern_prefix_set *set, tern_span text) {
    if (text.size == 0 || set->index.slots == NULL)
        return -1;
    const uint32_t longest = set->longest[(unsigned char)text.data[0]];
    const size_t limit = text.size < longest ? text.size : longest;
    int32_t found = -1;
    uint64_t hash = hash_start;
    for (size_t n = 1; n <= limit; n++) {
        hash = hash_byte(hash, text.data[n - 1]);
        const int32_t entry = find_from(&set->index, set->entries, first_slot(&set->index, hash),
                                        (tern_span){text.data, n}, (tern_span){"", 0});
        found = entry >= 0 ? entry : found;
    }
    return found;
}
