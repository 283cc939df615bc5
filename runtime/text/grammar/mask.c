/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A mask is found by a walk through the tries of the vocabulary and the automaton together. States
 * and masks are remembered. When there are too many, all are forgotten, so memory stays bounded. A
 * mask never depends on what is remembered.
 */

#include <stdlib.h>
#include <string.h>

#include "runtime/text/grammar/grammar.h"

enum {
    MOST_MASKS = TERN_GRAMMAR_LIMIT(512),
    MOST_MASK_BYTES = 8 << 20,               /* all masks of a grammar */
    MOST_WORK = TERN_GRAMMAR_LIMIT(1 << 22), /* steps of one mask */
    FEW_NODES = 8 /* below a node of a trie: to walk so few beats asking whether all may follow */
};

static void set_ids(uint64_t *bits, const tern_trie *t, uint32_t first, uint32_t end) {
    for (uint32_t i = first; i < end; i++)
        bits[t->ids[i] / 64] |= 1ULL << (t->ids[i] % 64);
}

/* Sets the bits of a trie's tokens that can be read from `state`. */
static void walk(tern_stacks *s, const tern_trie *t, uint32_t state, uint64_t *bits) {
    uint32_t states[TERN_TRIE_MOST_DEPTH + 1]; /* state after each number of bytes */
    states[0] = state;
    for (size_t i = 0; i < t->n_nodes && s->status == TERN_OK;) {
        const tern_trie_node *node = &t->nodes[i];
        const uint32_t next = tern_stacks_next(s, states[node->depth - 1], node->byte);
        if (next == TERN_STACKS_NONE) {
            i = node->end;
            continue;
        }
        const bool all =
            node->end - i > FEW_NODES && tern_stacks_takes(s, next, node->kinds, node->height);
        const size_t after = all || s->states[next].n == 0 ? node->end : i + 1;
        set_ids(bits, t, node->first, t->nodes[all ? after : i + 1].first);
        states[node->depth] = next;
        i = after;
    }
}

static void find(tern_grammar *g, uint32_t state, uint64_t *bits) {
    const tern_grammar_tokens *t = g->tokens;
    const bool plain =
        tern_stacks_takes(&g->met, state, TERN_KINDS_PLAIN, (int32_t)t->longest_plain);
    if (plain)
        memcpy(bits, t->plain_bits, t->words * sizeof *bits);
    else
        memset(bits, 0, t->words * sizeof *bits);
    if (!plain)
        walk(&g->met, &t->plain, state, bits);
    walk(&g->met, &t->other, state, bits);
    for (size_t i = 0; g->met.states[state].whole && i < t->words; i++)
        bits[i] |= t->end_bits[i];
}

/* ---- what is remembered ---------------------------------------------------------------------- */

static tern_status forget(tern_grammar *g) {
    tern_stacks_free(&g->met);
    for (size_t i = 0; i < g->n_masks; i++)
        g->masks[i].state = TERN_STACKS_NONE;
    return tern_stacks_start(&g->met, &g->program);
}

static bool is_half_full(const tern_stacks *s) {
    return s->n_states > TERN_STACKS_MOST_STATES / 2 || s->n_frames > TERN_STACKS_MOST_FRAMES / 2 ||
           s->n_places > TERN_STACKS_MOST_KEPT / 2;
}

static tern_kept_mask *look_up(tern_grammar *g, uint32_t state) {
    for (size_t i = 0; i < g->n_masks; i++)
        if (g->masks[i].state == state)
            return &g->masks[i];
    return NULL;
}

/* Finds room for one more mask: a new one, or the one wanted longest ago. NULL: no memory. */
static tern_kept_mask *make_room(tern_grammar *g) {
    tern_kept_mask *oldest = NULL;
    for (size_t i = 0; i < g->n_masks; i++)
        if (oldest == NULL || g->masks[i].state == TERN_STACKS_NONE ||
            (oldest->state != TERN_STACKS_NONE && g->masks[i].used < oldest->used))
            oldest = &g->masks[i];
    if (oldest != NULL && (g->n_masks == g->most_masks || oldest->state == TERN_STACKS_NONE))
        return oldest;
    uint64_t *bits = calloc(g->tokens->words + 1, sizeof *bits);
    if (bits == NULL)
        return oldest;
    g->masks[g->n_masks].bits = bits;
    return &g->masks[g->n_masks++];
}

