/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Texts of a pattern that have some length. An expression cannot count characters beside what it
 * matches, but most patterns have one part that may grow: it is given the room that the others
 * leave, which is exact. Several such parts share the room, so some texts are lost and none is too
 * long.
 */

#include "runtime/text/grammar/schema.h"

enum { MOST_PARTS = 64, ROUNDS = 8 };

/* How many characters texts have; most < 0: any number from `least` on. */
typedef struct lengths {
    int64_t least, most;
} lengths;

/* In a pattern each text is one escaped character. */
static lengths lengths_of(const tern_exprs *x, uint32_t expr) {
    const tern_expr *e = &x->items[expr];
    lengths all = {0, 0}, one;
    switch ((tern_expr_kind)e->kind) {
    case TERN_EXPR_KIND_NEVER:
    case TERN_EXPR_KIND_EMPTY:
    case TERN_EXPR_KIND_RULE:
        return all;
    case TERN_EXPR_KIND_TEXT:
    case TERN_EXPR_KIND_BYTES:
    case TERN_EXPR_KIND_CHARS:
        return (lengths){1, 1};
    case TERN_EXPR_KIND_REPEAT:
        one = lengths_of(x, e->first);
        all.least = one.least * e->least;
        all.most = one.most == 0 || e->most == 0 ? 0
                   : one.most < 0 || e->most < 0 ? -1
                                                 : one.most * e->most;
        break;
    case TERN_EXPR_KIND_SEQUENCE:
    case TERN_EXPR_KIND_CHOICE:
        for (uint32_t i = 0; i < e->n; i++) {
            const bool add = e->kind == TERN_EXPR_KIND_SEQUENCE, first = i == 0;
            one = lengths_of(x, x->members[e->first + i]);
            const int64_t larger = one.most > all.most ? one.most : all.most;
            const int64_t smaller = first || one.least < all.least ? one.least : all.least;
            all.most = one.most < 0 || all.most < 0 ? -1 : add ? all.most + one.most : larger;
            all.least = add ? all.least + one.least : smaller;
        }
        break;
    }
    const int64_t much = (int64_t)1 << 40; /* keeps products within 64 bits */
    all.least = all.least < much ? all.least : much;
    all.most = all.most > much ? -1 : all.most;
    return all;
}

static uint32_t within(tern_exprs *x, uint32_t expr, lengths wanted);

/* least to `rounds` rounds that share the room. */
static uint32_t rounds_within(tern_exprs *x, const tern_expr *e, int64_t least, int64_t rounds,
                              int64_t room) {
    const int64_t most = e->most < 0 || rounds < e->most ? rounds : e->most;
    const lengths one = lengths_of(x, e->first);
    uint32_t member = e->first;
    if (most < least || most > TERN_EXPR_MOST_REPEATS)
        return TERN_EXPR_NEVER;
    if (most > 0 && (one.most < 0 || one.most * most > room))
        member = within(x, member, (lengths){0, room / most});
    return tern_expr_repeat(x, member, (int32_t)least, (int32_t)most);
}

static uint32_t repeat_within(tern_exprs *x, uint32_t expr, lengths wanted) {
    const tern_expr e = x->items[expr];
    const lengths one = lengths_of(x, e.first);
    const int64_t each = one.least > 0 ? one.least : 1;
    const int64_t needed = (wanted.least + each - 1) / each;
    const int64_t least = needed > e.least ? needed : e.least;
    if ((one.least == 0 && wanted.least > 0) || least > TERN_EXPR_MOST_REPEATS)
        return TERN_EXPR_NEVER;
    if (wanted.most < 0)
        return e.most >= 0 && e.most < least ? TERN_EXPR_NEVER
                                             : tern_expr_repeat(x, e.first, (int32_t)least, e.most);
    /* Rounds as fit at their longest; and more of them that are shorter. */
    const int64_t fit = one.most > 0 ? wanted.most / one.most : least;
    const int64_t few = fit > least ? fit : least > 0 ? least : 1;
    const int64_t could = wanted.most / each;
    const int64_t many = could < ROUNDS ? could : ROUNDS;
    const uint32_t all = rounds_within(x, &e, least, few, wanted.most);
    return many <= few ? all
                       : tern_expr_either(x, all, rounds_within(x, &e, least, many, wanted.most));
}

/* The characters that the parts of a sequence may have beyond their least. */
typedef struct shares {
    lengths own[MOST_PARTS];
    int64_t more[MOST_PARTS]; /* -1: any number */
} shares;

