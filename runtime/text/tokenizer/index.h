/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_TOKENIZER_INDEX_H
#define TERN_RUNTIME_TEXT_TOKENIZER_INDEX_H

/* Lookup of byte strings by hash. Open addressing over entry numbers; the strings stay where they
 * are. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/files/gguf/gguf.h"

/* Empty when slots == NULL. */
typedef struct tern_span_index {
    uint32_t *slots; /* [mask + 1] entry number + 1, 0: free */
    size_t mask;
} tern_span_index;

bool tern_spans_equal(tern_span a, tern_span b);

/* Room for n entries (at most 2^31); false when memory is short. */
bool tern_span_index_init(tern_span_index *index, size_t n);
void tern_span_index_free(tern_span_index *index);

/* Adds entry i; when an equal entry is there already, returns its number and changes nothing. */
size_t tern_span_index_add(tern_span_index *index, const tern_span *entries, size_t i);

/* Number of the entry that equals head followed by tail (which may be empty); -1: none. */
int32_t tern_span_index_find(const tern_span_index *index, const tern_span *entries, tern_span head,
                             tern_span tail);

/* The same for each of n texts; faster than n searches where the entries do not fit a cache. The
 * index is not empty. */
void tern_span_index_find_all(const tern_span_index *index, const tern_span *entries,
                              const tern_span *texts, size_t n, int32_t *found);

/* A set of strings that finds the longest one that a text begins with. */
typedef struct tern_prefix_set {
    tern_span_index index;
    const tern_span *entries; /* by number; not all need be in the set */
    uint32_t longest[256];    /* bytes of the longest string, by its first byte */
} tern_prefix_set;

/* Makes room for n entries. `entries` stays with the caller. */
bool tern_prefix_set_init(tern_prefix_set *set, const tern_span *entries, size_t n);
void tern_prefix_set_free(tern_prefix_set *set);
void tern_prefix_set_add(tern_prefix_set *set, size_t i); /* not empty; less than 2^31 bytes */

/* Number of the longest entry that text begins with, -1: none. */
int32_t tern_prefix_set_find(const tern_prefix_set *set, tern_span text);

#endif
