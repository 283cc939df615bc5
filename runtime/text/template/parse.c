/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/text/template/parse.h"

typedef tern_tpl_node node;
typedef tern_tpl_parser parser;

/* Parses a body up to a tag that ends it: a word of `ends`. The parser then stands at that word. */
static bool parse_body(parser *p, const char *const *ends, node **out);

static bool close_tag(parser *p) {
    if (p->at->kind != TERN_TPL_CLOSE_BLOCK)
        return tern_tpl_unexpected(p) != NULL;
    p->at++;
    return true;
}

/* Parses a body of one part, with its end. */
static bool parse_whole_body(parser *p, const char *end, node **out) {
    const char *const ends[] = {end, NULL};
    return close_tag(p) && parse_body(p, ends, out) && tern_tpl_want(p, end);
}

/* ---- targets --------------------------------------------------------------------------------- */

static node *parse_name_target(parser *p) {
    node *n = tern_tpl_node_new(p, TERN_TPL_NODE_NAME);
    if (n == NULL)
        return NULL;
    n->name = tern_tpl_want_name(p);
    return n->name.data != NULL ? n : NULL;
}

/* A name, names with commas, or (may_be_attribute) an attribute of a name. */
static node *parse_target(parser *p, bool may_be_attribute) {
    const bool group = tern_tpl_skip(p, "(");
    node *first = parse_name_target(p);
    if (first != NULL && may_be_attribute && tern_tpl_skip(p, ".")) {
        node *n = tern_tpl_node_new(p, TERN_TPL_NODE_ATTRIBUTE);
        if (n == NULL)
            return NULL;
        n->a = first;
        n->name = tern_tpl_want_name(p);
        return n->name.data != NULL ? n : NULL;
    }
    node *all = first;
    if (first != NULL && tern_tpl_is(p, ",")) {
        all = tern_tpl_node_new(p, TERN_TPL_NODE_TUPLE);
        if (all == NULL)
            return NULL;
        all->a = first;
        for (node *last = first; last != NULL && tern_tpl_skip(p, ",");) {
            if (p->at->kind != TERN_TPL_NAME || tern_tpl_is(p, "in"))
                break;
            last->next = parse_name_target(p);
            last = last->next;
        }
    }
    return all != NULL && (!group || tern_tpl_want(p, ")")) && !p->x->failed ? all : NULL;
}

/* Parses parameters in ( ): names with or without a default. */
static bool parse_parameters(parser *p, node **out) {
    if (!tern_tpl_want(p, "("))
        return false;
    while (!tern_tpl_skip(p, ")")) {
        node *n = parse_name_target(p);
        if (n == NULL ||
            (tern_tpl_skip(p, "=") && (n->a = tern_tpl_parse_expression(p, true)) == NULL))
            return false;
        *out = n;
        out = &n->next;
        if (!tern_tpl_is(p, ")") && !tern_tpl_want(p, ","))
            return false;
    }
    return true;
}

/* ---- statements, after their first word ------------------------------------------------------ */

static bool parse_if(parser *p, node *n) {
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    for (;;) {
        n->a = tern_tpl_parse_tuple(p, true);
        if (n->a == NULL || !close_tag(p) || !parse_body(p, ends, &n->body))
            return false;
        if (!tern_tpl_skip(p, "elif"))
            break;
        n->other = tern_tpl_node_new(p, TERN_TPL_NODE_IF);
        n = n->other;
        if (n == NULL)
            return false;
    }
    return tern_tpl_skip(p, "else") ? parse_whole_body(p, "endif", &n->other)
                                    : tern_tpl_want(p, "endif");
}

