/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/utf8.h"
#include "runtime/text/tokenizer/internal.h"

bool tern_scratch_reserve(void **buffer, size_t *capacity, size_t need) {
    if (need <= *capacity && *buffer != NULL)
        return true;
    size_t size = need < 64 ? 64 : need;
    if (*capacity < SIZE_MAX / 2 && size < 2 * *capacity)
        size = 2 * *capacity;
    void *grown = malloc(size);
    if (grown == NULL)
        return false;
    free(*buffer);
    *buffer = grown;
    *capacity = size;
    return true;
}

/* Makes room for more ids if `ids` is full and memory allows it. */
static void grow_ids(tern_encoder *e) {
    const size_t capacity = 2 * e->capacity + 64;
    int32_t *grown = e->n == e->capacity ? realloc(e->ids, capacity * sizeof *grown) : NULL;
    if (grown == NULL)
        return;
    e->ids = grown;
    e->capacity = capacity;
}

void tern_encoder_emit(tern_encoder *e, int32_t id) {
    if (e->n >= e->capacity && e->grows)
        grow_ids(e);
    if (e->n < e->capacity)
        e->ids[e->n] = id;
    e->n++;
}

/* ---- limits ---------------------------------------------------------------------------------- */

tern_status tern_encoder_take(tern_encoder *e, size_t bytes) {
    const tern_tokenize_limits *l = e->limits;
    if (l == NULL)
        return TERN_OK;
    e->taken += bytes;
    if (l->most_bytes > 0 && e->taken > l->most_bytes)
        return TERN_ERR_CONTEXT;
    if (l->most_tokens == 0)
        return TERN_OK;
    const size_t left = l->most_tokens > e->n ? l->most_tokens - e->n : 0;
    return e->t->reach > 0 && bytes / e->t->reach > left ? TERN_ERR_CONTEXT : TERN_OK;
}

static bool goes_on(const tern_encoder *e, size_t bytes) {
    return e->limits == NULL || e->limits->goes_on == NULL ||
           e->limits->goes_on(e->limits->user, bytes);
}

bool tern_encoder_goes_on(void *encoder) {
    return goes_on(encoder, 0);
}

tern_status tern_encoder_pass(tern_encoder *e, size_t bytes) {
    enum { TOLD_BYTES = 1 << 15 };
    if (e->limits == NULL)
        return TERN_OK;
    if (e->limits->most_tokens > 0 && e->n > e->limits->most_tokens)
        return TERN_ERR_CONTEXT;
    e->untold += bytes;
    if (e->untold < TOLD_BYTES)
        return TERN_OK;
    const size_t told = e->untold;
    e->untold = 0;
    return goes_on(e, told) ? TERN_OK : TERN_ERR_STATE;
}

tern_status tern_encoder_finish(tern_encoder *e, tern_status status, size_t *n, tern_error *err) {
    if (e->untold > 0)
        (void)goes_on(e, e->untold); /* so that all bytes are counted */
    tern_merger_free(&e->merger);
    tern_pipeline_scratch_free(e->scratch);
    free(e->paths);
    free(e->fragment);
    if (status != TERN_OK)
        return tern_fail(err, status, "%s: %s while tokenizing", e->t->file,
                         tern_status_str(status));
    *n = e->n;
    if (e->grows && e->n > e->capacity)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for %zu tokens", e->t->file, e->n);
    if (e->capacity > 0 && e->n > e->capacity)
        return tern_fail(err, TERN_ERR_BUFFER, "%s: the text has %zu tokens, the buffer holds %zu",
                         e->t->file, e->n, e->capacity);
    return TERN_OK;
}

/* Text between special tokens (id < 0), or a special token. Fragments form a linked list. */
typedef struct tern_fragment {
    tern_span text;
    int32_t id, next;
} tern_fragment;

typedef struct tern_fragments {
    const char *whole; /* the text that all of them are parts of */
    const uint8_t
        *marks; /* one a byte; control tokens are found where all of theirs are 0. NULL: anywhere */
    tern_fragment *items;
    size_t n, capacity;
} tern_fragments;

