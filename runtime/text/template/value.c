/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/text/template/value.h"

#include <string.h>

#include "base/word_list.h"
#include "runtime/text/template/characters.h"

typedef tern_tpl_value value;

static value *new_value(tern_tpl *x, tern_tpl_kind kind) {
    value *v = tern_tpl_take(x, 1, sizeof *v);
    if (v != NULL)
        v->kind = kind;
    return v;
}

value *tern_tpl_undefined(tern_tpl *x, tern_span why) {
    value *v = new_value(x, TERN_TPL_UNDEFINED);
    if (v != NULL)
        v->why = why;
    return v;
}

value *tern_tpl_none(tern_tpl *x) {
    return new_value(x, TERN_TPL_NONE);
}

value *tern_tpl_bool(tern_tpl *x, bool truth) {
    value *v = new_value(x, TERN_TPL_BOOL);
    if (v != NULL)
        v->truth = truth;
    return v;
}

value *tern_tpl_int(tern_tpl *x, int64_t integer) {
    value *v = new_value(x, TERN_TPL_INT);
    if (v != NULL)
        v->integer = integer;
    return v;
}

value *tern_tpl_real(tern_tpl *x, double real) {
    value *v = new_value(x, TERN_TPL_FLOAT);
    if (v != NULL)
        v->real = real;
    return v;
}

value *tern_tpl_text_value(tern_tpl *x, tern_tpl_text text) {
    value *v = new_value(x, TERN_TPL_TEXT);
    if (v != NULL)
        v->text = text;
    return v;
}

value *tern_tpl_word(tern_tpl *x, const char *text) {
    return tern_tpl_text_value(x, (tern_tpl_text){.bytes = text, .size = strlen(text)});
}

value *tern_tpl_list_value(tern_tpl *x, value **items, size_t n) {
    value *v = new_value(x, TERN_TPL_LIST);
    if (v != NULL)
        v->list = (tern_tpl_list){.items = items, .n = n};
    return v;
}

value *tern_tpl_dict_new(tern_tpl *x, tern_tpl_kind kind) {
    value *v = new_value(x, kind);
    tern_tpl_dict *dict = tern_tpl_take(x, 1, sizeof *dict);
    if (v != NULL)
        v->dict = dict;
    return dict != NULL ? v : NULL;
}

value *tern_tpl_function(tern_tpl *x, tern_tpl_call *call, value *self) {
    value *v = new_value(x, self != NULL ? TERN_TPL_METHOD : TERN_TPL_FUNCTION);
    if (v != NULL) {
        v->function.call = call;
        v->function.self = self;
    }
    return v;
}

value **tern_tpl_items(tern_tpl *x, size_t n) {
    return tern_tpl_work(x, n / 8) ? tern_tpl_take(x, n + 1, sizeof(value *)) : NULL;
}

/* ---- members --------------------------------------------------------------------------------- */

/* The index of a key; dict->n when it is not there. */
static size_t find(tern_tpl *x, const tern_tpl_dict *dict, const value *key) {
    size_t i = 0;
    while (i < dict->n && !tern_tpl_equal(x, dict->keys[i], key))
        i++;
    (void)tern_tpl_work(x, i / 16);
    return i;
}

static bool grow(tern_tpl *x, tern_tpl_dict *dict) {
    const size_t capacity = 2 * dict->capacity + 8;
    value **keys = tern_tpl_items(x, capacity), **values = tern_tpl_items(x, capacity);
    if (keys == NULL || values == NULL)
        return false;
    for (size_t i = 0; i < dict->n; i++) {
        keys[i] = dict->keys[i];
        values[i] = dict->values[i];
    }
    *dict = (tern_tpl_dict){keys, values, dict->n, capacity};
    return true;
}

