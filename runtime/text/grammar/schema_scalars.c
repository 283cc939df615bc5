/* SPDX-License-Identifier: Apache-2.0 */

/* Strings, numbers, and values that a schema lists. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "runtime/text/grammar/schema.h"

static uint32_t quoted(tern_exprs *x, uint32_t inner) {
    const uint32_t quote = tern_expr_word(x, "\"");
    return tern_expr_sequence(x, (const uint32_t[]){quote, inner, quote}, 3);
}

/* ---- characters of strings ------------------------------------------------------------------- */

/* Writes how a character must be escaped; false: it need not be. */
static bool escape(uint32_t code, char out[8]) {
    static const char from[] = "\"\\\b\f\n\r\t";
    static const char to[] = "\"\\bfnrt";
    const char *found = code > 0 && code < 0x7f ? strchr(from, (int)code) : NULL;
    if (found != NULL)
        (void)snprintf(out, 8, "\\%c", to[found - from]);
    else if (code < 0x20 || code == 0x7f)
        (void)snprintf(out, 8, "\\u%04" PRIx32, code);
    else
        return false;
    return true;
}

uint32_t tern_schema_characters(tern_exprs *x, const tern_range *ranges, size_t n) {
    static const tern_range plain[] = {{0x20, 0x21}, {0x23, 0x5b}, {0x5d, 0x7e}, {0x80, 0x10ffff}};
    enum { PLAIN = sizeof plain / sizeof *plain };
    tern_expr_list choice = {.x = x};
    tern_range *cut = malloc((PLAIN * n + 1) * sizeof *cut);
    size_t kept = 0;
    if (cut == NULL)
        tern_exprs_fail(x, TERN_ERR_NOMEM, "%s: no memory", x->name);
    for (size_t i = 0; i < PLAIN * n && cut != NULL; i++) {
        const tern_range *a = &ranges[i / PLAIN];
        const tern_range *b = &plain[i % PLAIN];
        const uint32_t low = a->low > b->low ? a->low : b->low;
        const uint32_t high = a->high < b->high ? a->high : b->high;
        if (low <= high)
            cut[kept++] = (tern_range){low, high};
    }
    if (kept > 0)
        tern_expr_add(&choice, tern_expr_chars(x, cut, kept));
    free(cut);
    for (size_t i = 0; i < n; i++) {
        for (uint32_t code = ranges[i].low; code <= ranges[i].high && code <= 0x7f; code++) {
            char text[8];
            if (code > 0 && escape(code, text))
                tern_expr_add(&choice, tern_expr_word(x, text));
        }
    }
    return tern_expr_end_choice(&choice);
}

uint32_t tern_schema_quoted(tern_exprs *x, const char *bytes, size_t size) {
    tern_expr_list parts = {.x = x};
    size_t from = 0;
    for (size_t i = 0; i < size; i++) {
        char text[8];
        if (!escape((unsigned char)bytes[i], text))
            continue;
        tern_expr_add(&parts, tern_expr_text(x, bytes + from, i - from));
        tern_expr_add(&parts, tern_expr_word(x, text));
        from = i + 1;
    }
    tern_expr_add(&parts, tern_expr_text(x, bytes + from, size - from));
    return tern_expr_end_sequence(&parts);
}

/* n hexadecimal digits. */
static uint32_t hex(tern_exprs *x, int32_t n) {
    static const tern_range digits[] = {{'0', '9'}, {'a', 'f'}, {'A', 'F'}};
    return tern_expr_repeat(x, tern_expr_bytes(x, digits, 3), n, n);
}

/* A choice of bytes. */
static uint32_t one_of(tern_exprs *x, const char *bytes) {
    tern_range ranges[32];
    const size_t n = strlen(bytes);
    for (size_t i = 0; i < n; i++)
        ranges[i] = (tern_range){(unsigned char)bytes[i], (unsigned char)bytes[i]};
    return tern_expr_bytes(x, ranges, n);
}

