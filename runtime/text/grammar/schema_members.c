/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Objects and arrays. Properties stand in the order in which the schema names them, then those that
 * are required and not named, then further ones. Those that are not required may be left out.
 */

#include <stdlib.h>
#include <string.h>

#include "runtime/text/grammar/schema.h"

typedef struct object {
    tern_schema_reader *r;
    const tern_schema_set *s;
    tern_span *names; /* [n] */
    bool *required;   /* [n] */
    size_t n;
    uint32_t *members; /* [n] "name": value */
    uint32_t *rests;   /* [n + 1] rules: what may follow member i - 1, without the closing
                          bracket */
    bool non_empty;
    const tern_json_value *pattern;    /* for names of further properties, followed by the schema of
                                          their values; NULL: any name */
    const tern_json_value *pattern_of; /* the schema that has it */
} object;

static uint32_t words(tern_schema_reader *r, const char *before, const char *mark,
                      const char *after) {
    const uint32_t parts[] = {*before ? r->space : TERN_EXPR_EMPTY, tern_expr_word(r->x, mark),
                              *after ? r->space : TERN_EXPR_EMPTY};
    return tern_expr_sequence(r->x, parts, 3);
}

/* A mark with white space before and after it. */
static uint32_t spaced(tern_schema_reader *r, const char *mark) {
    return words(r, " ", mark, " ");
}

static uint32_t opening(tern_schema_reader *r, const char *mark) {
    return words(r, "", mark, " ");
}

static uint32_t closing(tern_schema_reader *r, const char *mark) {
    return words(r, " ", mark, "");
}

/* Something between brackets, or nothing, if that may be. */
static uint32_t enclosed(tern_schema_reader *r, const char *open, uint32_t inner, const char *close,
                         bool may_be_empty) {
    const uint32_t full[] = {opening(r, open), inner, closing(r, close)};
    const uint32_t all = tern_expr_sequence(r->x, full, 3);
    const uint32_t none = tern_expr_pair(r->x, opening(r, open), tern_expr_word(r->x, close));
    return may_be_empty ? tern_expr_either(r->x, all, none) : all;
}

/* ---- which properties ------------------------------------------------------------------------ */

static size_t find_name(const object *o, tern_span name) {
    size_t i = 0;
    while (i < o->n &&
           (o->names[i].size != name.size || memcmp(o->names[i].data, name.data, name.size) != 0))
        i++;
    return i;
}

static void add_name(object *o, const tern_json_value *v, tern_span name, bool required) {
    const size_t i = find_name(o, name);
    if (i == TERN_SCHEMA_MOST_PROPERTIES)
        tern_schema_refuse(o->r, v, "properties", "too many");
    if (name.size > TERN_SCHEMA_MOST_NAME)
        tern_schema_refuse(o->r, v, "properties", "a name that is too long");
    if (!tern_schema_work(o->r, o->n))
        return;
    if (i == o->n) {
        o->names[o->n] = name;
        o->required[o->n++] = false;
    }
    o->required[i] |= required;
}

static void add_properties(object *o, const tern_json_value *v) {
    const tern_json_value *list = tern_json_get(v, "properties");
    if (list == NULL)
        return;
    if (list->type != TERN_JSON_OBJECT)
        tern_schema_refuse(o->r, v, "properties", "not an object");
    const tern_json_value *key = list + 1;
    for (uint32_t i = 0; i < list->count && o->r->x->status == TERN_OK; i++) {
        add_name(o, v, key->text, false);
        key += 1 + key[1].size;
    }
}

static void add_required(object *o, const tern_json_value *v) {
    const tern_json_value *list = tern_json_get(v, "required");
    if (list == NULL)
        return;
    if (list->type != TERN_JSON_ARRAY)
        tern_schema_refuse(o->r, v, "required", "not a list of names");
    const tern_json_value *name = list + 1;
    for (uint32_t i = 0; i < list->count && o->r->x->status == TERN_OK; i++, name += name->size) {
        if (name->type == TERN_JSON_STRING)
            add_name(o, v, name->text, true);
        else
            tern_schema_refuse(o->r, v, "required", "not a list of names");
    }
}

