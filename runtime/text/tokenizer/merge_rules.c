/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "runtime/text/tokenizer/internal.h"

/*
 * Merges by the ids of the parts that they join. Merges of a GGUF file may join or make texts that
 * are not tokens: these texts get ids of their own, after those of the tokens. A tokenizer.json
 * must not have such merges.
 */

enum { SHOWN_BYTES = 64 };

static tern_status no_memory(const tern_tokenizer *t, tern_error *err) {
    return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for the merges", t->file);
}

static bool begin_extra(tern_extra_texts *x, size_t n_merges) {
    const size_t most = 3 * n_merges;
    x->texts = malloc(most * sizeof *x->texts);
    x->made = malloc(most * sizeof *x->made);
    return x->texts != NULL && x->made != NULL && tern_span_index_init(&x->index, most);
}

/* Finds the number of a text that is not a token; a new text gets the next one. -1: no memory. */
static int32_t extra_number(tern_extra_texts *x, size_t n_merges, tern_span head, tern_span tail) {
    if (x->texts == NULL && !begin_extra(x, n_merges))
        return -1;
    const int32_t there = tern_span_index_find(&x->index, x->texts, head, tail);
    if (there >= 0)
        return there;
    char *text = malloc(head.size + tail.size);
    if (text == NULL)
        return -1;
    memcpy(text, head.data, head.size);
    memcpy(text + head.size, tail.data, tail.size);
    x->texts[x->n] = (tern_span){text, head.size + tail.size};
    x->made[x->n] = text;
    (void)tern_span_index_add(&x->index, x->texts, x->n);
    return (int32_t)x->n++;
}

static bool is_token(const tern_tokenizer *t, size_t id, tern_span head, tern_span tail) {
    return id < t->n_tokens && t->tokens[id].size == head.size + tail.size &&
           memcmp(t->tokens[id].data, head.data, head.size) == 0 &&
           memcmp(t->tokens[id].data + head.size, tail.data, tail.size) == 0;
}

/* Finds the token that a merge makes. Merges mostly come in the order of these tokens, and a look
 * at the one after the last is cheaper than a search. */
static int32_t find_made(const tern_tokenizer *t, const tern_merge *m, int32_t last) {
    const size_t next = (size_t)last + 1;
    return is_token(t, next, m->left, m->right)
               ? (int32_t)next
               : tern_span_index_find(&t->by_text, t->tokens, m->left, m->right);
}

/* The id of head and tail together: *id if that is a token, else one of an extra text. */
static tern_status take_id(tern_tokenizer *t, const tern_vocabulary *v, size_t rank, tern_span head,
                           tern_span tail, int32_t *id, tern_error *err) {
    const bool outside = *id >= 0 && t->outside != NULL && t->outside[*id];
    if (*id >= 0 && !outside)
        return TERN_OK;
    if (t->closed_merges) {
        const size_t shown = head.size < SHOWN_BYTES ? head.size : SHOWN_BYTES;
        const size_t more = tail.size < SHOWN_BYTES ? tail.size : SHOWN_BYTES;
        return tern_fail(err, TERN_ERR_TOKENIZER_DATA,
                         "%s: merge %zu: '%.*s%.*s' is not in the vocabulary", t->file, rank,
                         (int)shown, head.data, (int)more, tail.data);
    }
    const int32_t extra = extra_number(&t->extra, v->n_merges, head, tail);
    *id = (int32_t)t->n_tokens + extra;
    return extra >= 0 ? TERN_OK : no_memory(t, err);
}

/* Merges whose parts are searched together. */
enum { TOGETHER = 16 };

/* Makes the rules of n merges from that rank on, n <= TOGETHER; *last is the token made before. */
static tern_status set_some(tern_tokenizer *t, const tern_vocabulary *v, size_t rank, size_t n,
                            int32_t *last, tern_error *err) {
    static const tern_span nothing = {"", 0};
    tern_span parts[2 * TOGETHER];
    int32_t ids[2 * TOGETHER];
    for (size_t i = 0; i < n; i++) {
        parts[2 * i] = v->merges[rank + i].left;
        parts[2 * i + 1] = v->merges[rank + i].right;
    }
    tern_span_index_find_all(&t->by_text, t->tokens, parts, 2 * n, ids);
    for (size_t i = 0; i < n; i++) {
        const tern_merge *m = &v->merges[rank + i];
        tern_merge_rule rule = {ids[2 * i], ids[2 * i + 1], find_made(t, m, *last)};
        tern_status status = take_id(t, v, rank + i, m->left, nothing, &rule.left, err);
        if (status == TERN_OK)
            status = take_id(t, v, rank + i, m->right, nothing, &rule.right, err);
        if (status == TERN_OK)
            status = take_id(t, v, rank + i, m->left, m->right, &rule.made, err);
        if (status != TERN_OK)
            return status;
        t->merges.rules[rank + i] = rule;
        *last = rule.made;
    }
    return TERN_OK;
}

tern_status tern_tokenizer_set_merges(tern_tokenizer *t, const tern_vocabulary *v,
                                      tern_error *err) {
    if (!tern_merge_table_init(&t->merges, v->n_merges))
        return no_memory(t, err);
    int32_t last = 0;
    for (size_t rank = 0; rank < v->n_merges; rank += TOGETHER) {
        const size_t left = v->n_merges - rank;
        const tern_status status =
            set_some(t, v, rank, left < TOGETHER ? left : TOGETHER, &last, err);
        if (status != TERN_OK)
            return status;
    }
    tern_merge_table_index(&t->merges, v->n_merges, v->last_merge_counts);
    return TERN_OK;
}
