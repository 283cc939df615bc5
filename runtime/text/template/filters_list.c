/* SPDX-License-Identifier: Apache-2.0 */
/* Filters of lists. */

#include <string.h>

#include "runtime/text/template/filters.h"

typedef tern_tpl_value value;
typedef tern_tpl_list list;

static value *list_of(tern_tpl *x, const list *l, bool lazy) {
    value *v = tern_tpl_list_value(x, l->items, l->n);
    if (v != NULL)
        v->list.lazy = lazy;
    return v;
}

/* The member of v that `attribute` names, "a.b" with digits for a place; v itself without one. A
 * member that is not there becomes `fallback`, unless that is NULL. */
static value *member_or(tern_tpl *x, value *v, const value *attribute, value *fallback) {
    if (attribute == NULL || attribute->kind == TERN_TPL_NONE)
        return v;
    if (attribute->kind == TERN_TPL_INT)
        return tern_tpl_item(x, v, attribute);
    if (attribute->kind != TERN_TPL_TEXT) {
        (void)tern_tpl_fail(x, TERN_ERR_TEMPLATE, "an attribute is a text or a place");
        return NULL;
    }
    const value *parts = tern_tpl_split(x, attribute->text, tern_tpl_word(x, "."), -1, false);
    for (size_t i = 0; parts != NULL && v != NULL && i < parts->list.n; i++) {
        value *key = parts->list.items[i];
        const tern_span name = tern_tpl_span(key);
        int64_t place = 0;
        size_t digits = 0;
        while (digits < name.size && digits < 9 && name.data[digits] >= '0' &&
               name.data[digits] <= '9')
            place = 10 * place + (name.data[digits++] - '0');
        if (digits == name.size && digits > 0)
            key = tern_tpl_int(x, place);
        v = key != NULL ? tern_tpl_item(x, v, key) : NULL;
        if (v != NULL && v->kind == TERN_TPL_UNDEFINED && fallback != NULL)
            v = fallback;
    }
    return v;
}

static value *member(tern_tpl *x, value *v, const value *attribute) {
    return member_or(x, v, attribute, NULL);
}

/* ---- parts ----------------------------------------------------------------------------------- */

static value *first(tern_tpl *x, value *subject, value **a) {
    list l;
    (void)a;
    if (!tern_tpl_iterate(x, subject, &l))
        return NULL;
    return l.n > 0 ? l.items[0] : tern_tpl_undefined(x, (tern_span){"the first of nothing", 20});
}

static value *last(tern_tpl *x, value *subject, value **a) {
    list l;
    (void)a;
    if (!tern_tpl_iterate(x, subject, &l))
        return NULL;
    if (subject->kind == TERN_TPL_LIST && subject->list.lazy) {
        (void)tern_tpl_fail(x, TERN_ERR_TEMPLATE, "a generator has no last element");
        return NULL;
    }
    return l.n > 0 ? l.items[l.n - 1]
                   : tern_tpl_undefined(x, (tern_span){"the last of nothing", 19});
}

static value *to_list(tern_tpl *x, value *subject, value **a) {
    list l;
    (void)a;
    return tern_tpl_iterate(x, subject, &l) ? list_of(x, &l, false) : NULL;
}

static value *reverse(tern_tpl *x, value *subject, value **a) {
    list l;
    (void)a;
    if (!tern_tpl_iterate(x, subject, &l))
        return NULL;
    value **items = tern_tpl_items(x, l.n);
    for (size_t i = 0; items != NULL && i < l.n; i++)
        items[i] = l.items[l.n - 1 - i];
    if (items == NULL)
        return NULL;
    const list turned = {.items = items, .n = l.n};
    if (subject->kind != TERN_TPL_TEXT)
        return list_of(x, &turned, true);
    tern_tpl_buffer b = {.x = x};
    for (size_t i = 0; i < l.n; i++)
        if (!tern_tpl_add(&b, items[i]->text))
            return NULL;
    return tern_tpl_buffer_value(&b);
}

