/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "runtime/text/tokenizer/internal.h"

/* SentencePiece-style tokens: spaces are written as U+2581, and characters without a token are
 * spelled in bytes. */
static const char visible_space[] = "\xE2\x96\x81";
enum { VISIBLE_SPACE_BYTES = 3 };

typedef struct tern_spm_text {
    const tern_tokenizer *t;
    const char *data;
} tern_spm_text;

/* Any two neighbours whose text together is a token may be joined, the highest score first. */
static bool judge(const void *user, const tern_symbol *left, const tern_symbol *right,
                  double *priority, int32_t *id) {
    const tern_spm_text *text = user;
    const tern_span both = {text->data + left->start, (size_t)(left->size + right->size)};
    *id = tern_token_find(text->t, both);
    if (*id < 0)
        return false;
    *priority = -(double)text->t->scores[*id];
    return true;
}

/* The length that the lead byte announces, at most `left`. Broken bytes stand alone. */
static size_t character_size(const char *text, size_t left) {
    const unsigned char lead = (unsigned char)text[0];
    size_t size = 1;
    if (lead >= 0xC0)
        size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    return size < left ? size : left;
}

static void emit_symbol(tern_encoder *e, tern_span symbol) {
    const int32_t id = tern_token_find(e->t, symbol);
    if (id >= 0) {
        tern_encoder_emit(e, id);
        return;
    }
    /* Only single characters get here: a joined symbol is a token by construction. */
    for (size_t i = 0; i < symbol.size; i++) {
        const int32_t byte = e->t->byte_tokens[(unsigned char)symbol.data[i]];
        const int32_t chosen = byte >= 0 ? byte : e->t->unknown;
        if (chosen >= 0)
            tern_encoder_emit(e, chosen);
    }
}

/* out holds 3 * (fragment.size + 1) bytes. */
static size_t show_spaces(tern_span fragment, bool prefix, char *out) {
    size_t n = 0;
    if (prefix) {
        memcpy(out, visible_space, VISIBLE_SPACE_BYTES);
        n = VISIBLE_SPACE_BYTES;
    }
    for (size_t i = 0; i < fragment.size; i++) {
        if (fragment.data[i] != ' ') {
            out[n++] = fragment.data[i];
            continue;
        }
        memcpy(out + n, visible_space, VISIBLE_SPACE_BYTES);
        n += VISIBLE_SPACE_BYTES;
    }
    return n;
}

tern_status tern_spm_encode(tern_encoder *e, tern_span fragment, bool prefix) {
    void *buffer = e->fragment;
    if (!tern_scratch_reserve(&buffer, &e->fragment_capacity,
                              VISIBLE_SPACE_BYTES * (fragment.size + 1)))
        return TERN_ERR_NOMEM;
    e->fragment = buffer;
    const tern_span text = {e->fragment, show_spaces(fragment, prefix, e->fragment)};
    if (!tern_merger_begin(&e->merger, text.size))
        return TERN_ERR_NOMEM;
    for (size_t at = 0, size; at < text.size; at += size) {
        size = character_size(text.data + at, text.size - at);
        tern_merger_add(&e->merger, at, size, -1);
    }
    const tern_spm_text user = {e->t, text.data};
    if (!tern_merger_run(&e->merger, judge, &user))
        return TERN_ERR_STATE;
    for (int32_t i = 0; i >= 0; i = e->merger.symbols[i].next) {
        const tern_symbol *s = &e->merger.symbols[i];
        emit_symbol(e, (tern_span){text.data + s->start, (size_t)s->size});
    }
    return TERN_OK;
}
