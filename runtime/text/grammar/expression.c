/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/text/grammar/expression.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

/* ---- failing --------------------------------------------------------------------------------- */

void tern_exprs_start(tern_exprs *x, const char *name, tern_error *err) {
    *x = (tern_exprs){.name = name, .err = err};
    const tern_expr fixed[] = {{.kind = TERN_EXPR_KIND_NEVER}, {.kind = TERN_EXPR_KIND_EMPTY}};
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        if (!tern_grow((void **)&x->items, &x->capacity, x->n, sizeof *x->items, TERN_EXPR_MOST)) {
            tern_exprs_fail(x, TERN_ERR_NOMEM, "%s: no memory", name);
            return;
        }
        x->items[x->n++] = fixed[i];
    }
}

void tern_exprs_free(tern_exprs *x) {
    free(x->items);
    free(x->members);
    free(x->ranges);
    free(x->texts);
    free(x->rules);
    *x = (tern_exprs){0};
}

void tern_exprs_fail(tern_exprs *x, tern_status status, const char *format, ...) {
    if (x->status != TERN_OK)
        return;
    char message[TERN_ERROR_MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    x->status = tern_fail(x->err, status, "%s", message);
}

/* Makes room for one more item of a list; fails x where there is none. */
static bool reserve(tern_exprs *x, void **items, size_t *capacity, size_t n, size_t size,
                    size_t most, const char *what) {
    if (x->status != TERN_OK)
        return false;
    if (n >= most)
        tern_exprs_fail(x, TERN_ERR_GRAMMAR, "%s: too large: more than %zu %s", x->name, most,
                        what);
    else if (!tern_grow(items, capacity, n, size, most))
        tern_exprs_fail(x, TERN_ERR_NOMEM, "%s: no memory for a grammar", x->name);
    return x->status == TERN_OK;
}

static uint32_t add(tern_exprs *x, tern_expr e) {
    if (e.depth > TERN_EXPR_MOST_DEPTH)
        tern_exprs_fail(x, TERN_ERR_GRAMMAR, "%s: nested more than %d deep", x->name,
                        TERN_EXPR_MOST_DEPTH);
    if (!reserve(x, (void **)&x->items, &x->capacity, x->n, sizeof *x->items, TERN_EXPR_MOST,
                 "expressions"))
        return TERN_EXPR_NEVER;
    x->items[x->n] = e;
    return (uint32_t)x->n++;
}

/* ---- leaves ---------------------------------------------------------------------------------- */

/* Copies the bytes to `texts`; returns where the copy begins. */
static uint32_t keep_text(tern_exprs *x, const char *bytes, size_t size) {
    const size_t last = x->n_texts + size;
    if (size > TERN_EXPR_MOST_BYTES || !reserve(x, (void **)&x->texts, &x->texts_capacity, last, 1,
                                                TERN_EXPR_MOST_BYTES, "bytes of text"))
        return 0;
    if (size > 0)
        memcpy(x->texts + x->n_texts, bytes, size);
    x->n_texts = last;
    return (uint32_t)(last - size);
}

uint32_t tern_expr_text(tern_exprs *x, const char *bytes, size_t size) {
    if (size == 0)
        return TERN_EXPR_EMPTY;
    const uint32_t first = keep_text(x, bytes, size);
    return add(x, (tern_expr){.kind = TERN_EXPR_KIND_TEXT, .first = first, .n = (uint32_t)size});
}

uint32_t tern_expr_word(tern_exprs *x, const char *text) {
    return tern_expr_text(x, text, strlen(text));
}

static int by_low(const void *a, const void *b) {
    const tern_range *p = a;
    const tern_range *q = b;
    return (p->low > q->low) - (p->low < q->low);
}

size_t tern_ranges_tidy(tern_range *ranges, size_t n) {
    if (n == 0)
        return 0;
    qsort(ranges, n, sizeof *ranges, by_low);
    size_t kept = 0;
    for (size_t i = 1; i < n; i++) {
        if (ranges[i].low > ranges[kept].high + 1)
            ranges[++kept] = ranges[i];
        else if (ranges[i].high > ranges[kept].high)
            ranges[kept].high = ranges[i].high;
    }
    return kept + 1;
}

static uint32_t add_ranges(tern_exprs *x, tern_expr_kind kind, const tern_range *ranges, size_t n) {
    if (n == 0)
        return TERN_EXPR_NEVER;
    if (!reserve(x, (void **)&x->ranges, &x->ranges_capacity, x->n_ranges + n, sizeof *x->ranges,
                 TERN_EXPR_MOST_RANGES, "ranges of characters"))
        return TERN_EXPR_NEVER;
    const size_t first = x->n_ranges;
    memcpy(x->ranges + first, ranges, n * sizeof *ranges);
    n = tern_ranges_tidy(x->ranges + first, n);
    x->n_ranges += n;
    return add(x, (tern_expr){.kind = (uint8_t)kind, .first = (uint32_t)first, .n = (uint32_t)n});
}

uint32_t tern_expr_bytes(tern_exprs *x, const tern_range *ranges, size_t n) {
    return add_ranges(x, TERN_EXPR_KIND_BYTES, ranges, n);
}

/* Leaves out surrogates, and what lies after Unicode's last character. */
uint32_t tern_expr_chars(tern_exprs *x, const tern_range *ranges, size_t n) {
    static const tern_range characters[] = {{0, 0xd7ff}, {0xe000, 0x10ffff}};
    tern_range *cut = malloc((2 * n + 1) * sizeof *cut);
    size_t kept = 0;
    if (cut == NULL) {
        tern_exprs_fail(x, TERN_ERR_NOMEM, "%s: no memory for a grammar", x->name);
        return TERN_EXPR_NEVER;
    }
    for (size_t i = 0; i < 2 * n; i++) {
        const tern_range *r = &ranges[i / 2];
        const tern_range *of = &characters[i % 2];
        const uint32_t low = r->low > of->low ? r->low : of->low;
        const uint32_t high = r->high < of->high ? r->high : of->high;
        if (low <= high)
            cut[kept++] = (tern_range){low, high};
    }
    const uint32_t all = add_ranges(x, TERN_EXPR_KIND_CHARS, cut, kept);
    free(cut);
    return all;
}

/* ---- what is made of others -------------------------------------------------------------------
 */

static uint32_t add_members(tern_exprs *x, tern_expr_kind kind, const uint32_t *members, size_t n) {
    tern_expr e = {.kind = (uint8_t)kind, .first = (uint32_t)x->n_members, .n = (uint32_t)n};
    if (!reserve(x, (void **)&x->members, &x->members_capacity, x->n_members + n,
                 sizeof *x->members, 2 * (size_t)TERN_EXPR_MOST, "parts"))
        return TERN_EXPR_NEVER;
    for (size_t i = 0; i < n; i++) {
        const uint16_t depth = (uint16_t)(x->items[members[i]].depth + 1);
        e.depth = depth > e.depth ? depth : e.depth;
        x->members[x->n_members++] = members[i];
    }
    return add(x, e);
}

uint32_t tern_expr_sequence(tern_exprs *x, const uint32_t *members, size_t n) {
    if (x->status != TERN_OK)
        return TERN_EXPR_NEVER;
    for (size_t i = 0; i < n; i++)
        if (members[i] == TERN_EXPR_NEVER)
            return TERN_EXPR_NEVER;
    if (n == 0)
        return TERN_EXPR_EMPTY;
    return n == 1 ? members[0] : add_members(x, TERN_EXPR_KIND_SEQUENCE, members, n);
}

uint32_t tern_expr_choice(tern_exprs *x, const uint32_t *members, size_t n) {
    if (x->status != TERN_OK || n == 0)
        return TERN_EXPR_NEVER;
    return n == 1 ? members[0] : add_members(x, TERN_EXPR_KIND_CHOICE, members, n);
}

uint32_t tern_expr_pair(tern_exprs *x, uint32_t a, uint32_t b) {
    return tern_expr_sequence(x, (const uint32_t[]){a, b}, 2);
}

uint32_t tern_expr_either(tern_exprs *x, uint32_t a, uint32_t b) {
    if (a == TERN_EXPR_NEVER || b == TERN_EXPR_NEVER)
        return a == TERN_EXPR_NEVER ? b : a;
    return tern_expr_choice(x, (const uint32_t[]){a, b}, 2);
}

uint32_t tern_expr_repeat(tern_exprs *x, uint32_t member, int32_t least, int32_t most) {
    if (least > TERN_EXPR_MOST_REPEATS || most > TERN_EXPR_MOST_REPEATS)
        tern_exprs_fail(x, TERN_ERR_GRAMMAR, "%s: a repetition of more than %d times", x->name,
                        TERN_EXPR_MOST_REPEATS);
    if (x->status != TERN_OK)
        return TERN_EXPR_NEVER;
    if (member == TERN_EXPR_NEVER || most == 0)
        return least == 0 ? TERN_EXPR_EMPTY : TERN_EXPR_NEVER;
    if (member == TERN_EXPR_EMPTY || (least == 1 && most == 1))
        return member;
    return add(x, (tern_expr){.kind = TERN_EXPR_KIND_REPEAT,
                              .first = member,
                              .least = least,
                              .most = most,
                              .depth = (uint16_t)(x->items[member].depth + 1)});
}

uint32_t tern_expr_optional(tern_exprs *x, uint32_t member) {
    return tern_expr_repeat(x, member, 0, 1);
}

/* ---- rules ------------------------------------------------------------------------------------
 */

uint32_t tern_expr_rule_new(tern_exprs *x, const char *name, size_t size) {
    const uint32_t at = keep_text(x, name, size);
    if (!reserve(x, (void **)&x->rules, &x->rules_capacity, x->n_rules, sizeof *x->rules,
                 TERN_EXPR_MOST_RULES, "rules"))
        return 0;
    x->rules[x->n_rules] = (tern_expr_rule){.name = at, .name_size = (uint32_t)size};
    return (uint32_t)x->n_rules++;
}

void tern_expr_rule_define(tern_exprs *x, uint32_t rule, uint32_t expr) {
    if (x->status != TERN_OK)
        return;
    x->rules[rule].expr = expr;
    x->rules[rule].defined = true;
}

uint32_t tern_expr_rule_use(tern_exprs *x, uint32_t rule) {
    return add(x, (tern_expr){.kind = TERN_EXPR_KIND_RULE, .first = rule});
}

/* ---- lists ------------------------------------------------------------------------------------
 */

void tern_expr_add(tern_expr_list *list, uint32_t member) {
    tern_exprs *x = list->x;
    if (reserve(x, (void **)&list->items, &list->capacity, list->n, sizeof *list->items,
                TERN_EXPR_MOST, "parts"))
        list->items[list->n++] = member;
}

uint32_t tern_expr_end_sequence(tern_expr_list *list) {
    const uint32_t all = tern_expr_sequence(list->x, list->items, list->n);
    free(list->items);
    return all;
}

uint32_t tern_expr_end_choice(tern_expr_list *list) {
    const uint32_t all = tern_expr_choice(list->x, list->items, list->n);
    free(list->items);
    return all;
}