/* Inserts a fragment after number `after`; returns its number, or -1 when memory is short. */
static int32_t insert(tern_fragments *list, int32_t after, tern_span text, int32_t id) {
    if (!tern_grow((void **)&list->items, &list->capacity, list->n, sizeof *list->items,
                   SIZE_MAX / sizeof *list->items))
        return -1;
    const int32_t number = (int32_t)list->n++; /* below 2 * TERN_TOKENIZER_MAX_TEXT + 1 */
    list->items[number] = (tern_fragment){text, id, after < 0 ? -1 : list->items[after].next};
    if (after >= 0)
        list->items[after].next = number;
    return number;
}

/* Finds the first occurrence of a special token in a fragment where the marks of its bytes allow
 * one. */
static const char *find_special(const tern_fragments *list, tern_span text, tern_span special,
                                bool anywhere) {
    const char *end = text.data + text.size;
    const char *at = memmem(text.data, text.size, special.data, special.size);
    while (at != NULL && !anywhere &&
           !tern_all_zero(list->marks + (at - list->whole), special.size))
        at = memmem(at + 1, (size_t)(end - at) - 1, special.data, special.size);
    return at;
}

/* Cuts every left-most occurrence of one special token out of text fragment `at`. */
static tern_status cut_special(tern_fragments *list, int32_t at, tern_span special, int32_t id,
                               bool anywhere) {
    for (;;) {
        const tern_span text = list->items[at].text;
        const char *found = find_special(list, text, special, anywhere);
        if (found == NULL)
            return TERN_OK;
        const size_t before = (size_t)(found - text.data);
        const tern_span rest = {found + special.size, text.size - before - special.size};
        const int32_t token = insert(list, at, special, id);
        const int32_t tail = token < 0 ? -1 : insert(list, token, rest, TERN_TOKEN_NONE);
        if (tail < 0)
            return TERN_ERR_NOMEM;
        list->items[at].text.size = before;
        at = tail;
    }
}

/* Longer special tokens come first and win, wherever they lie; bytes are compared as they are. */
static tern_status cut_specials(const tern_tokenizer *t, tern_fragments *list, bool parse) {
    bool present[256] = {false};
    const tern_span whole = list->items[0].text;
    for (size_t i = 0; i < whole.size; i++)
        present[(unsigned char)whole.data[i]] = true;
    for (size_t k = 0; k < t->n_special; k++) {
        const int32_t id = t->special[k];
        const tern_span special = t->tokens[id];
        if ((!parse && t->types[id] != TERN_TOKEN_USER_DEFINED) ||
            !present[(unsigned char)special.data[0]])
            continue;
        const bool anywhere = list->marks == NULL || t->types[id] == TERN_TOKEN_USER_DEFINED;
        for (int32_t at = 0; at >= 0; at = list->items[at].next) {
            if (list->items[at].id >= 0 || list->items[at].text.size < special.size)
                continue;
            const tern_status status = cut_special(list, at, special, id, anywhere);
            if (status != TERN_OK)
                return status;
        }
    }
    return TERN_OK;
}

/* ---- text without special tokens --------------------------------------------------------------
 */

static tern_status encode_piece(void *user, tern_span piece) {
    tern_encoder *e = user;
    const tern_status status = tern_encoder_pass(e, piece.size);
    if (status != TERN_OK)
        return status;
    switch (e->t->kind) {
    case TERN_VOCABULARY_GREEDY:
        return tern_greedy_encode(e, piece);
    case TERN_VOCABULARY_UNIGRAM:
        return tern_unigram_encode(e, piece);
    case TERN_VOCABULARY_WORDPIECE:
        return tern_words_encode(e, piece);
    default:
        return tern_bpe_encode(e, piece);
    }
}

static tern_status emit_added(void *user, int32_t id) {
    tern_encoder_emit(user, id);
    return TERN_OK;
}

/* Copies text to out with U+FFFD for each byte that is not part of a character. Returns the bytes
 * written. */
