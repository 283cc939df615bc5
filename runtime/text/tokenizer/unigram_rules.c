/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/text/tokenizer/unigram_rules.h"

#include <string.h>

#include "runtime/text/tokenizer/charsmap.h"
#include "runtime/text/tokenizer/index.h"

static bool is_text(tern_span span, const char *text) {
    return tern_spans_equal(span, (tern_span){text, strlen(text)});
}

static bool is_mark(tern_span span) {
    return is_text(span, "\xE2\x96\x81");
}

/* True for a step that makes one space of several, or the vocabulary's mark for a space. */
static bool is_fewer(const tern_step *s) {
    return s->kind == TERN_STEP_REPLACE && !s->literal && is_text(s->pattern, " {2,}") &&
           (is_text(s->content, " ") || is_mark(s->content));
}

/* True for a step that drops the spaces at both ends. */
static bool is_trim(const tern_step *s) {
    return s->kind == TERN_STEP_REPLACE && !s->literal && is_text(s->pattern, "\\A +| +\\z") &&
           s->content.size == 0;
}

static bool is_split_at_spaces(const tern_step *s) {
    return s->kind == TERN_STEP_SPLIT && !s->literal && !s->invert && is_text(s->pattern, "\\s") &&
           s->behavior == TERN_SPLIT_REMOVED;
}

/* True for the last steps: spaces become the mark; perhaps one is put in front; perhaps each begins
 * a piece. */
static bool is_metaspace(const tern_step *s, size_t n, bool *prefix) {
    const bool before =
        n > 0 && s->kind == TERN_STEP_PREPEND && is_mark(s->content) && s->where == TERN_PREPEND_ALWAYS;
    s += before, n -= before;
    if (n == 0 || s->kind != TERN_STEP_REPLACE || !s->literal || !is_text(s->pattern, " ") ||
        !is_mark(s->content))
        return false;
    s++, n--;
    const bool after = n > 0 && s->kind == TERN_STEP_PREPEND && is_mark(s->content) &&
                       s->where == TERN_PREPEND_UNLESS_THERE;
    s += after, n -= after;
    *prefix = before || after;
    return n == 0 || (n == 1 && s->kind == TERN_STEP_SPLIT && s->literal && is_mark(s->pattern) &&
                      s->behavior == TERN_SPLIT_WITH_NEXT);
}

/* A GGUF file has no split at white space, so the map must turn at least the common kinds into
 * spaces. */
static bool maps_white_space(tern_span bytes) {
    static const char *const common[] = {"\t", "\n", "\r", "\xC2\xA0", "\xE3\x80\x80"};
    char why[TERN_CHARSMAP_WHY_BYTES];
    tern_charsmap map;
    if (tern_charsmap_open(bytes, &map, why) != TERN_OK)
        return false;
    for (size_t i = 0; i < sizeof common / sizeof *common; i++) {
        size_t used;
        tern_span to;
        const tern_span text = {common[i], strlen(common[i])};
        if (!tern_charsmap_find(&map, text, false, &used, &to) || !is_text(to, " "))
            return false;
    }
    return true;
}

bool tern_unigram_recognise(const tern_vocabulary *v, tern_unigram_rules *out) {
    *out = (tern_unigram_rules){.charsmap = {"", 0}};
    bool splits = false;
    size_t i = 0;
    for (; i < v->n_steps; i++) {
        const tern_step *s = &v->steps[i];
        if (s->kind == TERN_STEP_CHARSMAP && i == 0)
            out->charsmap = s->content;
        else if (is_fewer(s))
            out->fewer_spaces = true;
        else if (is_trim(s))
            continue;
        else if (is_split_at_spaces(s))
            splits = true;
        else if (s->kind != TERN_STEP_ADDED && (s->kind != TERN_STEP_STRIP || s->left))
            break;
    }
    out->fewer_spaces |= splits;
    return (!splits || maps_white_space(out->charsmap)) &&
           is_metaspace(v->steps + i, v->n_steps - i, &out->prefix);
}
