/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_TEMPLATE_PARSE_H
#define TERN_RUNTIME_TEXT_TEMPLATE_PARSE_H

/* A template as a tree. */

#include "runtime/text/template/lex.h"
#include "runtime/text/template/value.h"

typedef enum tern_tpl_node_kind {
    /* Statements, one after the other by `next` */
    TERN_TPL_NODE_DATA,     /* value */
    TERN_TPL_NODE_PRINT,    /* a */
    TERN_TPL_NODE_IF,       /* a; body; other: the else part, perhaps another IF */
    TERN_TPL_NODE_FOR,      /* a: target, b: iterable, c: condition or NULL; body, other */
    TERN_TPL_NODE_SET,      /* a: target, b: value */
    TERN_TPL_NODE_SET_TEXT, /* a: target, b: filters or NULL; body */
    TERN_TPL_NODE_MACRO,    /* name; a: parameters, NAMEs with a default in a; body */
    TERN_TPL_NODE_CALLER,   /* a: parameters of the caller, b: CALL; body */
    TERN_TPL_NODE_FILTERED, /* b: filters; body */
    TERN_TPL_NODE_SCOPE,    /* a: SETs; body */
    TERN_TPL_NODE_BODY,     /* body alone */
    TERN_TPL_NODE_BREAK,
    TERN_TPL_NODE_CONTINUE,
    /* Expressions */
    TERN_TPL_NODE_CONSTANT, /* value */
    TERN_TPL_NODE_NAME,     /* name */
    TERN_TPL_NODE_LIST,     /* a: elements by `next` */
    TERN_TPL_NODE_TUPLE,    /* the same */
    TERN_TPL_NODE_DICT,     /* a: key, value, key, value by `next` */
    TERN_TPL_NODE_CHOICE,   /* b if a, else c (or NULL: undefined) */
    TERN_TPL_NODE_OR,       /* a, b */
    TERN_TPL_NODE_AND,
    TERN_TPL_NODE_NOT,       /* a */
    TERN_TPL_NODE_COMPARE,   /* a; b: OPERANDs by `next` */
    TERN_TPL_NODE_OPERAND,   /* name: the operator; a */
    TERN_TPL_NODE_BINARY,    /* name: the operator; a, b */
    TERN_TPL_NODE_CONCAT,    /* a: parts by `next` */
    TERN_TPL_NODE_MINUS,     /* a */
    TERN_TPL_NODE_PLUS,      /* a */
    TERN_TPL_NODE_ATTRIBUTE, /* a; name */
    TERN_TPL_NODE_ITEM,      /* a; b */
    TERN_TPL_NODE_SLICE,     /* a; first of b: bounds as CONSTANT or expression, three by `next` */
    TERN_TPL_NODE_CALL,      /* a; b: arguments by `next`, KEYWORDs last */
    TERN_TPL_NODE_KEYWORD,   /* name; a */
    TERN_TPL_NODE_FILTER,    /* a (NULL: the text of the block); name; b: arguments */
    TERN_TPL_NODE_TEST       /* a; name; b: arguments */
} tern_tpl_node_kind;

typedef struct tern_tpl_node tern_tpl_node;
struct tern_tpl_node {
    tern_tpl_node_kind kind;
    unsigned line;
    tern_span name;
    tern_tpl_value *value;
    tern_tpl_node *a, *b, *c, *body, *other, *next;
};

/* State of the two parsers; `at` is the token that comes next. */
typedef struct tern_tpl_parser {
    tern_tpl *x;
    const tern_tpl_token *at;
    unsigned loops; /* loops around this place */
} tern_tpl_parser;

/* Parses the statements of a template; NULL after a failure. An empty template is an empty BODY. */
tern_tpl_node *tern_tpl_parse(tern_tpl *x, tern_span source);

/* ---- parse_expression.c ---------------------------------------------------------------------- */

tern_tpl_node *tern_tpl_node_new(tern_tpl_parser *p, tern_tpl_node_kind kind);

/* True if the next token is this operator or name; tern_tpl_skip then reads it. */
bool tern_tpl_is(const tern_tpl_parser *p, const char *text);
bool tern_tpl_skip(tern_tpl_parser *p, const char *text);
bool tern_tpl_want(tern_tpl_parser *p, const char *text); /* reads it; false after a failure
                                                             otherwise */
tern_span tern_tpl_want_name(tern_tpl_parser *p);         /* data NULL after a failure */

/* Parse an expression; _tuple takes commas. choice: an `if` after it belongs to it. */
tern_tpl_node *tern_tpl_parse_expression(tern_tpl_parser *p, bool choice);
tern_tpl_node *tern_tpl_parse_tuple(tern_tpl_parser *p, bool choice);
tern_tpl_node *tern_tpl_parse_postfix(tern_tpl_parser *p, tern_tpl_node *node);

/* Parses `name(arguments) | name ...` after a '|' or at the start of a block, on `subject`. */
tern_tpl_node *tern_tpl_parse_filters(tern_tpl_parser *p, tern_tpl_node *subject);

/* Fails because of the token that the parser stands at; always NULL. */
tern_tpl_node *tern_tpl_unexpected(tern_tpl_parser *p);

#endif
