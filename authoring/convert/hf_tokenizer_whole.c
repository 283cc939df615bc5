/* SPDX-License-Identifier: Apache-2.0 */
#include "authoring/convert/hf_tokenizer_whole.h"

#include <stdlib.h>
#include <string.h>

#include "base/in_file.h"
#include "base/utf8.h"
#include "runtime/text/tokenizer/bert_rules.h"
#include "runtime/text/tokenizer/index.h"
#include "runtime/text/tokenizer/pipeline.h"
#include "runtime/text/tokenizer/unigram_rules.h"

enum {
    MAX_FILE_BYTES = 1 << 28, /* as tern_vocabulary_open */
    /* Added tokens are compared each with all others. Real files have up to some thousand of them,
     * of at most some dozen bytes. */
    MOST_ADDED = 8192,
    LONGEST_ADDED = 256
};

/* ---- what the usual keys say ------------------------------------------------------------------
 */

/* True if a text may hold both, the end of one being the beginning of the other. */
static bool overlap(tern_span first, tern_span second) {
    for (size_t i = 1; i < first.size; i++) {
        const size_t n = first.size - i;
        if (n < second.size && memcmp(first.data + i, second.data, n) == 0)
            return true;
    }
    return false;
}

bool hf_has_plain_added(const tern_vocabulary *v) {
    if (v->n_added > MOST_ADDED)
        return false; /* it would take too long to know */
    for (size_t i = 0; i < v->n_added; i++) {
        const tern_added_token *a = &v->added[i];
        if (a->single_word || a->lstrip || a->rstrip || v->tokens[a->id].size > LONGEST_ADDED)
            return false;
        for (size_t k = 0; k < v->n_added; k++)
            if (k != i && overlap(v->tokens[a->id], v->tokens[v->added[k].id]))
                return false;
    }
    return true;
}

/* *all becomes true if the model has a token for each byte: then no text has an unknown part. */
static tern_status has_all_bytes(const tern_vocabulary *v, bool *all, tern_error *err) {
    tern_span_index index;
    if (!tern_span_index_init(&index, v->n_tokens))
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory to look %zu tokens up", v->file,
                         v->n_tokens);
    for (size_t i = 0; i < v->n_tokens; i++)
        if (v->tokens[i].size > 0 && !(v->outside != NULL && v->outside[i]))
            (void)tern_span_index_add(&index, v->tokens, i);
    *all = true;
    for (int b = 0; b < 256; b++) {
        char text[TERN_UTF8_MAX_BYTES];
        const tern_span character = {text, tern_utf8_put(tern_byte_to_char((uint8_t)b), text)};
        *all = *all && tern_span_index_find(&index, v->tokens, character, (tern_span){"", 0}) >= 0;
    }
    tern_span_index_free(&index);
    return TERN_OK;
}

static bool normalizes(const tern_vocabulary *v) {
    for (size_t i = 0; i < v->n_steps; i++)
        if (v->steps[i].kind == TERN_STEP_NORMALIZE)
            return true;
    return false;
}

static tern_status bytes_said(const tern_vocabulary *v, hf_said *said, tern_error *err) {
    *said = v->pre[0] == '\0' ? HF_SAID_TOKENS : HF_SAID_NEARLY;
    if (v->pre[0] == '\0' || normalizes(v) || !v->decodes_bytes || v->decodes_spaces ||
        v->drops_space || !hf_has_plain_added(v))
        return TERN_OK;
    bool all = false;
    const tern_status status = has_all_bytes(v, &all, err);
    if (status == TERN_OK && all)
        *said = HF_SAID_WHOLE;
    return status;
}

static hf_said words_said(const tern_vocabulary *v) {
    tern_bert_rules rules;
    if (!tern_bert_recognise(v, &rules))
        return HF_SAID_TOKENS;
    bool before = true; /* all are cut out before the normalizers */
    for (size_t i = 0; i < v->n_added; i++)
        before = before && !v->added[i].normalized;
    return before && hf_has_plain_added(v) ? HF_SAID_WHOLE : HF_SAID_NEARLY;
}

tern_status hf_tokenizer_said(const tern_vocabulary *v, hf_said *said, tern_error *err) {
    tern_unigram_rules rules;
    switch (v->kind) {
    case TERN_VOCABULARY_BYTE_BPE:
        return bytes_said(v, said, err);
    case TERN_VOCABULARY_WORDPIECE:
        *said = words_said(v);
        break;
    case TERN_VOCABULARY_UNIGRAM: /* maps of characters and equal sums are SentencePiece's there */
        *said = tern_unigram_recognise(v, &rules) ? HF_SAID_NEARLY : HF_SAID_TOKENS;
        break;
    default: /* scores join other neighbours than merges now and then, and spaces differ */
        *said = HF_SAID_NEARLY;
    }
    return TERN_OK;
}

/* ---- the whole --------------------------------------------------------------------------------
 */

/* Drops white space outside of strings from a terminated text. */
static void squeeze(char *text, size_t size) {
    size_t n = 0;
    bool quoted = false;
    for (size_t i = 0; i < size; i++) {
        const char c = text[i];
        if (!quoted && (c == ' ' || c == '\t' || c == '\n' || c == '\r'))
            continue;
        text[n++] = c;
        if (c == '"')
            quoted = !quoted;
        else if (c == '\\' && quoted && i + 1 < size)
            text[n++] = text[++i];
    }
    text[n] = '\0';
}

tern_status hf_tokenizer_put_whole(tern_gguf_writer *w, const char *path, tern_error *err) {
    char *text;
    size_t size;
    const tern_status status = tern_in_file_read(path, MAX_FILE_BYTES, &text, &size, err);
    if (status != TERN_OK)
        return status;
    squeeze(text, size);
    tern_gguf_put_string(w, TERN_VOCABULARY_WHOLE_KEY, text);
    free(text);
    return TERN_OK;
}
