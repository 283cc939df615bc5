/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/text/template/words.h"

#include <string.h>

#include "runtime/text/template/characters.h"

typedef tern_tpl_value value;
typedef tern_tpl_text text;

static tern_span span(text t) {
    return (tern_span){t.bytes, t.size};
}

text tern_tpl_strip(text t, const value *these, bool left, bool right) {
    const tern_span characters = these != NULL ? tern_tpl_span(these) : (tern_span){NULL, 0};
    const tern_span *set = these != NULL ? &characters : NULL;
    tern_span rest = left ? tern_tpl_strip_left(span(t), set) : span(t);
    rest = right ? tern_tpl_strip_right(rest, set) : rest;
    const size_t from = (size_t)(rest.data - t.bytes);
    return tern_tpl_part(t, from, from + rest.size);
}

/* ---- lists that grow ------------------------------------------------------------------------- */

typedef struct parts {
    tern_tpl *x;
    value **items;
    size_t n, capacity;
} parts;

static bool add_part(parts *p, text t, size_t from, size_t to) {
    if (p->n == p->capacity) {
        const size_t capacity = 2 * p->capacity + 8;
        value **grown = tern_tpl_items(p->x, capacity);
        if (grown == NULL)
            return false;
        if (p->n > 0)
            memcpy(grown, p->items, p->n * sizeof(value *));
        p->items = grown;
        p->capacity = capacity;
    }
    value *part = tern_tpl_text_value(p->x, tern_tpl_part(t, from, to));
    p->items[p->n++] = part;
    return part != NULL && tern_tpl_work(p->x, 1);
}

static value *parts_value(const parts *p) {
    return p->x->failed ? NULL : tern_tpl_list_value(p->x, p->items, p->n);
}

static value *reversed(const parts *p) {
    for (size_t i = 0; i < p->n / 2; i++) {
        value *other = p->items[i];
        p->items[i] = p->items[p->n - 1 - i];
        p->items[p->n - 1 - i] = other;
    }
    return parts_value(p);
}

/* ---- splitting ------------------------------------------------------------------------------- */

static value *split_by_text(parts *p, text t, tern_span separator, int64_t most) {
    size_t from = 0;
    for (int64_t n = 0; most < 0 || n < most; n++) {
        const char *at = memmem(t.bytes + from, t.size - from, separator.data, separator.size);
        if (at == NULL || !add_part(p, t, from, (size_t)(at - t.bytes)))
            break;
        from = (size_t)(at - t.bytes) + separator.size;
    }
    return !p->x->failed && add_part(p, t, from, t.size) ? parts_value(p) : NULL;
}

static value *split_by_text_right(parts *p, text t, tern_span separator, int64_t most) {
    size_t to = t.size;
    int64_t n = 0;
    for (size_t at = t.size; at >= separator.size && (most < 0 || n < most);) {
        if (memcmp(t.bytes + at - separator.size, separator.data, separator.size) != 0) {
            at--;
            continue;
        }
        if (!add_part(p, t, at, to))
            return NULL;
        at -= separator.size;
        to = at;
        n++;
    }
    return add_part(p, t, 0, to) ? reversed(p) : NULL;
}

static size_t word_end(text t, size_t at) {
    for (size_t size; at < t.size; at += size)
        if (tern_tpl_is_space(tern_tpl_code((tern_span){t.bytes + at, t.size - at}, &size)))
            break;
    return at;
}

static value *split_by_space(parts *p, text t, int64_t most) {
    t = tern_tpl_strip(t, NULL, true, false);
    for (int64_t n = 0; t.size > 0; n++) {
        const bool last = most >= 0 && n >= most;
        const size_t end = last ? t.size : word_end(t, 0);
        if (!add_part(p, t, 0, end))
            return NULL;
        t = tern_tpl_strip(tern_tpl_part(t, end, t.size), NULL, true, false);
    }
    return parts_value(p);
}

static size_t word_start(text t) {
    size_t start = 0;
    for (size_t at = 0, size; at < t.size; at += size)
        if (tern_tpl_is_space(tern_tpl_code((tern_span){t.bytes + at, t.size - at}, &size)))
            start = at + size;
    return start;
}

static value *split_by_space_right(parts *p, text t, int64_t most) {
    t = tern_tpl_strip(t, NULL, false, true);
    for (int64_t n = 0; t.size > 0; n++) {
        const bool last = most >= 0 && n >= most;
        const size_t end = t.size;
        const size_t start = last ? 0 : word_start(t);
        if (!tern_tpl_work(p->x, end / 16) || !add_part(p, t, start, t.size))
            return NULL;
        t = tern_tpl_strip(tern_tpl_part(t, 0, start), NULL, false, true);
    }
    return reversed(p);
}

value *tern_tpl_split(tern_tpl *x, text t, const value *separator, int64_t most, bool right) {
    parts p = {.x = x};
    if (!tern_tpl_work(x, t.size / 16))
        return NULL;
    if (separator == NULL)
        return right ? split_by_space_right(&p, t, most) : split_by_space(&p, t, most);
    const tern_span by = tern_tpl_span(separator);
    return right ? split_by_text_right(&p, t, by, most) : split_by_text(&p, t, by, most);
}

