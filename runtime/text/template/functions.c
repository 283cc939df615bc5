/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that every template has. */

#include <string.h>
#include <time.h>

#include "runtime/text/template/eval.h"

typedef tern_tpl_value value;
typedef tern_tpl_args args;

static bool whole(const value *v, int64_t fallback, int64_t *out) {
    *out = v != NULL && v->kind == TERN_TPL_INT ? v->integer : fallback;
    return v == NULL || v->kind == TERN_TPL_INT;
}

static value *range(tern_tpl *x, value *self, const args *a) {
    value *v[3];
    int64_t from, to, step;
    (void)self;
    if (!tern_tpl_bind(x, "range", a, "start stop step", v))
        return NULL;
    const bool one = v[1] == NULL;
    if (v[0] == NULL || !whole(one ? NULL : v[0], 0, &from) || !whole(one ? v[0] : v[1], 0, &to) ||
        !whole(v[2], 1, &step) || step == 0 || from < -INT32_MAX || from > INT32_MAX ||
        to < -INT32_MAX || to > INT32_MAX || step < -INT32_MAX || step > INT32_MAX) {
        (void)tern_tpl_fail(x, TERN_ERR_TEMPLATE, "'range' of these numbers is not supported");
        return NULL;
    }
    const int64_t length = step > 0 ? to - from : from - to, stride = step > 0 ? step : -step;
    const int64_t n = length > 0 ? (length + stride - 1) / stride : 0;
    if (n > TERN_TPL_RANGE) {
        (void)tern_tpl_fail(x, TERN_ERR_TEMPLATE, "a range of more than %d numbers",
                            TERN_TPL_RANGE);
        return NULL;
    }
    value **items = tern_tpl_items(x, (size_t)n);
    for (int64_t i = 0; items != NULL && i < n; i++)
        if (!tern_tpl_work(x, 1) || (items[i] = tern_tpl_int(x, from + i * step)) == NULL)
            return NULL;
    return items != NULL ? tern_tpl_list_value(x, items, (size_t)n) : NULL;
}

/* A dict or a namespace of the named arguments, after the members of a dict. */
static value *members(tern_tpl *x, tern_tpl_kind kind, const args *a) {
    value *out = tern_tpl_dict_new(x, kind);
    if (a->n > 1 || (a->n == 1 && a->given[0]->kind != TERN_TPL_DICT)) {
        (void)tern_tpl_fail(x, TERN_ERR_TEMPLATE, "'dict' and 'namespace' want names");
        return NULL;
    }
    for (size_t i = 0; out != NULL && a->n == 1 && i < a->given[0]->dict->n; i++)
        if (!tern_tpl_set(x, out, a->given[0]->dict->keys[i], a->given[0]->dict->values[i]))
            return NULL;
    for (size_t i = 0; out != NULL && i < a->n_named; i++) {
        const tern_tpl_text name = {.bytes = a->names[i].data, .size = a->names[i].size};
        if (!tern_tpl_set(x, out, tern_tpl_text_value(x, name), a->named[i]))
            return NULL;
    }
    return out;
}

static value *dict(tern_tpl *x, value *self, const args *a) {
    (void)self;
    return members(x, TERN_TPL_DICT, a);
}

static value *name_space(tern_tpl *x, value *self, const args *a) {
    (void)self;
    return members(x, TERN_TPL_NAMESPACE, a);
}

static value *raise_exception(tern_tpl *x, value *self, const args *a) {
    value *v[1];
    tern_tpl_text text = {.bytes = "", .size = 0};
    (void)self;
    if (tern_tpl_bind(x, "raise_exception", a, "message", v) &&
        (v[0] == NULL || tern_tpl_str(x, v[0], &text)))
        (void)tern_tpl_fail(x, TERN_ERR_CHAT, "the chat template refuses: %.*s",
                            text.size < 300 ? (int)text.size : 300, text.bytes);
    return NULL;
}

/* Takes short formats only, so that the result cannot grow without bound: at most 32 bytes a
 * letter. */
static value *strftime_now(tern_tpl *x, value *self, const args *a) {
    value *v[1];
    char format[128], out[4096];
    struct tm local;
    const time_t now = (time_t)x->now;
    (void)self;
    if (!tern_tpl_bind(x, "strftime_now", a, "format", v))
        return NULL;
    if (v[0] == NULL || v[0]->kind != TERN_TPL_TEXT || v[0]->text.size >= sizeof format ||
        memchr(v[0]->text.bytes, '\0', v[0]->text.size) != NULL ||
        localtime_r(&now, &local) == NULL) {
        (void)tern_tpl_fail(x, TERN_ERR_TEMPLATE, "'strftime_now' wants a format, a short text");
        return NULL;
    }
    memcpy(format, v[0]->text.bytes, v[0]->text.size);
    format[v[0]->text.size] = '\0';
    const size_t n = tern_tpl_work(x, 64) ? strftime(out, sizeof out, format, &local) : 0;
    char *text = tern_tpl_take(x, n + 1, 1);
    if (text == NULL)
        return NULL;
    memcpy(text, out, n);
    return tern_tpl_text_value(x, (tern_tpl_text){.bytes = text, .size = n});
}

static const struct {
    const char *name;
    tern_tpl_call *call;
} functions[] = {{"range", range},
                 {"dict", dict},
                 {"namespace", name_space},
                 {"raise_exception", raise_exception},
                 {"strftime_now", strftime_now}};

bool tern_tpl_add_functions(tern_tpl *x, tern_tpl_frame *f) {
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        const tern_span name = {functions[i].name, strlen(functions[i].name)};
        if (!tern_tpl_frame_set(x, f, name, tern_tpl_function(x, functions[i].call, NULL)))
            return false;
    }
    return true;
}
