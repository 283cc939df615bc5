/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_TOKENIZER_TRIE_H
#define TERN_RUNTIME_TEXT_TOKENIZER_TRIE_H

/* A trie of tokens finds all tokens that a text begins with, in one walk along the text. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/files/gguf/gguf.h"

typedef struct tern_trie_node {
    uint32_t children; /* number of the first child; children lie side by side, by rising bytes */
    int32_t token;     /* the token that ends here, -1: none */
    uint16_t n_children;
    uint8_t byte; /* the byte that leads here */
} tern_trie_node;

/* Immutable. Empty when nodes == NULL. */
typedef struct tern_trie {
    tern_trie_node *nodes; /* [0] is the root */
    size_t n_nodes;
} tern_trie;

/*
 * Builds the trie of the tokens whose size is not 0, by their numbers. Of equal tokens the first
 * one counts. All sizes together are below 2^31. False when memory is short.
 */
bool tern_trie_init(tern_trie *trie, const tern_span *tokens, size_t n);
void tern_trie_free(tern_trie *trie);

/* The node after one more byte; 0: no token continues like that. Begin with node 0. */
uint32_t tern_trie_step(const tern_trie *trie, uint32_t node, uint8_t byte);

#endif