static bool parse_for(parser *p, node *n) {
    static const char *const ends[] = {"else", "endfor", NULL};
    n->a = parse_target(p, false);
    if (n->a == NULL || !tern_tpl_want(p, "in"))
        return false;
    n->b = tern_tpl_parse_tuple(p, false);
    if (n->b == NULL)
        return false;
    if (tern_tpl_skip(p, "if") && (n->c = tern_tpl_parse_expression(p, true)) == NULL)
        return false;
    if (tern_tpl_is(p, "recursive"))
        return tern_tpl_fail(p->x, TERN_ERR_TEMPLATE, "'recursive' loops are not supported");
    p->loops++;
    const bool read = close_tag(p) && parse_body(p, ends, &n->body);
    p->loops--;
    return read && (tern_tpl_skip(p, "else") ? parse_whole_body(p, "endfor", &n->other)
                                             : tern_tpl_want(p, "endfor"));
}

static bool parse_set(parser *p, node *n) {
    n->a = parse_target(p, true);
    if (n->a == NULL)
        return false;
    if (tern_tpl_skip(p, "="))
        return (n->b = tern_tpl_parse_tuple(p, true)) != NULL;
    n->kind = TERN_TPL_NODE_SET_TEXT;
    if (tern_tpl_skip(p, "|") && (n->b = tern_tpl_parse_filters(p, NULL)) == NULL)
        return false;
    return parse_whole_body(p, "endset", &n->body);
}

static bool parse_macro(parser *p, node *n) {
    n->name = tern_tpl_want_name(p);
    const unsigned loops = p->loops;
    p->loops = 0;
    const bool read = n->name.data != NULL && parse_parameters(p, &n->a) &&
                      parse_whole_body(p, "endmacro", &n->body);
    p->loops = loops;
    return read;
}

static bool parse_caller(parser *p, node *n) {
    if (tern_tpl_is(p, "(") && !parse_parameters(p, &n->a))
        return false;
    n->b = tern_tpl_parse_expression(p, true);
    if (n->b == NULL)
        return false;
    if (n->b->kind != TERN_TPL_NODE_CALL)
        return tern_tpl_fail(p->x, TERN_ERR_TEMPLATE, "'call' wants a call");
    const unsigned loops = p->loops;
    p->loops = 0;
    const bool read = parse_whole_body(p, "endcall", &n->body);
    p->loops = loops;
    return read;
}

static bool parse_filtered(parser *p, node *n) {
    n->b = tern_tpl_parse_filters(p, NULL);
    return n->b != NULL && parse_whole_body(p, "endfilter", &n->body);
}

static bool parse_with(parser *p, node *n) {
    node **last = &n->a;
    while (p->at->kind != TERN_TPL_CLOSE_BLOCK) {
        node *set = tern_tpl_node_new(p, TERN_TPL_NODE_SET);
        if (set == NULL || (n->a != NULL && !tern_tpl_want(p, ",")))
            return false;
        set->a = parse_name_target(p);
        if (set->a == NULL || !tern_tpl_want(p, "=") ||
            (set->b = tern_tpl_parse_expression(p, true)) == NULL)
            return false;
        *last = set;
        last = &set->next;
    }
    return parse_whole_body(p, "endwith", &n->body);
}

static bool parse_generation(parser *p, node *n) {
    return parse_whole_body(p, "endgeneration", &n->body);
}

static bool parse_jump(parser *p, node *n) {
    (void)n;
    return p->loops > 0 ||
           tern_tpl_fail(p->x, TERN_ERR_TEMPLATE, "'break' and 'continue' belong into a loop");
}

static const struct {
    const char *word;
    tern_tpl_node_kind kind;
    bool (*parse)(parser *p, node *n);
} statements[] = {
    {"if", TERN_TPL_NODE_IF, parse_if},
    {"for", TERN_TPL_NODE_FOR, parse_for},
    {"set", TERN_TPL_NODE_SET, parse_set},
    {"macro", TERN_TPL_NODE_MACRO, parse_macro},
    {"call", TERN_TPL_NODE_CALLER, parse_caller},
    {"filter", TERN_TPL_NODE_FILTERED, parse_filtered},
    {"with", TERN_TPL_NODE_SCOPE, parse_with},
    {"generation", TERN_TPL_NODE_BODY, parse_generation},
    {"break", TERN_TPL_NODE_BREAK, parse_jump},
    {"continue", TERN_TPL_NODE_CONTINUE, parse_jump},
};

