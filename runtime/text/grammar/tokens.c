/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/text/grammar/tokens.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "runtime/text/grammar/program.h"

typedef struct entry {
    const char *bytes;
    size_t size;
    uint32_t id;
} entry;

static int by_bytes(const void *a, const void *b) {
    const entry *p = a;
    const entry *q = b;
    const size_t shorter = p->size < q->size ? p->size : q->size;
    const int order = memcmp(p->bytes, q->bytes, shorter);
    if (order != 0)
        return order;
    if (p->size != q->size)
        return p->size < q->size ? -1 : 1;
    return p->id < q->id ? -1 : 1;
}

/* True for whole characters that are all plain. */
static bool is_plain_text(const char *bytes, size_t size) {
    for (size_t i = 0; i < size;) {
        const tern_utf8 c = tern_utf8_next(bytes + i, size - i);
        if (c.kind != TERN_UTF8_VALID || tern_kind_of(c.code) == TERN_KIND_REST)
            return false;
        i += c.size;
    }
    return true;
}

static size_t common(const entry *a, const entry *b) {
    size_t n = 0;
    while (n < a->size && n < b->size && a->bytes[n] == b->bytes[n])
        n++;
    return n;
}

/* Counts the nodes that entries[n], which are sorted, need. */
static size_t count_nodes(const entry *entries, size_t n) {
    size_t nodes = 0;
    for (size_t i = 0; i < n; i++)
        nodes += entries[i].size - (i > 0 ? common(&entries[i - 1], &entries[i]) : 0);
    return nodes;
}

/* Closes the nodes open[depth + 1 .. from], each a child of the one before: nothing more comes
 * below them. plain: bytes beyond ASCII are parts of characters. */
static void close_nodes(tern_trie *t, const uint32_t *open, size_t from, size_t depth, bool plain) {
    for (size_t d = from; d > depth; d--) {
        tern_trie_node *node = &t->nodes[open[d]];
        node->end = (uint32_t)t->n_nodes;
        if (d == 1)
            continue;
        tern_trie_node *above = &t->nodes[open[d - 1]];
        const unsigned kind = node->byte < 0x80 ? tern_kind_of(node->byte)
                              : plain           ? TERN_KIND_BEYOND
                                                : TERN_KIND_REST;
        above->kinds |= (uint8_t)(node->kinds | kind);
        const uint16_t height = (uint16_t)(node->height + ((node->byte & 0xc0) != 0x80));
        above->height = above->height > height ? above->height : height;
    }
}

static bool make_trie(tern_trie *t, entry *entries, size_t n, bool plain) {
    uint32_t open[TERN_TRIE_MOST_DEPTH + 1]; /* nodes of the latest entry, by depth */
    qsort(entries, n, sizeof *entries, by_bytes);
    t->nodes = calloc(count_nodes(entries, n) + 1, sizeof *t->nodes);
    t->ids = calloc(n + 1, sizeof *t->ids);
    if (t->nodes == NULL || t->ids == NULL)
        return false;
    for (size_t i = 0; i < n; i++) {
        const size_t shared = i > 0 ? common(&entries[i - 1], &entries[i]) : 0;
        close_nodes(t, open, i > 0 ? entries[i - 1].size : 0, shared, plain);
        for (size_t depth = shared + 1; depth <= entries[i].size; depth++) {
            open[depth] = (uint32_t)t->n_nodes;
            t->nodes[t->n_nodes++] = (tern_trie_node){.depth = (uint16_t)depth,
                                                      .byte = (uint8_t)entries[i].bytes[depth - 1],
                                                      .first = (uint32_t)i};
        }
        t->ids[t->n_ids++] = entries[i].id;
    }
    close_nodes(t, open, n > 0 ? entries[n - 1].size : 0, 0, plain);
    t->nodes[t->n_nodes].first = (uint32_t)n;
    return true;
}

static void set(uint64_t *bits, size_t i) {
    bits[i / 64] |= 1ULL << (i % 64);
}

/* Sorts the tokens into entries of plain ones, from the front, and others, from the back. */
static bool sort_out(tern_grammar_tokens *g, entry *entries, size_t n, size_t *n_plain,
                     size_t *n_other) {
    bool ends = false;
    for (uint32_t id = 0; id < n; id++) {
        entry e = {.id = id};
        e.bytes = tern_token_bytes(g->tokenizer, (int32_t)id, false, &e.size);
        if (tern_token_ends_text(g->tokenizer, (int32_t)id)) {
            set(g->end_bits, id);
            ends = true;
            continue;
        }
        if (e.size == 0 || e.size > TERN_TRIE_MOST_DEPTH)
            continue;
        const bool plain = is_plain_text(e.bytes, e.size);
        g->longest = e.size > g->longest ? (uint32_t)e.size : g->longest;
        if (plain) {
            set(g->plain_bits, id);
            g->longest_plain = e.size > g->longest_plain ? (uint32_t)e.size : g->longest_plain;
            entries[(*n_plain)++] = e;
        } else {
            entries[n - ++*n_other] = e;
        }
    }
    return ends;
}

static tern_status fill(tern_grammar_tokens *g, tern_error *err) {
    size_t n = tern_tokenizer_size(g->tokenizer);
    size_t n_plain = 0;
    size_t n_other = 0;
    n = n < g->n_vocab ? n : g->n_vocab;
    entry *entries = calloc(n + 1, sizeof *entries);
    g->plain_bits = calloc(g->words + 1, sizeof *g->plain_bits);
    g->end_bits = calloc(g->words + 1, sizeof *g->end_bits);
    tern_status status = TERN_OK;
    if (entries == NULL || g->plain_bits == NULL || g->end_bits == NULL)
        status = TERN_ERR_NOMEM;
    else if (!sort_out(g, entries, n, &n_plain, &n_other))
        status = tern_fail(err, TERN_ERR_ARG,
                           "%s: no token ends a text, so a text in a given form could not end",
                           tern_tokenizer_file(g->tokenizer));
    else if (!make_trie(&g->plain, entries, n_plain, true) ||
             !make_trie(&g->other, entries + n - n_other, n_other, false))
        status = TERN_ERR_NOMEM;
    free(entries);
    if (status == TERN_ERR_NOMEM)
        return tern_fail(err, status, "no memory for the tokens of a grammar");
    return status;
}

tern_status tern_grammar_tokens_new(const tern_tokenizer *tokenizer, size_t n_vocab,
                                    tern_grammar_tokens **out, tern_error *err) {
    if (tokenizer == NULL || out == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_grammar_tokens_new: NULL argument");
    tern_grammar_tokens *g = calloc(1, sizeof *g);
    if (g == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "no memory for the tokens of a grammar");
    g->tokenizer = tokenizer;
    g->n_vocab = n_vocab;
    g->words = (n_vocab + 63) / 64;
    const tern_status status = fill(g, err);
    if (status != TERN_OK)
        tern_grammar_tokens_free(&g);
    else
        *out = g;
    return status;
}

void tern_grammar_tokens_free(tern_grammar_tokens **tokens) {
    if (tokens == NULL || *tokens == NULL)
        return;
    tern_grammar_tokens *g = *tokens;
    free(g->plain.nodes);
    free(g->plain.ids);
    free(g->other.nodes);
    free(g->other.ids);
    free(g->plain_bits);
    free(g->end_bits);
    free(g);
    *tokens = NULL;
}