static int64_t growth(lengths l) {
    return l.most < 0 ? INT64_MAX : l.most - l.least;
}

/* Shares room among the parts that grow: those that grow least get all that they can take. */
static void share(shares *s, size_t n, int64_t room) {
    bool done[MOST_PARTS] = {false};
    for (size_t left = n; left > 0; left--) {
        size_t next = n, growing = 0;
        for (size_t i = 0; i < n; i++) {
            if (done[i])
                continue;
            growing += growth(s->own[i]) > 0;
            if (next == n || growth(s->own[i]) < growth(s->own[next]))
                next = i;
        }
        const int64_t part = growing > 0 ? room / (int64_t)growing : 0;
        s->more[next] = growth(s->own[next]) < part ? growth(s->own[next]) : part;
        room -= s->more[next];
        done[next] = true;
    }
}

/* The parts of a sequence, and how much each may grow. */
typedef struct parts {
    tern_exprs *x;
    uint32_t members[MOST_PARTS];
    size_t n;
    shares s;
} parts;

static int64_t room_of(const parts *p, size_t i) {
    return p->s.more[i] >= 0 ? p->s.more[i] : growth(p->s.own[i]);
}

/* Part i with at least `more` characters beyond its least. */
static uint32_t part_with(const parts *p, size_t i, int64_t more) {
    const lengths own = p->s.own[i];
    const int64_t most = p->s.more[i] < 0 ? -1 : own.least + p->s.more[i];
    return within(p->x, p->members[i], (lengths){own.least + more, most});
}

/* Parts from i on that grow by `lacking` together. Where that is little, in all ways to share it;
 * otherwise one part grows by all of it. */
static uint32_t growing(const parts *p, size_t i, int64_t lacking) {
    enum { LITTLE = 4 };
    uint32_t all = TERN_EXPR_NEVER;
    if (i == p->n)
        return lacking == 0 ? TERN_EXPR_EMPTY : TERN_EXPR_NEVER;
    for (int64_t more = 0; more <= lacking && p->x->status == TERN_OK; more++) {
        if (more > room_of(p, i) || (lacking > LITTLE && more > 0 && more < lacking))
            continue;
        const uint32_t rest = growing(p, i + 1, lacking - more);
        if (rest != TERN_EXPR_NEVER)
            all = tern_expr_either(p->x, all, tern_expr_pair(p->x, part_with(p, i, more), rest));
    }
    return all;
}

static uint32_t sequence_within(tern_exprs *x, uint32_t expr, lengths wanted) {
    const tern_expr e = x->items[expr];
    const lengths all = lengths_of(x, expr);
    parts p = {.x = x, .n = e.n};
    if (e.n > MOST_PARTS || (wanted.most >= 0 && all.least > wanted.most))
        return TERN_EXPR_NEVER;
    for (size_t i = 0; i < e.n; i++) {
        p.members[i] = x->members[e.first + i];
        p.s.own[i] = lengths_of(x, p.members[i]);
        p.s.more[i] = -1;
    }
    if (wanted.most >= 0)
        share(&p.s, e.n, wanted.most - all.least);
    const int64_t lacking = wanted.least - all.least;
    return growing(&p, 0, lacking > 0 ? lacking : 0);
}

static uint32_t choice_within(tern_exprs *x, uint32_t expr, lengths wanted) {
    const tern_expr e = x->items[expr];
    uint32_t all = TERN_EXPR_NEVER;
    for (uint32_t i = 0; i < e.n; i++)
        all = tern_expr_either(x, all, within(x, x->members[e.first + i], wanted));
    return all;
}

static uint32_t within(tern_exprs *x, uint32_t expr, lengths wanted) {
    const lengths own = lengths_of(x, expr);
    const bool long_enough = own.least >= wanted.least;
    const bool short_enough = wanted.most < 0 || (own.most >= 0 && own.most <= wanted.most);
    if (x->status != TERN_OK || expr == TERN_EXPR_NEVER || (long_enough && short_enough))
        return expr;
    switch ((tern_expr_kind)x->items[expr].kind) {
    case TERN_EXPR_KIND_REPEAT:
        return repeat_within(x, expr, wanted);
    case TERN_EXPR_KIND_SEQUENCE:
        return sequence_within(x, expr, wanted);
    case TERN_EXPR_KIND_CHOICE:
        return choice_within(x, expr, wanted);
    default:
        return TERN_EXPR_NEVER;
    }
}

uint32_t tern_pattern_with_length(tern_exprs *x, uint32_t expr, int64_t least, int64_t most) {
    return within(x, expr, (lengths){least, most});
}
