/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Texts that several patterns match. Each pattern becomes an automaton that reads characters; their
 * product is made of the pairs of places that a text can lead to, and becomes a rule for each of
 * these. Under a pattern a character can be written in one way only, so the parts of its expression
 * that read one can be compared as sets.
 */

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "runtime/text/grammar/schema.h"

enum {
    MOST_NODES = TERN_GRAMMAR_LIMIT(1 << 13),
    MOST_CELLS = TERN_GRAMMAR_LIMIT(1 << 20), /* pairs of nodes that there could be */
    MOST_PAIRS = TERN_GRAMMAR_LIMIT(1 << 24), /* compared for all strings of a schema */
    MOST_RULES = TERN_EXPR_MOST_RULES / 2,
    END = 0,  /* the node where a text is whole */
    DEAD = 1, /* the node that leads nowhere */
    BEGIN = 2
};

static const uint32_t any = UINT32_MAX; /* in place of an expression: every character */

/* Reads a character of `leaf` and goes on at next; or, if leaf is NEVER, at next and at other. */
typedef struct node {
    uint32_t leaf, next, other;
} node;

typedef struct automaton {
    tern_exprs *x;
    node *nodes;
    size_t n, capacity;
    uint32_t start;
    bool failed; /* too large, no memory, or not a pattern */
} automaton;

static uint32_t add(automaton *a, node one) {
    if (a->failed || !tern_grow((void **)&a->nodes, &a->capacity, a->n, sizeof one, MOST_NODES)) {
        a->failed = true;
        return DEAD;
    }
    a->nodes[a->n] = one;
    return (uint32_t)a->n++;
}

static automaton begin(tern_exprs *x) {
    automaton a = {.x = x};
    (void)add(&a, (node){TERN_EXPR_NEVER, END, END});
    (void)add(&a, (node){TERN_EXPR_NEVER, DEAD, DEAD});
    return a;
}

static uint32_t split(automaton *a, uint32_t next, uint32_t other) {
    return add(a, (node){TERN_EXPR_NEVER, next, other});
}

/* ---- of an expression ------------------------------------------------------------------------ */

static uint32_t make(automaton *a, uint32_t expr, uint32_t next);

static uint32_t make_repeat(automaton *a, uint32_t expr, int32_t least, int32_t most,
                            uint32_t next) {
    uint32_t at = next;
    if (most < 0) {
        at = split(a, DEAD, next);
        const uint32_t body = make(a, expr, at);
        if (!a->failed)
            a->nodes[at].next = body;
    }
    for (int32_t i = least; i < most && !a->failed; i++)
        at = split(a, make(a, expr, at), next);
    for (int32_t i = 0; i < least && !a->failed; i++)
        at = make(a, expr, at);
    return at;
}

/* Makes the nodes that read an expression and go on at `next`; returns the first. */
static uint32_t make(automaton *a, uint32_t expr, uint32_t next) {
    if (expr == any)
        return add(a, (node){any, next, next});
    const tern_expr e = a->x->items[expr];
    uint32_t at = e.kind == TERN_EXPR_KIND_CHOICE ? DEAD : next;
    switch ((tern_expr_kind)e.kind) {
    case TERN_EXPR_KIND_NEVER:
        return DEAD;
    case TERN_EXPR_KIND_EMPTY:
        return next;
    case TERN_EXPR_KIND_TEXT:
    case TERN_EXPR_KIND_CHARS:
        return add(a, (node){expr, next, next});
    case TERN_EXPR_KIND_REPEAT:
        return make_repeat(a, e.first, e.least, e.most, next);
    case TERN_EXPR_KIND_SEQUENCE:
        for (uint32_t i = e.n; i > 0 && !a->failed; i--)
            at = make(a, a->x->members[e.first + i - 1], at);
        return at;
    case TERN_EXPR_KIND_CHOICE:
        for (uint32_t i = e.n; i > 0 && !a->failed; i--)
            at = split(a, make(a, a->x->members[e.first + i - 1], next), at);
        return at;
    case TERN_EXPR_KIND_BYTES:
    case TERN_EXPR_KIND_RULE:
        break;
    }
    a->failed = true; /* a pattern has none */
    return DEAD;
}

