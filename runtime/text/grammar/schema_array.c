/* SPDX-License-Identifier: Apache-2.0 */

/* Arrays, and what encloses the members of arrays and objects. */

#include <stdlib.h>
#include <string.h>

#include "runtime/text/grammar/schema_members.h"

static uint32_t words(tern_schema_reader *r, const char *before, const char *mark,
                      const char *after) {
    const uint32_t parts[] = {*before ? r->space : TERN_EXPR_EMPTY, tern_expr_word(r->x, mark),
                              *after ? r->space : TERN_EXPR_EMPTY};
    return tern_expr_sequence(r->x, parts, 3);
}

uint32_t tern_members_spaced(tern_schema_reader *r, const char *mark) {
    return words(r, " ", mark, " ");
}

static uint32_t opening(tern_schema_reader *r, const char *mark) {
    return words(r, "", mark, " ");
}

static uint32_t closing(tern_schema_reader *r, const char *mark) {
    return words(r, " ", mark, "");
}

uint32_t tern_members_empty(tern_schema_reader *r, const char *open, const char *close) {
    return tern_expr_pair(r->x, opening(r, open), tern_expr_word(r->x, close));
}

uint32_t tern_members_enclosed(tern_schema_reader *r, const char *open, uint32_t inner,
                               const char *close, bool may_be_empty) {
    const uint32_t full[] = {opening(r, open), inner, closing(r, close)};
    const uint32_t all = tern_expr_sequence(r->x, full, 3);
    const uint32_t none = tern_expr_pair(r->x, opening(r, open), tern_expr_word(r->x, close));
    return may_be_empty ? tern_expr_either(r->x, all, none) : all;
}

/* ---- arrays ---------------------------------------------------------------------------------- */

typedef struct array {
    tern_schema_reader *r;
    const tern_schema_set *s;
    size_t n_prefix;     /* items with schemas of their own */
    size_t from, to;     /* items from .. to - 1 are those that `contains` asks for */
    int64_t least, most; /* items; most: -1 any number */
} array;

/* The list of schemas of the first items; NULL: none. */
static const tern_json_value *prefix_of(const tern_json_value *v) {
    const tern_json_value *prefix = tern_json_get(v, "prefixItems");
    const tern_json_value *items = tern_json_get(v, "items");
    return prefix != NULL ? prefix : items != NULL && items->type == TERN_JSON_ARRAY ? items : NULL;
}

/* The schema of the items after these; NULL: any. */
static const tern_json_value *others_of(const tern_json_value *v) {
    const tern_json_value *items = tern_json_get(v, "items");
    const tern_json_value *more = items != NULL && items->type == TERN_JSON_ARRAY
                                      ? tern_json_get(v, "additionalItems")
                                      : items;
    return more;
}

static size_t longest_prefix(tern_schema_reader *r, const tern_schema_set *s) {
    size_t longest = 0;
    for (size_t i = 0; i < s->n; i++) {
        const tern_json_value *prefix = prefix_of(s->items[i].v);
        const size_t n = prefix != NULL ? prefix->count : 0;
        longest = n > longest ? n : longest;
        if (prefix != NULL && prefix->type != TERN_JSON_ARRAY)
            tern_schema_refuse(r, s->items[i].v, "prefixItems", "not a list of schemas");
        if (n > TERN_SCHEMA_MOST_PREFIX)
            tern_schema_refuse(r, s->items[i].v, "prefixItems", "too many");
    }
    return longest;
}

/* Adds what v says of one item. */
static void collect_of(array *a, const tern_json_value *v, size_t index, tern_schema_set *set) {
    const tern_json_value *prefix = prefix_of(v);
    const tern_json_value *own = others_of(v);
    const tern_json_value *contained = tern_json_get(v, "contains");
    if (prefix != NULL && index < prefix->count) {
        own = prefix + 1;
        for (size_t k = 0; k < index; k++)
            own += own->size;
    } else if (own == NULL && index >= a->n_prefix) {
        own = tern_json_get(v, "unevaluatedItems");
    }
    if (own != NULL)
        tern_schema_add(a->r, set, own, TERN_SCHEMA_ALL);
    if (contained != NULL && index >= a->from && index < a->to)
        tern_schema_add(a->r, set, contained, TERN_SCHEMA_ALL);
}

