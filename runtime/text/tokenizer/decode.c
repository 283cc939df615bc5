/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "runtime/text/tokenizer/internal.h"

static bool contains(tern_span piece, const char *word) {
    return memmem(piece.data, piece.size, word, strlen(word)) != NULL;
}

/* True for the marks with which a model writes calls of tools, those around its thinking, and those
 * of messages in channels: control tokens that stand for their texts. Their names tell, in all
 * vocabularies that have some; those around results and around lists of tools, which only prompts
 * have, do not count. */
static bool is_spoken(tern_span piece) {
    static const char *const words[] = {
        "TOOL_CALL",    "tool_call",    "tool▁call", "function_call", "TOOLCALL",
        "tools_prefix", "tools_suffix", "_ACTION|",  "action_start",  "action_end",
        "<|plugin|>",   "tool▁sep",     "[ARGS]",    "[CALL_ID]",     "DSML",
        "<|\"|>",       "<escape>",     "[THINK]",   "[/THINK]",      "_THINKING|>",
        "think>",       "<|start|>",    "<|end|>",   "<|channel|>",   "<|constrain|>",
        "<|message|>"};
    bool spoken = false;
    for (size_t i = 0; i < sizeof words / sizeof *words && !spoken; i++)
        spoken = contains(piece, words[i]);
    return spoken && !contains(piece, "response") && !contains(piece, "result");
}

/* True for tokens that stand for nothing in a text: control and unknown tokens, and unused ids. */
static bool is_silent(const tern_tokenizer *t, int32_t id) {
    const tern_token_type type = t->types[id];
    /* ends first: with ignore_eos a whole answer may consist of them */
    if (type == TERN_TOKEN_CONTROL && !t->ends[id] && is_spoken(t->pieces[id]))
        return false;
    return type == TERN_TOKEN_CONTROL || type == TERN_TOKEN_UNKNOWN || type == TERN_TOKEN_UNUSED;
}

const char *tern_token_bytes(const tern_tokenizer *t, int32_t id, bool special, size_t *size) {
    *size = 0;
    if (id < 0 || (size_t)id >= t->n_tokens || (!special && is_silent(t, id)))
        return "";
    *size = t->pieces[id].size;
    return t->pieces[id].data;
}

/* Joins the pieces of the ids and returns their bytes. out may be NULL, to size it. */
static size_t join_pieces(const tern_tokenizer *t, const int32_t *ids, size_t n, bool special,
                          char *out) {
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        size_t size;
        const char *bytes = tern_token_bytes(t, ids[i], special, &size);
        if (out != NULL)
            memcpy(out + used, bytes, size);
        used += size;
    }
    return used;
}

tern_status tern_detokenize(const tern_tokenizer *t, const int32_t *ids, size_t n,
                            bool skip_special, char *text, size_t capacity, size_t *size,
                            tern_error *err) {
    if (t == NULL || (ids == NULL && n > 0) || (text == NULL && capacity > 0) || size == NULL)
        return tern_fail(err, TERN_ERR_NULL, "tern_detokenize: NULL argument");
    if (n > SIZE_MAX / TERN_UTF8_REPLACEMENT_BYTES / (t->max_piece + 1))
        return tern_fail(err, TERN_ERR_ARG, "%s: %zu tokens are too many", t->file, n);
    const size_t raw_size = join_pieces(t, ids, n, !skip_special, NULL);
    /* raw bytes, and after them the text they give */
    char *raw = malloc((1 + TERN_UTF8_REPLACEMENT_BYTES) * raw_size + 1);
    if (raw == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for %zu bytes", t->file, raw_size);
    join_pieces(t, ids, n, !skip_special, raw);
    const size_t skip = t->drops_space && raw_size > 0 && raw[0] == ' ' ? 1 : 0;
    char *repaired = raw + raw_size;
    const size_t total = tern_utf8_repair(raw + skip, raw_size - skip, repaired, NULL);
    if (capacity > 0)
        memcpy(text, repaired, total < capacity ? total : capacity);
    free(raw);
    *size = total;
    if (capacity > 0 && total > capacity)
        return tern_fail(err, TERN_ERR_BUFFER, "%s: the text has %zu bytes, the buffer holds %zu",
                         t->file, total, capacity);
    return TERN_OK;
}

size_t tern_tokenizer_size(const tern_tokenizer *t) {
    return t->n_tokens;
}

const char *tern_tokenizer_pre(const tern_tokenizer *t) {
    return t->pre;
}

const char *tern_tokenizer_file(const tern_tokenizer *t) {
    return t->file;
}

const char *tern_tokenizer_kind(const tern_tokenizer *t) {
    switch (t->kind) {
    case TERN_VOCABULARY_BYTE_BPE:
        return "byte-level BPE";
    case TERN_VOCABULARY_TEXT_BPE:
        return "BPE";
    case TERN_VOCABULARY_GREEDY:
        return "longest match";
    case TERN_VOCABULARY_UNIGRAM:
        return "Unigram";
    case TERN_VOCABULARY_WORDPIECE:
        return "WordPiece";
    case TERN_VOCABULARY_SCORES:
        break;
    }
    return "SentencePiece scores";
}

bool tern_token_ends_text(const tern_tokenizer *t, int32_t id) {
    return id >= 0 && (size_t)id < t->n_tokens && t->ends[id];
}

int32_t tern_token_bos(const tern_tokenizer *t) {
    return t->bos;
}

int32_t tern_token_eos(const tern_tokenizer *t) {
    return t->eos;
}