static automaton automaton_of(tern_exprs *x, uint32_t expr) {
    automaton a = begin(x);
    a.start = make(&a, expr, END);
    return a;
}

/* ---- where a text may go on ------------------------------------------------------------------ */

/* The nodes that read a character, or end the text, behind a node. */
typedef struct reach {
    uint32_t *found; /* [n] */
    size_t n;
    uint32_t *todo;
    uint8_t *seen;
} reach;

static bool reach_open(reach *r, const automaton *a) {
    *r = (reach){.found = calloc(a->n, sizeof *r->found),
                 .todo = calloc(2 * a->n + 1, sizeof *r->todo),
                 .seen = calloc(a->n, 1)};
    return r->found != NULL && r->todo != NULL && r->seen != NULL;
}

static void reach_close(reach *r) {
    free(r->found);
    free(r->todo);
    free(r->seen);
}

static void reach_from(reach *r, const automaton *a, uint32_t from) {
    size_t n_todo = 1;
    memset(r->seen, 0, a->n);
    r->n = 0;
    r->todo[0] = from;
    while (n_todo > 0) {
        const uint32_t at = r->todo[--n_todo];
        if (r->seen[at] != 0)
            continue;
        r->seen[at] = 1;
        if (at == END || a->nodes[at].leaf != TERN_EXPR_NEVER) {
            r->found[r->n++] = at;
        } else {
            r->todo[n_todo++] = a->nodes[at].other;
            r->todo[n_todo++] = a->nodes[at].next;
        }
    }
}

/* ---- the product ----------------------------------------------------------------------------- */

/* Characters that two expressions share. */
typedef struct shared {
    uint32_t a, b, both;
} shared;

typedef struct product {
    const automaton *a, *b;
    automaton out;
    uint32_t *heads; /* [a->n * b->n] nodes of pairs; 0: none yet */
    uint32_t *pairs; /* [n_pairs] cells whose nodes are to be made */
    size_t n_pairs, pairs_capacity;
    shared *known; /* [n_known] */
    size_t n_known, known_capacity;
} product;

static uint32_t cut_ranges(tern_exprs *x, const tern_expr *a, const tern_expr *b) {
    tern_range *cut = malloc(((size_t)a->n + b->n + 1) * sizeof *cut);
    size_t n = 0;
    for (uint32_t i = 0, k = 0; cut != NULL && i < a->n && k < b->n;) {
        const tern_range p = x->ranges[a->first + i], q = x->ranges[b->first + k];
        const uint32_t low = p.low > q.low ? p.low : q.low;
        const uint32_t high = p.high < q.high ? p.high : q.high;
        if (low <= high)
            cut[n++] = (tern_range){low, high};
        i += p.high <= q.high;
        k += q.high <= p.high;
    }
    if (cut == NULL)
        tern_exprs_fail(x, TERN_ERR_NOMEM, "%s: no memory for a grammar", x->name);
    const uint32_t both = cut != NULL ? tern_expr_chars(x, cut, n) : TERN_EXPR_NEVER;
    free(cut);
    return both;
}

static uint32_t compare(tern_exprs *x, uint32_t a, uint32_t b) {
    const tern_expr *p = &x->items[a], *q = &x->items[b];
    if (p->kind != q->kind)
        return TERN_EXPR_NEVER; /* an escaped character, and such as need not be escaped */
    if (p->kind == TERN_EXPR_KIND_CHARS) {
        const tern_expr copies[] = {*p, *q}; /* x grows */
        return cut_ranges(x, &copies[0], &copies[1]);
    }
    const bool same = p->n == q->n && memcmp(x->texts + p->first, x->texts + q->first, p->n) == 0;
    return same ? a : TERN_EXPR_NEVER;
}