static size_t replace_invalid(tern_span text, char *out) {
    size_t n = 0;
    for (size_t at = 0; at < text.size;) {
        const tern_utf8 c = tern_utf8_next(text.data + at, text.size - at);
        if (c.kind == TERN_UTF8_VALID) {
            memcpy(out + n, text.data + at, c.size);
            n += c.size;
            at += c.size;
            continue;
        }
        memcpy(out + n, tern_utf8_replacement, TERN_UTF8_REPLACEMENT_BYTES);
        n += TERN_UTF8_REPLACEMENT_BYTES;
        at++;
    }
    return n;
}

/* Copies the text as valid UTF-8 to the encoder's buffer, and makes the pipeline's scratch. */
static tern_status make_valid(tern_encoder *e, tern_span text, tern_span *valid) {
    void *buffer = e->fragment;
    if (!tern_scratch_reserve(&buffer, &e->fragment_capacity,
                              TERN_UTF8_REPLACEMENT_BYTES * text.size))
        return TERN_ERR_NOMEM;
    e->fragment = buffer;
    if (e->scratch == NULL && (e->scratch = tern_pipeline_scratch_new()) == NULL)
        return TERN_ERR_NOMEM;
    *valid = (tern_span){e->fragment, replace_invalid(text, e->fragment)};
    return TERN_OK;
}

static tern_piece_sink sink_of(tern_encoder *e, bool parse) {
    return (tern_piece_sink){encode_piece, emit_added, e, &e->t->added_normalized, parse};
}

/* prefix: the fragment begins the text, or a special token lies before it. */
static tern_status encode_fragment(tern_encoder *e, tern_span text, bool prefix) {
    if (e->t->kind == TERN_VOCABULARY_SCORES) {
        const tern_status passed = tern_encoder_pass(e, text.size);
        return passed == TERN_OK ? tern_spm_encode(e, text, prefix && e->t->add_space_prefix)
                                 : passed;
    }
    tern_span valid;
    const tern_status status = make_valid(e, text, &valid);
    const tern_piece_sink sink = sink_of(e, false);
    return status == TERN_OK ? tern_pipeline_run(e->t->pipeline, e->scratch, valid, prefix, &sink)
                             : status;
}

static tern_status encode_fragments(tern_encoder *e, const tern_fragments *list) {
    bool after_special = true; /* the start of the text counts as one */
    for (int32_t at = 0; at >= 0; at = list->items[at].next) {
        const tern_fragment *f = &list->items[at];
        if (f->id >= 0) {
            tern_encoder_emit(e, f->id);
            after_special = true;
            continue;
        }
        if (f->text.size == 0)
            continue;
        const tern_status status = encode_fragment(e, f->text, after_special);
        if (status != TERN_OK)
            return status;
        after_special = false;
    }
    return TERN_OK;
}

/* ---- with special tokens ----------------------------------------------------------------------
 */

/* Cuts out special tokens as llama.cpp does for GGUF files. */
static tern_status encode_by_length(tern_encoder *e, tern_span text, const uint8_t *marks,
                                    bool parse) {
    tern_fragments list = {.whole = text.data, .marks = marks};
    tern_status status = TERN_ERR_NOMEM;
    if (insert(&list, -1, text, TERN_TOKEN_NONE) == 0)
        status = cut_specials(e->t, &list, parse);
    if (status == TERN_OK)
        status = encode_fragments(e, &list);
    free(list.items);
    return status;
}

/* Cuts out added tokens as Hugging Face's tokenizers do for a tokenizer.json. */
static tern_status encode_by_place(tern_encoder *e, tern_span text, const uint8_t *marks,
                                   bool parse) {
    tern_span valid;
    tern_status status = make_valid(e, text, &valid);
    if (status != TERN_OK)
        return status;
    tern_added_walk walk = {.set = &e->t->added,
                            .text = valid,
                            .parse = parse,
                            .marks = marks,
                            .scratch = tern_pipeline_regex_scratch(e->scratch)};
    for (bool found = true; found && status == TERN_OK;) {
        const size_t at = walk.at;
        size_t start = valid.size;
        int32_t id = TERN_TOKEN_NONE;
        found = tern_added_next(&walk, &start, &id);
        const tern_span before = {valid.data + at, start > at ? start - at : 0};
        /* It is not known which bytes a token of the normalized text comes from, so all marks must
         * be 0. */
        const bool own = parse && (marks == NULL || tern_all_zero(marks + at, before.size));
        const tern_piece_sink sink = sink_of(e, own);
        status = tern_pipeline_run(e->t->pipeline, e->scratch, before, at == 0, &sink);
        if (found)
            tern_encoder_emit(e, id);
    }
    return status;
}

