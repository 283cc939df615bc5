/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/text/template/eval.h"

#include <string.h>

typedef tern_tpl_value value;
typedef tern_tpl_node node;
typedef tern_tpl_frame frame;

/* ---- names ----------------------------------------------------------------------------------- */

struct tern_tpl_binding {
    tern_span name;
    value *value;
    tern_tpl_binding *next;
};

frame *tern_tpl_frame_new(tern_tpl *x, frame *outer) {
    frame *f = tern_tpl_take(x, 1, sizeof *f);
    if (f != NULL)
        f->outer = outer;
    return f;
}

static tern_tpl_binding *find(const frame *f, tern_span name) {
    tern_tpl_binding *b = f->first;
    while (b != NULL && !tern_tpl_same(b->name, name))
        b = b->next;
    return b;
}

bool tern_tpl_frame_set(tern_tpl *x, frame *f, tern_span name, value *v) {
    if (v == NULL)
        return false;
    tern_tpl_binding *b = find(f, name);
    if (b == NULL) {
        b = tern_tpl_take(x, 1, sizeof *b);
        if (b == NULL)
            return false;
        *b = (tern_tpl_binding){.name = name, .next = f->first};
        f->first = b;
    }
    b->value = v;
    return true;
}

value *tern_tpl_frame_get(tern_tpl *x, const frame *f, tern_span name) {
    for (; f != NULL; f = f->outer) {
        const tern_tpl_binding *b = find(f, name);
        if (b != NULL)
            return b->value;
    }
    return tern_tpl_undefined(x, name);
}

/* ---- lists ----------------------------------------------------------------------------------- */

static size_t count(const node *n) {
    size_t i = 0;
    for (; n != NULL; n = n->next)
        i++;
    return i;
}

static value *eval_list(tern_tpl *x, frame *f, const node *n, bool tuple) {
    const size_t size = count(n->a);
    value **items = tern_tpl_items(x, size);
    size_t i = 0;
    for (const node *at = n->a; items != NULL && at != NULL; at = at->next)
        if ((items[i++] = tern_tpl_eval(x, f, at)) == NULL)
            return NULL;
    value *list = items != NULL ? tern_tpl_list_value(x, items, size) : NULL;
    if (list != NULL)
        list->list.tuple = tuple;
    return list;
}

static value *eval_dict(tern_tpl *x, frame *f, const node *n) {
    value *dict = tern_tpl_dict_new(x, TERN_TPL_DICT);
    for (const node *at = n->a; dict != NULL && at != NULL; at = at->next->next) {
        value *key = tern_tpl_eval(x, f, at);
        value *member = key != NULL ? tern_tpl_eval(x, f, at->next) : NULL;
        if (!tern_tpl_set(x, dict, key, member))
            return NULL;
    }
    return dict;
}

/* ---- operators ------------------------------------------------------------------------------- */

static value *eval_choice(tern_tpl *x, frame *f, const node *n) {
    const value *condition = tern_tpl_eval(x, f, n->a);
    if (condition == NULL)
        return NULL;
    if (tern_tpl_is_true(condition))
        return tern_tpl_eval(x, f, n->b);
    return n->c != NULL ? tern_tpl_eval(x, f, n->c)
                        : tern_tpl_undefined(x, (tern_span){"an if without else", 18});
}

static value *eval_logic(tern_tpl *x, frame *f, const node *n) {
    value *a = tern_tpl_eval(x, f, n->a);
    if (a == NULL || tern_tpl_is_true(a) == (n->kind == TERN_TPL_NODE_OR))
        return a;
    return tern_tpl_eval(x, f, n->b);
}

static value *eval_not(tern_tpl *x, frame *f, const node *n) {
    const value *a = tern_tpl_eval(x, f, n->a);
    return a != NULL ? tern_tpl_bool(x, !tern_tpl_is_true(a)) : NULL;
}

static bool compare(tern_tpl *x, tern_span operator, value * a, value *b, bool *out) {
    if (tern_tpl_span_is(operator, "==") || tern_tpl_span_is(operator, "!=")) {
        *out = tern_tpl_equal(x, a, b) == (operator.data[0] == '=');
        return !x->failed;
    }
    if (tern_tpl_span_is(operator, "in"))
        return tern_tpl_contains(x, b, a, out);
    if (tern_tpl_span_is(operator, "not in")) {
        const bool known = tern_tpl_contains(x, b, a, out);
        *out = !*out;
        return known;
    }
    return tern_tpl_ordered(x, operator, a, b, out);
}

