/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_GRAMMAR_TOKENS_H
#define TERN_RUNTIME_TEXT_GRAMMAR_TOKENS_H

/* The vocabulary as two tries over the bytes of its tokens. One has the tokens that are plain text,
 * which may follow anywhere inside most strings; the other one has the rest. */

#include "tern/grammar.h"

/*
 * Nodes stand in the order of a walk: all nodes below a node follow it, up to `end`. The ids of the
 * tokens that end at a node go from its `first` to that of the next node; those of the tokens that
 * end there or below go to the `first` of the node at `end`.
 */
typedef struct tern_trie_node {
    uint32_t end;
    uint32_t first;
    uint16_t depth;  /* bytes up to here */
    uint16_t height; /* most characters that begin below */
    uint8_t byte;
    uint8_t kinds; /* kinds of the characters below; REST if they are not whole */
} tern_trie_node;

typedef struct tern_trie {
    tern_trie_node *nodes; /* [n_nodes], and one more for the end of the ids */
    size_t n_nodes;
    uint32_t *ids;
    size_t n_ids;
} tern_trie;

enum { TERN_TRIE_MOST_DEPTH = 4096 }; /* longer tokens are never allowed */

struct tern_grammar_tokens {
    const tern_tokenizer *tokenizer;
    size_t n_vocab, words; /* words: of 64 bits each */
    tern_trie plain, other;
    uint64_t *plain_bits;            /* [words] the tokens of `plain` */
    uint64_t *end_bits;              /* [words] the tokens that end a text */
    uint32_t longest, longest_plain; /* bytes */
};

#endif