value *tern_tpl_lines(tern_tpl *x, text t, bool with_ends) {
    parts p = {.x = x};
    size_t from = 0;
    for (size_t at = 0, size; at < t.size && tern_tpl_work(x, 1);) {
        const size_t here = at;
        if (!tern_tpl_is_line_end(tern_tpl_code((tern_span){t.bytes + at, t.size - at}, &size))) {
            at += size;
            continue;
        }
        at += t.bytes[at] == '\r' && at + 1 < t.size && t.bytes[at + 1] == '\n' ? 2 : size;
        if (!add_part(&p, t, from, with_ends ? at : here))
            return NULL;
        from = at;
    }
    if (from < t.size && !add_part(&p, t, from, t.size))
        return NULL;
    return parts_value(&p);
}

/* ---- replacing ------------------------------------------------------------------------------- */

/* An empty text stands before every character and at the end. */
static value *replace_nothing(tern_tpl *x, text t, text after, int64_t most) {
    tern_tpl_buffer b = {.x = x};
    int64_t n = 0;
    for (size_t at = 0, size = 0; at < t.size; at += size, n++) {
        (void)tern_tpl_code((tern_span){t.bytes + at, t.size - at}, &size);
        if ((most < 0 || n < most) && !tern_tpl_add(&b, after))
            return NULL;
        if (!tern_tpl_work(x, 1) || !tern_tpl_add(&b, tern_tpl_part(t, at, at + size)))
            return NULL;
    }
    if ((most < 0 || n < most) && !tern_tpl_add(&b, after))
        return NULL;
    return tern_tpl_buffer_value(&b);
}

value *tern_tpl_replace(tern_tpl *x, text t, text before, text after, int64_t most) {
    tern_tpl_buffer b = {.x = x};
    size_t from = 0;
    if (before.size == 0)
        return replace_nothing(x, t, after, most);
    for (int64_t n = 0; most < 0 || n < most; n++) {
        const char *at = memmem(t.bytes + from, t.size - from, before.bytes, before.size);
        if (at == NULL)
            break;
        const size_t to = (size_t)(at - t.bytes);
        if (!tern_tpl_work(x, 1) || !tern_tpl_add(&b, tern_tpl_part(t, from, to)) ||
            !tern_tpl_add(&b, after))
            return NULL;
        from = to + before.size;
    }
    if (from == 0)
        return tern_tpl_work(x, t.size / 64) ? tern_tpl_text_value(x, t) : NULL;
    return tern_tpl_add(&b, tern_tpl_part(t, from, t.size)) ? tern_tpl_buffer_value(&b) : NULL;
}

/* ---- letters --------------------------------------------------------------------------------- */

static bool has_case(uint32_t code) {
    return tern_tpl_upper(code) != code || tern_tpl_lower(code) != code;
}

/* True if a word begins after this character. */
static bool ends_word(uint32_t code, tern_tpl_case how) {
    if (how == TERN_TPL_TITLE)
        return !has_case(code);
    return how == TERN_TPL_HEADLINE &&
           (tern_tpl_is_space(code) || (code < 0x80 && code != 0 && strchr("-({[<", (int)code)));
}

value *tern_tpl_letters(tern_tpl *x, text t, tern_tpl_case how) {
    tern_tpl_buffer b = {.x = x};
    bool begins = true;
    if (!tern_tpl_work(x, t.size))
        return NULL;
    for (size_t at = 0, size; at < t.size; at += size) {
        char out[4];
        const uint32_t code = tern_tpl_code((tern_span){t.bytes + at, t.size - at}, &size);
        const uint32_t other = how == TERN_TPL_UPPER              ? tern_tpl_upper(code)
                               : how == TERN_TPL_LOWER || !begins ? tern_tpl_lower(code)
                               : how == TERN_TPL_HEADLINE         ? tern_tpl_upper(code)
                                                                  : tern_tpl_title(code);
        begins = ends_word(code, how);
        if (!tern_tpl_add_bytes(&b, out, tern_tpl_put_code(other, out), tern_tpl_mark(&t, at)))
            return NULL;
    }
    return tern_tpl_buffer_value(&b);
}

value *tern_tpl_pairs(tern_tpl *x, const value *dict) {
    value **items = tern_tpl_items(x, dict->dict->n);
    for (size_t i = 0; items != NULL && i < dict->dict->n; i++) {
        value **pair = tern_tpl_items(x, 2);
        if (pair == NULL)
            return NULL;
        pair[0] = dict->dict->keys[i];
        pair[1] = dict->dict->values[i];
        items[i] = tern_tpl_list_value(x, pair, 2);
        if (items[i] == NULL)
            return NULL;
        items[i]->list.tuple = true;
    }
    return items != NULL ? tern_tpl_list_value(x, items, dict->dict->n) : NULL;
}
