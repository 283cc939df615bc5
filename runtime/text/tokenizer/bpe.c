/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"
#include "runtime/text/tokenizer/internal.h"

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

static bool judge(const void *user, const tern_symbol *left, const tern_symbol *right,
                  double *priority, int32_t *id) {
    const tern_tokenizer *t = user;
    if (left->id < 0 || right->id < 0)
        return false;
    const int32_t rank = tern_merge_table_find(&t->merges, left->id, right->id);
    if (rank < 0)
        return false;
    *priority = rank;
    *id = t->merges.rules[rank].made;
    return true;
}

/* ---- characters become symbols --------------------------------------------------------------- */

/* Unknown characters, which may become one token together. */
typedef struct tern_unknown_run {
    size_t start, size;
} tern_unknown_run;

static void flush_unknown(tern_merger *m, const tern_tokenizer *t, tern_unknown_run *run) {
    if (run->size > 0)
        tern_merger_add(m, run->start, run->size, t->unknown);
    run->size = 0;
}

static bool has_byte_tokens(const tern_tokenizer *t, tern_span character) {
    for (size_t i = 0; i < character.size; i++)
        if (t->byte_tokens[(unsigned char)character.data[i]] < 0)
            return false;
    return true;
}

/*
 * Adds a character without a token, in a file whose merges are all of tokens. It becomes its bytes,
 * if the file says so and has tokens for them; else the unknown token; else nothing. An unknown
 * token waits for the next token, and bytes are added before it, as in the reference.
 */
static void add_strange(tern_merger *m, const tern_tokenizer *t, tern_span text, size_t at,
                        size_t size, tern_unknown_run *run) {
    const tern_span character = {text.data + at, size};
    if (t->byte_fallback && has_byte_tokens(t, character)) {
        for (size_t i = 0; i < size; i++)
            tern_merger_add(m, at + i, 1, t->byte_tokens[(unsigned char)character.data[i]]);
        return;
    }
    if (t->unknown < 0)
        return;
    if (!t->fuse_unknown || run->size == 0) {
        flush_unknown(m, t, run);
        run->start = at;
    }
    run->size += size;
}

static int32_t find_symbol(const tern_tokenizer *t, tern_span character) {
    const int32_t id = tern_token_find_own(t, character);
    if (id >= 0 || t->extra.n == 0)
        return id;
    const int32_t extra =
        tern_span_index_find(&t->extra.index, t->extra.texts, character, (tern_span){"", 0});
    return extra < 0 ? -1 : (int32_t)t->n_tokens + extra;
}

static void add_symbols(tern_merger *m, const tern_tokenizer *t, tern_span piece) {
    tern_unknown_run run = {0, 0};
    for (size_t at = 0, size; at < piece.size; at += size) {
        size = tern_utf8_next(piece.data + at, piece.size - at).size;
        const int32_t id = find_symbol(t, (tern_span){piece.data + at, size});
        if (id < 0 && t->closed_merges) {
            add_strange(m, t, piece, at, size, &run);
            continue;
        }
        flush_unknown(m, t, &run);
        tern_merger_add(m, at, size, id);
    }
    flush_unknown(m, t, &run);
}

/* ---- symbols become tokens ------------------------------------------------------------------- */

/* A symbol that is not a token falls back to tokens of its single bytes; bytes without one vanish.
 */
static void emit_symbol(tern_encoder *e, tern_span piece, const tern_symbol *s) {
    if (s->id >= 0 && (size_t)s->id < e->t->n_tokens) {
        tern_encoder_emit(e, s->id);
        return;
    }
    for (int32_t i = 0; i < s->size; i++) {
        const int32_t byte = tern_token_find(e->t, (tern_span){piece.data + s->start + i, 1});
        if (byte >= 0)
            tern_encoder_emit(e, byte);
    }
}

/* The token that is the whole piece; -1: none. A control or unknown token is not one: it would have
 * been cut out of the text before if it were to be seen. */
static int32_t find_whole(const tern_tokenizer *t, tern_span piece) {
    const int32_t id = t->ignore_merges ? tern_token_find_own(t, piece) : TERN_TOKEN_NONE;
    const bool hidden =
        id >= 0 && (t->types[id] == TERN_TOKEN_CONTROL || t->types[id] == TERN_TOKEN_UNKNOWN);
    return hidden ? TERN_TOKEN_NONE : id;
}

tern_status tern_bpe_encode(tern_encoder *e, tern_span piece) {
    const int32_t whole = find_whole(e->t, piece);
    if (whole >= 0) {
        tern_encoder_emit(e, whole);
        return TERN_OK;
    }
    if (!tern_merger_begin(&e->merger, piece.size))
        return TERN_ERR_NOMEM;
    add_symbols(&e->merger, e->t, piece);
    if (!tern_merger_run(&e->merger, judge, e->t))
        return TERN_ERR_STATE;
    for (int32_t i = e->merger.n_symbols > 0 ? 0 : -1; i >= 0; i = e->merger.symbols[i].next)
        emit_symbol(e, piece, &e->merger.symbols[i]);
    return TERN_OK;
}
