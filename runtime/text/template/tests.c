/* SPDX-License-Identifier: Apache-2.0 */
/* Tests: `x is NAME`. */

#include <math.h>

#include "runtime/text/template/characters.h"
#include "runtime/text/template/eval.h"

typedef tern_tpl_value value;

/* Tests of one value. */
static bool test_kind(tern_tpl *x, const char *name, const value *v) {
    const tern_tpl_kind k = v->kind;
    const tern_span test = {name, 4}; /* four letters tell them apart */
    (void)x;
    if (tern_tpl_span_is(test, "defi"))
        return k != TERN_TPL_UNDEFINED;
    if (tern_tpl_span_is(test, "unde"))
        return k == TERN_TPL_UNDEFINED;
    if (tern_tpl_span_is(test, "none"))
        return k == TERN_TPL_NONE;
    if (tern_tpl_span_is(test, "bool"))
        return k == TERN_TPL_BOOL;
    if (tern_tpl_span_is(test, "true"))
        return k == TERN_TPL_BOOL && v->truth;
    if (tern_tpl_span_is(test, "fals"))
        return k == TERN_TPL_BOOL && !v->truth;
    if (tern_tpl_span_is(test, "inte"))
        return k == TERN_TPL_INT;
    if (tern_tpl_span_is(test, "floa"))
        return k == TERN_TPL_FLOAT;
    if (tern_tpl_span_is(test, "numb"))
        return tern_tpl_is_number(v);
    if (tern_tpl_span_is(test, "stri"))
        return k == TERN_TPL_TEXT;
    if (tern_tpl_span_is(test, "mapp"))
        return k == TERN_TPL_DICT;
    if (tern_tpl_span_is(test, "call"))
        return k == TERN_TPL_MACRO || k == TERN_TPL_FUNCTION || k == TERN_TPL_METHOD;
    const bool many = k == TERN_TPL_TEXT || k == TERN_TPL_DICT || k == TERN_TPL_UNDEFINED;
    if (tern_tpl_span_is(test, "sequ"))
        return many || (k == TERN_TPL_LIST && !v->list.lazy);
    return many || k == TERN_TPL_LIST; /* iterable */
}

/* True if a text has letters, all of one case. */
static bool test_case(const value *v, bool upper) {
    bool found = false;
    for (size_t at = 0, size; at < v->text.size; at += size) {
        const tern_span rest = {v->text.bytes + at, v->text.size - at};
        const uint32_t code = tern_tpl_code(rest, &size);
        if (upper ? tern_tpl_is_lower(code) : tern_tpl_is_upper(code))
            return false;
        found = found || (upper ? tern_tpl_is_upper(code) : tern_tpl_is_lower(code));
    }
    return found;
}

static bool test_letters(tern_tpl *x, const char *name, const value *v, bool *out) {
    tern_tpl_text text;
    if (!tern_tpl_str(x, v, &text) || !tern_tpl_work(x, text.size / 16))
        return false;
    const value as_text = {.kind = TERN_TPL_TEXT, .text = text};
    *out = test_case(&as_text, name[0] == 'u');
    return true;
}

static bool test_divisible(tern_tpl *x, const char *name, value *v, value *by, bool *out) {
    value *two = by != NULL ? by : tern_tpl_int(x, 2);
    const value *rest = two != NULL ? tern_tpl_binary(x, (tern_span){"%", 1}, v, two) : NULL;
    if (rest == NULL) /* only numbers have a remainder */
        return false;
    *out = tern_tpl_is_true(rest) == (name[0] == 'o');
    return true;
}

static bool test_same(const value *a, const value *b) {
    return a == b || (a->kind == b->kind && (a->kind == TERN_TPL_NONE ||
                                             (a->kind == TERN_TPL_BOOL && a->truth == b->truth)));
}

typedef enum how { KIND, LETTERS, DIVISIBLE, EQUAL, ORDER, MEMBER, SAME } how;

static const struct {
    const char *name, *operator;
    how how;
} tests[] = {
    {"defined", NULL, KIND},
    {"undefined", NULL, KIND},
    {"none", NULL, KIND},
    {"boolean", NULL, KIND},
    {"true", NULL, KIND},
    {"false", NULL, KIND},
    {"integer", NULL, KIND},
    {"float", NULL, KIND},
    {"number", NULL, KIND},
    {"string", NULL, KIND},
    {"mapping", NULL, KIND},
    {"callable", NULL, KIND},
    {"sequence", NULL, KIND},
    {"iterable", NULL, KIND},
    {"upper", NULL, LETTERS},
    {"lower", NULL, LETTERS},
    {"odd", NULL, DIVISIBLE},
    {"even", NULL, DIVISIBLE},
    {"divisibleby", NULL, DIVISIBLE},
    {"eq", "==", EQUAL},
    {"==", "==", EQUAL},
    {"equalto", "==", EQUAL},
    {"ne", "!=", EQUAL},
    {"!=", "!=", EQUAL},
    {"lt", "<", ORDER},
    {"<", "<", ORDER},
    {"lessthan", "<", ORDER},
    {"le", "<=", ORDER},
    {"<=", "<=", ORDER},
    {"gt", ">", ORDER},
    {">", ">", ORDER},
    {"greaterthan", ">", ORDER},
    {"ge", ">=", ORDER},
    {">=", ">=", ORDER},
    {"in", NULL, MEMBER},
    {"sameas", NULL, SAME},
};

static bool run(tern_tpl *x, size_t i, value *v, value *other, bool *out) {
    const char *operator= tests[i].operator;
    switch (tests[i].how) {
    case KIND:
        *out = test_kind(x, tests[i].name, v);
        return true;
    case LETTERS:
        return test_letters(x, tests[i].name, v, out);
    case DIVISIBLE:
        return test_divisible(x, tests[i].name, v, other, out);
    case EQUAL:
        *out = tern_tpl_equal(x, v, other) == (operator[0] == '=');
        return !x->failed;
    case ORDER:
        return tern_tpl_ordered(x, (tern_span){operator, operator[1] == '=' ? 2 : 1}, v, other, out);
    case MEMBER:
        return tern_tpl_contains(x, other, v, out);
    default:
        *out = test_same(v, other);
        return true;
    }
}

bool tern_tpl_test(tern_tpl *x, tern_span name, value *v, const tern_tpl_args *args, bool *out) {
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        if (!tern_tpl_span_is(name, tests[i].name))
            continue;
        const bool alone =
            tests[i].how < DIVISIBLE || (tests[i].how == DIVISIBLE && tests[i].name[0] != 'd');
        value *other[1] = {NULL};
        if (!tern_tpl_bind(x, tests[i].name, args, alone ? "" : "other", other))
            return false;
        if (!alone && other[0] == NULL)
            return tern_tpl_fail(x, TERN_ERR_TEMPLATE, "the test '%s' wants a value",
                                 tests[i].name);
        return run(x, i, v, other[0], out);
    }
    return tern_tpl_fail(x, TERN_ERR_TEMPLATE, "the test '%.*s' is not supported",
                         name.size < 40 ? (int)name.size : 40, name.data);
}
