/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "runtime/text/template/eval.h"

typedef tern_tpl_value value;

static value *no_operator(tern_tpl *x, tern_span operator, const value * a, const value *b) {
    const value *undefined = a->kind == TERN_TPL_UNDEFINED   ? a
                             : b->kind == TERN_TPL_UNDEFINED ? b
                                                             : NULL;
    if (undefined != NULL)
        (void)tern_tpl_fail(x, TERN_ERR_TEMPLATE, "'%.*s' is undefined", (int)undefined->why.size,
                            undefined->why.data);
    else
        (void)tern_tpl_fail(x, TERN_ERR_TEMPLATE, "no '%.*s' of %s and %s",
                            (int)operator.size, operator.data, tern_tpl_kind_name(a),
                            tern_tpl_kind_name(b));
    return NULL;
}

bool tern_tpl_ordered(tern_tpl *x, tern_span operator, value * a, value *b, bool *out) {
    int order;
    const bool equal_too = operator.size == 2;
    *out = false;
    if (a->kind == TERN_TPL_UNDEFINED || b->kind == TERN_TPL_UNDEFINED)
        return no_operator(x, operator, a, b) != NULL;
    if (!tern_tpl_compare(x, a, b, &order))
        return false;
    *out = operator.data[0] == '<' ? order < 0 || (equal_too && order == 0)
                                   : order> 0 ||(equal_too &&order == 0);
    return true;
}

static value *too_large(tern_tpl *x) {
    (void)tern_tpl_fail(x, TERN_ERR_TEMPLATE, "a number has more than 64 bits");
    return NULL;
}

/* Divides towards minus infinity, as Python does. */
static value *divide(tern_tpl *x, int64_t a, int64_t b, bool remainder) {
    if (b == 0) {
        (void)tern_tpl_fail(x, TERN_ERR_TEMPLATE, "division by zero");
        return NULL;
    }
    if (b == -1) /* INT64_MIN has no opposite */
        return remainder ? tern_tpl_int(x, 0) : a == INT64_MIN ? too_large(x) : tern_tpl_int(x, -a);
    const int64_t rest = a % b, quotient = a / b;
    const bool down = rest != 0 && (rest < 0) != (b < 0);
    return tern_tpl_int(x, remainder ? rest + (down ? b : 0) : quotient - down);
}

static value *compute_ints(tern_tpl *x, tern_span operator, int64_t a, int64_t b) {
    int64_t out = 0;
    bool over = false;
    switch (operator.data[0]) {
    case '+':
        over = __builtin_add_overflow(a, b, &out);
        break;
    case '-':
        over = __builtin_sub_overflow(a, b, &out);
        break;
    case '*':
        over = __builtin_mul_overflow(a, b, &out);
        break;
    default:
        return divide(x, a, b, operator.data[0] == '%');
    }
    return over ? too_large(x) : tern_tpl_int(x, out);
}

static value *compute_reals(tern_tpl *x, tern_span operator, double a, double b) {
    const char c = operator.data[0];
    if ((c == '/' || c == '%') && !(b < 0) && !(b > 0)) {
        (void)tern_tpl_fail(x, TERN_ERR_TEMPLATE, "division by zero");
        return NULL;
    }
    switch (c) {
    case '+':
        return tern_tpl_real(x, a + b);
    case '-':
        return tern_tpl_real(x, a - b);
    case '*':
        return tern_tpl_real(x, a * b);
    case '%':
        return tern_tpl_real(x, a - b * floor(a / b));
    default:
        return tern_tpl_real(x, operator.size == 2 ? floor(a / b) : a / b);
    }
}

static value *repeat_text(tern_tpl *x, const value *text, int64_t times) {
    tern_tpl_buffer b = {.x = x};
    for (int64_t i = 0; i < times && text->text.size > 0; i++)
        if (!tern_tpl_work(x, 1) || !tern_tpl_add(&b, text->text))
            return NULL;
    return tern_tpl_buffer_value(&b);
}

static const char *escape_of(char c) {
    return c == '&'    ? "&amp;"
           : c == '<'  ? "&lt;"
           : c == '>'  ? "&gt;"
           : c == '"'  ? "&#34;"
           : c == '\'' ? "&#39;"
                       : NULL;
}

/* Each escape has the mark of the character that it stands for. */
static bool add_escaped(tern_tpl_buffer *b, const tern_tpl_text *text) {
    size_t from = 0;
    for (size_t i = 0; i < text->size; i++) {
        const char *escape = escape_of(text->bytes[i]);
        if (escape == NULL)
            continue;
        if (!tern_tpl_add(b, tern_tpl_part(*text, from, i)) ||
            !tern_tpl_add_bytes(b, escape, strlen(escape), tern_tpl_mark(text, i)))
            return false;
        from = i + 1;
    }
    return tern_tpl_add(b, tern_tpl_part(*text, from, text->size));
}

/* Joins two texts. If one of them is safe, the other one is escaped, and the whole is safe. */
static value *join_texts(tern_tpl *x, const value *a, const value *b) {
    const bool safe = a->text.safe || b->text.safe;
    const value *const parts[] = {a, b};
    tern_tpl_buffer whole = {.x = x};
    for (size_t i = 0; i < 2; i++) {
        const tern_tpl_text *text = &parts[i]->text;
        if (safe && !text->safe ? !add_escaped(&whole, text) : !tern_tpl_add(&whole, *text))
            return NULL;
    }
    value *joined = tern_tpl_buffer_value(&whole);
    if (joined != NULL)
        joined->text.safe = safe;
    return joined;
}

static value *join_lists(tern_tpl *x, const value *a, const value *b) {
    const size_t n = a->list.n + b->list.n;
    value **items = tern_tpl_items(x, n);
    for (size_t i = 0; items != NULL && i < n; i++)
        items[i] = i < a->list.n ? a->list.items[i] : b->list.items[i - a->list.n];
    value *list = items != NULL ? tern_tpl_list_value(x, items, n) : NULL;
    if (list != NULL)
        list->list.tuple = a->list.tuple;
    return list;
}

value *tern_tpl_binary(tern_tpl *x, tern_span operator, value * a, value *b) {
    const char c = operator.data[0];
    if (tern_tpl_is_number(a) && tern_tpl_is_number(b)) {
        if (a->kind == TERN_TPL_FLOAT || b->kind == TERN_TPL_FLOAT ||
            (c == '/' && operator.size == 1))
            return compute_reals(x, operator, tern_tpl_as_real(a), tern_tpl_as_real(b));
        return compute_ints(x, operator, tern_tpl_as_int(a), tern_tpl_as_int(b));
    }
    if (c == '+' && a->kind == TERN_TPL_TEXT && b->kind == TERN_TPL_TEXT)
        return join_texts(x, a, b);
    if (c == '+' && a->kind == TERN_TPL_LIST && b->kind == TERN_TPL_LIST && !a->list.lazy &&
        !b->list.lazy && a->list.tuple == b->list.tuple)
        return join_lists(x, a, b);
    if (c == '*' && a->kind == TERN_TPL_TEXT && b->kind == TERN_TPL_INT)
        return repeat_text(x, a, b->integer);
    if (c == '*' && b->kind == TERN_TPL_TEXT && a->kind == TERN_TPL_INT)
        return repeat_text(x, b, a->integer);
    return no_operator(x, operator, a, b);
}
