/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "runtime/text/tokenizer/internal.h"

/*
 * Finds the way to cut a piece into tokens whose scores have the greatest sum. A character that is
 * not a token may be cut out too, for a penalty. Neighbours of that kind become one unknown token,
 * or the tokens of their bytes. A byte is looked at once at most for each byte of the longest
 * token.
 */

enum { LONGEST_TOKEN = 1024, MOST_BYTES = 1 << 28 };

static const double unknown_penalty = 10.0;

bool tern_token_is_text(const tern_tokenizer *t, size_t id) {
    const uint8_t type = t->types[id];
    if (t->tokens[id].size == 0 || (t->outside != NULL && t->outside[id]))
        return false;
    if (!t->leftmost_added)
        return type == TERN_TOKEN_NORMAL;
    return type == TERN_TOKEN_NORMAL || type == TERN_TOKEN_USER_DEFINED || type == TERN_TOKEN_BYTE;
}

/* True if the score of a token counts. The reference counts all tokens of the model; of these, a
 * GGUF file has only those that are text. */
static bool has_score(const tern_tokenizer *t, size_t id) {
    return tern_token_is_text(t, id) ||
           (t->leftmost_added && t->tokens[id].size > 0 && !t->outside[id]);
}

static tern_status check_sizes(const tern_tokenizer *t, const tern_span *texts, tern_error *err) {
    size_t bytes = 0;
    for (size_t i = 0; i < t->n_tokens; i++) {
        if (texts[i].size > LONGEST_TOKEN)
            return tern_fail(err, TERN_ERR_TOKENIZER_DATA,
                             "%s: token %zu has %zu bytes; at most %d are supported", t->file, i,
                             texts[i].size, (int)LONGEST_TOKEN);
        bytes += texts[i].size;
    }
    return bytes <= MOST_BYTES
               ? TERN_OK
               : tern_fail(err, TERN_ERR_TOKENIZER_DATA,
                           "%s: its tokens have %zu bytes; at most %d are supported", t->file,
                           bytes, (int)MOST_BYTES);
}

tern_status tern_tokenizer_set_unigram(tern_tokenizer *t, tern_error *err) {
    double lowest = INFINITY;
    tern_span *texts = calloc(t->n_tokens, sizeof *texts);
    for (size_t i = 0; texts != NULL && i < t->n_tokens; i++) {
        if (tern_token_is_text(t, i))
            texts[i] = t->tokens[i];
        if (has_score(t, i) && t->scores[i] < lowest)
            lowest = t->scores[i];
    }
    t->unknown_score = lowest - unknown_penalty;
    tern_status status = texts != NULL ? check_sizes(t, texts, err) : TERN_OK;
    if (texts == NULL || (status == TERN_OK && !tern_trie_init(&t->trie, texts, t->n_tokens)))
        status = tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for the tokenizer", t->file);
    free(texts);
    return status;
}

/* ---- encoding -------------------------------------------------------------------------------- */

/* Offers a token from `start` to `path`, which keeps an earlier way that is as good. */
static void offer(tern_best_path *path, size_t start, double score, int32_t id) {
    if (path->start < 0 || score > path->score)
        *path = (tern_best_path){score, (int32_t)start, id};
}

/* Offers all tokens that begin at a character. */
static void offer_tokens(const tern_tokenizer *t, tern_best_path *paths, tern_span piece,
                         size_t at) {
    const size_t character = tern_utf8_next(piece.data + at, piece.size - at).size;
    const double score = paths[at].score;
    bool alone = false;
    uint32_t node = 0;
    for (size_t end = at; end < piece.size;) {
        node = tern_trie_step(&t->trie, node, (uint8_t)piece.data[end]);
        if (node == 0)
            break;
        end++;
        const int32_t id = t->trie.nodes[node].token;
        if (id < 0)
            continue;
        offer(&paths[end], at, score + t->scores[id], id);
        alone |= end - at == character;
    }
    if (!alone)
        offer(&paths[at + character], at, score + t->unknown_score, t->unknown);
}

/* Reverses the chain of starts; returns the end of the first token. */
static int32_t reverse(tern_best_path *paths, size_t size) {
    int32_t at = (int32_t)size, next = -1;
    while (at > 0) {
        const int32_t before = paths[at].start;
        paths[at].start = next;
        next = at;
        at = before;
    }
    return next;
}

/* Emits neighbouring characters that have no token. */
static void emit_unknown(tern_encoder *e, tern_span text) {
    const int32_t *bytes = e->t->byte_tokens;
    bool all = e->t->byte_fallback;
    for (size_t i = 0; i < text.size && all; i++)
        all = bytes[(unsigned char)text.data[i]] >= 0;
    if (!all)
        tern_encoder_emit(e, e->t->unknown);
    for (size_t i = 0; i < text.size && all; i++)
        tern_encoder_emit(e, bytes[(unsigned char)text.data[i]]);
}

static void emit_path(tern_encoder *e, tern_span piece) {
    size_t start = 0, unknown = 0; /* bytes before start that have no token yet */
    for (int32_t end = reverse(e->paths, piece.size); end >= 0; end = e->paths[end].start) {
        const int32_t id = e->paths[end].id;
        if (id == e->t->unknown) {
            unknown += (size_t)end - start;
        } else {
            if (unknown > 0)
                emit_unknown(e, (tern_span){piece.data + start - unknown, unknown});
            unknown = 0;
            tern_encoder_emit(e, id);
        }
        start = (size_t)end;
    }
    if (unknown > 0)
        emit_unknown(e, (tern_span){piece.data + start - unknown, unknown});
}

tern_status tern_unigram_encode(tern_encoder *e, tern_span piece) {
    void *buffer = e->paths;
    if (!tern_scratch_reserve(&buffer, &e->paths_capacity, (piece.size + 1) * sizeof *e->paths))
        return TERN_ERR_NOMEM;
    e->paths = buffer;
    for (size_t i = 1; i <= piece.size; i++)
        e->paths[i].start = -1;
    e->paths[0] = (tern_best_path){0.0, 0, TERN_TOKEN_NONE};
    enum { CHARACTERS = 4096 }; /* characters between two calls of goes_on */
    size_t n = 0;
    for (size_t at = 0; at < piece.size;
         at += tern_utf8_next(piece.data + at, piece.size - at).size) {
        offer_tokens(e->t, e->paths, piece, at);
        if (++n % CHARACTERS == 0 && !tern_encoder_goes_on(e))
            return TERN_ERR_STATE;
    }
    emit_path(e, piece);
    return TERN_OK;
}
