/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "runtime/tokenizer/internal.h"
#include "runtime/utf8.h"

/*
 * Byte-level BPE. Tokens and merges are written in an alphabet that has a visible character for
 * each byte: printable Latin-1 stands for itself, the other 68 bytes, in ascending order, are
 * U+0100 to U+0143.
 */
enum { REST = 0x100, REST_DEL = REST + 0x21, REST_SOFT_HYPHEN = REST + 0x43 };

uint32_t tern_byte_to_char(unsigned char byte) {
    if (byte <= 0x20)
        return REST + byte;
    if (byte >= 0x7F && byte <= 0xA0)
        return REST_DEL + (uint32_t)(byte - 0x7F);
    if (byte == 0xAD)
        return REST_SOFT_HYPHEN;
    return byte;
}

int tern_char_to_byte(uint32_t code) {
    if (code >= REST && code < REST_DEL)
        return (int)(code - REST);
    if (code >= REST_DEL && code < REST_SOFT_HYPHEN)
        return (int)(code - REST_DEL + 0x7F);
    if (code == REST_SOFT_HYPHEN)
        return 0xAD;
    return code < REST && tern_byte_to_char((unsigned char)code) == code ? (int)code : -1;
}

/* The piece in the byte alphabet: one or two bytes a byte. out holds 2 * piece.size. */
static size_t to_alphabet(tern_span piece, char *out) {
    size_t n = 0;
    for (size_t i = 0; i < piece.size; i++) {
        const uint32_t code = tern_byte_to_char((unsigned char)piece.data[i]);
        if (code < 0x80) {
            out[n++] = (char)code;
            continue;
        }
        out[n++] = (char)(0xC0 | code >> 6);
        out[n++] = (char)(0x80 | (code & 0x3F));
    }
    return n;
}

static bool merge_rank(const tern_tokenizer *t, tern_span left, tern_span right, double *priority) {
    const int32_t rank = tern_span_index_find(&t->by_merge, t->merges, left, right, true);
    *priority = rank;
    return rank >= 0;
}

/* A symbol that is no token falls back to tokens of its single bytes; bytes without one vanish. */
static void emit_symbol(tern_encoder *e, tern_span symbol) {
    const int32_t id = tern_token_find(e->t, symbol);
    if (id >= 0) {
        tern_encoder_emit(e, id);
        return;
    }
    for (size_t i = 0; i < symbol.size; i++) {
        const int32_t byte = tern_token_find(e->t, (tern_span){symbol.data + i, 1});
        if (byte >= 0)
            tern_encoder_emit(e, byte);
    }
}

static tern_status encode_piece(void *user, tern_span piece) {
    tern_encoder *e = user;
    void *buffer = e->word;
    if (!tern_scratch_reserve(&buffer, &e->word_capacity, 2 * piece.size))
        return TERN_ERR_NOMEM;
    e->word = buffer;
    const tern_span word = {e->word, to_alphabet(piece, e->word)};
    if (e->t->ignore_merges) {
        const int32_t id = tern_token_find(e->t, word);
        if (id >= 0) {
            tern_encoder_emit(e, id);
            return TERN_OK;
        }
    }
    const tern_status status = tern_merge_text(&e->merger, e->t, word, merge_rank);
    if (status != TERN_OK)
        return status;
    for (int32_t i = 0; i >= 0; i = e->merger.symbols[i].next) {
        const tern_symbol *s = &e->merger.symbols[i];
        emit_symbol(e, (tern_span){word.data + s->start, (size_t)s->size});
    }
    return TERN_OK;
}

/* Copies text to out with U+FFFD for each byte that is not part of a character; bytes written. */
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

tern_status tern_bpe_encode(tern_encoder *e, tern_span fragment) {
    void *buffer = e->fragment;
    if (!tern_scratch_reserve(&buffer, &e->fragment_capacity,
                              TERN_UTF8_REPLACEMENT_BYTES * fragment.size))
        return TERN_ERR_NOMEM;
    e->fragment = buffer;
    if (e->pre_scratch == NULL && (e->pre_scratch = tern_pre_scratch_new()) == NULL)
        return TERN_ERR_NOMEM;
    const tern_span text = {e->fragment, replace_invalid(fragment, e->fragment)};
    return tern_pretokenize(e->t->pretokenizer, e->pre_scratch, text, encode_piece, e);
}