static uint32_t share(product *p, uint32_t a, uint32_t b) {
    if (a == any || a == b)
        return b;
    if (b == any)
        return a;
    for (size_t i = 0; i < p->n_known; i++)
        if (p->known[i].a == a && p->known[i].b == b)
            return p->known[i].both;
    const shared one = {a, b, compare(p->out.x, a, b)};
    if (tern_grow((void **)&p->known, &p->known_capacity, p->n_known, sizeof one, MOST_NODES))
        p->known[p->n_known++] = one;
    return one.both;
}

/* The node of a pair of places, which is made later if it is new. */
static uint32_t head_of(product *p, uint32_t a, uint32_t b) {
    if (a == END && b == END)
        return END;
    const size_t cell = (size_t)a * p->b->n + b;
    if (p->heads[cell] != 0)
        return p->heads[cell];
    if (!tern_grow((void **)&p->pairs, &p->pairs_capacity, p->n_pairs, sizeof *p->pairs,
                   MOST_NODES)) {
        p->out.failed = true;
        return DEAD;
    }
    p->pairs[p->n_pairs++] = (uint32_t)cell;
    p->heads[cell] = split(&p->out, DEAD, DEAD);
    return p->heads[cell];
}

/* Makes the nodes of a pair: what both read, and where they go on then. */
static void make_pair(product *p, uint32_t cell, reach *ra, reach *rb) {
    uint32_t at = DEAD;
    reach_from(ra, p->a, cell / (uint32_t)p->b->n);
    reach_from(rb, p->b, cell % (uint32_t)p->b->n);
    p->out.x->pairs += ra->n * rb->n + p->a->n + p->b->n;
    p->out.failed |= p->out.x->pairs > MOST_PAIRS;
    for (size_t i = 0; i < ra->n && !p->out.failed; i++) {
        for (size_t k = 0; k < rb->n && !p->out.failed; k++) {
            const uint32_t a = ra->found[i], b = rb->found[k];
            if ((a == END) != (b == END))
                continue;
            if (a == END) {
                at = split(&p->out, END, at);
                continue;
            }
            const uint32_t leaf = share(p, p->a->nodes[a].leaf, p->b->nodes[b].leaf);
            if (leaf == TERN_EXPR_NEVER)
                continue;
            const uint32_t next = head_of(p, p->a->nodes[a].next, p->b->nodes[b].next);
            at = split(&p->out, add(&p->out, (node){leaf, next, next}), at);
        }
    }
    if (!p->out.failed)
        p->out.nodes[p->heads[cell]].next = at;
}

static automaton multiply(const automaton *a, const automaton *b) {
    product p = {.a = a, .b = b, .out = begin(a->x)};
    reach ra = {0}, rb = {0};
    p.out.failed |= a->failed || b->failed || a->n * b->n > MOST_CELLS;
    if (!p.out.failed)
        p.heads = calloc(a->n * b->n, sizeof *p.heads);
    p.out.failed |= p.heads == NULL || !reach_open(&ra, a) || !reach_open(&rb, b);
    if (!p.out.failed)
        p.out.start = head_of(&p, a->start, b->start);
    for (size_t i = 0; i < p.n_pairs && !p.out.failed; i++)
        make_pair(&p, p.pairs[i], &ra, &rb);
    reach_close(&ra);
    reach_close(&rb);
    free(p.heads);
    free(p.pairs);
    free(p.known);
    return p.out;
}

/* ---- as rules -------------------------------------------------------------------------------- */

/* Marks the nodes from which a text can become whole. Nodes mostly go on at later ones. */
static void find_live(const automaton *a, uint8_t *live) {
    live[END] = 1;
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = a->n; i-- > BEGIN;) {
            const node *one = &a->nodes[i];
            if (live[i] == 0 && (live[one->next] != 0 || live[one->other] != 0)) {
                live[i] = 1;
                changed = true;
            }
        }
    }
}