static value *join(tern_tpl *x, value *subject, value **a) {
    list l;
    tern_tpl_buffer b = {.x = x};
    if (!tern_tpl_iterate(x, subject, &l))
        return NULL;
    for (size_t i = 0; i < l.n; i++) {
        const value *v = member(x, l.items[i], a[1]);
        if (v == NULL || (i > 0 && a[0] != NULL && !tern_tpl_write(&b, a[0])) ||
            !tern_tpl_write(&b, v))
            return NULL;
    }
    return tern_tpl_buffer_value(&b);
}

static value *sum(tern_tpl *x, value *subject, value **a) {
    list l;
    value *total = a[1] != NULL ? a[1] : tern_tpl_int(x, 0);
    if (!tern_tpl_iterate(x, subject, &l))
        return NULL;
    for (size_t i = 0; total != NULL && i < l.n; i++) {
        value *v = member(x, l.items[i], a[0]);
        total = v != NULL ? tern_tpl_binary(x, (tern_span){"+", 1}, total, v) : NULL;
    }
    return total;
}

/* ---- order ----------------------------------------------------------------------------------- */

/* The key that is compared in place of v: without case, unless case matters. */
static value *key_of(tern_tpl *x, value *v, const value *attribute, const value *cased) {
    value *key = member(x, v, attribute);
    if (key == NULL || key->kind != TERN_TPL_TEXT || (cased != NULL && tern_tpl_is_true(cased)))
        return key;
    return tern_tpl_letters(x, key->text, TERN_TPL_LOWER);
}

static bool make_keys(tern_tpl *x, const list *l, const value *attribute, const value *cased,
                      value ***out) {
    value **keys = tern_tpl_items(x, l->n);
    for (size_t i = 0; keys != NULL && i < l->n; i++)
        if ((keys[i] = key_of(x, l->items[i], attribute, cased)) == NULL)
            return false;
    *out = keys;
    return keys != NULL;
}

/* Stable, by insertion: lists of templates are short, and steps are counted. */
static bool sort_by(tern_tpl *x, list *l, value **keys, bool reverse) {
    value **items = tern_tpl_items(x, l->n);
    if (items == NULL)
        return false;
    for (size_t i = 0; i < l->n; i++) {
        value *item = l->items[i], *key = keys[i];
        size_t at = i;
        for (int order = 0; at > 0; at--) {
            if (!tern_tpl_work(x, 1) || !tern_tpl_compare(x, keys[at - 1], key, &order))
                return false;
            if (reverse ? order >= 0 : order <= 0)
                break;
            keys[at] = keys[at - 1];
            items[at] = items[at - 1];
        }
        keys[at] = key;
        items[at] = item;
    }
    l->items = items;
    return true;
}

static value *sort(tern_tpl *x, value *subject, value **a) {
    list l;
    value **keys;
    if (!tern_tpl_iterate(x, subject, &l) || !make_keys(x, &l, a[2], a[1], &keys) ||
        !sort_by(x, &l, keys, a[0] != NULL && tern_tpl_is_true(a[0])))
        return NULL;
    return list_of(x, &l, false);
}

static value *dict_sort(tern_tpl *x, value *subject, value **a) {
    value **keys;
    if (subject->kind != TERN_TPL_DICT) {
        (void)tern_tpl_fail(x, TERN_ERR_TEMPLATE, "the filter 'dictsort' wants a dict");
        return NULL;
    }
    const value *pairs = tern_tpl_pairs(x, subject);
    const bool by_value = a[1] != NULL && tern_tpl_is_text(a[1], "value");
    const value *place = tern_tpl_int(x, by_value);
    if (pairs == NULL || place == NULL)
        return NULL;
    list l = pairs->list;
    if (!make_keys(x, &l, place, a[0], &keys) ||
        !sort_by(x, &l, keys, a[2] != NULL && tern_tpl_is_true(a[2])))
        return NULL;
    return list_of(x, &l, false);
}