/* Checks the size of a text and lets the limits stop the merger. */
static tern_status begin_text(tern_encoder *e, tern_span text) {
    if (text.size > TERN_TOKENIZER_MAX_TEXT)
        return TERN_ERR_ARG;
    e->merger.goes_on = e->limits != NULL ? tern_encoder_goes_on : NULL;
    e->merger.user = e;
    return tern_encoder_take(e, text.size);
}

tern_status tern_encode_text(tern_encoder *e, tern_span text, bool parse) {
    const tern_status status = begin_text(e, text);
    if (status != TERN_OK)
        return status;
    return e->t->leftmost_added ? encode_by_place(e, text, NULL, parse)
                                : encode_by_length(e, text, NULL, parse);
}

tern_status tern_encode_marked(tern_encoder *e, tern_span text, const uint8_t *marks) {
    const tern_status status = begin_text(e, text);
    if (status != TERN_OK)
        return status;
    return e->t->leftmost_added ? encode_by_place(e, text, marks, true)
                                : encode_by_length(e, text, marks, true);
}

static tern_status encode_all(tern_encoder *e, tern_span text, unsigned flags) {
    const tern_tokenizer *t = e->t;
    const bool special = (flags & TERN_TOKENIZE_SPECIAL) != 0;
    if (special && t->add_bos && t->bos >= 0)
        tern_encoder_emit(e, t->bos);
    const tern_status status = tern_encode_text(e, text, (flags & TERN_TOKENIZE_PARSE) != 0);
    if (special && t->add_eos && t->eos >= 0)
        tern_encoder_emit(e, t->eos);
    return status;
}

size_t tern_tokens_of_pair(const tern_tokenizer *t, const int32_t *first, size_t n_first,
                           const int32_t *second, size_t n_second, int32_t *out, size_t *begin) {
    const bool ends = t->add_eos && n_first > 0 && first[n_first - 1] == t->eos;
    const bool begins = t->add_bos && n_second > 0 && second[0] == t->bos;
    size_t n = 0;
    for (size_t i = 0; i < n_first; i++)
        out[n++] = first[i];
    const bool words = t->kind == TERN_VOCABULARY_WORDPIECE;
    if (ends && !words)
        out[n++] = t->eos;
    *begin = words ? n : 0;
    for (size_t i = begins; i < n_second; i++)
        out[n++] = second[i];
    return n;
}

tern_status tern_tokenize(const tern_tokenizer *t, const char *text, size_t size, unsigned flags,
                          int32_t *ids, size_t capacity, size_t *n, tern_error *err) {
    if (t == NULL || (text == NULL && size > 0) || (ids == NULL && capacity > 0) || n == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_tokenize: NULL argument");
    if (size > TERN_TOKENIZER_MAX_TEXT)
        return tern_fail(err, TERN_ERR_ARG, "%s: a text of %zu bytes is too long, at most %d",
                         t->file, size, (int)TERN_TOKENIZER_MAX_TEXT);
    tern_encoder e = {.t = t, .ids = ids, .capacity = capacity};
    const tern_status status = encode_all(&e, (tern_span){text != NULL ? text : "", size}, flags);
    return tern_encoder_finish(&e, status, n, err);
}

tern_status tern_tokenize_within(const tern_tokenizer *t, const char *text, size_t size,
                                 unsigned flags, const tern_tokenize_limits *limits, int32_t **ids,
                                 size_t *n, tern_error *err) {
    if (t == NULL || (text == NULL && size > 0) || ids == NULL || n == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_tokenize_within: NULL argument");
    tern_encoder e = {.t = t, .grows = true, .limits = limits};
    tern_status status = encode_all(&e, (tern_span){text != NULL ? text : "", size}, flags);
    status = tern_encoder_finish(&e, status, n, err);
    if (status != TERN_OK)
        free(e.ids);
    else
        *ids = e.ids;
    return status;
}
