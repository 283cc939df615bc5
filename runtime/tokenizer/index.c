/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "runtime/tokenizer/internal.h"

/* FNV-1a, 64 bits: the strings are a few bytes long, and it can be continued over parts. */
static const uint64_t hash_start = 0xcbf29ce484222325u;

static uint64_t hash_bytes(uint64_t hash, tern_span bytes) {
    for (size_t i = 0; i < bytes.size; i++)
        hash = (hash ^ (unsigned char)bytes.data[i]) * 0x100000001b3u;
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
    while (slots < 2 * n) /* at most half full; n is at most 2^31, see the callers' limits */
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

static bool equals_parts(tern_span entry, tern_span head, tern_span tail, bool spaced) {
    const size_t gap = spaced ? 1 : 0;
    if (entry.size != head.size + gap + tail.size)
        return false;
    const char *rest = entry.data + head.size;
    return memcmp(entry.data, head.data, head.size) == 0 && (!spaced || *rest == ' ') &&
           memcmp(rest + gap, tail.data, tail.size) == 0;
}

int32_t tern_span_index_find(const tern_span_index *index, const tern_span *entries, tern_span head,
                             tern_span tail, bool spaced) {
    if (index->slots == NULL)
        return -1;
    uint64_t hash = hash_bytes(hash_start, head);
    if (spaced)
        hash = hash_bytes(hash, (tern_span){" ", 1});
    hash = hash_bytes(hash, tail);
    size_t slot = first_slot(index, hash);
    for (; index->slots[slot] != 0; slot = (slot + 1) & index->mask) {
        const uint32_t there = index->slots[slot] - 1;
        if (equals_parts(entries[there], head, tail, spaced))
            return (int32_t)there;
    }
    return -1;
}