/* The rule of a node, made when it is first asked for. */
static uint32_t rule_of(automaton *a, uint32_t *rules, uint32_t at, uint32_t *todo, size_t *n) {
    if (rules[at] == 0) {
        rules[at] = tern_expr_rule_new(a->x, "", 0) + 1;
        todo[(*n)++] = at;
    }
    return tern_expr_rule_use(a->x, rules[at] - 1);
}

static uint32_t write_rules(automaton *a, const uint8_t *live, uint32_t *rules, uint32_t *todo,
                            reach *r) {
    size_t n = 0;
    const uint32_t all = rule_of(a, rules, a->start, todo, &n);
    for (size_t i = 0; i < n && a->x->status == TERN_OK; i++) {
        tern_expr_list choice = {.x = a->x};
        reach_from(r, a, todo[i]);
        for (size_t k = 0; k < r->n; k++) {
            const node *one = &a->nodes[r->found[k]];
            if (r->found[k] == END || one->next == END)
                tern_expr_add(&choice, r->found[k] == END ? TERN_EXPR_EMPTY : one->leaf);
            else if (live[one->next] != 0)
                tern_expr_add(&choice, tern_expr_pair(a->x, one->leaf,
                                                      rule_of(a, rules, one->next, todo, &n)));
        }
        tern_expr_rule_define(a->x, rules[todo[i]] - 1, tern_expr_end_choice(&choice));
    }
    return all;
}

/* Counts the rules that an automaton would have: nodes that are live behind a character. */
static size_t count_rules(const automaton *a, const uint8_t *live, uint8_t *is_one) {
    size_t n = 1;
    for (size_t i = BEGIN; i < a->n; i++) {
        const uint32_t next = a->nodes[i].next;
        if (a->nodes[i].leaf == TERN_EXPR_NEVER || live[next] == 0 || is_one[next] != 0)
            continue;
        is_one[next] = 1;
        n++;
    }
    return n;
}

/* Makes an expression of an automaton; false: it is too large. */
static bool to_rules(automaton *a, uint32_t *out) {
    uint8_t *live = calloc(a->n, 2);
    uint32_t *rules = calloc(a->n, 2 * sizeof *rules);
    reach r = {0};
    bool made = !a->failed && live != NULL && rules != NULL && reach_open(&r, a);
    if (made)
        find_live(a, live);
    *out = TERN_EXPR_NEVER;
    if (made && live[a->start] != 0) {
        made = a->x->n_rules + count_rules(a, live, live + a->n) <= MOST_RULES;
        if (made)
            *out = write_rules(a, live, rules, rules + a->n, &r);
    }
    reach_close(&r);
    free(live);
    free(rules);
    return made;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Characters of any kind, least to most of them. */
static automaton of_length(tern_exprs *x, int64_t least, int64_t most) {
    automaton a = begin(x);
    a.failed |= least > MOST_NODES || most > MOST_NODES;
    if (!a.failed)
        a.start = make_repeat(&a, any, (int32_t)least, most < 0 ? -1 : (int32_t)most, END);
    return a;
}

bool tern_pattern_both(tern_exprs *x, const uint32_t *exprs, size_t n, int64_t least, int64_t most,
                       uint32_t *out) {
    automaton all = automaton_of(x, exprs[0]);
    const size_t factors = n + (least > 0 || most >= 0);
    for (size_t i = 1; i < factors; i++) {
        automaton one = i < n ? automaton_of(x, exprs[i]) : of_length(x, least, most);
        automaton both = multiply(&all, &one);
        free(all.nodes);
        free(one.nodes);
        all = both;
    }
    const bool made = to_rules(&all, out);
    free(all.nodes);
    return made;
}
