/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/text/tokenizer/trie.h"

#include <stdlib.h>
#include <string.h>

typedef struct entry {
    tern_span text;
    int32_t token;
} entry;

static size_t shorter(tern_span a, tern_span b) {
    return a.size < b.size ? a.size : b.size;
}

static int compare(const void *left, const void *right) {
    const entry *a = left, *b = right;
    const int order = memcmp(a->text.data, b->text.data, shorter(a->text, b->text));
    if (order != 0)
        return order;
    if (a->text.size != b->text.size)
        return a->text.size < b->text.size ? -1 : 1;
    return (a->token > b->token) - (a->token < b->token);
}

/* Returns the tokens in order, *n of them. NULL when memory is short. */
static entry *sorted(const tern_span *tokens, size_t n_tokens, size_t *n) {
    entry *entries = malloc((n_tokens + 1) * sizeof *entries);
    *n = 0;
    if (entries == NULL)
        return NULL;
    for (size_t i = 0; i < n_tokens; i++)
        if (tokens[i].size > 0)
            entries[(*n)++] = (entry){tokens[i], (int32_t)i};
    qsort(entries, *n, sizeof *entries, compare);
    return entries;
}

/* Counts one node for each byte of a token that it does not share with the one before it. */
static size_t count_nodes(const entry *entries, size_t n) {
    size_t nodes = 1;
    for (size_t i = 0; i < n; i++) {
        size_t same = 0;
        const size_t limit = i > 0 ? shorter(entries[i - 1].text, entries[i].text) : 0;
        while (same < limit && entries[i - 1].text.data[same] == entries[i].text.data[same])
            same++;
        nodes += entries[i].text.size - same;
    }
    return nodes;
}

/* The tokens below a node are entries[first] to entries[end - 1], all with `depth` equal bytes. */
typedef struct part {
    uint32_t first, end, depth;
} part;

/* Makes the children of one node and notes what lies below each of them. */
static void expand(tern_trie *trie, const entry *entries, part *parts, uint32_t number) {
    tern_trie_node *node = &trie->nodes[number];
    const part p = parts[number];
    uint32_t i = p.first;
    while (i < p.end && entries[i].text.size == p.depth) {
        node->token = node->token < 0 ? entries[i].token : node->token;
        i++;
    }
    node->children = (uint32_t)trie->n_nodes;
    for (uint32_t next; i < p.end; i = next) {
        const uint8_t byte = (uint8_t)entries[i].text.data[p.depth];
        next = i + 1;
        while (next < p.end && (uint8_t)entries[next].text.data[p.depth] == byte)
            next++;
        parts[trie->n_nodes] = (part){i, next, p.depth + 1};
        trie->nodes[trie->n_nodes] = (tern_trie_node){.token = -1, .byte = byte};
        trie->n_nodes++;
        node->n_children++;
    }
}

bool tern_trie_init(tern_trie *trie, const tern_span *tokens, size_t n_tokens) {
    size_t n;
    entry *entries = sorted(tokens, n_tokens, &n);
    const size_t most = entries != NULL ? count_nodes(entries, n) : 0;
    part *parts = malloc(most * sizeof *parts);
    *trie = (tern_trie){malloc(most * sizeof *trie->nodes), 1};
    const bool enough = entries != NULL && parts != NULL && trie->nodes != NULL;
    if (enough) {
        parts[0] = (part){0, (uint32_t)n, 0};
        trie->nodes[0] = (tern_trie_node){.token = -1};
        for (uint32_t i = 0; i < trie->n_nodes; i++)
            expand(trie, entries, parts, i);
    } else {
        tern_trie_free(trie);
    }
    free(parts);
    free(entries);
    return enough;
}

void tern_trie_free(tern_trie *trie) {
    free(trie->nodes);
    *trie = (tern_trie){NULL, 0};
}

uint32_t tern_trie_step(const tern_trie *trie, uint32_t node, uint8_t byte) {
    uint32_t low = trie->nodes[node].children;
    uint32_t high = low + trie->nodes[node].n_children;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (trie->nodes[middle].byte == byte)
            return middle;
        if (trie->nodes[middle].byte < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}
