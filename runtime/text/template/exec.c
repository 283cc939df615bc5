/* SPDX-License-Identifier: Apache-2.0 */
/* Statements. */

#include <string.h>

#include "runtime/text/template/eval.h"

typedef tern_tpl_value value;
typedef tern_tpl_node node;
typedef tern_tpl_frame frame;
typedef tern_tpl_buffer buffer;

typedef enum outcome { DONE, BREAK, CONTINUE, FAILED } outcome;

static outcome exec(tern_tpl *x, frame *f, const node *body, buffer *out);

static outcome outcome_of(bool done) {
    return done ? DONE : FAILED;
}

/* ---- targets --------------------------------------------------------------------------------- */

static bool assign_names(tern_tpl *x, frame *f, const node *names, const value *v) {
    tern_tpl_list list;
    size_t i = 0;
    if (!tern_tpl_iterate(x, v, &list))
        return false;
    for (const node *at = names; at != NULL; at = at->next, i++)
        if (i < list.n && !tern_tpl_frame_set(x, f, at->name, list.items[i]))
            return false;
    return i == list.n ||
           tern_tpl_fail(x, TERN_ERR_TEMPLATE, "%zu names for %zu values", i, list.n);
}

static bool assign(tern_tpl *x, frame *f, const node *target, value *v) {
    if (target->kind == TERN_TPL_NODE_NAME)
        return tern_tpl_frame_set(x, f, target->name, v);
    if (target->kind == TERN_TPL_NODE_TUPLE)
        return assign_names(x, f, target->a, v);
    value *space = tern_tpl_frame_get(x, f, target->a->name);
    if (space == NULL || space->kind != TERN_TPL_NAMESPACE)
        return tern_tpl_fail(x, TERN_ERR_TEMPLATE, "'%.*s' is not a namespace",
                             (int)target->a->name.size, target->a->name.data);
    const tern_tpl_text name = {.bytes = target->name.data, .size = target->name.size};
    return tern_tpl_set(x, space, tern_tpl_text_value(x, name), v);
}

/* ---- loops ----------------------------------------------------------------------------------- */

/* Keeps the items of a loop that meet its condition. */
static bool select_items(tern_tpl *x, frame *f, const node *n, tern_tpl_list *list) {
    tern_tpl_list kept = {.items = tern_tpl_items(x, list->n)};
    for (size_t i = 0; kept.items != NULL && i < list->n; i++) {
        frame *inner = tern_tpl_frame_new(x, f);
        if (inner == NULL || !assign(x, inner, n->a, list->items[i]))
            return false;
        const value *holds = tern_tpl_eval(x, inner, n->c);
        if (holds == NULL)
            return false;
        if (tern_tpl_is_true(holds))
            kept.items[kept.n++] = list->items[i];
    }
    *list = kept;
    return kept.items != NULL;
}

static value *loop_value(tern_tpl *x, tern_tpl_list over) {
    value *v = tern_tpl_take(x, 1, sizeof *v);
    tern_tpl_loop *loop = tern_tpl_take(x, 1, sizeof *loop);
    if (v == NULL || loop == NULL)
        return NULL;
    *loop = (tern_tpl_loop){.over = over};
    v->kind = TERN_TPL_LOOP;
    v->loop = loop;
    return v;
}

static outcome exec_round(tern_tpl *x, frame *f, const node *n, value *loop, buffer *out) {
    frame *inner = tern_tpl_frame_new(x, f);
    if (inner == NULL || !tern_tpl_frame_set(x, inner, (tern_span){"loop", 4}, loop) ||
        !assign(x, inner, n->a, loop->loop->over.items[loop->loop->at]))
        return FAILED;
    return exec(x, inner, n->body, out);
}

static outcome exec_for(tern_tpl *x, frame *f, const node *n, buffer *out) {
    tern_tpl_list list;
    const value *over = tern_tpl_eval(x, f, n->b);
    if (over == NULL || !tern_tpl_iterate(x, over, &list))
        return FAILED;
    if (n->c != NULL && !select_items(x, f, n, &list))
        return FAILED;
    value *loop = loop_value(x, list);
    if (loop == NULL)
        return FAILED;
    if (list.n == 0)
        return exec(x, tern_tpl_frame_new(x, f), n->other, out);
    for (size_t i = 0; i < list.n; i++) {
        loop->loop->at = i;
        const outcome o = exec_round(x, f, n, loop, out);
        if (o == FAILED)
            return FAILED;
        if (o == BREAK)
            break;
    }
    return DONE;
}

/* ---- texts and macros ------------------------------------------------------------------------ */

/* Returns the text that a body writes, passed through the filters if there are any. */
static value *text_of(tern_tpl *x, frame *f, const node *body, const node *filters) {
    buffer b = {.x = x};
    frame *inner = tern_tpl_frame_new(x, f);
    if (inner == NULL || exec(x, inner, body, &b) == FAILED)
        return NULL;
    value *text = tern_tpl_buffer_value(&b);
    return filters != NULL && text != NULL ? tern_tpl_eval_filters(x, inner, filters, text) : text;
}

static value *macro_value(tern_tpl *x, frame *f, const node *n) {
    value *v = tern_tpl_take(x, 1, sizeof *v);
    if (v != NULL) {
        v->kind = TERN_TPL_MACRO;
        v->macro.node = n;
        v->macro.frame = f;
    }
    return v;
}

/* The argument for a parameter; NULL when none was given. */
static value *argument(const tern_tpl_args *args, size_t i, tern_span name, size_t *used) {
    if (i < args->n)
        return args->given[i];
    for (size_t k = 0; k < args->n_named; k++)
        if (tern_tpl_same(args->names[k], name)) {
            ++*used;
            return args->named[k];
        }
    return NULL;
}

