/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/text/tokenizer/added.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/text/tokenizer/white_space.h"

bool tern_added_set_init(tern_added_set *set, size_t n) {
    set->tokens = malloc((n + 1) * sizeof *set->tokens);
    set->texts = calloc(n + 1, sizeof *set->texts);
    return set->tokens != NULL && set->texts != NULL &&
           tern_prefix_set_init(&set->prefixes, set->texts, n);
}

void tern_added_set_free(tern_added_set *set) {
    tern_prefix_set_free(&set->prefixes);
    tern_regex_free(&set->word);
    free(set->tokens);
    free(set->texts);
}

tern_status tern_added_set_add(tern_added_set *set, tern_added_token token, tern_span text) {
    if (text.size == 0)
        return TERN_OK;
    set->tokens[set->n] = token;
    set->texts[set->n] = text;
    tern_prefix_set_add(&set->prefixes, set->n++);
    if (!token.single_word || set->word != NULL)
        return TERN_OK;
    static const char word[] = "[" TERN_REGEX_RUST_WORD "]";
    char why[TERN_REGEX_WHY_BYTES];
    return tern_regex_new((tern_span){word, sizeof word - 1}, false, &set->word, why);
}

bool tern_all_zero(const uint8_t *marks, size_t n) {
    size_t i = 0;
    while (i < n && marks[i] == 0)
        i++;
    return i == n;
}

/* True if the character may be part of a word. A failed search counts as yes, so that nothing is
 * cut out. */
static bool is_word(const tern_added_walk *w, tern_span character) {
    tern_regex_walk walk = {.regex = w->set->word, .scratch = w->scratch, .text = character};
    bool found;
    size_t start, end;
    const bool failed = tern_regex_walk_begin(&walk) != TERN_OK ||
                        tern_regex_next(&walk, &found, &start, &end) != TERN_OK;
    tern_regex_walk_end(&walk);
    return failed || found;
}

static bool stands_alone(const tern_added_walk *w, size_t start, size_t end) {
    size_t lead = start;
    while (lead > 0 && ((unsigned char)w->text.data[--lead] & 0xC0) == 0x80) {
    }
    size_t behind = end;
    while (behind < w->text.size &&
           (behind == end || ((unsigned char)w->text.data[behind] & 0xC0) == 0x80))
        behind++;
    return (start == 0 || !is_word(w, (tern_span){w->text.data + lead, start - lead})) &&
           (end == behind || !is_word(w, (tern_span){w->text.data + end, behind - end}));
}

/* Finds the next token, whatever its flags say: sets *start and returns its number; -1 if there is
 * none. */
static int32_t find(const tern_added_walk *w, size_t *start) {
    for (size_t at = w->search; at < w->text.size; at++) {
        const tern_span rest = {w->text.data + at, w->text.size - at};
        const int32_t found = tern_prefix_set_find(&w->set->prefixes, rest);
        if (found >= 0) {
            *start = at;
            return found;
        }
    }
    return -1;
}

bool tern_added_next(tern_added_walk *w, size_t *start, int32_t *id) {
    size_t begin;
    for (int32_t found; (found = find(w, &begin)) >= 0;) {
        const tern_added_token *token = &w->set->tokens[found];
        size_t end = begin + w->set->texts[found].size;
        w->search = end;
        const bool parse =
            w->parse && (w->marks == NULL || tern_all_zero(w->marks + begin, end - begin));
        if ((token->special && !parse) || (token->single_word && !stands_alone(w, begin, end)))
            continue;
        if (token->lstrip) {
            const size_t left = begin - tern_space_behind((tern_span){w->text.data, begin});
            begin = left > w->at ? left : w->at;
        }
        if (token->rstrip)
            end += tern_space_before((tern_span){w->text.data + end, w->text.size - end});
        w->at = end;
        *start = begin;
        *id = token->id;
        return true;
    }
    return false;
}
