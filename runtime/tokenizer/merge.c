/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "runtime/tokenizer/internal.h"

static bool comes_before(tern_merge_candidate a, tern_merge_candidate b) {
    return a.priority < b.priority || (a.priority == b.priority && a.left < b.left);
}

static void heap_push(tern_merger *m, tern_merge_candidate item) {
    size_t at = m->n_heap++;
    for (; at > 0; at = (at - 1) / 2) {
        const tern_merge_candidate parent = m->heap[(at - 1) / 2];
        if (!comes_before(item, parent))
            break;
        m->heap[at] = parent;
    }
    m->heap[at] = item;
}

static tern_merge_candidate heap_pop(tern_merger *m) {
    const tern_merge_candidate best = m->heap[0], last = m->heap[--m->n_heap];
    size_t at = 0;
    for (size_t child = 1; child < m->n_heap; child = 2 * at + 1) {
        if (child + 1 < m->n_heap && comes_before(m->heap[child + 1], m->heap[child]))
            child++;
        if (!comes_before(m->heap[child], last))
            break;
        m->heap[at] = m->heap[child];
        at = child;
    }
    m->heap[at] = last;
    return best;
}

/* Length that the lead byte announces, clipped to what is left; broken bytes stand alone. */
static int32_t character_size(const char *text, int32_t left) {
    const unsigned char lead = (unsigned char)text[0];
    int32_t size = 1;
    if (lead >= 0xC0)
        size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    return size < left ? size : left;
}

static int32_t split_characters(tern_merger *m, tern_span text) {
    const int32_t size = (int32_t)text.size;
    int32_t n = 0;
    for (int32_t at = 0; at < size; n++) {
        const int32_t bytes = character_size(text.data + at, size - at);
        m->symbols[n] = (tern_symbol){at, bytes, n - 1, n + 1};
        at += bytes;
    }
    m->symbols[n - 1].next = -1;
    return n;
}

static tern_span symbol_text(const tern_symbol *s, tern_span text) {
    return (tern_span){text.data + s->start, (size_t)s->size};
}

/* Remembers the pair that begins with symbol `left`, if it may be joined. */
static void consider(tern_merger *m, const tern_tokenizer *t, tern_span text,
                     tern_merge_priority *priority, int32_t left) {
    if (left < 0 || m->symbols[left].next < 0)
        return;
    const tern_symbol *a = &m->symbols[left], *b = &m->symbols[a->next];
    tern_merge_candidate item = {0, left, a->size + b->size};
    if (priority(t, symbol_text(a, text), symbol_text(b, text), &item.priority))
        heap_push(m, item);
}

/*
 * A candidate is out of date when its left symbol is gone or the pair has grown: symbols only ever
 * grow, so equal sizes mean the same text.
 */
static bool is_current(const tern_merger *m, tern_merge_candidate item) {
    const tern_symbol *a = &m->symbols[item.left];
    return a->size > 0 && a->next >= 0 && a->size + m->symbols[a->next].size == item.size;
}

static void join(tern_merger *m, int32_t left) {
    tern_symbol *a = &m->symbols[left], *b = &m->symbols[a->next];
    a->size += b->size;
    a->next = b->next;
    b->size = 0;
    if (a->next >= 0)
        m->symbols[a->next].previous = left;
}

/* n symbols give n - 1 pairs; each of the n - 1 joins takes one candidate and adds at most two. */
static bool reserve(tern_merger *m, size_t n) {
    void *symbols = m->symbols, *heap = m->heap;
    const bool ok = tern_scratch_reserve(&symbols, &m->symbol_capacity, n * sizeof *m->symbols) &&
                    tern_scratch_reserve(&heap, &m->heap_capacity, 2 * n * sizeof *m->heap);
    m->symbols = symbols;
    m->heap = heap;
    return ok;
}

tern_status tern_merge_text(tern_merger *m, const tern_tokenizer *t, tern_span text,
                            tern_merge_priority *priority) {
    if (!reserve(m, text.size))
        return TERN_ERR_NOMEM;
    const int32_t n = split_characters(m, text);
    m->n_heap = 0;
    for (int32_t i = 0; i + 1 < n; i++)
        consider(m, t, text, priority, i);
    while (m->n_heap > 0) {
        const tern_merge_candidate best = heap_pop(m);
        if (!is_current(m, best))
            continue;
        join(m, best.left);
        consider(m, t, text, priority, m->symbols[best.left].previous);
        consider(m, t, text, priority, best.left);
    }
    return TERN_OK;
}

void tern_merger_free(tern_merger *m) {
    free(m->symbols);
    free(m->heap);
}
