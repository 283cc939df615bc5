/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/text/grammar/program.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "runtime/text/grammar/facts.h"

enum {
    MOST_STEPS = TERN_GRAMMAR_LIMIT(1 << 23),
    MOST_COPIES = 64, /* copies of an expression that may be empty, in counted repetitions */
    SHARED_TAILS = 64 /* latest nodes of a set of characters that are searched for an equal one */
};

typedef struct maker {
    tern_exprs *x;
    tern_program *p;
    tern_expr_facts facts;
    size_t capacity;
    uint32_t end; /* the RETURN node */
    uint32_t steps;
} maker;

const tern_kind_span tern_kind_spans[TERN_KIND_SPANS] = {
    {0, 0x1f, TERN_KIND_REST},
    {' ', ' ', TERN_KIND_SPACE},
    {'!', '!', TERN_KIND_MARK},
    {'"', '"', TERN_KIND_REST},
    {'#', '+', TERN_KIND_MARK},
    {',', ',', TERN_KIND_STOP},
    {'-', '-', TERN_KIND_MARK},
    {'.', '.', TERN_KIND_STOP},
    {'/', '/', TERN_KIND_MARK},
    {'0', '9', TERN_KIND_DIGIT},
    {':', '@', TERN_KIND_MARK},
    {'A', 'Z', TERN_KIND_UPPER},
    {'[', '[', TERN_KIND_MARK},
    {'\\', '\\', TERN_KIND_REST},
    {']', '`', TERN_KIND_MARK},
    {'a', 'z', TERN_KIND_LOWER},
    {'{', '~', TERN_KIND_MARK},
    {0x7f, 0x7f, TERN_KIND_REST},
    {0x80, 0xd7ff, TERN_KIND_BEYOND},
    {0xd800, 0xdfff, TERN_KIND_REST},
    {0xe000, 0x10ffff, TERN_KIND_BEYOND},
};

unsigned tern_kind_of(uint32_t code) {
    size_t i = 0;
    while (i + 1 < TERN_KIND_SPANS && code > tern_kind_spans[i].high)
        i++;
    return tern_kind_spans[i].kind;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static uint32_t add(maker *m, tern_node node) {
    tern_program *p = m->p;
    if (m->x->status == TERN_OK && p->n_nodes >= TERN_PROGRAM_MOST_NODES)
        tern_exprs_fail(m->x, TERN_ERR_GRAMMAR, "%s: too large: more than %d steps", m->x->name,
                        TERN_PROGRAM_MOST_NODES);
    if (m->x->status == TERN_OK && !tern_grow((void **)&p->nodes, &m->capacity, p->n_nodes,
                                              sizeof *p->nodes, TERN_PROGRAM_MOST_NODES))
        tern_exprs_fail(m->x, TERN_ERR_NOMEM, "%s: no memory for a grammar", m->x->name);
    if (m->x->status != TERN_OK)
        return 0;
    p->nodes[p->n_nodes] = node;
    return (uint32_t)p->n_nodes++;
}

static uint32_t add_byte(maker *m, uint32_t low, uint32_t high, uint32_t next) {
    return add(
        m, (tern_node){
               .kind = TERN_NODE_BYTES, .low = (uint8_t)low, .high = (uint8_t)high, .next = next});
}

/* a or b; UINT32_MAX stands for nothing. */
static uint32_t add_split(maker *m, uint32_t a, uint32_t b) {
    if (a == UINT32_MAX)
        return b;
    return add(m, (tern_node){.kind = TERN_NODE_SPLIT, .next = b, .other = a});
}

/* ---- characters ------------------------------------------------------------------------------ */

/* A set of characters that is being written, before `next`. */
typedef struct chars {
    uint32_t next;
    uint32_t first_node; /* the first node of this set */
    uint32_t all;        /* the choice so far */
} chars;

/* Returns a node of this set that does the same, or a new one. */
static uint32_t share_byte(maker *m, const chars *c, uint32_t low, uint32_t high, uint32_t next) {
    const size_t n = m->p->n_nodes;
    const size_t from = n - c->first_node > SHARED_TAILS ? n - SHARED_TAILS : c->first_node;
    for (size_t i = from; i < n; i++) {
        const tern_node *node = &m->p->nodes[i];
        if (node->kind == TERN_NODE_BYTES && node->low == low && node->high == high &&
            node->next == next)
            return (uint32_t)i;
    }
    return add_byte(m, low, high, next);
}

static unsigned utf8_size(uint32_t code) {
    return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
}

static uint32_t utf8_byte(uint32_t code, unsigned size, unsigned i) {
    static const uint8_t marks[] = {0, 0, 0xc0, 0xe0, 0xf0};
    const uint32_t bits = code >> (6 * (size - 1 - i));
    return i == 0 ? bits | marks[size] : (bits & 0x3f) | 0x80;
}

/* Adds characters low .. high whose UTF-8 is a product: each byte has a range of its own. */
static void add_product(maker *m, chars *c, uint32_t low, uint32_t high) {
    const unsigned size = utf8_size(low);
    uint32_t at = c->next;
    for (unsigned i = size; i-- > 0;)
        at = share_byte(m, c, utf8_byte(low, size, i), utf8_byte(high, size, i), at);
    c->all = add_split(m, c->all, at);
}

/* Cuts a range into parts that are products of ranges of bytes. */
static void add_range(maker *m, chars *c, uint32_t low, uint32_t high) {
    static const uint32_t edges[] = {0x7f, 0x7ff, 0xd7ff, 0xdfff, 0xffff};
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        if (low <= edges[i] && high > edges[i]) {
            add_range(m, c, low, edges[i]);
            add_range(m, c, edges[i] + 1, high);
            return;
        }
    }
    if (low >= 0xd800 && high <= 0xdfff)
        return;
    for (unsigned i = 1; i < utf8_size(low); i++) {
        const uint32_t mask = (1U << (6 * i)) - 1;
        if ((low & ~mask) == (high & ~mask))
            break;
        if ((low & mask) == 0 && (high & mask) == mask)
            continue;
        const uint32_t cut = (low & mask) != 0 ? low | mask : (high & ~mask) - 1;
        add_range(m, c, low, cut);
        add_range(m, c, cut + 1, high);
        return;
    }
    add_product(m, c, low, high);
}

