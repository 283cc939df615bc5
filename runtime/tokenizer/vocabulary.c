/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/tokenizer/internal.h"

static tern_status no_memory(const tern_tokenizer *t, tern_error *err) {
    return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for the tokenizer", t->file);
}

int32_t tern_token_find(const tern_tokenizer *t, tern_span text) {
    return tern_span_index_find(&t->by_text, t->tokens, text, (tern_span){"", 0}, false);
}

int32_t tern_token_find_text(const tern_tokenizer *t, const char *text) {
    return tern_token_find(t, (tern_span){text, strlen(text)});
}

/* An array of strings as spans; the strings stay in the file. */
static tern_status load_strings(const tern_tokenizer *t, const tern_gguf *file, const char *key,
                                tern_span **out, size_t *n, tern_error *err) {
    const tern_gguf_value *value;
    if (tern_gguf_array(file, key, TERN_GGUF_STRING, &value, NULL) != TERN_OK)
        return tern_fail(err, TERN_ERR_TOKENIZER_DATA, "%s: key '%s' is not an array of strings",
                         t->file, key);
    if (value->count == 0 || value->count > TERN_TOKENIZER_MAX_TOKENS)
        return tern_fail(err, TERN_ERR_TOKENIZER_DATA, "%s: key '%s' has %llu strings, not 1 to %d",
                         t->file, key, (unsigned long long)value->count,
                         (int)TERN_TOKENIZER_MAX_TOKENS);
    *n = (size_t)value->count;
    *out = malloc(*n * sizeof **out);
    if (*out == NULL)
        return no_memory(t, err);
    const uint8_t *cursor = value->data;
    for (size_t i = 0; i < *n; i++)
        (*out)[i] = tern_gguf_next_string(&cursor);
    return TERN_OK;
}

static tern_status index_texts(tern_tokenizer *t, tern_error *err) {
    if (!tern_span_index_init(&t->by_text, t->n_tokens))
        return no_memory(t, err);
    for (size_t i = 0; i < t->n_tokens; i++) {
        if (t->tokens[i].size == 0)
            continue; /* padding that no text can reach */
        const size_t there = tern_span_index_add(&t->by_text, t->tokens, i);
        if (there != i)
            return tern_fail(err, TERN_ERR_TOKENIZER_DATA, "%s: tokens %zu and %zu are the same",
                             t->file, there, i);
    }
    return TERN_OK;
}

/* The array beside the tokens under key, one element a token; *out is NULL when it is absent. */
static tern_status find_parallel(const tern_tokenizer *t, const tern_gguf *file, const char *key,
                                 tern_gguf_type element, const tern_gguf_value **out,
                                 tern_error *err) {
    *out = tern_gguf_find(file, key);
    if (*out == NULL)
        return TERN_OK;
    if ((*out)->type != TERN_GGUF_ARRAY || (*out)->element != element)
        return tern_fail(err, TERN_ERR_TOKENIZER_DATA, "%s: key '%s' is not an array of %s",
                         t->file, key, element == TERN_GGUF_F32 ? "f32" : "i32");
    if ((*out)->count != t->n_tokens)
        return tern_fail(err, TERN_ERR_TOKENIZER_DATA,
                         "%s: key '%s' has %llu elements for %zu tokens", t->file, key,
                         (unsigned long long)(*out)->count, t->n_tokens);
    return TERN_OK;
}

static tern_status load_types(tern_tokenizer *t, const tern_gguf *file, tern_error *err) {
    const tern_gguf_value *value;
    const tern_status status =
        find_parallel(t, file, "tokenizer.ggml.token_type", TERN_GGUF_I32, &value, err);
    if (status != TERN_OK)
        return status;
    t->types = malloc(t->n_tokens);
    t->ends = calloc(t->n_tokens, sizeof *t->ends);
    if (t->types == NULL || t->ends == NULL)
        return no_memory(t, err);
    memset(t->types, TERN_TOKEN_NORMAL, t->n_tokens);
    for (size_t i = 0; value != NULL && i < t->n_tokens; i++) {
        int32_t type;
        memcpy(&type, value->data + i * sizeof type, sizeof type);
        if (type < 0 || type >= TERN_TOKEN_TYPE_COUNT)
            return tern_fail(err, TERN_ERR_TOKENIZER_DATA, "%s: token %zu has the unknown type %d",
                             t->file, i, (int)type);
        t->types[i] = (uint8_t)type;
    }
    return TERN_OK;
}

