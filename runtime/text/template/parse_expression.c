/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/text/template/parse.h"

typedef tern_tpl_node node;
typedef tern_tpl_parser parser;

node *tern_tpl_node_new(parser *p, tern_tpl_node_kind kind) {
    node *n = tern_tpl_take(p->x, 1, sizeof *n);
    if (n != NULL) {
        n->kind = kind;
        n->line = p->at->line;
    }
    return n;
}

static bool is_operator(const parser *p) {
    return p->at->kind == TERN_TPL_OPERATOR;
}

bool tern_tpl_is(const parser *p, const char *text) {
    return (is_operator(p) || p->at->kind == TERN_TPL_NAME) && tern_tpl_span_is(p->at->text, text);
}

bool tern_tpl_skip(parser *p, const char *text) {
    const bool is = tern_tpl_is(p, text);
    p->at += is;
    p->x->line = p->at->line;
    return is;
}

node *tern_tpl_unexpected(parser *p) {
    static const char *const kinds[] = {"the end", "text", "{%", "%}", "{{", "}}"};
    p->x->line = p->at->line;
    if (p->at->kind < TERN_TPL_NAME)
        (void)tern_tpl_fail(p->x, TERN_ERR_TEMPLATE, "%s has no place here", kinds[p->at->kind]);
    else
        (void)tern_tpl_fail(p->x, TERN_ERR_TEMPLATE, "'%.*s' has no place here",
                            p->at->text.size < 40 ? (int)p->at->text.size : 40, p->at->text.data);
    return NULL;
}

bool tern_tpl_want(parser *p, const char *text) {
    if (tern_tpl_skip(p, text))
        return true;
    p->x->line = p->at->line;
    return tern_tpl_fail(p->x, TERN_ERR_TEMPLATE, "'%s' is missing", text);
}

tern_span tern_tpl_want_name(parser *p) {
    if (p->at->kind == TERN_TPL_NAME)
        return p->at++->text;
    (void)tern_tpl_unexpected(p);
    return (tern_span){NULL, 0};
}

/* Appends to a list; *last is where the next one goes. */
static bool append(node ***last, node *n) {
    if (n == NULL)
        return false;
    **last = n;
    *last = &n->next;
    return true;
}

/* ---- constants, names, lists ----------------------------------------------------------------- */

static node *constant(parser *p, tern_tpl_value *value) {
    node *n = tern_tpl_node_new(p, TERN_TPL_NODE_CONSTANT);
    if (n != NULL)
        n->value = value;
    return value != NULL ? n : NULL;
}

/* Texts side by side become one. */
static node *parse_texts(parser *p) {
    size_t size = 0, n = 0;
    const tern_tpl_token *first = p->at;
    for (; p->at->kind == TERN_TPL_STRING; p->at++, n++)
        size += p->at->text.size;
    char *bytes = tern_tpl_take(p->x, size + 1, 1);
    size_t at = 0;
    for (size_t i = 0; bytes != NULL && i < n; i++) {
        memcpy(bytes + at, first[i].text.data, first[i].text.size);
        at += first[i].text.size;
    }
    return bytes == NULL
               ? NULL
               : constant(p,
                          tern_tpl_text_value(p->x, (tern_tpl_text){.bytes = bytes, .size = size}));
}

static node *parse_number(parser *p) {
    char text[64];
    size_t n = 0;
    const tern_span written = p->at->text;
    const bool real = p->at->kind == TERN_TPL_REAL;
    p->x->line = p->at++->line;
    for (size_t i = 0; i < written.size && n + 1 < sizeof text; i++)
        if (written.data[i] != '_')
            text[n++] = written.data[i];
    text[n] = '\0';
    errno = 0;
    const long long integer = real ? 0 : strtoll(text, NULL, 10);
    if (n + 1 == sizeof text || (!real && errno != 0)) {
        (void)tern_tpl_fail(p->x, TERN_ERR_TEMPLATE, "the number %.40s is too large", text);
        return NULL;
    }
    return constant(p,
                    real ? tern_tpl_real(p->x, strtod(text, NULL)) : tern_tpl_int(p->x, integer));
}