static node *parse_statement(parser *p) {
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
        if (!tern_tpl_is(p, statements[i].word))
            continue;
        node *n = tern_tpl_node_new(p, statements[i].kind);
        p->at++;
        return n != NULL && statements[i].parse(p, n) && close_tag(p) ? n : NULL;
    }
    if (p->at->kind == TERN_TPL_NAME) {
        p->x->line = p->at->line;
        (void)tern_tpl_fail(p->x, TERN_ERR_TEMPLATE, "the statement '%.*s' is not supported",
                            p->at->text.size < 40 ? (int)p->at->text.size : 40, p->at->text.data);
        return NULL;
    }
    return tern_tpl_unexpected(p);
}

/* ---- bodies ---------------------------------------------------------------------------------- */

static node *parse_print(parser *p) {
    node *n = tern_tpl_node_new(p, TERN_TPL_NODE_PRINT);
    p->at++;
    if (n == NULL || (n->a = tern_tpl_parse_tuple(p, true)) == NULL)
        return NULL;
    if (p->at->kind != TERN_TPL_CLOSE_PRINT)
        return tern_tpl_unexpected(p);
    p->at++;
    return n;
}

static node *parse_data(parser *p) {
    node *n = tern_tpl_node_new(p, TERN_TPL_NODE_DATA);
    const tern_span text = p->at++->text;
    if (n != NULL)
        n->value =
            tern_tpl_text_value(p->x, (tern_tpl_text){.bytes = text.data, .size = text.size});
    return n != NULL && n->value != NULL ? n : NULL;
}

static bool ends_here(const parser *p, const char *const *ends) {
    for (; *ends != NULL; ends++)
        if (p->at[1].kind == TERN_TPL_NAME && tern_tpl_span_is(p->at[1].text, *ends))
            return true;
    return false;
}

static bool parse_statements(parser *p, const char *const *ends, node **out) {
    for (;;) {
        node *n = NULL;
        p->x->line = p->at->line;
        if (p->at->kind == TERN_TPL_END)
            return *ends == NULL ||
                   tern_tpl_fail(p->x, TERN_ERR_TEMPLATE, "'%s' is missing", ends[0]);
        if (p->at->kind == TERN_TPL_OPEN_BLOCK && ends_here(p, ends)) {
            p->at++;
            return true;
        }
        if (p->at->kind == TERN_TPL_DATA) {
            n = parse_data(p);
        } else if (p->at->kind == TERN_TPL_OPEN_PRINT) {
            n = parse_print(p);
        } else {
            p->at++;
            n = parse_statement(p);
        }
        if (n == NULL)
            return false;
        *out = n;
        out = &n->next;
    }
}

static bool parse_body(parser *p, const char *const *ends, node **out) {
    const bool read = tern_tpl_enter(p->x) && parse_statements(p, ends, out);
    tern_tpl_leave(p->x);
    return read;
}

node *tern_tpl_parse(tern_tpl *x, tern_span source) {
    static const char *const never[] = {NULL};
    parser p = {.x = x};
    if (source.size > TERN_TPL_SOURCE) {
        x->line = 1;
        (void)tern_tpl_fail(x, TERN_ERR_TEMPLATE, "the template has %zu bytes, at most %d",
                            source.size, TERN_TPL_SOURCE);
        return NULL;
    }
    p.at = tern_tpl_lex(x, source);
    node *whole = p.at != NULL ? tern_tpl_node_new(&p, TERN_TPL_NODE_BODY) : NULL;
    return whole != NULL && parse_body(&p, never, &whole->body) ? whole : NULL;
}