static value *eval_comparison(tern_tpl *x, frame *f, const node *n) {
    value *a = tern_tpl_eval(x, f, n->a);
    bool holds = true;
    for (const node *at = n->b; a != NULL && at != NULL && holds; at = at->next) {
        value *b = tern_tpl_eval(x, f, at->a);
        x->line = n->line;
        if (b == NULL || !compare(x, at->name, a, b, &holds))
            return NULL;
        a = b;
    }
    return a != NULL ? tern_tpl_bool(x, holds) : NULL;
}

static value *eval_binary(tern_tpl *x, frame *f, const node *n) {
    value *a = tern_tpl_eval(x, f, n->a);
    value *b = a != NULL ? tern_tpl_eval(x, f, n->b) : NULL;
    x->line = n->line;
    return b != NULL ? tern_tpl_binary(x, n->name, a, b) : NULL;
}

static value *eval_concat(tern_tpl *x, frame *f, const node *n) {
    tern_tpl_buffer b = {.x = x};
    for (const node *at = n->a; at != NULL; at = at->next) {
        const value *part = tern_tpl_eval(x, f, at);
        if (part == NULL || !tern_tpl_write(&b, part))
            return NULL;
    }
    return tern_tpl_buffer_value(&b);
}

static value *eval_sign(tern_tpl *x, frame *f, const node *n) {
    const value *a = tern_tpl_eval(x, f, n->a);
    const bool minus = n->kind == TERN_TPL_NODE_MINUS;
    if (a == NULL)
        return NULL;
    if (a->kind == TERN_TPL_FLOAT)
        return tern_tpl_real(x, minus ? -a->real : a->real);
    if (tern_tpl_is_number(a) && tern_tpl_as_int(a) != INT64_MIN)
        return tern_tpl_int(x, minus ? -tern_tpl_as_int(a) : tern_tpl_as_int(a));
    (void)tern_tpl_fail(x, TERN_ERR_TEMPLATE, "a %s has no sign", tern_tpl_kind_name(a));
    return NULL;
}

/* ---- calls ----------------------------------------------------------------------------------- */

bool tern_tpl_eval_args(tern_tpl *x, frame *f, const node *first, tern_tpl_args *out) {
    const size_t n = count(first);
    *out = (tern_tpl_args){.given = tern_tpl_items(x, n),
                           .named = tern_tpl_items(x, n),
                           .names = tern_tpl_take(x, n + 1, sizeof *out->names)};
    for (const node *at = first; !x->failed && at != NULL; at = at->next) {
        const bool named = at->kind == TERN_TPL_NODE_KEYWORD;
        value *v = tern_tpl_eval(x, f, named ? at->a : at);
        if (named) {
            out->names[out->n_named] = at->name;
            out->named[out->n_named++] = v;
        } else {
            out->given[out->n++] = v;
        }
    }
    return !x->failed;
}

value *tern_tpl_call_value(tern_tpl *x, value *callee, const tern_tpl_args *args) {
    switch (callee->kind) {
    case TERN_TPL_MACRO:
        return tern_tpl_call_macro(x, callee, args);
    case TERN_TPL_FUNCTION:
    case TERN_TPL_METHOD:
        return callee->function.call(x, callee->function.self, args);
    case TERN_TPL_UNDEFINED:
        (void)tern_tpl_fail(x, TERN_ERR_TEMPLATE, "'%.*s' is undefined and cannot be called",
                            (int)callee->why.size, callee->why.data);
        return NULL;
    default:
        (void)tern_tpl_fail(x, TERN_ERR_TEMPLATE, "a %s cannot be called",
                            tern_tpl_kind_name(callee));
        return NULL;
    }
}

static value *eval_call(tern_tpl *x, frame *f, const node *n) {
    tern_tpl_args args;
    value *callee = tern_tpl_eval(x, f, n->a);
    if (callee == NULL || !tern_tpl_eval_args(x, f, n->b, &args))
        return NULL;
    x->line = n->line;
    return tern_tpl_call_value(x, callee, &args);
}

