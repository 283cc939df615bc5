/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "runtime/tokenizer/internal.h"

/* SentencePiece-style tokens: spaces are written as U+2581, what has no token is spelled in bytes.
 */
static const char visible_space[] = "\xE2\x96\x81";
enum { VISIBLE_SPACE_BYTES = 3 };

/* Any two neighbours whose text together is a token may be joined, the highest score first. */
static bool merge_score(const tern_tokenizer *t, tern_span left, tern_span right,
                        double *priority) {
    const int32_t id = tern_token_find(t, (tern_span){left.data, left.size + right.size});
    if (id < 0)
        return false;
    *priority = -(double)t->scores[id];
    return true;
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
    const tern_status status = tern_merge_text(&e->merger, e->t, text, merge_score);
    if (status != TERN_OK)
        return status;
    for (int32_t i = 0; i >= 0; i = e->merger.symbols[i].next) {
        const tern_symbol *s = &e->merger.symbols[i];
        emit_symbol(e, (tern_span){text.data + s->start, (size_t)s->size});
    }
    return TERN_OK;
}
