/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes, members, parts. */

#include <stdio.h>
#include <string.h>

#include "runtime/text/template/characters.h"
#include "runtime/text/template/eval.h"

typedef tern_tpl_value value;

/* An undefined value, whose message "KIND has no NAME" is told if it is used after all. */
static value *missing(tern_tpl *x, const value *of, tern_span name) {
    char text[96];
    const int shown = name.size < 40 ? (int)name.size : 40;
    const int n =
        snprintf(text, sizeof text, "%s has no %.*s", tern_tpl_kind_name(of), shown, name.data);
    char *why = n > 0 ? tern_tpl_take(x, (size_t)n + 1, 1) : NULL;
    if (why == NULL)
        return NULL;
    memcpy(why, text, (size_t)n);
    return tern_tpl_undefined(x, (tern_span){why, (size_t)n});
}

static value *of_undefined(tern_tpl *x, const value *of) {
    (void)tern_tpl_fail(x, TERN_ERR_TEMPLATE, "'%.*s' is undefined", (int)of->why.size,
                        of->why.data);
    return NULL;
}

/* ---- loop ------------------------------------------------------------------------------------ */

static value *cycle(tern_tpl *x, value *self, const tern_tpl_args *args) {
    if (args->n > 0 && args->n_named == 0)
        return args->given[self->loop->at % args->n];
    (void)tern_tpl_fail(x, TERN_ERR_TEMPLATE, "'cycle' wants values");
    return NULL;
}

/* True if the arguments differ from those of the call before. */
static value *changed(tern_tpl *x, value *self, const tern_tpl_args *args) {
    value *now = tern_tpl_list_value(x, args->given, args->n);
    if (now == NULL)
        return NULL;
    const bool same = self->loop->seen != NULL && tern_tpl_equal(x, self->loop->seen, now);
    self->loop->seen = now;
    return tern_tpl_bool(x, !same);
}