static value *unique(tern_tpl *x, value *subject, value **a) {
    list l, kept = {0};
    value **keys;
    if (!tern_tpl_iterate(x, subject, &l) || !make_keys(x, &l, a[1], a[0], &keys))
        return NULL;
    kept.items = tern_tpl_items(x, l.n);
    for (size_t i = 0; kept.items != NULL && i < l.n; i++) {
        size_t k = 0;
        while (k < kept.n && tern_tpl_work(x, 1) && !tern_tpl_equal(x, keys[k], keys[i]))
            k++;
        if (k == kept.n) {
            keys[kept.n] = keys[i];
            kept.items[kept.n++] = l.items[i];
        }
    }
    return kept.items != NULL ? list_of(x, &kept, true) : NULL;
}

/* The first of the smallest elements, or of the largest. */
static value *extreme(tern_tpl *x, value *subject, value **a, bool largest) {
    list l;
    value **keys;
    size_t best = 0;
    if (!tern_tpl_iterate(x, subject, &l) || !make_keys(x, &l, a[1], a[0], &keys))
        return NULL;
    for (size_t i = 1; i < l.n; i++) {
        int order;
        if (!tern_tpl_compare(x, keys[i], keys[best], &order))
            return NULL;
        best = (largest ? order > 0 : order < 0) ? i : best;
    }
    return l.n > 0 ? l.items[best]
                   : tern_tpl_undefined(x, (tern_span){"an extreme of nothing", 21});
}

static value *min(tern_tpl *x, value *subject, value **a) {
    return extreme(x, subject, a, false);
}

static value *max(tern_tpl *x, value *subject, value **a) {
    return extreme(x, subject, a, true);
}

/* ---- choosing and mapping -------------------------------------------------------------------- */

static tern_tpl_args after(const tern_tpl_args *args, size_t n) {
    tern_tpl_args rest = *args;
    rest.given += n;
    rest.n -= n;
    return rest;
}

/* Lists what map and select go through: nothing if the subject is false, whatever it is. */
static bool iterate_true(tern_tpl *x, const value *subject, list *out) {
    *out = (list){0};
    return !tern_tpl_is_true(subject) || tern_tpl_iterate(x, subject, out);
}

/* Keeps elements for which a test holds, or does not. by_attribute: it tests their attribute, which
 * the first argument names. Without a test: whether they are true. */
static value *choose(tern_tpl *x, value *subject, const tern_tpl_args *args, bool by_attribute,
                     bool wanted) {
    list l, kept = {0};
    const size_t skip = by_attribute;
    if (args->n < skip || args->n_named > 0 ||
        (args->n > skip && args->given[skip]->kind != TERN_TPL_TEXT)) {
        (void)tern_tpl_fail(x, TERN_ERR_TEMPLATE, "'select' and 'reject' want %sthe name of a test",
                            by_attribute ? "an attribute and " : "");
        return NULL;
    }
    if (!iterate_true(x, subject, &l) || (kept.items = tern_tpl_items(x, l.n)) == NULL)
        return NULL;
    const tern_tpl_args rest = after(args, args->n > skip ? skip + 1 : skip);
    for (size_t i = 0; i < l.n; i++) {
        value *v = by_attribute ? member(x, l.items[i], args->given[0]) : l.items[i];
        bool holds = v != NULL && tern_tpl_is_true(v);
        if (v == NULL || (args->n > skip &&
                          !tern_tpl_test(x, tern_tpl_span(args->given[skip]), v, &rest, &holds)))
            return NULL;
        if (holds == wanted)
            kept.items[kept.n++] = l.items[i];
    }
    return list_of(x, &kept, true);
}

static value *select_items(tern_tpl *x, value *subject, const tern_tpl_args *args) {
    return choose(x, subject, args, false, true);
}

static value *reject_items(tern_tpl *x, value *subject, const tern_tpl_args *args) {
    return choose(x, subject, args, false, false);
}

static value *select_attribute(tern_tpl *x, value *subject, const tern_tpl_args *args) {
    return choose(x, subject, args, true, true);
}

static value *reject_attribute(tern_tpl *x, value *subject, const tern_tpl_args *args) {
    return choose(x, subject, args, true, false);
}

static value *map_one(tern_tpl *x, value *v, const tern_tpl_args *args, value **by_name) {
    if (args->n > 0) {
        const tern_tpl_args rest = after(args, 1);
        return tern_tpl_filter(x, tern_tpl_span(args->given[0]), v, &rest);
    }
    return member_or(x, v, by_name[0], by_name[1]);
}