bool tern_tpl_set(tern_tpl *x, value *dict, value *key, value *v) {
    if (dict == NULL || key == NULL || v == NULL)
        return false;
    if (key->kind == TERN_TPL_LIST || key->kind == TERN_TPL_DICT)
        return tern_tpl_fail(x, TERN_ERR_TEMPLATE, "a %s is not a key", tern_tpl_kind_name(key));
    const size_t i = find(x, dict->dict, key);
    if (i == dict->dict->n) {
        if (i == dict->dict->capacity && !grow(x, dict->dict))
            return false;
        dict->dict->keys[i] = key;
        dict->dict->n++;
    }
    dict->dict->values[i] = v;
    return !x->failed;
}

bool tern_tpl_set_word(tern_tpl *x, value *dict, const char *key, value *v) {
    return tern_tpl_set(x, dict, tern_tpl_word(x, key), v);
}

value *tern_tpl_get(tern_tpl *x, const value *dict, const value *key) {
    const size_t i = find(x, dict->dict, key);
    return i < dict->dict->n ? dict->dict->values[i] : NULL;
}

value *tern_tpl_get_name(const value *dict, tern_span name) {
    for (size_t i = 0; i < dict->dict->n; i++)
        if (dict->dict->keys[i]->kind == TERN_TPL_TEXT &&
            tern_tpl_same(tern_tpl_span(dict->dict->keys[i]), name))
            return dict->dict->values[i];
    return NULL;
}

/* ---- questions ------------------------------------------------------------------------------- */

bool tern_tpl_is_true(const value *v) {
    switch (v->kind) {
    case TERN_TPL_UNDEFINED:
    case TERN_TPL_NONE:
        return false;
    case TERN_TPL_BOOL:
        return v->truth;
    case TERN_TPL_INT:
        return v->integer != 0;
    case TERN_TPL_FLOAT:
        return v->real < 0 || v->real > 0 || v->real != v->real;
    case TERN_TPL_TEXT:
        return v->text.size > 0;
    case TERN_TPL_LIST:
        return v->list.n > 0 || v->list.lazy;
    case TERN_TPL_DICT:
        return v->dict->n > 0;
    default:
        return true;
    }
}

bool tern_tpl_is_number(const value *v) {
    return v->kind == TERN_TPL_BOOL || v->kind == TERN_TPL_INT || v->kind == TERN_TPL_FLOAT;
}

int64_t tern_tpl_as_int(const value *v) {
    return v->kind == TERN_TPL_BOOL ? v->truth : v->integer;
}

double tern_tpl_as_real(const value *v) {
    return v->kind == TERN_TPL_FLOAT ? v->real : (double)tern_tpl_as_int(v);
}

tern_span tern_tpl_span(const value *text) {
    return (tern_span){text->text.bytes, text->text.size};
}