/* True if the set has all characters of a span. */
static bool holds(const tern_exprs *x, const tern_expr *e, const tern_kind_span *span) {
    for (uint32_t i = 0; i < e->n; i++) {
        const tern_range *r = &x->ranges[e->first + i];
        if (r->low <= span->low && r->high >= span->high)
            return true;
    }
    return false;
}

static uint8_t kinds_of(const tern_exprs *x, const tern_expr *e) {
    unsigned kinds = TERN_KINDS_PLAIN;
    for (size_t i = 0; i < TERN_KIND_SPANS; i++)
        if ((tern_kind_spans[i].kind & kinds) != 0 && !holds(x, e, &tern_kind_spans[i]))
            kinds &= ~tern_kind_spans[i].kind;
    return (uint8_t)kinds;
}

static uint32_t make_chars(maker *m, const tern_expr *e, uint32_t next, bool loop) {
    chars c = {.next = next, .first_node = (uint32_t)m->p->n_nodes, .all = UINT32_MAX};
    for (uint32_t i = 0; i < e->n && m->x->status == TERN_OK; i++)
        add_range(m, &c, m->x->ranges[e->first + i].low, m->x->ranges[e->first + i].high);
    const uint8_t kinds = loop ? kinds_of(m->x, e) : 0;
    for (size_t i = c.first_node; kinds != 0 && i < m->p->n_nodes; i++) {
        tern_node *node = &m->p->nodes[i];
        if (node->kind == TERN_NODE_BYTES && node->low < 0x80)
            node->loop = kinds;
    }
    return c.all;
}

static uint32_t make_bytes(maker *m, const tern_expr *e, uint32_t next) {
    uint32_t all = UINT32_MAX;
    for (uint32_t i = 0; i < e->n; i++) {
        const tern_range *r = &m->x->ranges[e->first + i];
        all = add_split(m, all, add_byte(m, r->low, r->high, next));
    }
    return all;
}

/* ---- expressions ------------------------------------------------------------------------------
 */

/* Makes the nodes of `expr`, which can become a text, followed by `next`; returns the first one.
 * loop: at `next` the expression begins again. */
static uint32_t make(maker *m, uint32_t expr, uint32_t next, bool loop);

static uint32_t make_text(maker *m, const tern_expr *e, uint32_t next) {
    for (uint32_t i = e->n; i-- > 0;) {
        const uint8_t byte = (uint8_t)m->x->texts[e->first + i];
        next = add_byte(m, byte, byte, next);
    }
    return next;
}

static uint32_t make_choice(maker *m, const tern_expr *e, uint32_t next, bool loop) {
    uint32_t all = UINT32_MAX;
    for (uint32_t i = e->n; i-- > 0 && m->x->status == TERN_OK;) {
        const uint32_t member = m->x->members[e->first + i];
        if (m->facts.productive[member])
            all = add_split(m, all, make(m, member, next, loop));
    }
    return all;
}

static uint32_t make_sequence(maker *m, const tern_expr *e, uint32_t next) {
    for (uint32_t i = e->n; i-- > 0 && m->x->status == TERN_OK;)
        next = make(m, m->x->members[e->first + i], next, false);
    return next;
}

/* Makes one round or more; *again is the node after a round. */
static uint32_t make_loop(maker *m, uint32_t body, uint32_t next, uint32_t *again) {
    *again = add(m, (tern_node){.kind = TERN_NODE_SPLIT, .next = next});
    const uint32_t begin = make(m, body, *again, true);
    if (m->x->status == TERN_OK)
        m->p->nodes[*again].other = begin;
    return begin;
}