static node *parse_name(parser *p) {
    const tern_span name = p->at->text;
    tern_tpl *x = p->x;
    node *n = tern_tpl_node_new(p, TERN_TPL_NODE_NAME);
    if (n == NULL)
        return NULL;
    n->name = name;
    p->at++;
    const bool yes = tern_tpl_span_is(name, "true") || tern_tpl_span_is(name, "True");
    const bool no = tern_tpl_span_is(name, "false") || tern_tpl_span_is(name, "False");
    const bool none = tern_tpl_span_is(name, "none") || tern_tpl_span_is(name, "None");
    if (!yes && !no && !none)
        return n;
    n->kind = TERN_TPL_NODE_CONSTANT;
    n->value = none ? tern_tpl_none(x) : tern_tpl_bool(x, yes);
    return n->value != NULL ? n : NULL;
}

static node *parse_list(parser *p) {
    node *list = tern_tpl_node_new(p, TERN_TPL_NODE_LIST);
    node **last = list != NULL ? &list->a : NULL;
    p->at++;
    while (list != NULL && !tern_tpl_skip(p, "]")) {
        if (list->a != NULL && !tern_tpl_want(p, ","))
            return NULL;
        if (tern_tpl_skip(p, "]"))
            break;
        if (!append(&last, tern_tpl_parse_expression(p, true)))
            return NULL;
    }
    return list;
}

static node *parse_dict(parser *p) {
    node *dict = tern_tpl_node_new(p, TERN_TPL_NODE_DICT);
    node **last = dict != NULL ? &dict->a : NULL;
    p->at++;
    while (dict != NULL && !tern_tpl_skip(p, "}")) {
        if (dict->a != NULL && !tern_tpl_want(p, ","))
            return NULL;
        if (tern_tpl_skip(p, "}"))
            break;
        if (!append(&last, tern_tpl_parse_expression(p, true)) || !tern_tpl_want(p, ":") ||
            !append(&last, tern_tpl_parse_expression(p, true)))
            return NULL;
    }
    return dict;
}

/* Parses ( ) around an expression or a tuple. */
static node *parse_group(parser *p) {
    p->at++;
    if (tern_tpl_skip(p, ")"))
        return tern_tpl_node_new(p, TERN_TPL_NODE_TUPLE);
    node *inner = tern_tpl_parse_tuple(p, true);
    return inner != NULL && tern_tpl_want(p, ")") ? inner : NULL;
}

static node *parse_primary(parser *p) {
    p->x->line = p->at->line;
    switch (p->at->kind) {
    case TERN_TPL_NAME:
        return parse_name(p);
    case TERN_TPL_STRING:
        return parse_texts(p);
    case TERN_TPL_INTEGER:
    case TERN_TPL_REAL:
        return parse_number(p);
    default:
        break;
    }
    if (tern_tpl_is(p, "("))
        return parse_group(p);
    if (tern_tpl_is(p, "["))
        return parse_list(p);
    return tern_tpl_is(p, "{") ? parse_dict(p) : tern_tpl_unexpected(p);
}

/* ---- what follows an expression -------------------------------------------------------------- */

/* Parses arguments in ( ); KEYWORDs come last. */
static bool parse_arguments(parser *p, node **out) {
    bool named = false;
    node **last = out;
    p->at++;
    for (bool first = true; !tern_tpl_skip(p, ")"); first = false) {
        if (!first && !tern_tpl_want(p, ","))
            return false;
        if (tern_tpl_skip(p, ")"))
            break;
        node *argument = NULL;
        if (p->at->kind == TERN_TPL_NAME && p->at[1].kind == TERN_TPL_OPERATOR &&
            tern_tpl_span_is(p->at[1].text, "=")) {
            argument = tern_tpl_node_new(p, TERN_TPL_NODE_KEYWORD);
            if (argument == NULL)
                return false;
            argument->name = p->at->text;
            p->at += 2;
            argument->a = tern_tpl_parse_expression(p, true);
            named = true;
        } else if (tern_tpl_is(p, "*") || tern_tpl_is(p, "**") || named) {
            return tern_tpl_unexpected(p) != NULL;
        } else {
            argument = tern_tpl_parse_expression(p, true);
        }
        if (!append(&last, argument) || p->x->failed)
            return false;
    }
    return true;
}