bool tern_tpl_same(tern_span a, tern_span b) {
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

bool tern_tpl_span_is(tern_span a, const char *text) {
    return tern_tpl_same(a, (tern_span){text, strlen(text)});
}

bool tern_tpl_is_text(const value *v, const char *text) {
    return v->kind == TERN_TPL_TEXT && tern_tpl_span_is(tern_tpl_span(v), text);
}

const char *tern_tpl_kind_name(const value *v) {
    static const char *const names[] = {[TERN_TPL_UNDEFINED] = "undefined",
                                        [TERN_TPL_NONE] = "NoneType",
                                        [TERN_TPL_BOOL] = "bool",
                                        [TERN_TPL_INT] = "int",
                                        [TERN_TPL_FLOAT] = "float",
                                        [TERN_TPL_TEXT] = "str",
                                        [TERN_TPL_LIST] = "list",
                                        [TERN_TPL_DICT] = "dict",
                                        [TERN_TPL_NAMESPACE] = "namespace",
                                        [TERN_TPL_MACRO] = "macro",
                                        [TERN_TPL_FUNCTION] = "function",
                                        [TERN_TPL_METHOD] = "method",
                                        [TERN_TPL_LOOP] = "loop"};
    return v->kind == TERN_TPL_LIST && v->list.tuple ? "tuple" : names[v->kind];
}

/* ---- equality and order ---------------------------------------------------------------------- */

static bool equal_lists(tern_tpl *x, const tern_tpl_list *a, const tern_tpl_list *b) {
    bool same = a->n == b->n && a->tuple == b->tuple;
    for (size_t i = 0; i < a->n && same; i++)
        same = tern_tpl_equal(x, a->items[i], b->items[i]);
    return same;
}

static bool equal_dicts(tern_tpl *x, const value *a, const value *b) {
    bool same = a->dict->n == b->dict->n;
    for (size_t i = 0; i < a->dict->n && same; i++) {
        const value *other = tern_tpl_get(x, b, a->dict->keys[i]);
        same = other != NULL && tern_tpl_equal(x, a->dict->values[i], other);
    }
    return same;
}

static bool equal_of_kind(tern_tpl *x, const value *a, const value *b) {
    switch (a->kind) {
    case TERN_TPL_UNDEFINED:
    case TERN_TPL_NONE:
        return true;
    case TERN_TPL_TEXT:
        return a->text.size == b->text.size && tern_tpl_work(x, a->text.size / 64) &&
               tern_tpl_same(tern_tpl_span(a), tern_tpl_span(b));
    case TERN_TPL_LIST:
        return equal_lists(x, &a->list, &b->list);
    case TERN_TPL_DICT:
        return equal_dicts(x, a, b);
    default:
        return a == b;
    }
}

bool tern_tpl_equal(tern_tpl *x, const value *a, const value *b) {
    if (tern_tpl_is_number(a) && tern_tpl_is_number(b)) {
        return a->kind != TERN_TPL_FLOAT && b->kind != TERN_TPL_FLOAT
                   ? tern_tpl_as_int(a) == tern_tpl_as_int(b)
                   : !(tern_tpl_as_real(a) < tern_tpl_as_real(b)) &&
                         !(tern_tpl_as_real(a) > tern_tpl_as_real(b));
    }
    if (a->kind != b->kind)
        return false;
    const bool same = tern_tpl_enter(x) && equal_of_kind(x, a, b);
    tern_tpl_leave(x);
    return same;
}

static int compare_texts(tern_span a, tern_span b) {
    const size_t n = a.size < b.size ? a.size : b.size;
    const int order = n > 0 ? memcmp(a.data, b.data, n) : 0;
    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

static bool compare_lists(tern_tpl *x, const tern_tpl_list *a, const tern_tpl_list *b, int *out) {
    size_t i = 0;
    while (i < a->n && i < b->n && tern_tpl_equal(x, a->items[i], b->items[i]))
        i++;
    if (i < a->n && i < b->n)
        return tern_tpl_compare(x, a->items[i], b->items[i], out);
    *out = (a->n > b->n) - (a->n < b->n);
    return !x->failed;
}

bool tern_tpl_compare(tern_tpl *x, const value *a, const value *b, int *out) {
    *out = 0;
    if (tern_tpl_is_number(a) && tern_tpl_is_number(b)) {
        if (a->kind != TERN_TPL_FLOAT && b->kind != TERN_TPL_FLOAT) {
            const int64_t i = tern_tpl_as_int(a), k = tern_tpl_as_int(b);
            *out = (i > k) - (i < k);
            return true;
        }
        const double i = tern_tpl_as_real(a), k = tern_tpl_as_real(b);
        *out = (i > k) - (i < k);
        return true;
    }
    if (a->kind == TERN_TPL_TEXT && b->kind == TERN_TPL_TEXT) {
        *out = compare_texts(tern_tpl_span(a), tern_tpl_span(b));
        return tern_tpl_work(x, a->text.size / 64);
    }
    if (a->kind == TERN_TPL_LIST && b->kind == TERN_TPL_LIST && a->list.tuple == b->list.tuple) {
        const bool compared = tern_tpl_enter(x) && compare_lists(x, &a->list, &b->list, out);
        tern_tpl_leave(x);
        return compared;
    }
    return tern_tpl_fail(x, TERN_ERR_TEMPLATE, "%s and %s have no order", tern_tpl_kind_name(a),
                         tern_tpl_kind_name(b));
}

bool tern_tpl_contains(tern_tpl *x, const value *all, const value *v, bool *out) {
    *out = false;
    if (all->kind == TERN_TPL_TEXT) {
        if (v->kind != TERN_TPL_TEXT)
            return tern_tpl_fail(x, TERN_ERR_TEMPLATE, "'in' a text wants a text, not a %s",
                                 tern_tpl_kind_name(v));
        *out = v->text.size == 0 ||
               memmem(all->text.bytes, all->text.size, v->text.bytes, v->text.size) != NULL;
        return tern_tpl_work(x, all->text.size / 64);
    }
    if (all->kind == TERN_TPL_DICT) {
        *out = tern_tpl_get(x, all, v) != NULL;
        return !x->failed;
    }
    tern_tpl_list list;
    if (!tern_tpl_iterate(x, all, &list))
        return false;
    for (size_t i = 0; i < list.n && !*out; i++)
        *out = tern_tpl_equal(x, list.items[i], v);
    return !x->failed;
}

/* The characters of a text. */
static bool iterate_text(tern_tpl *x, const tern_tpl_text *text, tern_tpl_list *out) {
    const size_t n = tern_tpl_count((tern_span){text->bytes, text->size});
    value **items = tern_tpl_work(x, n) ? tern_tpl_items(x, n) : NULL;
    size_t at = 0;
    for (size_t i = 0; items != NULL && i < n; i++) {
        tern_tpl_text one = *text;
        size_t size;
        (void)tern_tpl_code((tern_span){text->bytes + at, text->size - at}, &size);
        one.bytes += at;
        one.marks = text->marks != NULL ? text->marks + at : NULL;
        one.size = size;
        items[i] = tern_tpl_text_value(x, one);
        at += size;
    }
    *out = (tern_tpl_list){.items = items, .n = n};
    return !x->failed;
}

bool tern_tpl_iterate(tern_tpl *x, const value *v, tern_tpl_list *out) {
    *out = (tern_tpl_list){0};
    switch (v->kind) {
    case TERN_TPL_UNDEFINED:
        return true;
    case TERN_TPL_LIST:
        *out = v->list;
        return true;
    case TERN_TPL_DICT:
        *out = (tern_tpl_list){.items = v->dict->keys, .n = v->dict->n};
        return true;
    case TERN_TPL_TEXT:
        return iterate_text(x, &v->text, out);
    default:
        return tern_tpl_fail(x, TERN_ERR_TEMPLATE, "a %s cannot be gone through",
                             tern_tpl_kind_name(v));
    }
}

/* ---- arguments ------------------------------------------------------------------------------- */

bool tern_tpl_bind(tern_tpl *x, const char *what, const tern_tpl_args *args, const char *names,
                   value **out) {
    char word[WORD_BYTES];
    size_t n = 0, used = 0;
    for (; word_next(&names, word); n++) {
        out[n] = n < args->n ? args->given[n] : NULL;
        for (size_t i = 0; i < args->n_named && out[n] == NULL; i++)
            if (tern_tpl_span_is(args->names[i], word))
                out[n] = args->named[i];
        used += n >= args->n && out[n] != NULL;
    }
    if (args->n > n)
        return tern_tpl_fail(x, TERN_ERR_TEMPLATE, "'%s' has %zu arguments, at most %zu are known",
                             what, args->n, n);
    if (used < args->n_named)
        return tern_tpl_fail(x, TERN_ERR_TEMPLATE, "'%s' has an argument that is not known: %.*s",
                             what, (int)args->names[0].size, args->names[0].data);
    return true;
}