static void collect_item(array *a, size_t index, tern_schema_set *set) {
    for (size_t i = 0; i < a->s->n && tern_schema_work(a->r, index); i++)
        if (a->s->items[i].part == TERN_SCHEMA_OWN)
            collect_of(a, a->s->items[i].v, index, set);
}

static uint32_t item_of(array *a, size_t index) {
    tern_schema_set set = {.n = 0};
    collect_item(a, index, &set);
    return tern_schema_use(a->r, &set);
}

/* Items that an array must contain come first after those with schemas of their own.
 */
static void read_contains(array *a) {
    enum { MOST_CONTAINED = 64 };
    for (size_t i = 0; i < a->s->n; i++) {
        const tern_json_value *v = a->s->items[i].v;
        const bool own = a->s->items[i].part == TERN_SCHEMA_OWN;
        int64_t least = 1;
        if (!own || tern_json_get(v, "contains") == NULL)
            continue;
        (void)tern_json_integer(tern_json_get(v, "minContains"), &least);
        if (least <= 0)
            continue;
        a->r->notes->narrowed = true;
        if (!a->r->narrow || least > MOST_CONTAINED || a->to > 0 ||
            tern_json_get(v, "unevaluatedItems") != NULL) {
            tern_schema_note(a->r, v, "contains", "this is not enforced");
            continue;
        }
        a->from = a->most >= 0 && (int64_t)a->n_prefix + least > a->most ? 0 : a->n_prefix;
        a->to = a->from + (size_t)least;
    }
    const int64_t needed = (int64_t)a->to;
    a->least = a->least > needed ? a->least : needed;
}

/* All that may follow the first item, with the commas. */
static uint32_t items_after(array *a) {
    tern_exprs *x = a->r->x;
    const size_t own = a->n_prefix > a->to ? a->n_prefix : a->to;
    const size_t first = own > 0 ? own : 1;
    const uint32_t comma = tern_members_spaced(a->r, ",");
    const int64_t least = a->least > (int64_t)first ? a->least - (int64_t)first : 0;
    const int64_t most = a->most < 0                ? TERN_EXPR_UNLIMITED
                         : a->most > (int64_t)first ? a->most - (int64_t)first
                                                    : 0;
    uint32_t rest = tern_expr_repeat(x, tern_expr_pair(x, comma, item_of(a, own)), (int32_t)least,
                                     (int32_t)most);
    for (size_t i = first; i-- > 1 && x->status == TERN_OK;) {
        if (a->most >= 0 && (int64_t)i >= a->most) {
            rest = TERN_EXPR_EMPTY;
            continue;
        }
        const uint32_t parts[] = {comma, item_of(a, i), rest};
        const uint32_t more = tern_expr_sequence(x, parts, 3);
        const uint32_t rule = tern_expr_rule_new(x, "items", strlen("items"));
        tern_expr_rule_define(x, rule, (int64_t)i < a->least ? more : tern_expr_optional(x, more));
        rest = tern_expr_rule_use(x, rule);
    }
    return rest;
}

/* ---- items that are all different ------------------------------------------------------------ */

enum {
    MOST_DIFFERENT = 10, /* values in any order: there is a rule for each set of them */
    MOST_IN_ORDER = 1024 /* values in the order of the schema */
};

typedef struct different {
    array *a;
    const tern_json_value *kept[MOST_IN_ORDER];
    uint32_t values[MOST_IN_ORDER];      /* [n] */
    uint32_t rules[1 << MOST_DIFFERENT]; /* [2^n] what may follow when these values were there */
    size_t n;
} different;