static node *parse_call(parser *p, node *callee) {
    node *n = tern_tpl_node_new(p, TERN_TPL_NODE_CALL);
    if (n == NULL || !parse_arguments(p, &n->b))
        return NULL;
    n->a = callee;
    return n;
}

/* Parses one bound of a slice; a missing one is the constant None. */
static node *parse_bound(parser *p) {
    const bool none = tern_tpl_is(p, ":") || tern_tpl_is(p, "]");
    return none ? constant(p, tern_tpl_none(p->x)) : tern_tpl_parse_expression(p, true);
}

static node *parse_item(parser *p, node *of) {
    node *n = tern_tpl_node_new(p, TERN_TPL_NODE_ITEM);
    if (n == NULL)
        return NULL;
    p->at++;
    n->a = of;
    n->b = parse_bound(p);
    node *last = n->b;
    if (tern_tpl_is(p, ":"))
        n->kind = TERN_TPL_NODE_SLICE;
    for (int i = 0; i < 2 && last != NULL && n->kind == TERN_TPL_NODE_SLICE; i++) {
        last->next = tern_tpl_skip(p, ":") ? parse_bound(p) : constant(p, tern_tpl_none(p->x));
        last = last->next;
    }
    return last != NULL && tern_tpl_want(p, "]") ? n : NULL;
}

static node *parse_attribute(parser *p, node *of) {
    node *n = tern_tpl_node_new(p, TERN_TPL_NODE_ATTRIBUTE);
    p->at++;
    if (n == NULL)
        return NULL;
    n->a = of;
    if (p->at->kind == TERN_TPL_INTEGER) {
        n->kind = TERN_TPL_NODE_ITEM;
        n->b = parse_number(p);
        return n->b != NULL ? n : NULL;
    }
    n->name = tern_tpl_want_name(p);
    return n->name.data != NULL ? n : NULL;
}

node *tern_tpl_parse_postfix(parser *p, node *n) {
    while (n != NULL && is_operator(p)) {
        if (tern_tpl_is(p, "."))
            n = parse_attribute(p, n);
        else if (tern_tpl_is(p, "["))
            n = parse_item(p, n);
        else if (tern_tpl_is(p, "("))
            n = parse_call(p, n);
        else
            break;
    }
    return n;
}

static node *parse_filter(parser *p, node *subject) {
    node *n = tern_tpl_node_new(p, TERN_TPL_NODE_FILTER);
    if (n == NULL)
        return NULL;
    n->a = subject;
    n->name = tern_tpl_want_name(p);
    if (n->name.data == NULL || (tern_tpl_is(p, "(") && !parse_arguments(p, &n->b)))
        return NULL;
    return n;
}

node *tern_tpl_parse_filters(parser *p, node *subject) {
    node *n = parse_filter(p, subject);
    while (n != NULL && tern_tpl_skip(p, "|"))
        n = parse_filter(p, n);
    return n;
}

/* True if an argument without ( ) follows the name of a test. */
static bool has_argument(const parser *p) {
    switch (p->at->kind) {
    case TERN_TPL_STRING:
    case TERN_TPL_INTEGER:
    case TERN_TPL_REAL:
        return true;
    case TERN_TPL_NAME:
        return !tern_tpl_is(p, "else") && !tern_tpl_is(p, "or") && !tern_tpl_is(p, "and") &&
               !tern_tpl_is(p, "is") && !tern_tpl_is(p, "if") && !tern_tpl_is(p, "in") &&
               !tern_tpl_is(p, "not") && !tern_tpl_is(p, "recursive");
    default:
        return tern_tpl_is(p, "[") || tern_tpl_is(p, "{");
    }
}

