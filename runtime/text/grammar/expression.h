/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_GRAMMAR_EXPRESSION_H
#define TERN_RUNTIME_TEXT_GRAMMAR_EXPRESSION_H

/*
 * Grammars as they are read: rules, each an expression over bytes, characters and other rules. GBNF
 * texts, schemas, patterns and tags become these; a program (program.h) is made from them.
 *
 * Expressions are numbers. They are made from the inside out and may be used several times, so they
 * never form a cycle; recursion goes through rules alone. When memory or a limit is used up, the
 * set of expressions fails: it remembers why, and everything made from there on is TERN_EXPR_NEVER.
 * The caller checks the status once, at the end.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/status.h"

/* The fuzz targets are built with smaller limits, which short inputs meet in little time. */
#ifndef TERN_GRAMMAR_SHIFT
#define TERN_GRAMMAR_SHIFT 0
#endif
#define TERN_GRAMMAR_LIMIT(usual) ((usual) >> TERN_GRAMMAR_SHIFT)

enum {
    TERN_EXPR_NEVER = 0,                                /* matches nothing */
    TERN_EXPR_EMPTY = 1,                                /* matches the empty text alone */
    TERN_EXPR_UNLIMITED = -1,                           /* repetitions */
    TERN_EXPR_MOST = TERN_GRAMMAR_LIMIT(1 << 18),       /* expressions of a grammar */
    TERN_EXPR_MOST_RULES = TERN_GRAMMAR_LIMIT(1 << 14), /* rules */
    TERN_EXPR_MOST_BYTES = TERN_GRAMMAR_LIMIT(1 << 22), /* bytes of all its texts */
    TERN_EXPR_MOST_RANGES = TERN_GRAMMAR_LIMIT(1 << 18),
    TERN_EXPR_MOST_DEPTH = 256,
    TERN_EXPR_MOST_REPEATS = 1 << 24 /* the largest number of a repetition */
};

typedef enum tern_expr_kind {
    TERN_EXPR_KIND_NEVER,
    TERN_EXPR_KIND_EMPTY,
    TERN_EXPR_KIND_TEXT,  /* bytes first .. first + n of texts */
    TERN_EXPR_KIND_BYTES, /* one byte of ranges first .. first + n */
    TERN_EXPR_KIND_CHARS, /* one character of ranges first .. first + n, as UTF-8 */
    TERN_EXPR_KIND_SEQUENCE,
    TERN_EXPR_KIND_CHOICE,
    TERN_EXPR_KIND_REPEAT, /* member `first`, least to most times */
    TERN_EXPR_KIND_RULE    /* rule number `first` */
} tern_expr_kind;

typedef struct tern_expr {
    uint8_t kind;
    uint16_t depth;
    uint32_t first, n; /* SEQUENCE, CHOICE: members[first .. first + n) */
    int32_t least, most;
} tern_expr;

typedef struct tern_range {
    uint32_t low, high; /* both ends are part of it */
} tern_range;

typedef struct tern_expr_rule {
    uint32_t expr;
    uint32_t name, name_size; /* bytes of texts; size 0: it has no name */
    bool defined;
} tern_expr_rule;

typedef struct tern_exprs {
    tern_expr *items;
    uint32_t *members;
    tern_range *ranges;
    char *texts;
    tern_expr_rule *rules;
    size_t n, n_members, n_ranges, n_texts, n_rules;
    size_t capacity, members_capacity, ranges_capacity, texts_capacity, rules_capacity;
    size_t pairs;     /* that products of patterns have compared (pattern_both.c) */
    const char *name; /* its name in messages */
    tern_status status;
    tern_error *err; /* where the first failure is reported */
} tern_exprs;

/* Zero-initialises *x; name and err must outlive it. */
void tern_exprs_start(tern_exprs *x, const char *name, tern_error *err);
void tern_exprs_free(tern_exprs *x);

/* Remembers a failure, unless there is one already. */
void tern_exprs_fail(tern_exprs *x, tern_status status, const char *format, ...) TERN_PRINTF(3, 4);

uint32_t tern_expr_text(tern_exprs *x, const char *bytes, size_t size);
uint32_t tern_expr_word(tern_exprs *x, const char *text); /* terminated */

/* One byte, or one character, of ranges[n], which may be in any order. Without ranges: NEVER. */
uint32_t tern_expr_bytes(tern_exprs *x, const tern_range *ranges, size_t n);
uint32_t tern_expr_chars(tern_exprs *x, const tern_range *ranges, size_t n);

/* A sequence, or a choice, of members[n]. Without members: EMPTY, or NEVER. */
uint32_t tern_expr_sequence(tern_exprs *x, const uint32_t *members, size_t n);
uint32_t tern_expr_choice(tern_exprs *x, const uint32_t *members, size_t n);
uint32_t tern_expr_pair(tern_exprs *x, uint32_t a, uint32_t b); /* a, then b */
uint32_t tern_expr_either(tern_exprs *x, uint32_t a, uint32_t b);

/* least <= most unless most is TERN_EXPR_UNLIMITED. */
uint32_t tern_expr_repeat(tern_exprs *x, uint32_t member, int32_t least, int32_t most);
uint32_t tern_expr_optional(tern_exprs *x, uint32_t member);

/* Makes a rule without an expression and returns its number. The name is copied. The first rule has
 * number 0 and is the whole text. */
uint32_t tern_expr_rule_new(tern_exprs *x, const char *name, size_t size);
void tern_expr_rule_define(tern_exprs *x, uint32_t rule, uint32_t expr);
uint32_t tern_expr_rule_use(tern_exprs *x, uint32_t rule);

/* Sorts ranges in place and joins those that touch each other; returns how many are left. */
size_t tern_ranges_tidy(tern_range *ranges, size_t n);

/* A list of members that grows. Zero-initialise all but x. */
typedef struct tern_expr_list {
    tern_exprs *x;
    uint32_t *items;
    size_t n, capacity;
} tern_expr_list;

void tern_expr_add(tern_expr_list *list, uint32_t member);

/* Make one expression of the list and free it. */
uint32_t tern_expr_end_sequence(tern_expr_list *list);
uint32_t tern_expr_end_choice(tern_expr_list *list);

#endif
