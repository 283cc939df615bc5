/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/text/grammar/facts.h"

#include <stdlib.h>

#include "base/grow.h"

/* Most steps in all: several times what the largest grammar takes when its rules stand in a
 * sensible order. */
enum { MOST_STEPS = TERN_GRAMMAR_LIMIT(TERN_GRAMMAR_LIMIT(1 << 26)) }; /* rules times parts */

typedef struct finder {
    tern_exprs *x;
    tern_expr_facts *facts;
    uint32_t steps;
} finder;

static bool work(finder *f, size_t n) {
    f->steps += (uint32_t)n;
    if (f->steps > MOST_STEPS)
        tern_exprs_fail(f->x, TERN_ERR_GRAMMAR,
                        "%s: too large: its rules refer to each other in "
                        "too long chains",
                        f->x->name);
    return f->x->status == TERN_OK;
}

/* ---- what can be empty, what can be completed -------------------------------------------------
 */

static bool all(const finder *f, const tern_expr *e, const bool *fact) {
    const uint32_t *members = f->x->members + e->first;
    for (uint32_t i = 0; i < e->n; i++)
        if (!fact[members[i]])
            return false;
    return true;
}

static bool any(const finder *f, const tern_expr *e, const bool *fact) {
    const uint32_t *members = f->x->members + e->first;
    for (uint32_t i = 0; i < e->n; i++)
        if (fact[members[i]])
            return true;
    return false;
}

static bool holds(const finder *f, const tern_expr *e, const bool *fact, bool nullable) {
    switch ((tern_expr_kind)e->kind) {
    case TERN_EXPR_KIND_NEVER:
        return false;
    case TERN_EXPR_KIND_EMPTY:
        return true;
    case TERN_EXPR_KIND_TEXT:
    case TERN_EXPR_KIND_BYTES:
    case TERN_EXPR_KIND_CHARS:
        return !nullable;
    case TERN_EXPR_KIND_SEQUENCE:
        return all(f, e, fact);
    case TERN_EXPR_KIND_CHOICE:
        return any(f, e, fact);
    case TERN_EXPR_KIND_REPEAT:
        return e->least == 0 || fact[e->first];
    case TERN_EXPR_KIND_RULE:
        return fact[f->x->rules[e->first].expr];
    }
    return false;
}

/* Members come before the expressions made of them, so only rules make a second round necessary. */
static void find(finder *f, bool *fact, bool nullable) {
    bool changed = true;
    while (changed) {
        changed = false;
        for (size_t i = 0; i < f->x->n; i++) {
            const tern_expr *e = &f->x->items[i];
            if (fact[i] || !work(f, 1 + e->n) || !holds(f, e, fact, nullable))
                continue;
            fact[i] = changed = true;
        }
    }
}

/* ---- left recursion -------------------------------------------------------------------------- */

typedef struct edges {
    uint32_t *to; /* the rules that each rule may begin with, one rule after the other */
    size_t n, capacity;
    size_t *from;   /* [rules + 1] where the part of each rule begins */
    uint32_t *todo; /* expressions to look at */
    size_t n_todo, todo_capacity;
    uint32_t *looked; /* [expressions] the rule that looked at it last, + 1 */
} edges;

static void no_memory(finder *f) {
    tern_exprs_fail(f->x, TERN_ERR_NOMEM, "%s: no memory for a grammar", f->x->name);
}

static void look(finder *f, edges *g, uint32_t expr, uint32_t rule) {
    if (g->looked[expr] == rule + 1)
        return;
    g->looked[expr] = rule + 1;
    if (tern_grow((void **)&g->todo, &g->todo_capacity, g->n_todo, sizeof *g->todo, SIZE_MAX / 8))
        g->todo[g->n_todo++] = expr;
    else
        no_memory(f);
}

static void look_at_members(finder *f, edges *g, const tern_expr *e, uint32_t rule) {
    const uint32_t *members = f->x->members + e->first;
    for (uint32_t i = 0; i < e->n; i++) {
        look(f, g, members[i], rule);
        if (e->kind == TERN_EXPR_KIND_SEQUENCE && !f->facts->nullable[members[i]])
            return;
    }
}