uint32_t tern_schema_any_character(tern_exprs *x) {
    static const tern_range all = {0x20, 0x10ffff};
    static const char *const after_zeros[] = {"", "0", "00", "000"};
    tern_expr_list codes = {.x = x};
    const uint32_t d = one_of(x, "dD");
    for (int32_t i = 0; i < 4; i++) {
        const uint32_t first = one_of(x, i == 0 ? "123456789abcefABCEF" : "123456789abcdefABCDEF");
        const uint32_t parts[] = {tern_expr_word(x, after_zeros[i]), first, hex(x, 3 - i)};
        tern_expr_add(&codes, tern_expr_sequence(x, parts, 3));
    }
    const uint32_t low_d[] = {d, one_of(x, "01234567"), hex(x, 2)};
    const uint32_t pair[] = {d, one_of(x, "89abAB"),   hex(x, 2), tern_expr_word(x, "\\u"),
                             d, one_of(x, "cdefCDEF"), hex(x, 2)};
    tern_expr_add(&codes, tern_expr_sequence(x, low_d, 3));
    tern_expr_add(&codes, tern_expr_sequence(x, pair, 7));
    const uint32_t code = tern_expr_pair(x, tern_expr_word(x, "u"), tern_expr_end_choice(&codes));
    const uint32_t after = tern_expr_either(x, one_of(x, "\"\\/bfnrt"), code);
    const uint32_t rule = tern_expr_rule_new(x, "escape", strlen("escape"));
    tern_expr_rule_define(x, rule, after);
    const uint32_t escaped =
        tern_expr_pair(x, tern_expr_word(x, "\\"), tern_expr_rule_use(x, rule));
    tern_range plain[] = {
        {all.low, '"' - 1}, {'"' + 1, '\\' - 1}, {'\\' + 1, 0x7e}, {0x80, all.high}};
    return tern_expr_either(x, tern_expr_chars(x, plain, 4), escaped);
}

/* ---- keys that are none of some -------------------------------------------------------------- */

static int by_bytes(const void *a, const void *b) {
    const tern_span *p = a;
    const tern_span *q = b;
    const size_t shorter = p->size < q->size ? p->size : q->size;
    const int order = shorter > 0 ? memcmp(p->data, q->data, shorter) : 0;
    return order != 0 ? order : (p->size > q->size) - (p->size < q->size);
}

typedef struct others {
    tern_schema_reader *r;
    uint32_t any_rest; /* a rule: characters, any number of them */
} others;

/* Makes a rule every now and then, so that long names do not nest expressions too deep. */
static uint32_t in_rule(tern_exprs *x, uint32_t expr, size_t depth, size_t next) {
    if (depth / 16 == next / 16)
        return expr;
    const uint32_t rule = tern_expr_rule_new(x, "key", strlen("key"));
    tern_expr_rule_define(x, rule, expr);
    return tern_expr_rule_use(x, rule);
}

/*
 * Texts that differ from all of names[n], which are sorted, not empty and begin with the same
 * `depth` bytes. A text ends here, unless a name does; or it goes on with a character that no name
 * has here; or with one that some names have, and so on. Each character can be written in one way
 * only.
 */
static uint32_t other_after(others *o, const tern_span *names, size_t n, size_t depth) {
    tern_exprs *x = o->r->x;
    tern_expr_list choice = {.x = x};
    const bool ends = names[0].size == depth;
    size_t first = 0;
    uint32_t low = 1;
    tern_range *free_codes = calloc(n + 1, sizeof *free_codes);
    size_t n_free = 0;
    while (first < n && names[first].size == depth)
        first++;
    if (!ends)
        tern_expr_add(&choice, TERN_EXPR_EMPTY);
    while (first < n && free_codes != NULL && tern_schema_work(o->r, n)) {
        const char *at = names[first].data + depth;
        const tern_utf8 c = tern_utf8_next(at, names[first].size - depth);
        size_t last = first + 1;
        while (last < n && names[last].size >= depth + c.size &&
               memcmp(names[last].data + depth, at, c.size) == 0)
            last++;
        const uint32_t inner = in_rule(
            x, other_after(o, names + first, last - first, depth + c.size), depth, depth + c.size);
        tern_expr_add(&choice, tern_expr_pair(x, tern_schema_quoted(x, at, c.size), inner));
        if (c.code > low)
            free_codes[n_free++] = (tern_range){low, c.code - 1};
        low = c.code + 1;
        first = last;
    }
    if (free_codes != NULL) {
        free_codes[n_free++] = (tern_range){low, 0x10ffff};
        tern_expr_add(&choice, tern_expr_pair(x, tern_schema_characters(x, free_codes, n_free),
                                              tern_expr_rule_use(x, o->any_rest)));
    } else {
        tern_exprs_fail(x, TERN_ERR_NOMEM, "%s: no memory", x->name);
    }
    free(free_codes);
    return tern_expr_end_choice(&choice);
}