static value *eval_filter(tern_tpl *x, frame *f, const node *n, value *subject) {
    tern_tpl_args args;
    if (n->a != NULL)
        subject = n->a->kind == TERN_TPL_NODE_FILTER ? tern_tpl_eval_filters(x, f, n->a, subject)
                                                     : tern_tpl_eval(x, f, n->a);
    if (subject == NULL || !tern_tpl_eval_args(x, f, n->b, &args))
        return NULL;
    x->line = n->line;
    return tern_tpl_filter(x, n->name, subject, &args);
}

value *tern_tpl_eval_filters(tern_tpl *x, frame *f, const node *n, value *subject) {
    value *v = tern_tpl_enter(x) ? eval_filter(x, f, n, subject) : NULL;
    tern_tpl_leave(x);
    return v;
}

static value *eval_test(tern_tpl *x, frame *f, const node *n) {
    tern_tpl_args args;
    bool holds;
    value *subject = tern_tpl_eval(x, f, n->a);
    if (subject == NULL || !tern_tpl_eval_args(x, f, n->b, &args))
        return NULL;
    x->line = n->line;
    return tern_tpl_test(x, n->name, subject, &args, &holds) ? tern_tpl_bool(x, holds) : NULL;
}

/* ---- members --------------------------------------------------------------------------------- */

static value *eval_item(tern_tpl *x, frame *f, const node *n) {
    value *of = tern_tpl_eval(x, f, n->a);
    value *key = of != NULL ? tern_tpl_eval(x, f, n->b) : NULL;
    x->line = n->line;
    return key != NULL ? tern_tpl_item(x, of, key) : NULL;
}

static value *eval_attribute(tern_tpl *x, frame *f, const node *n) {
    value *of = tern_tpl_eval(x, f, n->a);
    x->line = n->line;
    return of != NULL ? tern_tpl_attribute(x, of, n->name) : NULL;
}

static value *eval_slice(tern_tpl *x, frame *f, const node *n) {
    value *bounds[3];
    value *of = tern_tpl_eval(x, f, n->a);
    const node *at = n->b;
    for (int i = 0; of != NULL && i < 3; i++, at = at->next)
        if ((bounds[i] = tern_tpl_eval(x, f, at)) == NULL)
            return NULL;
    x->line = n->line;
    return of != NULL ? tern_tpl_slice(x, of, bounds) : NULL;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static value *eval(tern_tpl *x, frame *f, const node *n) {
    switch (n->kind) {
    case TERN_TPL_NODE_CONSTANT:
        return n->value;
    case TERN_TPL_NODE_NAME:
        return tern_tpl_frame_get(x, f, n->name);
    case TERN_TPL_NODE_LIST:
    case TERN_TPL_NODE_TUPLE:
        return eval_list(x, f, n, n->kind == TERN_TPL_NODE_TUPLE);
    case TERN_TPL_NODE_DICT:
        return eval_dict(x, f, n);
    case TERN_TPL_NODE_CHOICE:
        return eval_choice(x, f, n);
    case TERN_TPL_NODE_OR:
    case TERN_TPL_NODE_AND:
        return eval_logic(x, f, n);
    case TERN_TPL_NODE_NOT:
        return eval_not(x, f, n);
    case TERN_TPL_NODE_COMPARE:
        return eval_comparison(x, f, n);
    case TERN_TPL_NODE_BINARY:
        return eval_binary(x, f, n);
    case TERN_TPL_NODE_CONCAT:
        return eval_concat(x, f, n);
    case TERN_TPL_NODE_MINUS:
    case TERN_TPL_NODE_PLUS:
        return eval_sign(x, f, n);
    case TERN_TPL_NODE_ATTRIBUTE:
        return eval_attribute(x, f, n);
    case TERN_TPL_NODE_ITEM:
        return eval_item(x, f, n);
    case TERN_TPL_NODE_SLICE:
        return eval_slice(x, f, n);
    case TERN_TPL_NODE_CALL:
        return eval_call(x, f, n);
    case TERN_TPL_NODE_FILTER:
        return tern_tpl_eval_filters(x, f, n, NULL);
    default: /* TERN_TPL_NODE_TEST: no other kind is part of an expression */
        return eval_test(x, f, n);
    }
}

value *tern_tpl_eval(tern_tpl *x, frame *f, const node *n) {
    value *v = NULL;
    if (tern_tpl_enter(x)) {
        x->line = n->line;
        v = eval(x, f, n);
    }
    tern_tpl_leave(x);
    return x->failed ? NULL : v;
}