static node *parse_test(parser *p, node *subject) {
    p->at++;
    const bool negated = tern_tpl_skip(p, "not");
    node *n = tern_tpl_node_new(p, TERN_TPL_NODE_TEST);
    if (n == NULL)
        return NULL;
    n->a = subject;
    n->name = tern_tpl_want_name(p);
    if (n->name.data == NULL)
        return NULL;
    if (tern_tpl_is(p, "(")) {
        if (!parse_arguments(p, &n->b))
            return NULL;
    } else if (has_argument(p)) {
        n->b = tern_tpl_parse_postfix(p, parse_primary(p));
        if (n->b == NULL)
            return NULL;
    }
    if (!negated)
        return n;
    node *no = tern_tpl_node_new(p, TERN_TPL_NODE_NOT);
    if (no != NULL)
        no->a = n;
    return no;
}

static node *parse_filters_and_tests(parser *p, node *n) {
    while (n != NULL) {
        if (tern_tpl_skip(p, "|"))
            n = parse_filter(p, n);
        else if (p->at->kind == TERN_TPL_NAME && tern_tpl_is(p, "is"))
            n = parse_test(p, n);
        else if (tern_tpl_is(p, "("))
            n = parse_call(p, n);
        else
            break;
    }
    return n;
}

/* ---- operators ------------------------------------------------------------------------------- */

static node *parse_unary(parser *p, bool with_filters) {
    node *n = NULL;
    if (!tern_tpl_enter(p->x)) {
        tern_tpl_leave(p->x);
        return NULL;
    }
    const bool minus = tern_tpl_is(p, "-");
    if (minus || tern_tpl_is(p, "+")) {
        n = tern_tpl_node_new(p, minus ? TERN_TPL_NODE_MINUS : TERN_TPL_NODE_PLUS);
        p->at++;
        if (n != NULL)
            n->a = parse_unary(p, false);
        n = n != NULL && n->a != NULL ? n : NULL;
    } else {
        n = parse_primary(p);
    }
    n = tern_tpl_parse_postfix(p, n);
    tern_tpl_leave(p->x);
    return with_filters ? parse_filters_and_tests(p, n) : n;
}

static node *binary(parser *p, tern_tpl_node_kind kind, node *a) {
    node *n = tern_tpl_node_new(p, kind);
    if (n != NULL) {
        n->name = p->at->text;
        n->a = a;
        p->at++;
    }
    return n;
}

static node *parse_product(parser *p) {
    node *n = parse_unary(p, true);
    while (n != NULL && (tern_tpl_is(p, "*") || tern_tpl_is(p, "/") || tern_tpl_is(p, "//") ||
                         tern_tpl_is(p, "%"))) {
        n = binary(p, TERN_TPL_NODE_BINARY, n);
        if (n == NULL || (n->b = parse_unary(p, true)) == NULL)
            return NULL;
    }
    return n;
}

static node *parse_concat(parser *p) {
    node *n = parse_product(p);
    if (n == NULL || !tern_tpl_is(p, "~"))
        return n;
    node *all = tern_tpl_node_new(p, TERN_TPL_NODE_CONCAT);
    if (all == NULL)
        return NULL;
    all->a = n;
    node **last = &n->next;
    while (tern_tpl_skip(p, "~"))
        if (!append(&last, parse_product(p)))
            return NULL;
    return all;
}

static node *parse_sum(parser *p) {
    node *n = parse_concat(p);
    while (n != NULL && (tern_tpl_is(p, "+") || tern_tpl_is(p, "-"))) {
        n = binary(p, TERN_TPL_NODE_BINARY, n);
        if (n == NULL || (n->b = parse_concat(p)) == NULL)
            return NULL;
    }
    return n;
}