uint32_t tern_schema_other_key(tern_schema_reader *r, const tern_span *names, size_t n) {
    static const tern_range all = {1, 0x10ffff};
    tern_exprs *x = r->x;
    others o = {.r = r, .any_rest = tern_expr_rule_new(x, "key", strlen("key"))};
    const uint32_t any =
        tern_expr_repeat(x, tern_schema_characters(x, &all, 1), 0, TERN_EXPR_UNLIMITED);
    tern_span *sorted = malloc((n + 1) * sizeof *sorted);
    uint32_t key = TERN_EXPR_NEVER;
    if (sorted == NULL)
        tern_exprs_fail(x, TERN_ERR_NOMEM, "%s: no memory", x->name);
    if (x->status == TERN_OK)
        tern_expr_rule_define(x, o.any_rest, any);
    if (x->status == TERN_OK && n > 0) {
        memcpy(sorted, names, n * sizeof *sorted);
        qsort(sorted, n, sizeof *sorted, by_bytes);
        key = other_after(&o, sorted, n, 0);
    }
    if (x->status == TERN_OK && n == 0)
        key = tern_expr_rule_use(x, o.any_rest);
    free(sorted);
    return key;
}

/* ---- strings --------------------------------------------------------------------------------- */

static uint32_t with_length(tern_schema_reader *r, const tern_schema_facts *f) {
    return tern_expr_repeat(r->x, r->character, (int32_t)f->least_length, (int32_t)f->most_length);
}

/* Texts of a pattern that have the lengths. */
static uint32_t within_length(tern_schema_reader *r, const tern_schema_facts *f,
                              const tern_pattern *p, const char *keyword) {
    if (f->least_length == 0 && f->most_length < 0)
        return p->expr;
    const uint32_t some = tern_pattern_with_length(r->x, p->expr, f->least_length, f->most_length);
    r->notes->narrowed |= !p->is_run;
    if (some != TERN_EXPR_NEVER && (r->narrow || p->is_run))
        return some;
    if (p->is_run)
        return some;
    tern_schema_note(r, f->pattern_of, keyword,
                     "together with minLength or maxLength these are not enforced");
    return p->expr;
}

/* The texts of a pattern, without quotes. */
static uint32_t with_pattern(tern_schema_reader *r, const tern_schema_facts *f, tern_span pattern,
                             const char *keyword) {
    tern_pattern p = {0};
    const char *why = "too large";
    if (tern_pattern_read(r->x, pattern.data, pattern.size, &p, &why))
        return within_length(r, f, &p, keyword);
    tern_schema_note(r, f->pattern_of, keyword, why);
    return with_length(r, f);
}

/* A bound of length that every text of the format meets is dropped. */
static uint32_t with_format(tern_schema_reader *r, const tern_schema_facts *f,
                            const tern_schema_format *format) {
    const tern_span pattern = {format->pattern, strlen(format->pattern)};
    tern_schema_facts left = *f;
    if (f->least_length <= format->least)
        left.least_length = 0;
    if (format->most >= 0 && f->most_length >= format->most)
        left.most_length = -1;
    return with_pattern(r, &left, pattern, "format");
}

/* True if tern can read the pattern. */
static bool is_readable(tern_schema_reader *r, const tern_json_value *pattern) {
    tern_pattern p = {0};
    const char *why = NULL;
    return tern_pattern_read(r->x, pattern->text.data, pattern->text.size, &p, &why);
}

/* Adds a pattern to exprs[*n] if it can be read; else that is noted. */
static void add_pattern(tern_schema_reader *r, const tern_schema_facts *f, const char *keyword,
                        tern_span pattern, uint32_t *exprs, size_t *n) {
    tern_pattern p = {0};
    const char *why = NULL;
    if (tern_pattern_read(r->x, pattern.data, pattern.size, &p, &why))
        exprs[(*n)++] = p.expr;
    else
        tern_schema_note(r, f->pattern_of, keyword, why);
}

/* The texts that all patterns match, and the format. False: that is too large, or the part of the
 * format that is made has no such text. */
static bool with_all(tern_schema_reader *r, const tern_schema_facts *f,
                     const tern_schema_format *format, uint32_t *out) {
    uint32_t exprs[TERN_SCHEMA_MORE_PATTERNS + 2];
    size_t n = 0;
    add_pattern(r, f, "pattern", f->pattern->text, exprs, &n);
    for (size_t i = 0; i < f->n_more_patterns; i++)
        add_pattern(r, f, "pattern", f->more_patterns[i]->text, exprs, &n);
    if (format != NULL)
        add_pattern(r, f, "format", (tern_span){format->pattern, strlen(format->pattern)}, exprs,
                    &n);
    return n > 0 && tern_pattern_both(r->x, exprs, n, f->least_length, f->most_length, out) &&
           (*out != TERN_EXPR_NEVER || format == NULL || format->exact);
}