static void find_edges(finder *f, edges *g, uint32_t rule) {
    look(f, g, f->x->rules[rule].expr, rule);
    while (g->n_todo > 0) {
        const tern_expr *e = &f->x->items[g->todo[--g->n_todo]];
        if (!work(f, 1 + e->n))
            return;
        if (e->kind == TERN_EXPR_KIND_SEQUENCE || e->kind == TERN_EXPR_KIND_CHOICE)
            look_at_members(f, g, e, rule);
        else if (e->kind == TERN_EXPR_KIND_REPEAT)
            look(f, g, e->first, rule);
        if (e->kind != TERN_EXPR_KIND_RULE)
            continue;
        if (tern_grow((void **)&g->to, &g->capacity, g->n, sizeof *g->to, SIZE_MAX / 8))
            g->to[g->n++] = e->first;
        else
            no_memory(f);
    }
}

/* Removes rules that no remaining rule begins with, again and again. Rules that stay are in a cycle
 * or after one. */
static void find_cycle(finder *f, const edges *g, uint32_t *uses, uint32_t *free_rules) {
    const size_t n = f->x->n_rules;
    size_t n_free = 0;
    size_t taken = 0;
    for (size_t i = 0; i < g->n; i++)
        uses[g->to[i]]++;
    for (uint32_t i = 0; i < n; i++)
        if (uses[i] == 0)
            free_rules[n_free++] = i;
    while (taken < n_free) {
        const uint32_t rule = free_rules[taken++];
        for (size_t i = g->from[rule]; i < g->from[rule + 1]; i++)
            if (--uses[g->to[i]] == 0)
                free_rules[n_free++] = g->to[i];
    }
    uint32_t left = 0;
    while (left < n && uses[left] == 0)
        left++;
    if (left == n)
        return;
    const tern_expr_rule *r = &f->x->rules[left];
    tern_exprs_fail(f->x, TERN_ERR_GRAMMAR,
                    "%s: the rule %.*s begins with itself, or with a rule that does (left "
                    "recursion)",
                    f->x->name, (int)(r->name_size < 100 ? r->name_size : 100),
                    f->x->texts + r->name);
}

static void refuse_left_recursion(finder *f) {
    const size_t n = f->x->n_rules;
    edges g = {.from = calloc(n + 1, sizeof *g.from), .looked = calloc(f->x->n, sizeof *g.looked)};
    uint32_t *uses = calloc(n + 1, sizeof *uses);
    uint32_t *free_rules = calloc(n + 1, sizeof *free_rules);
    if (g.from == NULL || g.looked == NULL || uses == NULL || free_rules == NULL)
        no_memory(f);
    for (uint32_t rule = 0; rule < n && f->x->status == TERN_OK; rule++) {
        find_edges(f, &g, rule);
        g.from[rule + 1] = g.n;
    }
    if (f->x->status == TERN_OK)
        find_cycle(f, &g, uses, free_rules);
    free(g.to);
    free(g.from);
    free(g.todo);
    free(g.looked);
    free(uses);
    free(free_rules);
}

/* ---- all of it --------------------------------------------------------------------------------
 */

static void check_rules(tern_exprs *x) {
    for (size_t i = 0; i < x->n_rules; i++) {
        const tern_expr_rule *r = &x->rules[i];
        if (!r->defined)
            tern_exprs_fail(x, TERN_ERR_GRAMMAR, "%s: the rule %.*s is used and not there", x->name,
                            (int)(r->name_size < 100 ? r->name_size : 100), x->texts + r->name);
    }
}

tern_status tern_expr_facts_find(tern_exprs *x, tern_expr_facts *out) {
    finder f = {.x = x, .facts = out};
    *out = (tern_expr_facts){.nullable = calloc(x->n + 1, sizeof(bool)),
                             .productive = calloc(x->n + 1, sizeof(bool))};
    if (out->nullable == NULL || out->productive == NULL)
        no_memory(&f);
    check_rules(x);
    if (x->status == TERN_OK)
        find(&f, out->nullable, true);
    if (x->status == TERN_OK)
        find(&f, out->productive, false);
    if (x->status == TERN_OK)
        refuse_left_recursion(&f);
    return x->status;
}

void tern_expr_facts_free(tern_expr_facts *f) {
    free(f->nullable);
    free(f->productive);
    *f = (tern_expr_facts){0};
}
