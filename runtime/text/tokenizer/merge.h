/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_TOKENIZER_MERGE_H
#define TERN_RUNTIME_TEXT_TOKENIZER_MERGE_H

/* Joins neighbours, best first. The table of byte pair encoding says which pair is best. */

#include "runtime/text/tokenizer/index.h"
#include "tern/status.h"

/* ---- the table ------------------------------------------------------------------------------- */

typedef struct tern_merge_rule {
    int32_t left, right, made; /* ids */
} tern_merge_rule;

/* Rules by pair. Empty when slots == NULL. */
typedef struct tern_merge_table {
    uint32_t *slots; /* [mask + 1] rank + 1, 0: free */
    size_t mask;
    tern_merge_rule *rules; /* by rank */
} tern_merge_table;

/* Room for n rules, which the caller fills in; false when memory is short. */
bool tern_merge_table_init(tern_merge_table *table, size_t n);
void tern_merge_table_free(tern_merge_table *table);

/* Indexes the n rules. Of two with the same pair the first one counts, or the last one. */
void tern_merge_table_index(tern_merge_table *table, size_t n, bool last_counts);

/* Finds the rank of the rule for a pair; -1: none. */
int32_t tern_merge_table_find(const tern_merge_table *table, int32_t left, int32_t right);

/* Texts of merges that are not tokens. Normal files have none. */
typedef struct tern_extra_texts {
    tern_span *texts; /* [n] */
    char **made;      /* [n] what the texts point to, or NULL */
    size_t n;
    tern_span_index index; /* index of the texts */
} tern_extra_texts;

/* ---- joining --------------------------------------------------------------------------------- */

typedef struct tern_symbol {
    int32_t start, size;    /* bytes; size 0: joined to another symbol */
    int32_t previous, next; /* symbol numbers, -1: none */
    int32_t id;             /* token, -1: none; the caller and its rule set it */
} tern_symbol;

typedef struct tern_merge_candidate {
    double priority;
    int32_t left, size; /* symbol number, bytes that both have together */
    int32_t id;         /* id of what they make */
} tern_merge_candidate;

/* Scratch of one call. Symbol 0 always survives; follow `next` from it. */
typedef struct tern_merger {
    tern_symbol *symbols;
    tern_merge_candidate *heap;
    size_t symbol_capacity, n_symbols, n_heap;
    bool (*goes_on)(void *user); /* asked now and then; false stops the work. NULL: never asked */
    void *user;
} tern_merger;

/*
 * Says whether two neighbours may be joined, with which priority (smaller is earlier), and the id
 * of what they make. user is that of tern_merger_run.
 */
typedef bool tern_merge_judge(const void *user, const tern_symbol *left, const tern_symbol *right,
                              double *priority, int32_t *id);

/* Makes room for n symbols (1 to INT32_MAX) and begins without any; false when memory is short. */
bool tern_merger_begin(tern_merger *m, size_t n);
void tern_merger_add(tern_merger *m, size_t start, size_t size, int32_t id); /* size >= 1 */

/* Joins until nothing can be joined, the leftmost among equals first. O(n log n). False: it was
 * stopped. */
TERN_MUST_CHECK bool tern_merger_run(tern_merger *m, tern_merge_judge *judge, const void *user);
void tern_merger_free(tern_merger *m);

#endif
