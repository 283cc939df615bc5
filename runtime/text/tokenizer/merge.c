/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/text/tokenizer/merge.h"

#include <stdlib.h>

/* ---- the table ------------------------------------------------------------------------------- */

bool tern_merge_table_init(tern_merge_table *table, size_t n) {
    size_t slots = 16;
    while (slots < 2 * n) /* at most half full */
        slots *= 2;
    table->slots = calloc(slots, sizeof *table->slots);
    table->rules = malloc((n + 1) * sizeof *table->rules);
    table->mask = slots - 1;
    return table->slots != NULL && table->rules != NULL;
}

void tern_merge_table_free(tern_merge_table *table) {
    free(table->slots);
    free(table->rules);
}

/* Ids are small and dense. Both must affect all bits, or neighbours crowd into long runs. */
static size_t first_slot(const tern_merge_table *table, int32_t left, int32_t right) {
    uint64_t hash = ((uint64_t)(uint32_t)left << 32 | (uint32_t)right) * 0x9e3779b97f4a7c15u;
    hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93u;
    return (size_t)(hash >> 32) & table->mask;
}

/* Finds the slot of a pair, or the free slot where it belongs. */
static size_t find_slot(const tern_merge_table *table, int32_t left, int32_t right) {
    size_t slot = first_slot(table, left, right);
    for (; table->slots[slot] != 0; slot = (slot + 1) & table->mask) {
        const tern_merge_rule *rule = &table->rules[table->slots[slot] - 1];
        if (rule->left == left && rule->right == right)
            break;
    }
    return slot;
}

/* The slots lie scattered over megabytes, so each is prefetched some rules before it is needed. */
void tern_merge_table_index(tern_merge_table *table, size_t n, bool last_counts) {
    enum { AHEAD = 16 };
    for (size_t i = 0; i < n + AHEAD; i++) {
        if (i < n) {
            const tern_merge_rule *rule = &table->rules[i];
            __builtin_prefetch(&table->slots[first_slot(table, rule->left, rule->right)], 1);
        }
        if (i < AHEAD)
            continue;
        const size_t rank = i - AHEAD;
        uint32_t *slot =
            &table->slots[find_slot(table, table->rules[rank].left, table->rules[rank].right)];
        if (*slot == 0 || last_counts)
            *slot = (uint32_t)rank + 1;
    }
}

int32_t tern_merge_table_find(const tern_merge_table *table, int32_t left, int32_t right) {
    return (int32_t)table->slots[find_slot(table, left, right)] - 1;
}

/* ---- the heap -------------------------------------------------------------------------------- */

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

/* ---- joining --------------------------------------------------------------------------------- */

/* n symbols give n - 1 pairs; each of the n - 1 joins takes one candidate and adds at most two. */
bool tern_merger_begin(tern_merger *m, size_t n) {
    m->n_symbols = m->n_heap = 0;
    if (n > m->symbol_capacity) {
        const size_t capacity =
            n < SIZE_MAX / 2 && 2 * m->symbol_capacity > n ? 2 * m->symbol_capacity : n;
        tern_merger_free(m);
        m->symbols = malloc(capacity * sizeof *m->symbols);
        m->heap = malloc(2 * capacity * sizeof *m->heap);
        m->symbol_capacity = m->symbols != NULL && m->heap != NULL ? capacity : 0;
    }
    return n <= m->symbol_capacity;
}

void tern_merger_add(tern_merger *m, size_t start, size_t size, int32_t id) {
    const int32_t number = (int32_t)m->n_symbols++;
    m->symbols[number] = (tern_symbol){(int32_t)start, (int32_t)size, number - 1, -1, id};
    if (number > 0)
        m->symbols[number - 1].next = number;
}

/* Remembers the pair that begins with symbol `left`, if it may be joined. */
static void consider(tern_merger *m, tern_merge_judge *judge, const void *user, int32_t left) {
    if (left < 0 || m->symbols[left].next < 0)
        return;
    const tern_symbol *a = &m->symbols[left], *b = &m->symbols[a->next];
    tern_merge_candidate item = {0, left, a->size + b->size, -1};
    if (judge(user, a, b, &item.priority, &item.id))
        heap_push(m, item);
}

/*
 * A candidate is out of date when its left symbol is gone or the pair has grown: symbols only ever
 * grow, so equal sizes mean the same pair.
 */
static bool is_current(const tern_merger *m, tern_merge_candidate item) {
    const tern_symbol *a = &m->symbols[item.left];
    return a->size > 0 && a->next >= 0 && a->size + m->symbols[a->next].size == item.size;
}

static void join(tern_merger *m, int32_t left, int32_t id) {
    tern_symbol *a = &m->symbols[left], *b = &m->symbols[a->next];
    a->size += b->size;
    a->next = b->next;
    a->id = id;
    b->size = 0;
    if (a->next >= 0)
        m->symbols[a->next].previous = left;
}

/* Called at each step; asks the caller only once in many steps. */
static bool goes_on(const tern_merger *m, size_t step) {
    enum { STEPS = 4096 };
    return m->goes_on == NULL || step % STEPS != STEPS - 1 || m->goes_on(m->user);
}

bool tern_merger_run(tern_merger *m, tern_merge_judge *judge, const void *user) {
    for (int32_t i = 0; (size_t)i < m->n_symbols; i++) {
        consider(m, judge, user, i);
        if (!goes_on(m, (size_t)i))
            return false;
    }
    for (size_t step = 0; m->n_heap > 0; step++) {
        if (!goes_on(m, step))
            return false;
        const tern_merge_candidate best = heap_pop(m);
        if (!is_current(m, best))
            continue;
        join(m, best.left, best.id);
        consider(m, judge, user, m->symbols[best.left].previous);
        consider(m, judge, user, best.left);
    }
    return true;
}

void tern_merger_free(tern_merger *m) {
    free(m->symbols);
    free(m->heap);
    m->symbols = NULL;
    m->heap = NULL;
    m->symbol_capacity = 0;
}