/* The mask of a state of another pool; NULL if `met` failed. */
static const uint64_t *mask_of(tern_grammar *g, const tern_stacks *from, uint32_t state) {
    g->met.most_work = g->met.work + MOST_WORK;
    const uint32_t like = tern_stacks_copy(&g->met, from, state, (int32_t)g->tokens->longest);
    if (g->met.status != TERN_OK)
        return NULL;
    tern_kept_mask *kept = look_up(g, like);
    if (kept == NULL) {
        kept = make_room(g);
        if (kept == NULL) {
            g->met.status = TERN_ERR_NOMEM;
            g->met.why = "no memory";
            return NULL;
        }
        kept->state = TERN_STACKS_NONE;
        find(g, like, kept->bits);
        if (g->met.status != TERN_OK)
            return NULL;
        kept->state = like;
    }
    kept->used = ++g->clock;
    return kept->bits;
}

static bool keep_common(uint64_t *allowed, size_t words, const uint64_t *bits, size_t n) {
    uint64_t any = 0;
    for (size_t i = 0; i < words; i++) {
        allowed[i] &= i < n ? bits[i] : 0;
        any |= allowed[i];
    }
    return any != 0;
}

tern_status tern_grammar_apply(tern_grammar *g, const tern_stacks *from, uint32_t state,
                               uint64_t *allowed, size_t words, bool *any, const char **why) {
    (void)pthread_mutex_lock(&g->lock);
    tern_status status = TERN_OK;
    if (g->met.status != TERN_OK || is_half_full(&g->met))
        status = forget(g);
    const uint64_t *bits = status == TERN_OK ? mask_of(g, from, state) : NULL;
    if (bits == NULL && g->met.status == TERN_ERR_GRAMMAR && forget(g) == TERN_OK)
        bits = mask_of(g, from, state); /* again, with an empty pool */
    if (bits != NULL)
        *any = keep_common(allowed, words, bits, g->tokens->words);
    status = bits != NULL ? TERN_OK : g->met.status;
    *why = g->met.why;
    (void)pthread_mutex_unlock(&g->lock);
    return status;
}

/* ---- grammars -------------------------------------------------------------------------------- */

tern_status tern_grammar_make(const tern_grammar_tokens *tokens, tern_exprs *x,
                              tern_schema_notes *notes, tern_grammar **out, tern_error *err) {
    tern_grammar *g = calloc(1, sizeof *g);
    tern_status status = g != NULL ? tern_program_make(x, &g->program) : TERN_ERR_NOMEM;
    const size_t fit = MOST_MASK_BYTES / (8 * tokens->words + 1);
    if (status == TERN_OK) {
        g->name = strdup(x->name);
        g->most_masks = fit < 1 ? 1 : fit < MOST_MASKS ? fit : MOST_MASKS;
        g->masks = calloc(g->most_masks, sizeof *g->masks);
        if (g->name == NULL || g->masks == NULL || pthread_mutex_init(&g->lock, NULL) != 0)
            status = TERN_ERR_NOMEM;
    }
    tern_exprs_free(x);
    if (status != TERN_OK) {
        if (notes != NULL)
            tern_schema_notes_free(notes);
        if (g != NULL) {
            tern_program_free(&g->program);
            free(g->masks);
            free(g->name);
        }
        free(g);
        return status == TERN_ERR_NOMEM ? tern_fail(err, status, "no memory for a grammar")
                                        : status;
    }
    g->tokens = tokens;
    if (notes != NULL)
        g->notes = *notes;
    atomic_init(&g->owners, 1);
    g->met.status = TERN_ERR_STATE; /* nothing is there yet: the first mask begins anew */
    *out = g;
    return TERN_OK;
}

tern_grammar *tern_grammar_share(tern_grammar *grammar) {
    atomic_fetch_add(&grammar->owners, 1);
    return grammar;
}

void tern_grammar_free(tern_grammar **grammar) {
    if (grammar == NULL || *grammar == NULL)
        return;
    tern_grammar *g = *grammar;
    *grammar = NULL;
    if (atomic_fetch_sub(&g->owners, 1) > 1)
        return;
    tern_stacks_free(&g->met);
    for (size_t i = 0; i < g->n_masks; i++)
        free(g->masks[i].bits);
    free(g->masks);
    (void)pthread_mutex_destroy(&g->lock);
    tern_program_free(&g->program);
    tern_schema_notes_free(&g->notes);
    free(g->name);
    free(g);
}

const char *tern_grammar_note(const tern_grammar *grammar, size_t i) {
    return grammar != NULL && i < grammar->notes.n ? grammar->notes.texts[i] : NULL;
}