static bool bind_parameters(tern_tpl *x, frame *inner, const node *n, const tern_tpl_args *args) {
    size_t i = 0, used = 0;
    for (const node *at = n->a; at != NULL; at = at->next, i++) {
        value *v = argument(args, i, at->name, &used);
        if (v == NULL)
            v = at->a != NULL ? tern_tpl_eval(x, inner, at->a) : tern_tpl_undefined(x, at->name);
        if (!tern_tpl_frame_set(x, inner, at->name, v))
            return false;
    }
    value *caller = argument(args, SIZE_MAX, (tern_span){"caller", 6}, &used);
    if (caller != NULL && !tern_tpl_frame_set(x, inner, (tern_span){"caller", 6}, caller))
        return false;
    return (args->n <= i && used == args->n_named) ||
           tern_tpl_fail(x, TERN_ERR_TEMPLATE, "the macro '%.*s' has no such argument",
                         (int)n->name.size, n->name.data);
}

value *tern_tpl_call_macro(tern_tpl *x, value *macro, const tern_tpl_args *args) {
    value *text = NULL;
    const node *n = macro->macro.node;
    if (tern_tpl_enter(x)) {
        frame *inner = tern_tpl_frame_new(x, macro->macro.frame);
        buffer b = {.x = x};
        if (inner != NULL && bind_parameters(x, inner, n, args) &&
            exec(x, inner, n->body, &b) != FAILED)
            text = tern_tpl_buffer_value(&b);
    }
    tern_tpl_leave(x);
    return text;
}

static outcome exec_caller(tern_tpl *x, frame *f, const node *n, buffer *out) {
    tern_tpl_args args;
    value *callee = tern_tpl_eval(x, f, n->b->a);
    if (callee == NULL || !tern_tpl_eval_args(x, f, n->b->b, &args))
        return FAILED;
    args.names[args.n_named] = (tern_span){"caller", 6};
    args.named[args.n_named++] = macro_value(x, f, n);
    x->line = n->line;
    const value *text = !x->failed ? tern_tpl_call_value(x, callee, &args) : NULL;
    return outcome_of(text != NULL && tern_tpl_write(out, text));
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* True if the `else` part is one further `if`. */
static bool is_elif(const node *n) {
    return n != NULL && n->kind == TERN_TPL_NODE_IF && n->next == NULL;
}

static outcome exec_if(tern_tpl *x, frame *f, const node *n, buffer *out) {
    const value *condition = tern_tpl_eval(x, f, n->a);
    while (condition != NULL && !tern_tpl_is_true(condition) && is_elif(n->other)) {
        n = n->other;
        condition = tern_tpl_eval(x, f, n->a);
    }
    if (condition == NULL)
        return FAILED;
    return exec(x, f, tern_tpl_is_true(condition) ? n->body : n->other, out);
}

static outcome exec_with(tern_tpl *x, frame *f, const node *n, buffer *out) {
    frame *inner = tern_tpl_frame_new(x, f);
    for (const node *at = n->a; inner != NULL && at != NULL; at = at->next)
        if (!assign(x, inner, at->a, tern_tpl_eval(x, f, at->b)))
            return FAILED;
    return inner != NULL ? exec(x, inner, n->body, out) : FAILED;
}

static outcome exec_set(tern_tpl *x, frame *f, const node *n) {
    value *v =
        n->kind == TERN_TPL_NODE_SET ? tern_tpl_eval(x, f, n->b) : text_of(x, f, n->body, n->b);
    return outcome_of(v != NULL && assign(x, f, n->a, v));
}

static outcome exec_print(const value *v, buffer *out) {
    return outcome_of(v != NULL && tern_tpl_write(out, v));
}

static outcome exec_one(tern_tpl *x, frame *f, const node *n, buffer *out) {
    switch (n->kind) {
    case TERN_TPL_NODE_DATA:
        return outcome_of(tern_tpl_add(out, n->value->text));
    case TERN_TPL_NODE_PRINT:
        return exec_print(tern_tpl_eval(x, f, n->a), out);
    case TERN_TPL_NODE_IF:
        return exec_if(x, f, n, out);
    case TERN_TPL_NODE_FOR:
        return exec_for(x, f, n, out);
    case TERN_TPL_NODE_SET:
    case TERN_TPL_NODE_SET_TEXT:
        return exec_set(x, f, n);
    case TERN_TPL_NODE_MACRO:
        return outcome_of(tern_tpl_frame_set(x, f, n->name, macro_value(x, f, n)));
    case TERN_TPL_NODE_CALLER:
        return exec_caller(x, f, n, out);
    case TERN_TPL_NODE_FILTERED:
        return exec_print(text_of(x, f, n->body, n->b), out);
    case TERN_TPL_NODE_SCOPE:
        return exec_with(x, f, n, out);
    case TERN_TPL_NODE_BREAK:
        return BREAK;
    case TERN_TPL_NODE_CONTINUE:
        return CONTINUE;
    default: /* TERN_TPL_NODE_BODY: no other kind is a statement */
        return exec(x, tern_tpl_frame_new(x, f), n->body, out);
    }
}

static outcome exec(tern_tpl *x, frame *f, const node *body, buffer *out) {
    outcome o = tern_tpl_enter(x) && f != NULL ? DONE : FAILED;
    for (const node *n = body; n != NULL && o == DONE; n = n->next) {
        x->line = n->line;
        o = tern_tpl_work(x, 1) ? exec_one(x, f, n, out) : FAILED;
    }
    tern_tpl_leave(x);
    return o;
}

bool tern_tpl_exec(tern_tpl *x, frame *f, const node *body, buffer *out) {
    return exec(x, f, body, out) != FAILED;
}