/* Checked for both kinds, kept for the one that merges by score. */
static tern_status load_scores(tern_tokenizer *t, const tern_gguf *file, tern_error *err) {
    const tern_gguf_value *value;
    const tern_status status =
        find_parallel(t, file, "tokenizer.ggml.scores", TERN_GGUF_F32, &value, err);
    if (status != TERN_OK || !t->spm)
        return status;
    if (value == NULL)
        return tern_fail(err, TERN_ERR_TOKENIZER_DATA,
                         "%s: key 'tokenizer.ggml.scores' is missing: merging needs scores",
                         t->file);
    t->scores = malloc(t->n_tokens * sizeof *t->scores);
    if (t->scores == NULL)
        return no_memory(t, err);
    memcpy(t->scores, value->data, t->n_tokens * sizeof *t->scores);
    for (size_t i = 0; i < t->n_tokens; i++)
        if (isnan(t->scores[i]))
            return tern_fail(err, TERN_ERR_TOKENIZER_DATA, "%s: the score of token %zu is NaN",
                             t->file, i);
    return TERN_OK;
}

/* SPM: the token of each byte, "<0xNN>" or the byte itself. */
static void set_byte_tokens(tern_tokenizer *t) {
    static const char hex[] = "0123456789ABCDEF";
    for (int b = 0; b < 256; b++) {
        const char text[] = {'<', '0', 'x', hex[b >> 4], hex[b & 15], '>'};
        const char byte = (char)b;
        t->byte_tokens[b] = tern_token_find(t, (tern_span){text, sizeof text});
        if (t->byte_tokens[b] < 0)
            t->byte_tokens[b] = tern_token_find(t, (tern_span){&byte, 1});
    }
}

tern_status tern_vocabulary_load(tern_tokenizer *t, const tern_gguf *file, tern_error *err) {
    tern_status status =
        load_strings(t, file, "tokenizer.ggml.tokens", &t->tokens, &t->n_tokens, err);
    if (status == TERN_OK)
        status = index_texts(t, err);
    if (status == TERN_OK)
        status = load_types(t, file, err);
    if (status == TERN_OK)
        status = load_scores(t, file, err);
    if (status == TERN_OK && t->spm)
        set_byte_tokens(t);
    return status;
}

tern_status tern_vocabulary_load_merges(tern_tokenizer *t, const tern_gguf *file, tern_error *err) {
    static const char key[] = "tokenizer.ggml.merges";
    if (tern_gguf_find(file, key) == NULL)
        return tern_fail(err, TERN_ERR_TOKENIZER_DATA, "%s: key '%s' is missing", t->file, key);
    const tern_status status = load_strings(t, file, key, &t->merges, &t->n_merges, err);
    if (status != TERN_OK)
        return status;
    if (!tern_span_index_init(&t->by_merge, t->n_merges))
        return no_memory(t, err);
    for (size_t i = 0; i < t->n_merges; i++) {
        const tern_span merge = t->merges[i];
        if (merge.size < 3 || memchr(merge.data + 1, ' ', merge.size - 2) == NULL)
            return tern_fail(err, TERN_ERR_TOKENIZER_DATA, "%s: merge %zu is not a pair", t->file,
                             i);
        tern_span_index_add(&t->by_merge, t->merges, i); /* of equal lines the first one counts */
    }
    return TERN_OK;
}

/* Longest first; among equally long ones the order of ids keeps the result defined. */
typedef struct tern_special_entry {
    size_t size;
    int32_t id;
} tern_special_entry;

static int compare_special(const void *left, const void *right) {
    const tern_special_entry *a = left, *b = right;
    if (a->size != b->size)
        return a->size > b->size ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

static bool is_special(const tern_tokenizer *t, size_t i) {
    return t->tokens[i].size > 0 &&
           (t->types[i] == TERN_TOKEN_CONTROL || t->types[i] == TERN_TOKEN_USER_DEFINED ||
            t->types[i] == TERN_TOKEN_UNKNOWN);
}

tern_status tern_vocabulary_set_special(tern_tokenizer *t, tern_error *err) {
    size_t n = 0;
    for (size_t i = 0; i < t->n_tokens; i++)
        n += is_special(t, i);
    tern_special_entry *entries = malloc((n + 1) * sizeof *entries);
    t->special = malloc((n + 1) * sizeof *t->special);
    if (entries == NULL || t->special == NULL) {
        free(entries);
        return no_memory(t, err);
    }
    for (size_t i = 0; i < t->n_tokens; i++)
        if (is_special(t, i))
            entries[t->n_special++] = (tern_special_entry){t->tokens[i].size, (int32_t)i};
    qsort(entries, n, sizeof *entries, compare_special);
    for (size_t i = 0; i < n; i++)
        t->special[i] = entries[i].id;
    free(entries);
    return TERN_OK;
}
