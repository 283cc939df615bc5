/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/text/tokenizer/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/text/tokenizer/internal.h"

static tern_status no_memory(const tern_vocabulary *v, tern_error *err) {
    return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for the tokenizer", v->file);
}

int32_t tern_token_find(const tern_tokenizer *t, tern_span text) {
    return tern_span_index_find(&t->by_text, t->tokens, text, (tern_span){"", 0});
}

int32_t tern_token_find_text(const tern_tokenizer *t, const char *text) {
    return tern_token_find(t, (tern_span){text, strlen(text)});
}

int32_t tern_token_find_own(const tern_tokenizer *t, tern_span text) {
    const int32_t id = tern_token_find(t, text);
    return id >= 0 && t->outside != NULL && t->outside[id] ? TERN_TOKEN_NONE : id;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static void *copy(const void *from, size_t size) {
    void *to = malloc(size > 0 ? size : 1);
    if (to != NULL && size > 0)
        memcpy(to, from, size);
    return to;
}

/* Copies the texts of tokens and the chat templates into the tokenizer's own memory. */
static bool copy_texts(tern_tokenizer *t) {
    tern_span *const others[] = {&t->chat_template, &t->tool_template};
    const size_t n_others = sizeof others / sizeof *others;
    size_t bytes = 0; /* no overflow: distinct parts of files in memory */
    for (size_t i = 0; i < n_others; i++)
        bytes += others[i]->size;
    for (size_t i = 0; i < t->n_tokens; i++)
        bytes += t->tokens[i].size;
    char *at = t->text_bytes = malloc(bytes + 1);
    if (at == NULL)
        return false;
    for (size_t i = 0; i < t->n_tokens + n_others; i++) {
        tern_span *text = i < t->n_tokens ? &t->tokens[i] : others[i - t->n_tokens];
        if (text->size > 0)
            memcpy(at, text->data, text->size);
        text->data = at;
        at += text->size;
    }
    return true;
}

/* Two tokens with one text: the second one is never made of a text. */
static tern_status index_text(tern_tokenizer *t, size_t i, bool may_repeat, tern_error *err) {
    const size_t there = tern_span_index_add(&t->by_text, t->tokens, i);
    return there == i || may_repeat
               ? TERN_OK
               : tern_fail(err, TERN_ERR_TOKENIZER_DATA, "%s: tokens %zu and %zu are the same",
                           t->file, there, i);
}

/* Tokens that texts become have texts of their own. Others may repeat one, as paddings do. */
static tern_status index_texts(tern_tokenizer *t, tern_error *err) {
    tern_status status = TERN_OK;
    for (int beside = 0; beside < 2; beside++)
        for (size_t i = 0; i < t->n_tokens && status == TERN_OK; i++) {
            const bool never =
                t->types[i] == TERN_TOKEN_CONTROL || t->types[i] == TERN_TOKEN_UNUSED;
            if (t->tokens[i].size > 0 && never == (beside == 1))
                status = index_text(t, i, never, err);
        }
    return status;
}

static tern_status set_tokens(tern_tokenizer *t, const tern_vocabulary *v, tern_error *err) {
    const size_t n = t->n_tokens = v->n_tokens;
    t->tokens = copy(v->tokens, n * sizeof *v->tokens);
    t->types = copy(v->types, n);
    t->ends = calloc(n, sizeof *t->ends);
    if (v->outside != NULL)
        t->outside = copy(v->outside, n * sizeof *v->outside);
    if (v->scores != NULL)
        t->scores = copy(v->scores, n * sizeof *v->scores);
    if (t->tokens == NULL || t->types == NULL || t->ends == NULL ||
        (v->outside != NULL && t->outside == NULL) || (v->scores != NULL && t->scores == NULL) ||
        (!v->borrowed && !copy_texts(t)) || !tern_span_index_init(&t->by_text, n))
        return no_memory(v, err);
    return index_texts(t, err);
}

/* Finds the token of each byte: "<0xNN>" or the byte itself. */
static void set_byte_tokens(tern_tokenizer *t) {
    static const char hex[] = "0123456789ABCDEF";
    for (int b = 0; b < 256; b++) {
        const char text[] = {'<', '0', 'x', hex[b >> 4], hex[b & 15], '>'};
        const char byte = (char)b;
        t->byte_tokens[b] = TERN_TOKEN_NONE;
        if (t->byte_fallback)
            t->byte_tokens[b] = tern_token_find_own(t, (tern_span){text, sizeof text});
        if (t->byte_tokens[b] < 0 && t->kind == TERN_VOCABULARY_SCORES)
            t->byte_tokens[b] = tern_token_find(t, (tern_span){&byte, 1});
    }
}

/* ---- tokens with a meaning ------------------------------------------------------------------- */

/* Texts of tokens that end a text, whatever the keys say. */
static const char *const end_texts[] = {
    "<|eot_id|>",
    "<|im_end|>",
    "<end_of_turn>",
    "<EOT>",
    "<|endoftext|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "<\357\275\234end\342\226\201of\342\226\201sentence\357\275\234>", /* DeepSeek */
    "<|fim_pad|>",
    "<|fim_repo|>",
    "<|repo_name|>",
    "<|file_sep|>",
};

static void mark_end(tern_tokenizer *t, int32_t id) {
    if (id < 0)
        return;
    t->ends[id] = true;
    t->types[id] = TERN_TOKEN_CONTROL; /* some files call them normal: they must never be text */
}

/* In a vocabulary for messages in channels (gpt-oss) <|end|> ends one of them, and two other tokens
 * end the answer. In all others it ends texts. */
static void mark_message_ends(tern_tokenizer *t) {
    const int32_t last = tern_token_find_text(t, "<|return|>");
    const int32_t call = tern_token_find_text(t, "<|call|>");
    const bool channels = last >= 0 && call >= 0;
    mark_end(t, channels ? last : tern_token_find_text(t, "<|end|>"));
    mark_end(t, channels ? call : TERN_TOKEN_NONE);
}

static void set_ends(tern_tokenizer *t, const tern_vocabulary *v) {
    for (size_t i = 0; i < v->n_ends; i++)
        mark_end(t, v->ends[i]);
    mark_message_ends(t);
    for (size_t i = 0; i < sizeof end_texts / sizeof end_texts[0]; i++)
        mark_end(t, tern_token_find_text(t, end_texts[i]));
    if (t->eos >= 0) /* the file decides its type: the default may be a normal token */
        t->ends[t->eos] = true;
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

static tern_status set_special(tern_tokenizer *t, const tern_vocabulary *v, tern_error *err) {
    size_t n = 0;
    for (size_t i = 0; i < t->n_tokens; i++)
        n += is_special(t, i);
    tern_special_entry *entries = malloc((n + 1) * sizeof *entries);
    t->special = malloc((n + 1) * sizeof *t->special);
    if (entries == NULL || t->special == NULL) {
        free(entries);
        return no_memory(v, err);
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

/* Keeps the one piece that the normalizers make, since they never split. */
typedef struct tern_kept_piece {
    char *data;
    size_t size;
} tern_kept_piece;

static tern_status keep_piece(void *user, tern_span piece) {
    tern_kept_piece *kept = user;
    kept->data = copy(piece.data, piece.size);
    kept->size = piece.size;
    return kept->data != NULL ? TERN_OK : TERN_ERR_NOMEM;
}

/* Adds a token that is looked for after the normalizers, in the form that they give it. */
static tern_status add_normalized(tern_tokenizer *t, tern_added_token token,
                                  const tern_pipeline *normalizers,
                                  tern_pipeline_scratch *scratch) {
    tern_kept_piece kept = {NULL, 0};
    const tern_piece_sink sink = {.piece = keep_piece, .user = &kept};
    tern_status status = tern_pipeline_run(normalizers, scratch, t->tokens[token.id], true, &sink);
    const size_t n = t->added_normalized.n;
    if (status == TERN_OK && kept.size > 0)
        status = tern_added_set_add(&t->added_normalized, token, (tern_span){kept.data, kept.size});
    if (t->added_normalized.n > n)
        t->normalized_texts[n] = kept.data;
    else
        free(kept.data);
    return status;
}

static size_t count_normalizers(const tern_vocabulary *v) {
    size_t n = 0;
    while (n < v->n_steps && v->steps[n].kind != TERN_STEP_ADDED)
        n++;
    return n == v->n_steps ? 0 : n; /* without that step no token is looked for after them */
}

static tern_status set_added(tern_tokenizer *t, const tern_vocabulary *v, tern_error *err) {
    char why[TERN_REGEX_WHY_BYTES];
    tern_pipeline *normalizers = NULL;
    tern_pipeline_scratch *scratch = tern_pipeline_scratch_new();
    t->normalized_texts = calloc(v->n_added + 1, sizeof *t->normalized_texts);
    tern_status status = TERN_ERR_NOMEM;
    if (scratch != NULL && t->normalized_texts != NULL &&
        tern_added_set_init(&t->added, v->n_added) &&
        tern_added_set_init(&t->added_normalized, v->n_added))
        status = tern_pipeline_new(v->steps, count_normalizers(v), &normalizers, why);
    for (size_t i = 0; i < v->n_added && status == TERN_OK; i++) {
        const tern_added_token token = v->added[i];
        status = token.normalized ? add_normalized(t, token, normalizers, scratch)
                                  : tern_added_set_add(&t->added, token, t->tokens[token.id]);
    }
    tern_pipeline_scratch_free(scratch);
    tern_pipeline_free(&normalizers);
    return status == TERN_OK
               ? TERN_OK
               : tern_fail(err, status, "%s: added tokens: %s", t->file, tern_status_str(status));
}

/* ---- the model ------------------------------------------------------------------------------- */

static tern_status set_pipeline(tern_tokenizer *t, const tern_vocabulary *v, tern_error *err) {
    char why[TERN_REGEX_WHY_BYTES] = "";
    if (t->kind == TERN_VOCABULARY_SCORES)
        return TERN_OK;
    const tern_status status = tern_pipeline_new(v->steps, v->n_steps, &t->pipeline, why);
    if (status == TERN_OK || status == TERN_ERR_NOMEM)
        return status == TERN_OK ? TERN_OK : no_memory(v, err);
    const char *what =
        status == TERN_ERR_TOKENIZER_DATA ? "precompiled_charsmap" : "a pattern of the tokenizer";
    return tern_fail(err, status, "%s: %s: %s", t->file, what, why);
}

static tern_status set_greedy(tern_tokenizer *t, const tern_vocabulary *v, tern_error *err) {
    if (!tern_prefix_set_init(&t->greedy, t->tokens, t->n_tokens))
        return no_memory(v, err);
    for (size_t i = 0; i < t->n_tokens; i++)
        if (t->tokens[i].size > 0 && t->types[i] == TERN_TOKEN_NORMAL)
            tern_prefix_set_add(&t->greedy, i);
    return TERN_OK;
}

static tern_status set_model(tern_tokenizer *t, const tern_vocabulary *v, tern_error *err) {
    switch (t->kind) {
    case TERN_VOCABULARY_BYTE_BPE:
    case TERN_VOCABULARY_TEXT_BPE:
        return tern_tokenizer_set_merges(t, v, err);
    case TERN_VOCABULARY_GREEDY:
        return set_greedy(t, v, err);
    case TERN_VOCABULARY_UNIGRAM:
        return tern_tokenizer_set_unigram(t, err);
    case TERN_VOCABULARY_WORDPIECE:
        return tern_tokenizer_set_words(t, v, err);
    case TERN_VOCABULARY_SCORES:
        break;
    }
    return TERN_OK;
}

static void copy_flags(tern_tokenizer *t, const tern_vocabulary *v) {
    t->kind = v->kind;
    t->add_bos = v->add_bos;
    t->add_eos = v->add_eos;
    t->add_space_prefix = v->add_space_prefix;
    t->ignore_merges = v->ignore_merges;
    t->closed_merges = v->closed_merges;
    t->byte_fallback = v->byte_fallback;
    t->fuse_unknown = v->fuse_unknown;
    t->decodes_bytes = v->decodes_bytes;
    t->decodes_spaces = v->decodes_spaces;
    t->drops_space = v->drops_space;
    t->leftmost_added = v->leftmost_added;
    t->marked_starts = v->marked_starts;
    t->joins_punctuation = v->joins_punctuation;
    t->bos = v->bos;
    t->eos = v->eos;
    t->unknown = v->unknown;
    t->chat_template = v->chat_template;
    t->tool_template = tern_vocabulary_template(v, "tool_use");
    _Static_assert(sizeof t->pre == sizeof v->pre, "names are as long in both");
    memcpy(t->pre, v->pre, sizeof t->pre);
}

static tern_status build(tern_tokenizer *t, const tern_vocabulary *v, tern_error *err) {
    copy_flags(t, v);
    tern_status status = set_tokens(t, v, err);
    if (status != TERN_OK)
        return status;
    set_byte_tokens(t);
    set_ends(t, v);
    status = set_pipeline(t, v, err);
    if (status == TERN_OK)
        status = set_model(t, v, err);
    if (status == TERN_OK)
        status = t->leftmost_added ? set_added(t, v, err) : set_special(t, v, err);
    if (status == TERN_OK)
        status = tern_tokenizer_set_pieces(t, err);
    t->reach = status == TERN_OK ? tern_tokenizer_find_reach(t) : 0;
    return status;
}

tern_status tern_tokenizer_build(const tern_vocabulary *v, const char *architecture,
                                 tern_tokenizer **out, tern_error *err) {
    tern_tokenizer *t = calloc(1, sizeof *t);
    if (t == NULL || (t->file = strdup(v->file)) == NULL) {
        free(t);
        return no_memory(v, err);
    }
    t->bitnet = tern_tokenizer_is_bitnet(architecture);
    const tern_status status = build(t, v, err);
    if (status != TERN_OK) {
        tern_tokenizer_free(&t);
        return status;
    }
    *out = t;
    return TERN_OK;
}

void tern_tokenizer_free(tern_tokenizer **tokenizer) {
    if (tokenizer == NULL || *tokenizer == NULL)
        return;
    tern_tokenizer *t = *tokenizer;
    *tokenizer = NULL;
    for (size_t i = 0; t->normalized_texts != NULL && i < t->added_normalized.n; i++)
        free(t->normalized_texts[i]);
    free(t->normalized_texts);
    for (size_t i = 0; i < t->extra.n; i++)
        free(t->extra.made[i]);
    free(t->extra.made);
    free(t->extra.texts);
    tern_span_index_free(&t->extra.index);
    tern_added_set_free(&t->added);
    tern_added_set_free(&t->added_normalized);
    tern_prefix_set_free(&t->greedy);
    tern_trie_free(&t->trie);
    tern_word_pieces_free(&t->words);
    tern_span_index_free(&t->by_text);
    tern_merge_table_free(&t->merges);
    tern_pipeline_free(&t->pipeline);
    free(t->tokens);
    free(t->pieces);
    free(t->types);
    free(t->ends);
    free(t->outside);
    free(t->text_bytes);
    free(t->set_template);
    free(t->piece_bytes);
    free(t->special);
    free(t->scores);
    tern_gguf_close(&t->own);
    free(t->file);
    free(t);
}
