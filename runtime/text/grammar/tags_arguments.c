/* SPDX-License-Identifier: Apache-2.0 */

/* Tags with several values, each between words of its own. */

#include <string.h>

#include "runtime/text/grammar/grammar.h"

enum { HOLE = 1, MOST_HOLE = 16, MOST_KEY = 64, MOST_END = 128 };

static const tern_range word_bytes[] = {{'0', '9'}, {'A', 'Z'}, {'a', 'z'},
                                        {'_', '_'}, {'-', '-'}, {'.', '.'}};

uint32_t tern_tag_words(tern_exprs *x, const char *words) {
    tern_expr_list parts = {.x = x};
    for (const char *hole; (hole = strchr(words, HOLE)) != NULL; words = hole + 1) {
        const uint32_t byte = tern_expr_bytes(x, word_bytes, 5);
        tern_expr_add(&parts, tern_expr_text(x, words, (size_t)(hole - words)));
        tern_expr_add(&parts, tern_expr_repeat(x, byte, 1, MOST_HOLE));
    }
    tern_expr_add(&parts, tern_expr_word(x, words));
    return tern_expr_end_sequence(&parts);
}

/* Returns how many bytes of `end` a text ends with when `byte` follows n of them. */
static size_t after_byte(const char *end, size_t n, uint8_t byte) {
    char seen[MOST_END + 1];
    memcpy(seen, end, n);
    seen[n] = (char)byte;
    size_t kept = n + 1;
    while (memcmp(end, seen + n + 1 - kept, kept) != 0)
        kept--;
    return kept;
}

/* Any text up to the first place where `end` stands, and that, by the automaton of Knuth, Morris
 * and Pratt: a rule for each number of its bytes that were just read. */
static uint32_t text_until(tern_exprs *x, const char *end) {
    const size_t size = strlen(end);
    uint32_t rules[MOST_END];
    if (size == 0 || size > MOST_END) {
        tern_exprs_fail(x, TERN_ERR_ARG, "%s: a text ends with 1 to %d bytes", x->name, MOST_END);
        return TERN_EXPR_NEVER;
    }
    for (size_t n = 0; n < size; n++)
        rules[n] = tern_expr_rule_new(x, "text", strlen("text"));
    for (size_t n = 0; n < size && x->status == TERN_OK; n++) {
        tern_expr_list choice = {.x = x};
        for (size_t to = 0; to <= n + 1; to++) {
            tern_range bytes[256];
            size_t n_bytes = 0;
            for (uint32_t byte = 0; byte < 256; byte++)
                if (after_byte(end, n, (uint8_t)byte) == to)
                    bytes[n_bytes++] = (tern_range){byte, byte};
            const uint32_t then = to == size ? TERN_EXPR_EMPTY : tern_expr_rule_use(x, rules[to]);
            if (n_bytes > 0)
                tern_expr_add(&choice, tern_expr_pair(x, tern_expr_bytes(x, bytes, n_bytes), then));
        }
        tern_expr_rule_define(x, rules[n], tern_expr_end_choice(&choice));
    }
    return x->status == TERN_OK ? tern_expr_rule_use(x, rules[0]) : TERN_EXPR_NEVER;
}

static uint32_t one_of(tern_exprs *x, const tern_grammar_argument *a) {
    tern_expr_list choice = {.x = x};
    for (size_t i = 0; i < a->n_words; i++)
        tern_expr_add(&choice, tern_expr_word(x, a->words[i]));
    return tern_expr_pair(x, tern_expr_end_choice(&choice), tern_expr_word(x, a->end));
}

/* An argument with the words around it. */
static uint32_t argument(tern_exprs *x, const tern_grammar_argument *a, uint32_t value) {
    const bool named = a->after_key != NULL;
    const uint32_t key = tern_expr_repeat(x, tern_expr_bytes(x, word_bytes, 6), 1, MOST_KEY);
    const uint32_t parts[] = {tern_expr_word(x, a->begin), named ? key : TERN_EXPR_EMPTY,
                              named ? tern_expr_word(x, a->after_key) : TERN_EXPR_EMPTY,
                              a->schema != NULL
                                  ? tern_expr_pair(x, value, tern_expr_word(x, a->end))
                              : a->n_words > 0 ? one_of(x, a)
                                               : text_until(x, a->end)};
    return tern_expr_sequence(x, parts, sizeof parts / sizeof *parts);
}

/* An argument in all its ways: those that follow it and stand for it. */
static uint32_t in_all_ways(tern_exprs *x, const tern_grammar_tag *tag, const uint32_t *values,
                            size_t i, size_t *next) {
    tern_expr_list choice = {.x = x};
    tern_expr_add(&choice, argument(x, &tag->arguments[i], values[i]));
    for (*next = i + 1; *next < tag->n_arguments && tag->arguments[*next].instead; ++*next)
        tern_expr_add(&choice, argument(x, &tag->arguments[*next], values[*next]));
    return tern_expr_end_choice(&choice);
}

static uint32_t as_rule(tern_exprs *x, uint32_t expr) {
    const uint32_t rule = tern_expr_rule_new(x, "arguments", strlen("arguments"));
    tern_expr_rule_define(x, rule, expr);
    return tern_expr_rule_use(x, rule);
}

/* The expressions that may follow from an argument on: `first` if none has come yet, `rest` after
 * another one. */
typedef struct following {
    uint32_t first, rest;
} following;

static following put_before(tern_exprs *x, const tern_grammar_argument *a, uint32_t one,
                            uint32_t comma, following after) {
    const bool repeats = a->after_key != NULL;
    const uint32_t next = tern_expr_pair(x, comma, one);
    const uint32_t more = repeats       ? tern_expr_repeat(x, next, 0, TERN_EXPR_UNLIMITED)
                          : a->required ? next
                                        : tern_expr_optional(x, next);
    const uint32_t rest = as_rule(x, tern_expr_pair(x, more, after.rest));
    const uint32_t with = tern_expr_pair(x, one, repeats ? rest : after.rest);
    return (following){
        as_rule(x, a->required && !repeats ? with : tern_expr_either(x, with, after.first)), rest};
}

uint32_t tern_tag_arguments(tern_exprs *x, const tern_grammar_tag *tag, const uint32_t *values) {
    const uint32_t comma = tern_expr_word(x, tag->comma != NULL ? tag->comma : "");
    following after = {TERN_EXPR_EMPTY, TERN_EXPR_EMPTY};
    for (size_t i = tag->n_arguments; i-- > 0 && x->status == TERN_OK;) {
        size_t next;
        if (tag->arguments[i].instead && i > 0)
            continue;
        const uint32_t one = in_all_ways(x, tag, values, i, &next);
        after = put_before(x, &tag->arguments[i], one, comma, after);
    }
    return after.first;
}