static value *map(tern_tpl *x, value *subject, const tern_tpl_args *args) {
    list l;
    value *by_name[2] = {NULL, NULL};
    if (args->n == 0 && !tern_tpl_bind(x, "map", args, "attribute default", by_name))
        return NULL;
    if (args->n > 0 ? args->given[0]->kind != TERN_TPL_TEXT : by_name[0] == NULL) {
        (void)tern_tpl_fail(x, TERN_ERR_TEMPLATE, "'map' wants a filter or an attribute");
        return NULL;
    }
    if (!iterate_true(x, subject, &l))
        return NULL;
    value **items = tern_tpl_items(x, l.n);
    for (size_t i = 0; items != NULL && i < l.n; i++)
        if ((items[i] = map_one(x, l.items[i], args, by_name)) == NULL)
            return NULL;
    const list mapped = {.items = items, .n = l.n};
    return items != NULL ? list_of(x, &mapped, true) : NULL;
}

/* Fills fields of the forms %s, %d and %r in the order of the arguments; %% is a percent sign. */
static bool fill(tern_tpl_buffer *out, const tern_tpl_text *t, const tern_tpl_args *args,
                 size_t *next) {
    for (size_t at = 0; at < t->size;) {
        const char *sign = memchr(t->bytes + at, '%', t->size - at);
        const size_t end = sign != NULL ? (size_t)(sign - t->bytes) : t->size;
        const char kind = end + 1 < t->size ? t->bytes[end + 1] : '\0';
        if (!tern_tpl_work(out->x, 1) || !tern_tpl_add(out, tern_tpl_part(*t, at, end)))
            return false;
        at = end + 2;
        if (end == t->size)
            break;
        const bool percent = kind == '%', field = kind == 's' || kind == 'd' || kind == 'r';
        const value *v = field && *next < args->n ? args->given[(*next)++] : NULL;
        if (!percent && (v == NULL || (kind == 'd' && v->kind != TERN_TPL_INT)))
            return tern_tpl_fail(out->x, TERN_ERR_TEMPLATE,
                                 "the filter 'format' wants %%s, %%d or "
                                 "%%r, and a value for each");
        if (percent       ? !tern_tpl_add_bytes(out, "%", 1, tern_tpl_mark(t, end))
            : kind == 'r' ? !tern_tpl_write_repr(out, v)
                          : !tern_tpl_write(out, v))
            return false;
    }
    return true;
}

static value *fill_in(tern_tpl *x, value *subject, const tern_tpl_args *args) {
    tern_tpl_buffer out = {.x = x};
    size_t next = 0;
    if (subject->kind != TERN_TPL_TEXT || args->n_named > 0) {
        (void)tern_tpl_fail(x, TERN_ERR_TEMPLATE, "the filter 'format' wants a text and values");
        return NULL;
    }
    if (!fill(&out, &subject->text, args, &next))
        return NULL;
    if (next == args->n)
        return tern_tpl_buffer_value(&out);
    (void)tern_tpl_fail(x, TERN_ERR_TEMPLATE, "the filter 'format' has more values than fields");
    return NULL;
}

const tern_tpl_filter_entry tern_tpl_list_filters[] = {
    {"first", "", first, NULL},
    {"last", "", last, NULL},
    {"list", "", to_list, NULL},
    {"reverse", "", reverse, NULL},
    {"join", "d attribute", join, NULL},
    {"sum", "attribute start", sum, NULL},
    {"sort", "reverse case_sensitive attribute", sort, NULL},
    {"dictsort", "case_sensitive by reverse", dict_sort, NULL},
    {"unique", "case_sensitive attribute", unique, NULL},
    {"min", "case_sensitive attribute", min, NULL},
    {"max", "case_sensitive attribute", max, NULL},
    {"select", NULL, NULL, select_items},
    {"reject", NULL, NULL, reject_items},
    {"selectattr", NULL, NULL, select_attribute},
    {"rejectattr", NULL, NULL, reject_attribute},
    {"map", NULL, NULL, map},
    {"format", NULL, NULL, fill_in},
    {NULL, NULL, NULL, NULL}};