/* Makes at most `most` rounds of an expression that may be empty, as (x(x(x)?)?)?. */
static uint32_t make_copies(maker *m, const tern_expr *e, uint32_t next) {
    if (e->most > MOST_COPIES)
        tern_exprs_fail(m->x, TERN_ERR_GRAMMAR,
                        "%s: a repetition {%d,%d} of something that may be empty: at most %d times",
                        m->x->name, e->least, e->most, MOST_COPIES);
    uint32_t at = next;
    for (int32_t i = 0; i < e->most && m->x->status == TERN_OK; i++)
        at = add_split(m, make(m, e->first, at, false), next);
    return at;
}

static uint32_t make_repeat(maker *m, const tern_expr *e, uint32_t next) {
    uint32_t again;
    if (!m->facts.productive[e->first])
        return next;
    if (e->least == 0 && e->most == 1)
        return add_split(m, make(m, e->first, next, false), next);
    if (e->most < 0 && (e->least <= 1 || m->facts.nullable[e->first])) {
        const uint32_t begin = make_loop(m, e->first, next, &again);
        return e->least == 1 ? begin : again;
    }
    if (m->facts.nullable[e->first])
        return make_copies(m, e, next);
    const uint32_t body = make(m, e->first, m->end, true);
    return add(m, (tern_node){.kind = TERN_NODE_REPEAT,
                              .next = next,
                              .other = body,
                              .least = e->least,
                              .most = e->most});
}

static uint32_t make(maker *m, uint32_t expr, uint32_t next, bool loop) {
    const tern_expr *e = &m->x->items[expr];
    if (++m->steps > MOST_STEPS)
        tern_exprs_fail(m->x, TERN_ERR_GRAMMAR, "%s: too large", m->x->name);
    if (m->x->status != TERN_OK)
        return 0;
    switch ((tern_expr_kind)e->kind) {
    case TERN_EXPR_KIND_TEXT:
        return make_text(m, e, next);
    case TERN_EXPR_KIND_BYTES:
        return make_bytes(m, e, next);
    case TERN_EXPR_KIND_CHARS:
        return make_chars(m, e, next, loop);
    case TERN_EXPR_KIND_SEQUENCE:
        return make_sequence(m, e, next);
    case TERN_EXPR_KIND_CHOICE:
        return make_choice(m, e, next, loop);
    case TERN_EXPR_KIND_REPEAT:
        return make_repeat(m, e, next);
    case TERN_EXPR_KIND_RULE:
        return add(m, (tern_node){.kind = TERN_NODE_CALL, .next = next, .other = e->first});
    case TERN_EXPR_KIND_NEVER:
    case TERN_EXPR_KIND_EMPTY:
        break;
    }
    return next;
}

/* ---- programs -------------------------------------------------------------------------------- */

static void make_rules(maker *m, uint32_t *starts) {
    m->end = add(m, (tern_node){.kind = TERN_NODE_RETURN});
    for (size_t i = 0; i < m->x->n_rules && m->x->status == TERN_OK; i++)
        if (m->facts.productive[m->x->rules[i].expr])
            starts[i] = make(m, m->x->rules[i].expr, m->end, false);
    for (size_t i = 0; i < m->p->n_nodes; i++)
        if (m->p->nodes[i].kind == TERN_NODE_CALL)
            m->p->nodes[i].other = starts[m->p->nodes[i].other];
    m->p->start = starts[0];
}

static void find_classes(tern_program *p) {
    bool begins[257] = {true};
    for (size_t i = 0; i < p->n_nodes; i++) {
        if (p->nodes[i].kind != TERN_NODE_BYTES)
            continue;
        begins[p->nodes[i].low] = true;
        begins[p->nodes[i].high + 1] = true;
    }
    for (size_t byte = 0; byte < 256; byte++) {
        p->n_classes = (uint16_t)(p->n_classes + begins[byte]);
        p->classes[byte] = (uint8_t)(p->n_classes - 1);
    }
}

tern_status tern_program_make(tern_exprs *x, tern_program *out) {
    *out = (tern_program){0};
    maker m = {.x = x, .p = out};
    uint32_t *starts = calloc(x->n_rules + 1, sizeof *starts);
    if (starts == NULL)
        tern_exprs_fail(x, TERN_ERR_NOMEM, "%s: no memory for a grammar", x->name);
    if (x->status == TERN_OK && tern_expr_facts_find(x, &m.facts) == TERN_OK &&
        !m.facts.productive[x->rules[0].expr])
        tern_exprs_fail(x, TERN_ERR_GRAMMAR, "%s: no text can satisfy it", x->name);
    if (x->status == TERN_OK)
        make_rules(&m, starts);
    if (x->status == TERN_OK)
        find_classes(out);
    else
        tern_program_free(out);
    tern_expr_facts_free(&m.facts);
    free(starts);
    return x->status;
}

void tern_program_free(tern_program *p) {
    free(p->nodes);
    *p = (tern_program){0};
}