/* Keeps a listed value that is not there yet. */
static void keep_value(different *d, const tern_json_value *v) {
    tern_schema_check c = {.root = v};
    for (size_t k = 0; k < d->n && tern_schema_work(d->a->r, 0); k++)
        if (tern_schema_same(&c, d->kept[k], v))
            return;
    d->kept[d->n] = v;
    d->values[d->n++] = tern_schema_value(d->a->r, v);
}

/* The listed values that items may be, each once; false: they are not listed, or too many. */
static bool find_values(different *d) {
    tern_schema_reader *r = d->a->r;
    static const tern_json_value truth[] = {{TERN_JSON_FALSE, 0, 1, 0, {NULL, 0}},
                                            {TERN_JSON_TRUE, 0, 1, 0, {NULL, 0}}};
    tern_schema_set item = {.n = 0};
    tern_schema_facts f;
    collect_item(d->a, 0, &item);
    if (!tern_schema_settle(r, &item))
        return r->x->status == TERN_OK;
    if (tern_schema_has_choice(&item))
        return false;
    tern_schema_facts_of(r, &item, &f);
    const bool two = f.n_lists == 0 && f.types == TERN_TYPE_BOOLEAN && !f.no_true && !f.no_false;
    for (size_t i = 0; i < 2 && two; i++)
        keep_value(d, &truth[i]);
    const tern_json_value *v = f.n_lists > 0 ? f.lists[0].first : NULL;
    for (uint32_t i = 0; v != NULL && i < f.lists[0].n && d->n < MOST_IN_ORDER; i++, v += v->size)
        if (tern_schema_may_be(r, &item, &f, v))
            keep_value(d, v);
    return two || (f.n_lists > 0 && d->n < MOST_IN_ORDER);
}

/* Says what follows when the values `used` were there: another value, or the end. */
static uint32_t after_values(different *d, size_t used, uint32_t comma) {
    tern_exprs *x = d->a->r->x;
    tern_expr_list choice = {.x = x};
    const int64_t n = __builtin_popcountll(used);
    if (n >= d->a->least)
        tern_expr_add(&choice, TERN_EXPR_EMPTY);
    for (size_t i = 0; i < d->n && (d->a->most < 0 || n < d->a->most); i++) {
        if ((used >> i & 1) != 0)
            continue;
        const uint32_t parts[] = {n > 0 ? comma : TERN_EXPR_EMPTY, d->values[i],
                                  tern_expr_rule_use(x, d->rules[used | (size_t)1 << i])};
        tern_expr_add(&choice, tern_expr_sequence(x, parts, 3));
    }
    return tern_expr_end_choice(&choice);
}

/* In any order. */
static uint32_t in_any_order(different *d) {
    tern_exprs *x = d->a->r->x;
    const uint32_t comma = tern_members_spaced(d->a->r, ",");
    const size_t sets = (size_t)1 << d->n;
    for (size_t i = 0; i < sets && x->status == TERN_OK; i++)
        d->rules[i] = tern_expr_rule_new(x, "items", strlen("items"));
    for (size_t i = sets; i-- > 1 && tern_schema_work(d->a->r, d->n);)
        tern_expr_rule_define(x, d->rules[i], after_values(d, i, comma));
    tern_expr_list first = {.x = x};
    for (size_t i = 0; i < d->n && x->status == TERN_OK; i++)
        tern_expr_add(&first, tern_expr_pair(x, d->values[i],
                                             tern_expr_rule_use(x, d->rules[(size_t)1 << i])));
    tern_expr_rule_define(x, d->rules[0], TERN_EXPR_EMPTY);
    return tern_expr_end_choice(&first);
}

/* In the order of the schema: each value is followed by later ones. Rules that count are as many as
 * values and items; rule (i, c): values from i on, c items stand there. */
