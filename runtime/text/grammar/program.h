/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_GRAMMAR_PROGRAM_H
#define TERN_RUNTIME_TEXT_GRAMMAR_PROGRAM_H

/*
 * A grammar as a program for a machine that reads bytes and has a stack. Parts of the grammar that
 * can never become a whole text are left out, so a text can be completed wherever the machine
 * stands. Immutable.
 */

#include "runtime/text/grammar/expression.h"

enum { TERN_PROGRAM_MOST_NODES = TERN_GRAMMAR_LIMIT(1 << 19) };

/* Kinds of characters, as bits of a number. Plain characters stand for themselves in JSON strings;
 * DEL is not plain. */
enum {
    TERN_KIND_LOWER = 1, /* a to z */
    TERN_KIND_UPPER = 2,
    TERN_KIND_DIGIT = 4,
    TERN_KIND_SPACE = 8,
    TERN_KIND_STOP = 16,   /* , and . */
    TERN_KIND_MARK = 32,   /* other plain characters of ASCII */
    TERN_KIND_BEYOND = 64, /* beyond ASCII */
    TERN_KIND_REST = 128,  /* characters that are not plain */
    TERN_KINDS_PLAIN = 127
};

typedef struct tern_kind_span {
    uint32_t low, high, kind;
} tern_kind_span;

enum { TERN_KIND_SPANS = 21 };
extern const tern_kind_span tern_kind_spans[TERN_KIND_SPANS]; /* all characters, ascending */

unsigned tern_kind_of(uint32_t code);

typedef enum tern_node_kind {
    TERN_NODE_BYTES,  /* reads a byte low .. high, goes on at next */
    TERN_NODE_SPLIT,  /* goes on at next and at other */
    TERN_NODE_CALL,   /* calls the rule that begins at other, goes on at next */
    TERN_NODE_REPEAT, /* repeats what begins at other, least to most times, then goes on at next. A
                         round never reads nothing. most < 0: without limit */
    TERN_NODE_RETURN  /* ends a rule, one round of a repetition, or the text */
} tern_node_kind;

typedef struct tern_node {
    uint8_t kind;
    uint8_t low, high;
    uint8_t loop; /* BYTES of ASCII: kinds whose characters are all read by the loop that begins
                     here; its REPEAT, if it is counted, is on top of the stack */
    uint32_t next, other;
    int32_t least, most;
} tern_node;

typedef struct tern_program {
    tern_node *nodes; /* [n_nodes] */
    size_t n_nodes;
    uint32_t start;       /* where the whole text begins */
    uint8_t classes[256]; /* bytes of one class are read by the same nodes */
    uint16_t n_classes;
} tern_program;

/*
 * Makes the program of expressions whose rule 0 is the whole text. TERN_ERR_GRAMMAR: a rule that is
 * used has no expression, a rule begins with itself, there is no text at all, or a limit is
 * exceeded.
 */
TERN_MUST_CHECK tern_status tern_program_make(tern_exprs *x, tern_program *out);
void tern_program_free(tern_program *p);

#endif