/* Adds names that must or must not be there because some schema must not hold. */
static void add_denied(object *o) {
    for (size_t i = 0; i < o->s->n && o->r->x->status == TERN_OK; i++) {
        const tern_schema_item *item = &o->s->items[i];
        const bool there = item->part == TERN_SCHEMA_WITH || item->part == TERN_SCHEMA_MEMBER_NOT;
        if (there || item->part == TERN_SCHEMA_WITHOUT)
            add_name(o, o->r->json.values, item->v->text, there);
    }
}

/* ---- names by a pattern ---------------------------------------------------------------------- */

/* True if it occurs in every text: it may be empty, and nothing ties it to a place. */
static bool is_everywhere(tern_span pattern) {
    static const char *const all[] = {"", "^", "$", ".*", "^.*", ".*$"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (pattern.size == strlen(all[i]) && memcmp(pattern.data, all[i], pattern.size) == 0)
            return true;
    return false;
}

/*
 * An automaton for the names that a pattern matches cannot tell apart those that it does not match.
 * So there may be one pattern, without other names, and either it matches all names, or no others
 * may come.
 */
static void find_pattern(object *o) {
    for (size_t i = 0; i < o->s->n && o->r->x->status == TERN_OK; i++) {
        const tern_json_value *v = o->s->items[i].v;
        const tern_json_value *list = tern_json_get(v, "patternProperties");
        const tern_json_value *further = tern_json_get(v, "additionalProperties");
        if (list != NULL && list->type != TERN_JSON_OBJECT)
            tern_schema_refuse(o->r, v, "patternProperties", "not an object");
        if (list == NULL || list->count == 0)
            continue;
        if (list->count > 1 || o->pattern != NULL)
            tern_schema_refuse(o->r, v, "patternProperties", "more than one pattern");
        else if (o->n > 0)
            tern_schema_refuse(o->r, v, "patternProperties", "together with names of properties");
        else if (!is_everywhere(list[1].text) &&
                 (further == NULL || further->type != TERN_JSON_FALSE))
            tern_schema_refuse(o->r, v, "patternProperties",
                               "without \"additionalProperties\": false");
        o->pattern = list + 1;
        o->pattern_of = v;
    }
}

/* The name of a further property, as a string without its quotes. */
static uint32_t further_key(object *o) {
    tern_pattern p = {0};
    const char *why = "too large";
    if (o->pattern == NULL || is_everywhere(o->pattern->text))
        return tern_schema_other_key(o->r, o->names, o->n);
    if (tern_pattern_read(o->r->x, o->pattern->text.data, o->pattern->text.size, &p, &why))
        return p.expr;
    tern_schema_refuse(o->r, o->pattern_of, "patternProperties", why);
    return TERN_EXPR_NEVER;
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool is_text(const tern_json_value *v, const tern_span *name) {
    return v->type == TERN_JSON_STRING && v->text.size == name->size &&
           memcmp(v->text.data, name->data, name->size) == 0;
}

/* Adds what the value of a property must not satisfy; false if the property must not be there. */
static bool add_denials(object *o, const tern_span *name, tern_schema_set *set) {
    for (size_t i = 0; i < o->s->n; i++) {
        const tern_schema_item *item = &o->s->items[i];
        if (item->part == TERN_SCHEMA_WITHOUT && is_text(item->v, name))
            return false;
        if (item->part == TERN_SCHEMA_MEMBER_NOT && is_text(item->v, name))
            tern_schema_add(o->r, set, item->v + 1, TERN_SCHEMA_NOT);
    }
    return true;
}

/* Expression of what a property's value must satisfy; name NULL: a further property's. */
static uint32_t value_of(object *o, const tern_span *name) {
    tern_schema_set set = {.n = 0};
    for (size_t i = 0; i < o->s->n && tern_schema_work(o->r, o->n); i++) {
        const tern_json_value *v = o->s->items[i].v;
        const tern_json_value *list = tern_json_get(v, "properties");
        const tern_json_value *further = o->pattern != NULL && v == o->pattern_of
                                             ? o->pattern + 1
                                             : tern_json_get(v, "additionalProperties");
        const tern_json_value *own =
            list != NULL && name != NULL ? tern_schema_member(list, name->data, name->size) : NULL;
        if (own == NULL)
            own = further;
        if (own != NULL)
            tern_schema_add(o->r, &set, own, TERN_SCHEMA_ALL);
    }
    return name == NULL || add_denials(o, name, &set) ? tern_schema_use(o->r, &set)
                                                      : TERN_EXPR_NEVER;
}

/* ---- their order ----------------------------------------------------------------------------- */

static uint32_t member(object *o, const tern_span *name) {
    tern_exprs *x = o->r->x;
    const uint32_t value = value_of(o, name);
    if (value == TERN_EXPR_NEVER)
        return value;
    const uint32_t quote = tern_expr_word(x, "\"");
    const uint32_t key =
        name != NULL ? tern_schema_quoted(x, name->data, name->size) : further_key(o);
    const uint32_t parts[] = {quote, key, quote, spaced(o->r, ":"), value};
    return tern_expr_sequence(x, parts, sizeof parts / sizeof *parts);
}

static void define_rests(object *o, uint32_t further) {
    tern_exprs *x = o->r->x;
    const uint32_t comma = spaced(o->r, ",");
    for (size_t i = 0; i <= o->n && x->status == TERN_OK; i++)
        o->rests[i] = tern_expr_rule_new(x, "properties", strlen("properties"));
    for (size_t i = 0; i < o->n && x->status == TERN_OK; i++) {
        uint32_t next = tern_expr_pair(x, comma, o->members[i]);
        next = o->required[i] ? next : tern_expr_optional(x, next);
        const uint32_t rest = tern_expr_rule_use(x, o->rests[i + 1]);
        tern_expr_rule_define(x, o->rests[i], tern_expr_pair(x, next, rest));
    }
    const uint32_t more =
        tern_expr_repeat(x, tern_expr_pair(x, comma, further), 0, TERN_EXPR_UNLIMITED);
    if (x->status == TERN_OK)
        tern_expr_rule_define(x, o->rests[o->n], more);
}

/* A choice of the member that comes first: any up to the first one that is required. */
static uint32_t list_members(object *o, uint32_t further) {
    tern_exprs *x = o->r->x;
    tern_expr_list firsts = {.x = x};
    bool required = false;
    define_rests(o, further);
    for (size_t i = 0; i < o->n && !required && x->status == TERN_OK; i++) {
        const uint32_t rest = tern_expr_rule_use(x, o->rests[i + 1]);
        tern_expr_add(&firsts, tern_expr_pair(x, o->members[i], rest));
        required = o->required[i];
    }
    if (!required && x->status == TERN_OK)
        tern_expr_add(&firsts, tern_expr_pair(x, further, tern_expr_rule_use(x, o->rests[o->n])));
    const uint32_t inner = tern_expr_end_choice(&firsts);
    return enclosed(o->r, "{", inner, "}", !required && !o->non_empty);
}

static uint32_t make_object(object *o) {
    tern_exprs *x = o->r->x;
    for (size_t i = 0; i < o->s->n && x->status == TERN_OK; i++)
        add_properties(o, o->s->items[i].v);
    for (size_t i = 0; i < o->s->n && x->status == TERN_OK; i++)
        add_required(o, o->s->items[i].v);
    add_denied(o);
    find_pattern(o);
    for (size_t i = 0; i < o->n && x->status == TERN_OK; i++)
        o->members[i] = member(o, &o->names[i]);
    const uint32_t further = x->status == TERN_OK ? member(o, NULL) : TERN_EXPR_NEVER;
    return x->status == TERN_OK ? list_members(o, further) : TERN_EXPR_NEVER;
}

uint32_t tern_schema_object(tern_schema_reader *r, const tern_schema_set *s,
                            const tern_schema_facts *f) {
    const size_t most = TERN_SCHEMA_MOST_PROPERTIES + 1;
    object o = {.r = r,
                .s = s,
                .names = calloc(most, sizeof *o.names),
                .required = calloc(most, sizeof *o.required),
                .members = calloc(most, sizeof *o.members),
                .rests = calloc(most + 1, sizeof *o.rests),
                .non_empty = f->least_properties == 1};
    uint32_t all = TERN_EXPR_NEVER;
    if (o.names == NULL || o.required == NULL || o.members == NULL || o.rests == NULL)
        tern_exprs_fail(r->x, TERN_ERR_NOMEM, "%s: no memory", r->name);
    else
        all = make_object(&o);
    size_t required = 0;
    for (size_t i = 0; i < o.n; i++)
        required += o.required[i];
    if (f->least_properties > 1 && (size_t)f->least_properties > required)
        tern_schema_refuse(r, s->items[0].v, "minProperties",
                           "more than 1 and than are required is not supported");
    free(o.names);
    free(o.required);
    free(o.members);
    free(o.rests);
    return all;
}

/* ---- arrays ---------------------------------------------------------------------------------- */

/* The list of schemas of the first items; NULL: none. */
static const tern_json_value *prefix_of(const tern_json_value *v) {
    const tern_json_value *prefix = tern_json_get(v, "prefixItems");
    const tern_json_value *items = tern_json_get(v, "items");
    return prefix != NULL ? prefix : items != NULL && items->type == TERN_JSON_ARRAY ? items : NULL;
}

/* The schema of the items after these; NULL: any. */
static const tern_json_value *others_of(const tern_json_value *v) {
    const tern_json_value *items = tern_json_get(v, "items");
    return items != NULL && items->type == TERN_JSON_ARRAY ? tern_json_get(v, "additionalItems")
                                                           : items;
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

static void collect_item(tern_schema_reader *r, const tern_schema_set *s, size_t index,
                         tern_schema_set *set) {
    for (size_t i = 0; i < s->n && tern_schema_work(r, index); i++) {
        const tern_json_value *prefix = prefix_of(s->items[i].v);
        const tern_json_value *v = others_of(s->items[i].v);
        if (prefix != NULL && index < prefix->count) {
            v = prefix + 1;
            for (size_t k = 0; k < index; k++)
                v += v->size;
        }
        if (v != NULL)
            tern_schema_add(r, set, v, TERN_SCHEMA_ALL);
    }
}

static uint32_t item_of(tern_schema_reader *r, const tern_schema_set *s, size_t index) {
    tern_schema_set set = {.n = 0};
    collect_item(r, s, index, &set);
    return tern_schema_use(r, &set);
}

/* All that may follow the first item, with the commas. n_prefix: items with schemas of their
 * own. */
static uint32_t items_after(tern_schema_reader *r, const tern_schema_set *s,
                            const tern_schema_facts *f, size_t n_prefix) {
    tern_exprs *x = r->x;
    const size_t first = n_prefix > 0 ? n_prefix : 1;
    const uint32_t comma = spaced(r, ",");
    const int64_t least = f->least_items > (int64_t)first ? f->least_items - (int64_t)first : 0;
    const int64_t most = f->most_items < 0                ? TERN_EXPR_UNLIMITED
                         : f->most_items > (int64_t)first ? f->most_items - (int64_t)first
                                                          : 0;
    uint32_t rest = tern_expr_repeat(x, tern_expr_pair(x, comma, item_of(r, s, n_prefix)),
                                     (int32_t)least, (int32_t)most);
    for (size_t i = first; i-- > 1 && x->status == TERN_OK;) {
        if (f->most_items >= 0 && (int64_t)i >= f->most_items) {
            rest = TERN_EXPR_EMPTY;
            continue;
        }
        const uint32_t parts[] = {comma, item_of(r, s, i), rest};
        const uint32_t more = tern_expr_sequence(x, parts, 3);
        const uint32_t rule = tern_expr_rule_new(x, "items", strlen("items"));
        tern_expr_rule_define(x, rule,
                              (int64_t)i < f->least_items ? more : tern_expr_optional(x, more));
        rest = tern_expr_rule_use(x, rule);
    }
    return rest;
}

/* ---- items that are all different ------------------------------------------------------------ */

enum { MOST_DIFFERENT = 10 }; /* values: there is a rule for each set of them */

typedef struct different {
    tern_schema_reader *r;
    const tern_schema_facts *array;
    uint32_t values[MOST_DIFFERENT];     /* [n] */
    uint32_t rules[1 << MOST_DIFFERENT]; /* [2^n] what may follow when these values were there */
    size_t n;
} different;

/* The listed values that items may be, each once; false after a refusal. */
static bool find_values(different *d, const tern_schema_set *s) {
    static const char why[] = "only with at most 10 listed values for all items, or maxItems 1";
    const tern_json_value *kept[MOST_DIFFERENT];
    tern_schema_set item = {.n = 0};
    tern_schema_facts f;
    collect_item(d->r, s, 0, &item);
    if (!tern_schema_settle(d->r, &item))
        return d->r->x->status == TERN_OK;
    if (!tern_schema_has_choice(&item))
        tern_schema_facts_of(d->r, &item, &f);
    if (tern_schema_has_choice(&item) || f.n_lists == 0) {
        tern_schema_refuse(d->r, s->items[0].v, "uniqueItems", why);
        return false;
    }
    const tern_json_value *v = f.lists[0].first;
    for (uint32_t i = 0; i < f.lists[0].n && d->r->x->status == TERN_OK; i++, v += v->size) {
        bool again = !tern_schema_may_be(d->r, &item, &f, v);
        bool unsure = false;
        for (size_t k = 0; k < d->n && !again; k++) {
            again = tern_schema_equal(kept[k], v) == TERN_SCHEMA_SAME;
            unsure |= tern_schema_equal(kept[k], v) == TERN_SCHEMA_UNSURE;
        }
        if (again)
            continue;
        if (unsure || d->n == MOST_DIFFERENT)
            tern_schema_refuse(d->r, s->items[0].v, "uniqueItems", why);
        else
            kept[d->n] = v;
        if (d->r->x->status == TERN_OK)
            d->values[d->n++] = tern_schema_value(d->r, v);
    }
    return d->r->x->status == TERN_OK;
}

/* Says what follows when the values `used` were there: another value, or the end. */
static uint32_t after_values(different *d, size_t used, uint32_t comma) {
    tern_exprs *x = d->r->x;
    tern_expr_list choice = {.x = x};
    const int64_t n = __builtin_popcountll(used);
    const int64_t most = d->array->most_items;
    if (n >= d->array->least_items)
        tern_expr_add(&choice, TERN_EXPR_EMPTY);
    for (size_t i = 0; i < d->n && (most < 0 || n < most); i++) {
        if ((used >> i & 1) != 0)
            continue;
        const uint32_t parts[] = {n > 0 ? comma : TERN_EXPR_EMPTY, d->values[i],
                                  tern_expr_rule_use(x, d->rules[used | (size_t)1 << i])};
        tern_expr_add(&choice, tern_expr_sequence(x, parts, 3));
    }
    return tern_expr_end_choice(&choice);
}

static uint32_t all_different(tern_schema_reader *r, const tern_schema_set *s,
                              const tern_schema_facts *f) {
    tern_exprs *x = r->x;
    different d = {.r = r, .array = f};
    if (!find_values(&d, s))
        return TERN_EXPR_NEVER;
    if (f->least_items > (int64_t)d.n)
        return TERN_EXPR_NEVER;
    const uint32_t comma = spaced(r, ",");
    const size_t sets = (size_t)1 << d.n;
    for (size_t i = 0; i < sets && x->status == TERN_OK; i++)
        d.rules[i] = tern_expr_rule_new(x, "items", strlen("items"));
    for (size_t i = sets; i-- > 1 && tern_schema_work(r, d.n);)
        tern_expr_rule_define(x, d.rules[i], after_values(&d, i, comma));
    tern_expr_list first = {.x = x};
    for (size_t i = 0; i < d.n && x->status == TERN_OK; i++)
        tern_expr_add(
            &first, tern_expr_pair(x, d.values[i], tern_expr_rule_use(x, d.rules[(size_t)1 << i])));
    tern_expr_rule_define(x, d.rules[0], TERN_EXPR_EMPTY);
    return enclosed(r, "[", tern_expr_end_choice(&first), "]", f->least_items == 0);
}

uint32_t tern_schema_array(tern_schema_reader *r, const tern_schema_set *s,
                           const tern_schema_facts *f) {
    tern_exprs *x = r->x;
    const size_t n_prefix = longest_prefix(r, s);
    if (x->status != TERN_OK || (f->most_items >= 0 && f->most_items < f->least_items))
        return TERN_EXPR_NEVER;
    const uint32_t empty = tern_expr_pair(x, opening(r, "["), tern_expr_word(x, "]"));
    if (f->most_items == 0)
        return empty;
    if (f->unique && f->most_items != 1) {
        if (n_prefix == 0)
            return all_different(r, s, f);
        tern_schema_refuse(r, s->items[0].v, "uniqueItems", "together with schemas of first items");
        return TERN_EXPR_NEVER;
    }
    const uint32_t rest = items_after(r, s, f, n_prefix);
    return enclosed(r, "[", tern_expr_pair(x, item_of(r, s, 0), rest), "]", f->least_items == 0);
}
