/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which names an object may have beside those that its schema names: all others, those of patterns,
 * those that propertyNames allows, or none. An automaton for the names that a pattern matches
 * cannot tell apart those that it does not match. So where there are patterns, no other names come:
 * fewer objects than the schema allows, and all of them are valid.
 */

#include <string.h>

#include "runtime/text/grammar/schema_members.h"

static bool is_own(const tern_schema_item *item) {
    return item->part == TERN_SCHEMA_OWN;
}

/* ---- patterns -------------------------------------------------------------------------------- */

/* True if it occurs in every text: it may be empty, and nothing ties it to a place. */
static bool is_everywhere(tern_span pattern) {
    static const char *const all[] = {"", "^", "$", ".*", "^.*", ".*$"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (pattern.size == strlen(all[i]) && memcmp(pattern.data, all[i], pattern.size) == 0)
            return true;
    return false;
}

static bool is_readable(tern_object *o, const tern_json_value *v, tern_span pattern) {
    tern_pattern p = {0};
    const char *why = "too large";
    if (is_everywhere(pattern) || tern_pattern_read(o->r->x, pattern.data, pattern.size, &p, &why))
        return true;
    o->r->notes->narrowed = true;
    if (!o->r->narrow)
        tern_schema_note(o->r, v, "patternProperties", why);
    return false;
}

static void add_patterns(tern_object *o, const tern_json_value *v) {
    const tern_json_value *list = tern_json_get(v, "patternProperties");
    if (list != NULL && list->type != TERN_JSON_OBJECT)
        tern_schema_refuse(o->r, v, "patternProperties", "not an object");
    const tern_json_value *key = list != NULL ? list + 1 : NULL;
    for (uint32_t i = 0; list != NULL && i < list->count && tern_schema_work(o->r, 0); i++) {
        if (o->n_patterns == TERN_OBJECT_MOST_PATTERNS)
            tern_schema_refuse(o->r, v, "patternProperties", "too many patterns");
        else
            o->patterns[o->n_patterns++] =
                (tern_name_pattern){key, v, is_readable(o, v, key->text)};
        key += 1 + key[1].size;
    }
}

static bool matches(tern_object *o, const tern_name_pattern *p, tern_span name) {
    const int found = is_everywhere(p->key->text) ? 1 : tern_schema_matches(p->key->text, name);
    if (found < 0)
        tern_schema_note(o->r, p->of, "patternProperties", "a pattern that is not read");
    return found > 0;
}

/* The bytes that all texts of a pattern begin with. */
static tern_span beginning_of(tern_span pattern) {
    size_t n = 1;
    if (pattern.size == 0 || pattern.data[0] != '^')
        return (tern_span){pattern.data, 0};
    while (n < pattern.size && strchr("\\.[({*+?|$^", pattern.data[n]) == NULL)
        n++;
    const bool repeats = n < pattern.size && strchr("*?{|+", pattern.data[n]) != NULL;
    const bool choice = memchr(pattern.data, '|', pattern.size) != NULL;
    n -= repeats && n > 1;
    return (tern_span){pattern.data + 1, choice ? 0 : n - 1};
}

/* True if no name is of both patterns, because their beginnings differ. */
static bool are_apart(tern_span a, tern_span b) {
    const tern_span p = beginning_of(a), q = beginning_of(b);
    const size_t n = p.size < q.size ? p.size : q.size;
    return n > 0 && memcmp(p.data, q.data, n) != 0;
}

/* ---- other names ----------------------------------------------------------------------------- */

/* Schemas of names that no other keyword of v speaks of; NULL: it says nothing. */
static const tern_json_value *further_of(const tern_json_value *v) {
    const tern_json_value *further = tern_json_get(v, "additionalProperties");
    return further != NULL ? further : tern_json_get(v, "unevaluatedProperties");
}

/* An object that names its properties has no others, unless it says so. */
static void decide_open(tern_object *o) {
    bool names = false, asked = false, shut = false;
    for (size_t i = 0; i < o->s->n; i++) {
        const tern_json_value *v = o->s->items[i].v;
        const tern_json_value *further = is_own(&o->s->items[i]) ? further_of(v) : NULL;
        if (!is_own(&o->s->items[i]))
            continue;
        names |= tern_json_get(v, "properties") != NULL;
        shut |= further != NULL && further->type == TERN_JSON_FALSE;
        asked |= further != NULL;
    }
    bool patterns = false, unreadable = false, all = false;
    for (size_t i = 0; i < o->n_patterns; i++) {
        all |= is_everywhere(o->patterns[i].key->text);
        patterns |= !is_everywhere(o->patterns[i].key->text);
        unreadable |= !o->patterns[i].readable;
    }
    o->open = !shut && !all && (asked || !o->r->params.closed || !(names || patterns));
    o->r->notes->narrowed |= o->open && patterns;
    if (patterns)
        o->open = unreadable && !o->r->narrow;
}

/* Members of other schemas may be evaluated, too, which is not followed. */
static void note_unevaluated(tern_object *o) {
    for (size_t i = 0; i < o->s->n; i++) {
        const tern_json_value *v = o->s->items[i].v;
        if (!is_own(&o->s->items[i]) || tern_json_get(v, "unevaluatedProperties") == NULL)
            continue;
        for (size_t k = 0; k < o->s->n; k++) {
            const tern_json_value *other = o->s->items[k].v;
            if (is_own(&o->s->items[k]) && (other < v || other >= v + v->size) &&
                tern_json_get(other, "properties") != NULL)
                tern_schema_note(o->r, v, "unevaluatedProperties",
                                 "properties of other schemas count as evaluated");
        }
    }
}

/* ---- propertyNames --------------------------------------------------------------------------- */

static void collect_namely(tern_object *o) {
    for (size_t i = 0; i < o->s->n; i++) {
        const tern_json_value *v = o->s->items[i].v;
        const tern_json_value *names =
            is_own(&o->s->items[i]) ? tern_json_get(v, "propertyNames") : NULL;
        if (names != NULL)
            tern_schema_add(o->r, &o->namely, names, TERN_SCHEMA_ALL);
    }
}

/* Names that are listed become names of properties that may be left out. */
static void add_listed(tern_object *o, const tern_schema_facts *f) {
    const tern_json_value *v = f->lists[0].first;
    for (uint32_t i = 0; i < f->lists[0].n && tern_schema_work(o->r, 0); i++, v += v->size)
        if (v->type == TERN_JSON_STRING && tern_schema_may_be(o->r, &o->namely, f, v))
            tern_object_add(o, o->s->items[0].v, v->text, false);
    o->open = false;
    for (size_t i = 0; i < o->n_patterns; i++)
        o->patterns[i].readable = false;
}

/* Characters in one way only, so that equal names are equal texts. */
static uint32_t long_enough(tern_object *o, const tern_schema_facts *f) {
    static const tern_range all = {1, 0x10ffff};
    return tern_expr_repeat(o->r->x, tern_schema_characters(o->r->x, &all, 1),
                            (int32_t)f->least_length, (int32_t)f->most_length);
}

static void read_namely(tern_object *o) {
    tern_schema_facts f;
    const tern_json_value *at = o->s->n > 0 ? o->s->items[0].v : o->r->json.values;
    const bool some = tern_schema_settle(o->r, &o->namely);
    if (o->r->x->status != TERN_OK || !(o->open || o->n_patterns > 0))
        return;
    if (!some) {
        o->open = false;
        o->n_patterns = 0;
        return;
    }
    if (tern_schema_has_choice(&o->namely)) {
        tern_schema_note(o->r, at, "propertyNames", "of further names this is not enforced");
        return;
    }
    tern_schema_facts_of(o->r, &o->namely, &f);
    if (f.n_lists > 0)
        add_listed(o, &f);
    else if (o->n_patterns > 0 || f.n_other_than > 0)
        tern_schema_note(o->r, at, "propertyNames", "of further names this is not enforced");
    else if ((f.types & TERN_TYPE_STRING) == 0)
        o->open = false;
    else if (f.pattern != NULL || f.format != NULL)
        o->key = tern_schema_text(o->r, &f);
    else if (f.least_length > 0 || f.most_length >= 0)
        o->key = long_enough(o, &f);
}

void tern_object_read_names(tern_object *o) {
    for (size_t i = 0; i < o->s->n && o->r->x->status == TERN_OK; i++)
        if (is_own(&o->s->items[i]))
            add_patterns(o, o->s->items[i].v);
    decide_open(o);
    note_unevaluated(o);
    collect_namely(o);
    if (o->namely.n > 0)
        read_namely(o);
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool is_text(const tern_json_value *v, const tern_span *name) {
    return v->type == TERN_JSON_STRING && v->text.size == name->size &&
           memcmp(v->text.data, name->data, name->size) == 0;
}

/* Adds what the value of a property must not satisfy; false if the property must not be there. */
static bool add_denials(tern_object *o, const tern_span *name, tern_schema_set *set) {
    for (size_t i = 0; i < o->s->n; i++) {
        const tern_schema_item *item = &o->s->items[i];
        if (item->part == TERN_SCHEMA_WITHOUT && is_text(item->v, name))
            return false;
        if (item->part == TERN_SCHEMA_MEMBER_NOT && is_text(item->v, name))
            tern_schema_add(o->r, set, item->v + 1, TERN_SCHEMA_NOT);
    }
    return true;
}

/* True if a name satisfies propertyNames. */
static bool may_be_named(tern_object *o, const tern_span *name) {
    tern_schema_check c = {.root = o->r->json.values, .quiet = 1};
    const tern_json_value text = {TERN_JSON_STRING, 0, 1, 0, *name};
    for (size_t i = 0; i < o->namely.n; i++)
        if (o->namely.items[i].part <= TERN_SCHEMA_OWN &&
            !tern_schema_holds(&c, o->namely.items[i].v, &text))
            return false;
    return true;
}

/* Adds the schemas of patterns of v that the name has; true if there is one. */
static bool add_matching(tern_object *o, const tern_json_value *v, const tern_span *name,
                         tern_schema_set *set) {
    bool some = false;
    for (size_t i = 0; i < o->n_patterns; i++) {
        if (o->patterns[i].of != v || !matches(o, &o->patterns[i], *name))
            continue;
        tern_schema_add(o->r, set, o->patterns[i].key + 1, TERN_SCHEMA_ALL);
        some = true;
    }
    return some;
}

uint32_t tern_object_value(tern_object *o, const tern_span *name) {
    tern_schema_set set = {.n = 0};
    for (size_t i = 0; i < o->s->n && tern_schema_work(o->r, o->n); i++) {
        const tern_json_value *v = o->s->items[i].v;
        const tern_json_value *list = tern_json_get(v, "properties");
        const tern_json_value *further = tern_json_get(v, "additionalProperties");
        const tern_json_value *own =
            list != NULL ? tern_schema_member(list, name->data, name->size) : NULL;
        if (!is_own(&o->s->items[i]))
            continue;
        if (own != NULL)
            tern_schema_add(o->r, &set, own, TERN_SCHEMA_ALL);
        if (!add_matching(o, v, name, &set) && own == NULL && further != NULL)
            tern_schema_add(o->r, &set, further, TERN_SCHEMA_ALL);
    }
    return may_be_named(o, name) && add_denials(o, name, &set) ? tern_schema_use(o->r, &set)
                                                               : TERN_EXPR_NEVER;
}

/* Adds what v says of the values of names that pattern p has. Names of several patterns satisfy the
 * schemas of all. */
static void add_of_pattern(tern_object *o, const tern_name_pattern *p, const tern_json_value *v,
                           tern_schema_set *set) {
    const tern_json_value *further = further_of(v);
    bool some = v == p->of;
    for (size_t i = 0; i < o->n_patterns; i++) {
        const tern_name_pattern *other = &o->patterns[i];
        if (other->of != v || are_apart(p->key->text, other->key->text))
            continue;
        o->r->notes->narrowed |= other != p;
        some |= tern_json_same(p->key, other->key) || is_everywhere(other->key->text);
        tern_schema_add(o->r, set, other->key + 1, TERN_SCHEMA_ALL);
    }
    if (!some && further != NULL)
        tern_schema_add(o->r, set, further, TERN_SCHEMA_ALL);
}

/* A name of a pattern may be that of a property, too: then its value satisfies both. */
static void add_named(tern_object *o, const tern_name_pattern *p, tern_schema_set *set) {
    for (size_t i = 0; i < o->n && !is_everywhere(p->key->text); i++) {
        if (!matches(o, p, o->names[i]))
            continue;
        o->r->notes->narrowed = true;
        if (!o->r->narrow)
            tern_schema_note(o->r, p->of, "patternProperties",
                             "a name of a pattern may be that of a property, too");
        for (size_t k = 0; k < o->s->n && o->r->narrow; k++) {
            const tern_json_value *list = tern_json_get(o->s->items[k].v, "properties");
            const tern_json_value *own =
                list != NULL && is_own(&o->s->items[k])
                    ? tern_schema_member(list, o->names[i].data, o->names[i].size)
                    : NULL;
            if (own != NULL)
                tern_schema_add(o->r, set, own, TERN_SCHEMA_ALL);
        }
    }
}

uint32_t tern_object_further_value(tern_object *o, size_t i) {
    tern_schema_set set = {.n = 0};
    const tern_name_pattern *p = i < o->n_patterns ? &o->patterns[i] : NULL;
    if (p != NULL ? !p->readable : !o->open)
        return TERN_EXPR_NEVER;
    if (p != NULL)
        add_named(o, p, &set);
    for (size_t k = 0; k < o->s->n && tern_schema_work(o->r, o->n); k++) {
        const tern_json_value *v = o->s->items[k].v;
        const tern_json_value *further = further_of(v);
        if (!is_own(&o->s->items[k]))
            continue;
        if (p != NULL)
            add_of_pattern(o, p, v, &set);
        else if (further != NULL)
            tern_schema_add(o->r, &set, further, TERN_SCHEMA_ALL);
    }
    return tern_schema_use(o->r, &set);
}

uint32_t tern_object_further_key(tern_object *o, size_t i) {
    tern_pattern p = {0};
    const char *why = "too large";
    if (i == o->n_patterns && o->key != TERN_EXPR_NEVER)
        return o->key;
    if (i == o->n_patterns || is_everywhere(o->patterns[i].key->text))
        return tern_schema_other_key(o->r, o->names, o->n);
    const tern_span text = o->patterns[i].key->text;
    return tern_pattern_read(o->r->x, text.data, text.size, &p, &why) ? p.expr : TERN_EXPR_NEVER;
}