/* Reads an operator of comparison; data NULL when there is none. */
static tern_span comparison(parser *p) {
    static const char *const operators[] = {"==", "!=", "<=", ">=", "<", ">", "in"};
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (tern_tpl_skip(p, operators[i]))
            return (tern_span){operators[i], strlen(operators[i])};
    if (tern_tpl_is(p, "not") && p->at[1].kind == TERN_TPL_NAME &&
        tern_tpl_span_is(p->at[1].text, "in")) {
        p->at += 2;
        return (tern_span){"not in", 6};
    }
    return (tern_span){NULL, 0};
}

static node *parse_comparison(parser *p) {
    node *first = parse_sum(p), *n = NULL;
    node **last = NULL;
    tern_span operator;
    while (first != NULL && (operator= comparison(p)).data != NULL) {
        if (n == NULL && (n = tern_tpl_node_new(p, TERN_TPL_NODE_COMPARE)) == NULL)
            return NULL;
        last = last == NULL ? &n->b : last;
        node *operand = tern_tpl_node_new(p, TERN_TPL_NODE_OPERAND);
        if (operand == NULL || (operand->a = parse_sum(p)) == NULL)
            return NULL;
        operand->name = operator;
        (void)append(&last, operand);
        n->a = first;
    }
    return n != NULL ? n : first;
}

static node *parse_not(parser *p) {
    if (!tern_tpl_is(p, "not"))
        return parse_comparison(p);
    node *n = tern_tpl_node_new(p, TERN_TPL_NODE_NOT);
    if (n == NULL)
        return NULL;
    p->at++;
    if (tern_tpl_enter(p->x))
        n->a = parse_not(p);
    tern_tpl_leave(p->x);
    return n->a != NULL ? n : NULL;
}

static node *parse_and(parser *p) {
    node *n = parse_not(p);
    while (n != NULL && tern_tpl_is(p, "and")) {
        n = binary(p, TERN_TPL_NODE_AND, n);
        if (n == NULL || (n->b = parse_not(p)) == NULL)
            return NULL;
    }
    return n;
}

static node *parse_or(parser *p) {
    node *n = parse_and(p);
    while (n != NULL && tern_tpl_is(p, "or")) {
        n = binary(p, TERN_TPL_NODE_OR, n);
        if (n == NULL || (n->b = parse_and(p)) == NULL)
            return NULL;
    }
    return n;
}

static node *parse_choice(parser *p) {
    node *yes = parse_or(p);
    while (yes != NULL && tern_tpl_is(p, "if")) {
        node *n = tern_tpl_node_new(p, TERN_TPL_NODE_CHOICE);
        p->at++;
        if (n == NULL || (n->a = parse_or(p)) == NULL)
            return NULL;
        n->b = yes;
        if (tern_tpl_skip(p, "else") && (n->c = tern_tpl_parse_expression(p, true)) == NULL)
            return NULL;
        yes = n;
    }
    return yes;
}

node *tern_tpl_parse_expression(parser *p, bool choice) {
    node *n = NULL;
    if (tern_tpl_enter(p->x))
        n = choice ? parse_choice(p) : parse_or(p);
    tern_tpl_leave(p->x);
    return n;
}

/* True if a tuple is complete although a comma was read. */
static bool tuple_ends(const parser *p) {
    return p->at->kind == TERN_TPL_CLOSE_BLOCK || p->at->kind == TERN_TPL_CLOSE_PRINT ||
           tern_tpl_is(p, ")") || tern_tpl_is(p, "=") || tern_tpl_is(p, "in");
}

node *tern_tpl_parse_tuple(parser *p, bool choice) {
    node *first = tern_tpl_parse_expression(p, choice);
    if (first == NULL || !tern_tpl_is(p, ","))
        return first;
    node *tuple = tern_tpl_node_new(p, TERN_TPL_NODE_TUPLE);
    if (tuple == NULL)
        return NULL;
    tuple->a = first;
    node **last = &first->next;
    while (tern_tpl_skip(p, ",") && !tuple_ends(p))
        if (!append(&last, tern_tpl_parse_expression(p, choice)))
            return NULL;
    return tuple;
}
