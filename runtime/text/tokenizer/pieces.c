/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "runtime/text/tokenizer/internal.h"

/*
 * The bytes that tokens stand for. A text that equals its bytes stays in the file. The others, most
 * of which differ only by a leading space, are written out here once, because a pointer to a piece
 * must live as long as the tokenizer.
 */

/* Decodes byte-level BPE; -1 when a character is outside the alphabet: such added tokens are
 * literal. */
static ptrdiff_t from_alphabet(tern_span text, char *out) {
    ptrdiff_t n = 0;
    for (size_t at = 0; at < text.size;) {
        const tern_utf8 c = tern_utf8_next(text.data + at, text.size - at);
        const int byte = c.kind == TERN_UTF8_VALID ? tern_char_to_byte(c.code) : -1;
        if (byte < 0)
            return -1;
        out[n++] = (char)byte;
        at += c.size;
    }
    return n;
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Reads "<0xNN>", which gives one byte. */
static bool parse_byte(tern_span text, char *out) {
    if (text.size != 6 || memcmp(text.data, "<0x", 3) != 0 || text.data[5] != '>')
        return false;
    const int high = hex_digit(text.data[3]), low = hex_digit(text.data[4]);
    if (high < 0 || low < 0)
        return false;
    *out = (char)(high << 4 | low);
    return true;
}

/* Decodes SentencePiece's spelling, where U+2581 is a space. */
static ptrdiff_t from_visible_spaces(tern_span text, char *out) {
    ptrdiff_t n = 0;
    for (size_t at = 0; at < text.size;) {
        if (text.size - at >= 3 && memcmp(text.data + at, "\xE2\x96\x81", 3) == 0) {
            out[n++] = ' ';
            at += 3;
        } else {
            out[n++] = text.data[at++];
        }
    }
    return n;
}

/* True for punctuation and endings that WordPiece's decoder joins to the word before them. */
static bool joins(tern_span text) {
    static const char *const joined[] = {".", "?", "!", ",", "n't", "'m", "'s", "'ve", "'re"};
    for (size_t i = 0; i < sizeof joined / sizeof *joined; i++)
        if (text.size >= strlen(joined[i]) && memcmp(text.data, joined[i], strlen(joined[i])) == 0)
            return true;
    return false;
}

/* WordPiece: a space comes before each word, and before tokens that are not text. */
static ptrdiff_t from_word(const tern_tokenizer *t, size_t i, char *out) {
    const tern_span start = t->words.texts[i], inside = t->words.texts[t->n_tokens + i];
    const tern_span text = inside.size > 0 ? inside : start.size > 0 ? start : t->tokens[i];
    const size_t space = inside.size == 0 && !(t->joins_punctuation && joins(text));
    out[0] = ' ';
    memcpy(out + space, text.data, text.size);
    return (ptrdiff_t)(space + text.size);
}

/*
 * True if the piece of a token may differ from its text. Control and user-defined tokens are
 * literal, except for spaces in the user-defined ones of a tokenizer.json. Of the other tokens,
 * those in plain ASCII are their own pieces.
 */
static bool may_differ(const tern_tokenizer *t, size_t i) {
    const uint8_t type = t->types[i];
    if (t->kind == TERN_VOCABULARY_WORDPIECE)
        return t->tokens[i].size > 0;
    if (type == TERN_TOKEN_BYTE && t->byte_fallback)
        return true;
    if (!t->decodes_bytes && !t->decodes_spaces)
        return false;
    const bool spaces = type == TERN_TOKEN_USER_DEFINED && t->leftmost_added && t->decodes_spaces;
    if (type != TERN_TOKEN_NORMAL && type != TERN_TOKEN_BYTE && type != TERN_TOKEN_UNDEFINED &&
        !spaces)
        return false;
    for (size_t k = 0; k < t->tokens[i].size; k++)
        if ((unsigned char)t->tokens[i].data[k] >= 0x80)
            return true;
    return false;
}

/* Writes the piece of token i to out, which holds its text and a space; -1: the piece is the
 * text. */
static ptrdiff_t write_piece(const tern_tokenizer *t, size_t i, char *out) {
    const tern_span text = t->tokens[i];
    if (t->kind == TERN_VOCABULARY_WORDPIECE)
        return from_word(t, i, out);
    if (t->types[i] == TERN_TOKEN_BYTE && t->byte_fallback)
        return parse_byte(text, out) ? 1 : -1;
    return t->decodes_bytes ? from_alphabet(text, out) : from_visible_spaces(text, out);
}

tern_status tern_tokenizer_set_pieces(tern_tokenizer *t, tern_error *err) {
    size_t bytes = 0; /* no overflow: texts are distinct parts of one file in memory */
    for (size_t i = 0; i < t->n_tokens; i++)
        bytes += may_differ(t, i) ? t->tokens[i].size + 1 : 0;
    t->pieces = malloc(t->n_tokens * sizeof *t->pieces);
    t->piece_bytes = malloc(bytes + 1);
    if (t->pieces == NULL || t->piece_bytes == NULL)
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for the tokenizer", t->file);
    char *out = t->piece_bytes;
    for (size_t i = 0; i < t->n_tokens; i++) {
        const ptrdiff_t size = may_differ(t, i) ? write_piece(t, i, out) : -1;
        t->pieces[i] = size < 0 ? t->tokens[i] : (tern_span){out, (size_t)size};
        out += size < 0 ? 0 : size;
        if (t->pieces[i].size > t->max_piece)
            t->max_piece = t->pieces[i].size;
    }
    return TERN_OK;
}