uint32_t tern_schema_text(tern_schema_reader *r, const tern_schema_facts *f) {
    static const char alone[] = "beside a pattern the pattern alone is enforced";
    static const char *const unknown[] = {"regex", "uri-template"};
    const tern_schema_format *format =
        f->format != NULL ? tern_schema_format_named(f->format->text) : NULL;
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        if (tern_json_is_string(f->format, unknown[i]))
            tern_schema_note(r, f->pattern_of, "format", "this one is not enforced");
    uint32_t all = TERN_EXPR_NEVER;
    const bool several = f->n_more_patterns > 0 || (f->pattern != NULL && format != NULL);
    if (several && is_readable(r, f->pattern) && with_all(r, f, format, &all))
        return all;
    if (f->n_more_patterns > 0)
        tern_schema_note(r, f->pattern_of, "pattern", "together with another pattern");
    if (f->pattern != NULL && (format == NULL || is_readable(r, f->pattern))) {
        if (format != NULL)
            tern_schema_note(r, f->pattern_of, "format", alone);
        return with_pattern(r, f, f->pattern->text, "pattern");
    }
    if (f->pattern != NULL)
        tern_schema_note(r, f->pattern_of, "pattern", "beside a format the format is enforced");
    return format != NULL ? with_format(r, f, format) : with_length(r, f);
}

/* All strings except those that must not be. Each character can be written in one way only. */
static uint32_t other_strings(tern_schema_reader *r, const tern_schema_set *s, size_t n) {
    tern_span *texts = calloc(n, sizeof *texts);
    size_t kept = 0;
    if (texts == NULL) {
        tern_exprs_fail(r->x, TERN_ERR_NOMEM, "%s: no memory", r->name);
        return TERN_EXPR_NEVER;
    }
    for (size_t i = 0; i < s->n; i++) {
        if (s->items[i].part != TERN_SCHEMA_NOT_VALUE)
            continue;
        const tern_schema_list list = tern_schema_listed(s->items[i].v);
        const tern_json_value *v = list.first;
        for (uint32_t k = 0; k < list.n; k++, v += v->size)
            if (v->type == TERN_JSON_STRING && kept < n)
                texts[kept++] = v->text;
    }
    const uint32_t all = tern_schema_other_key(r, texts, kept);
    free(texts);
    return quoted(r->x, all);
}

uint32_t tern_schema_string(tern_schema_reader *r, const tern_schema_set *s,
                            const tern_schema_facts *f) {
    if (f->most_length >= 0 && f->most_length < f->least_length)
        return TERN_EXPR_NEVER;
    if (f->n_other_than > 0)
        return other_strings(r, s, f->n_other_than);
    return quoted(r->x, tern_schema_text(r, f));
}

/* ---- values that are listed ------------------------------------------------------------------ */

static uint32_t list_value(tern_schema_reader *r, const tern_json_value *v) {
    const bool object = v->type == TERN_JSON_OBJECT;
    tern_expr_list parts = {.x = r->x};
    const tern_json_value *child = v + 1;
    tern_expr_add(&parts, tern_expr_word(r->x, object ? "{" : "["));
    tern_expr_add(&parts, r->space);
    for (uint32_t i = 0; i < v->count && tern_schema_work(r, 0); i++) {
        if (i > 0) {
            tern_expr_add(&parts, r->space);
            tern_expr_add(&parts, tern_expr_word(r->x, ","));
            tern_expr_add(&parts, r->space);
        }
        if (object) {
            tern_expr_add(&parts, tern_schema_value(r, child++));
            tern_expr_add(&parts, r->space);
            tern_expr_add(&parts, tern_expr_word(r->x, ":"));
            tern_expr_add(&parts, r->space);
        }
        tern_expr_add(&parts, tern_schema_value(r, child));
        child += child->size;
    }
    if (v->count > 0)
        tern_expr_add(&parts, r->space);
    tern_expr_add(&parts, tern_expr_word(r->x, object ? "}" : "]"));
    return tern_expr_end_sequence(&parts);
}

uint32_t tern_schema_value(tern_schema_reader *r, const tern_json_value *v) {
    switch (v->type) {
    case TERN_JSON_NULL:
        return tern_expr_word(r->x, "null");
    case TERN_JSON_FALSE:
        return tern_expr_word(r->x, "false");
    case TERN_JSON_TRUE:
        return tern_expr_word(r->x, "true");
    case TERN_JSON_NUMBER:
        return tern_expr_text(r->x, v->text.data, v->text.size);
    case TERN_JSON_STRING:
        return quoted(r->x, tern_schema_quoted(r->x, v->text.data, v->text.size));
    case TERN_JSON_ARRAY:
    case TERN_JSON_OBJECT:
        break;
    }
    return list_value(r, v);
}