static uint32_t in_order(different *d) {
    tern_exprs *x = d->a->r->x;
    const int64_t most = d->a->most < 0 || d->a->most > (int64_t)d->n ? -1 : d->a->most;
    const size_t counts = (size_t)(most >= 0 ? most : d->a->least > 1 ? d->a->least : 1);
    const uint32_t comma = tern_members_spaced(d->a->r, ",");
    uint32_t *rules = calloc((d->n + 1) * counts, sizeof *rules);
    tern_expr_list first = {.x = x};
    if (rules == NULL)
        tern_exprs_fail(x, TERN_ERR_NOMEM, "%s: no memory", d->a->r->name);
    for (size_t i = 0; i < (d->n + 1) * counts && x->status == TERN_OK; i++)
        rules[i] = tern_expr_rule_new(x, "items", strlen("items"));
    for (size_t i = 0; i < (d->n + 1) * counts && x->status == TERN_OK; i++) {
        const size_t value = i / counts, c = i % counts + 1;
        const size_t next = c < counts ? c : counts - 1; /* of one more */
        uint32_t all = (int64_t)c >= d->a->least ? TERN_EXPR_EMPTY : TERN_EXPR_NEVER;
        if (value < d->n) {
            const uint32_t more[] = {comma, d->values[value],
                                     tern_expr_rule_use(x, rules[(value + 1) * counts + next])};
            all = tern_expr_rule_use(x, rules[(value + 1) * counts + c - 1]);
            if (most < 0 || (int64_t)c < most)
                all = tern_expr_either(x, tern_expr_sequence(x, more, 3), all);
        }
        tern_expr_rule_define(x, rules[i], all);
    }
    for (size_t i = 0; i < d->n && x->status == TERN_OK; i++)
        tern_expr_add(&first, tern_expr_pair(x, d->values[i],
                                             tern_expr_rule_use(x, rules[(i + 1) * counts])));
    free(rules);
    return tern_expr_end_choice(&first);
}

/* NEVER with *told false where the values are not listed. */
static uint32_t all_different(array *a, bool *told) {
    different *d = calloc(1, sizeof *d);
    uint32_t all = TERN_EXPR_NEVER;
    if (d == NULL) {
        tern_exprs_fail(a->r->x, TERN_ERR_NOMEM, "%s: no memory", a->r->name);
        return all;
    }
    d->a = a;
    *told = find_values(d) && d->n * (size_t)(a->least > 1 ? a->least : 1) < 4 * MOST_IN_ORDER &&
            (d->n <= MOST_DIFFERENT || a->r->narrow);
    if (*told && a->least <= (int64_t)d->n) {
        a->r->notes->narrowed |= d->n > MOST_DIFFERENT;
        all = tern_members_enclosed(
            a->r, "[", d->n <= MOST_DIFFERENT ? in_any_order(d) : in_order(d), "]", a->least == 0);
    }
    free(d);
    return all;
}

uint32_t tern_schema_array(tern_schema_reader *r, const tern_schema_set *s,
                           const tern_schema_facts *f) {
    array a = {.r = r, .s = s, .least = f->least_items, .most = f->most_items};
    a.n_prefix = longest_prefix(r, s);
    read_contains(&a);
    if (r->x->status != TERN_OK || (a.most >= 0 && a.most < a.least))
        return TERN_EXPR_NEVER;
    if (a.most == 0)
        return tern_members_empty(r, "[", "]");
    if (f->unique && a.most != 1) {
        bool told = false;
        const uint32_t all =
            a.n_prefix == 0 && a.to == 0 ? all_different(&a, &told) : TERN_EXPR_NEVER;
        if (told || r->x->status != TERN_OK)
            return all;
        tern_schema_note(r, s->items[0].v, "uniqueItems",
                         "of values that are not listed this is "
                         "not enforced");
    }
    const uint32_t rest = items_after(&a);
    return tern_members_enclosed(r, "[", tern_expr_pair(r->x, item_of(&a, 0), rest), "]",
                                 a.least == 0);
}