static value *loop_attribute(tern_tpl *x, value *of, tern_span name) {
    const tern_tpl_list over = of->loop->over;
    const size_t at = of->loop->at;
    const struct {
        const char *name;
        size_t number;
    } numbers[] = {{"index", at + 1},
                   {"index0", at},
                   {"revindex", over.n - at},
                   {"revindex0", over.n - at - 1},
                   {"length", over.n},
                   {"depth", 1},
                   {"depth0", 0}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (tern_tpl_span_is(name, numbers[i].name))
            return tern_tpl_int(x, (int64_t)numbers[i].number);
    if (tern_tpl_span_is(name, "first"))
        return tern_tpl_bool(x, at == 0);
    if (tern_tpl_span_is(name, "last"))
        return tern_tpl_bool(x, at + 1 == over.n);
    if (tern_tpl_span_is(name, "previtem") && at > 0)
        return over.items[at - 1];
    if (tern_tpl_span_is(name, "nextitem") && at + 1 < over.n)
        return over.items[at + 1];
    if (tern_tpl_span_is(name, "cycle"))
        return tern_tpl_function(x, cycle, of);
    if (tern_tpl_span_is(name, "changed"))
        return tern_tpl_function(x, changed, of);
    return missing(x, of, name);
}

/* ---- attributes and members ------------------------------------------------------------------ */

/* The method of that name as a value; NULL without a failure when there is none. */
static value *method(tern_tpl *x, value *of, tern_span name) {
    tern_tpl_call *call = of->kind == TERN_TPL_TEXT                     ? tern_tpl_text_method(name)
                          : of->kind == TERN_TPL_DICT                   ? tern_tpl_dict_method(name)
                          : of->kind == TERN_TPL_LIST && !of->list.lazy ? tern_tpl_list_method(name)
                                                                        : NULL;
    if (call != NULL)
        return tern_tpl_function(x, call, of);
    if (tern_tpl_other_method(of->kind, name))
        (void)tern_tpl_fail(x, TERN_ERR_TEMPLATE, "the method '%.*s' of a %s is not supported",
                            (int)name.size, name.data, tern_tpl_kind_name(of));
    return NULL;
}

value *tern_tpl_attribute(tern_tpl *x, value *of, tern_span name) {
    if (of->kind == TERN_TPL_UNDEFINED)
        return of_undefined(x, of);
    if (of->kind == TERN_TPL_LOOP)
        return loop_attribute(x, of, name);
    value *found = method(x, of, name);
    if (found == NULL && (of->kind == TERN_TPL_DICT || of->kind == TERN_TPL_NAMESPACE))
        found = tern_tpl_get_name(of, name);
    return found != NULL || x->failed ? found : missing(x, of, name);
}

/* Turns a place into an index of n elements; n when it is outside. */
static size_t place(int64_t i, size_t n) {
    if (i < 0)
        i += (int64_t)n;
    return i >= 0 && (uint64_t)i < n ? (size_t)i : n;
}

static value *character(tern_tpl *x, const value *of, int64_t i) {
    const tern_span text = tern_tpl_span(of);
    const size_t n = tern_tpl_count(text);
    const size_t at = place(i, n);
    if (!tern_tpl_work(x, text.size / 64))
        return NULL;
    if (at == n)
        return missing(x, of, (tern_span){"such character", 14});
    const size_t from = tern_tpl_offset(text, at);
    return tern_tpl_text_value(x, tern_tpl_part(of->text, from, tern_tpl_offset(text, at + 1)));
}

value *tern_tpl_item(tern_tpl *x, value *of, const value *key) {
    value *found = NULL;
    const bool number = key->kind == TERN_TPL_INT || key->kind == TERN_TPL_BOOL;
    if (of->kind == TERN_TPL_UNDEFINED)
        return of_undefined(x, of);
    if (of->kind == TERN_TPL_TEXT && number)
        return character(x, of, tern_tpl_as_int(key));
    if (of->kind == TERN_TPL_LIST && number && !of->list.lazy) {
        const size_t at = place(tern_tpl_as_int(key), of->list.n);
        found = at < of->list.n ? of->list.items[at] : NULL;
    } else if (of->kind == TERN_TPL_DICT) {
        found = tern_tpl_get(x, of, key);
    } else if (of->kind == TERN_TPL_LOOP && key->kind == TERN_TPL_TEXT) {
        return loop_attribute(x, of, tern_tpl_span(key));
    }
    if (found == NULL && key->kind == TERN_TPL_TEXT && !x->failed)
        found = method(x, of, tern_tpl_span(key));
    if (found != NULL || x->failed)
        return found;
    return missing(
        x, of, key->kind == TERN_TPL_TEXT ? tern_tpl_span(key) : (tern_span){"such element", 12});
}

/* ---- slices ---------------------------------------------------------------------------------- */

typedef struct range {
    int64_t from, step;
    size_t n;
} range;

/* One bound as Python reads it: below 0 it counts from the end, and it is never outside. */
static int64_t clamp(const value *bound, int64_t none, int64_t n, int64_t least, int64_t most) {
    if (bound->kind == TERN_TPL_NONE)
        return none;
    int64_t i = tern_tpl_as_int(bound);
    if (i < 0)
        i = i < -n ? least : i + n;
    return i > most ? most : i;
}

/* Finds which of n elements [from:to:step] takes; false after a failure. */
static bool read_bounds(tern_tpl *x, value *const bounds[3], size_t size, range *out) {
    const int64_t n = (int64_t)size;
    for (int i = 0; i < 3; i++)
        if (bounds[i]->kind != TERN_TPL_NONE && bounds[i]->kind != TERN_TPL_INT &&
            bounds[i]->kind != TERN_TPL_BOOL)
            return tern_tpl_fail(x, TERN_ERR_TEMPLATE, "the bound of a part is a %s",
                                 tern_tpl_kind_name(bounds[i]));
    const int64_t step = bounds[2]->kind == TERN_TPL_NONE ? 1 : tern_tpl_as_int(bounds[2]);
    if (step == 0 || step < -INT32_MAX || step > INT32_MAX)
        return tern_tpl_fail(x, TERN_ERR_TEMPLATE, "the step of a part is %lld", (long long)step);
    const int64_t least = step < 0 ? -1 : 0, most = step < 0 ? n - 1 : n;
    const int64_t from = clamp(bounds[0], step < 0 ? most : least, n, least, most);
    const int64_t to = clamp(bounds[1], step < 0 ? least : most, n, least, most);
    const int64_t length = step > 0 ? to - from : from - to;
    const int64_t stride = step > 0 ? step : -step;
    *out = (range){from, step, length > 0 ? (size_t)((length + stride - 1) / stride) : 0};
    return true;
}

static value *slice_text(tern_tpl *x, const value *of, value *const bounds[3]) {
    const tern_span text = tern_tpl_span(of);
    const bool ascii = tern_tpl_count(text) == text.size;
    range r;
    if (!tern_tpl_work(x, text.size / 64) || !read_bounds(x, bounds, tern_tpl_count(text), &r))
        return NULL;
    if (r.step == 1) {
        const size_t from = ascii ? (size_t)r.from : tern_tpl_offset(text, (size_t)r.from);
        const tern_span rest = {text.data + from, text.size - from};
        return tern_tpl_text_value(
            x, tern_tpl_part(of->text, from, from + (ascii ? r.n : tern_tpl_offset(rest, r.n))));
    }
    tern_tpl_list list;
    tern_tpl_buffer b = {.x = x};
    if (!tern_tpl_iterate(x, of, &list))
        return NULL;
    for (size_t i = 0; i < r.n; i++)
        if (!tern_tpl_add(&b, list.items[r.from + (int64_t)i * r.step]->text))
            return NULL;
    return tern_tpl_buffer_value(&b);
}

value *tern_tpl_slice(tern_tpl *x, value *of, value *const bounds[3]) {
    range r;
    if (of->kind == TERN_TPL_UNDEFINED)
        return of_undefined(x, of);
    if (of->kind == TERN_TPL_TEXT)
        return slice_text(x, of, bounds);
    if (of->kind != TERN_TPL_LIST || of->list.lazy)
        return missing(x, of, (tern_span){"parts", 5});
    if (!read_bounds(x, bounds, of->list.n, &r))
        return NULL;
    value **items = tern_tpl_items(x, r.n);
    for (size_t i = 0; items != NULL && i < r.n; i++)
        items[i] = of->list.items[r.from + (int64_t)i * r.step];
    value *list = items != NULL ? tern_tpl_list_value(x, items, r.n) : NULL;
    if (list != NULL)
        list->list.tuple = of->list.tuple;
    return list;
}
