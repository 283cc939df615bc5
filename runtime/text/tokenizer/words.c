/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "runtime/text/tokenizer/internal.h"

/*
 * WordPiece takes the longest token that a word begins with, then the longest ones that continue
 * it. A word becomes the unknown token if no token fits somewhere, or if it has too many
 * characters.
 */

static const char start_mark[] = "\xE2\x96\x81";
enum { START_MARK_BYTES = 3 };

/* True only if something follows the mark: without more it would not be a text. */
static bool begins_with(tern_span text, tern_span mark) {
    return text.size > mark.size && memcmp(text.data, mark.data, mark.size) == 0;
}

static tern_span without(tern_span text, tern_span mark) {
    return (tern_span){text.data + mark.size, text.size - mark.size};
}

/* Sets the texts of a token at the start of a word and inside a word. */
static void place(tern_tokenizer *t, tern_span mark, size_t i) {
    const tern_span text = t->tokens[i], starts = {start_mark, START_MARK_BYTES};
    tern_span *start = &t->words.texts[i], *inside = &t->words.texts[t->n_tokens + i];
    if (!t->marked_starts) {
        *start = text;
        if (begins_with(text, mark))
            *inside = without(text, mark);
    } else if (begins_with(text, starts)) {
        *start = without(text, starts);
    } else {
        *inside = text;
    }
}

tern_status tern_tokenizer_set_words(tern_tokenizer *t, const tern_vocabulary *v, tern_error *err) {
    tern_word_pieces *w = &t->words;
    w->texts = calloc(2 * t->n_tokens, sizeof *w->texts);
    if (w->texts == NULL || !tern_prefix_set_init(&w->start, w->texts, t->n_tokens) ||
        !tern_prefix_set_init(&w->inside, w->texts + t->n_tokens, t->n_tokens))
        return tern_fail(err, TERN_ERR_NOMEM, "%s: no memory for the tokenizer", t->file);
    w->longest = v->longest_word;
    for (size_t i = 0; i < t->n_tokens; i++) {
        if (!tern_token_is_text(t, i))
            continue;
        place(t, v->inside, i);
        if (w->start.entries[i].size > 0)
            tern_prefix_set_add(&w->start, i);
        if (w->inside.entries[i].size > 0)
            tern_prefix_set_add(&w->inside, i);
    }
    return TERN_OK;
}

void tern_word_pieces_free(tern_word_pieces *words) {
    tern_prefix_set_free(&words->start);
    tern_prefix_set_free(&words->inside);
    free(words->texts);
}

/* ---- encoding -------------------------------------------------------------------------------- */

static bool is_too_long(tern_span word, size_t longest) {
    size_t characters = 0;
    for (size_t at = 0; at < word.size && characters <= longest; characters++)
        at += tern_utf8_next(word.data + at, word.size - at).size;
    return characters > longest;
}

tern_status tern_words_encode(tern_encoder *e, tern_span word) {
    const tern_word_pieces *w = &e->t->words;
    const size_t before = e->n;
    bool fits = !is_too_long(word, w->longest);
    for (size_t at = 0; at < word.size && fits;) {
        const tern_prefix_set *set = at == 0 ? &w->start : &w->inside;
        const int32_t id = tern_prefix_set_find(set, without(word, (tern_span){word.data, at}));
        fits = id >= 0;
        if (fits) {
            tern_encoder_emit(e, id);
            at += set->entries[id].size;
        }
    }
    if (!fits) {
        e->n = before;
        tern_encoder_emit(e, e->t->unknown);
    }
    return TERN_OK;
}
