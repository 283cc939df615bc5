/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Objects. Properties stand in the order in which the schema names them, then those that are
 * required and not named, then further ones. Those that are not required may be left out.
 */

#include <stdlib.h>
#include <string.h>

#include "runtime/text/grammar/schema_members.h"

/* ---- which properties ------------------------------------------------------------------------ */

size_t tern_object_find(const tern_object *o, tern_span name) {
    size_t i = 0;
    while (i < o->n &&
           (o->names[i].size != name.size || memcmp(o->names[i].data, name.data, name.size) != 0))
        i++;
    return i;
}

void tern_object_add(tern_object *o, const tern_json_value *v, tern_span name, bool required) {
    const size_t i = tern_object_find(o, name);
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

static void add_properties(tern_object *o, const tern_json_value *v) {
    const tern_json_value *list = tern_json_get(v, "properties");
    if (list == NULL)
        return;
    if (list->type != TERN_JSON_OBJECT)
        tern_schema_refuse(o->r, v, "properties", "not an object");
    const tern_json_value *key = list + 1;
    for (uint32_t i = 0; i < list->count && o->r->x->status == TERN_OK; i++) {
        tern_object_add(o, v, key->text, false);
        key += 1 + key[1].size;
    }
}

static void add_required(tern_object *o, const tern_json_value *v) {
    const tern_json_value *list = tern_json_get(v, "required");
    if (list == NULL)
        return;
    if (list->type == TERN_JSON_TRUE || list->type == TERN_JSON_FALSE) { /* draft 3 */
        tern_schema_note(o->r, v, "required", "not a list of names");
        return;
    }
    if (list->type != TERN_JSON_ARRAY)
        tern_schema_refuse(o->r, v, "required", "not a list of names");
    const tern_json_value *name = list + 1;
    for (uint32_t i = 0; i < list->count && o->r->x->status == TERN_OK; i++, name += name->size) {
        if (name->type == TERN_JSON_STRING)
            tern_object_add(o, v, name->text, true);
        else
            tern_schema_refuse(o->r, v, "required", "not a list of names");
    }
}

/* Adds names that must or must not be there because some schema must not hold. */
static void add_denied(tern_object *o) {
    for (size_t i = 0; i < o->s->n && o->r->x->status == TERN_OK; i++) {
        const tern_schema_item *item = &o->s->items[i];
        const bool there = item->part == TERN_SCHEMA_WITH || item->part == TERN_SCHEMA_MEMBER_NOT;
        if (there || item->part == TERN_SCHEMA_WITHOUT)
            tern_object_add(o, o->r->json.values, item->v->text, there);
    }
}

/* ---- members --------------------------------------------------------------------------------- */

static uint32_t member(tern_object *o, uint32_t key, uint32_t value) {
    tern_exprs *x = o->r->x;
    if (value == TERN_EXPR_NEVER || key == TERN_EXPR_NEVER)
        return TERN_EXPR_NEVER;
    const uint32_t quote = tern_expr_word(x, "\"");
    const uint32_t parts[] = {quote, key, quote, tern_members_spaced(o->r, ":"), value};
    return tern_expr_sequence(x, parts, sizeof parts / sizeof *parts);
}

static uint32_t named_member(tern_object *o, size_t i) {
    const tern_span *name = &o->names[i];
    const uint32_t value = tern_object_value(o, name);
    return member(o, tern_schema_quoted(o->r->x, name->data, name->size), value);
}

/* A member with a name that the schema does not name. */
static uint32_t further_member(tern_object *o) {
    uint32_t all = TERN_EXPR_NEVER;
    for (size_t i = 0; i <= o->n_patterns && o->r->x->status == TERN_OK; i++) {
        const uint32_t value = tern_object_further_value(o, i);
        if (value != TERN_EXPR_NEVER)
            all = tern_expr_either(o->r->x, all, member(o, tern_object_further_key(o, i), value));
    }
    return all;
}

/* ---- how many -------------------------------------------------------------------------------- */

static size_t count_required(const tern_object *o) {
    size_t n = 0;
    for (size_t i = 0; i < o->n; i++)
        n += o->required[i];
    return n;
}

/* Decides how many members are counted. Bounds that are met anyway, or that are noted, are dropped.
 */
static void read_counts(tern_object *o, const tern_schema_facts *f, bool further) {
    enum { MOST_COUNTED = 4096 }; /* rules */
    const size_t required = count_required(o);
    o->least = f->least_properties;
    o->most = f->most_properties;
    if (o->most >= 0 && !further && (size_t)o->most >= o->n)
        o->most = -1;
    if ((size_t)o->least <= required)
        o->least = required > 0; /* there is a required one, or none is needed */
    const int64_t counted = o->most >= 0 ? o->most : o->least;
    if (further && (o->least > 1 || o->most >= 0))
        tern_schema_note(o->r, o->s->items[0].v, o->least > 1 ? "minProperties" : "maxProperties",
                         "counted as if no further name came twice");
    if (counted > 1 && (o->n + 1) * (size_t)counted > MOST_COUNTED) {
        tern_schema_note(o->r, o->s->items[0].v, o->most >= 0 ? "maxProperties" : "minProperties",
                         "so many members are not counted");
        o->least = o->least > 0;
        o->most = -1;
    }
    o->counts = o->most > 1 ? (size_t)o->most : o->most < 0 && o->least > 1 ? (size_t)o->least : 1;
}

/* ---- their order ----------------------------------------------------------------------------- */

/* The rule for what may follow when the members before number i were passed and c of them stand
 * there: 1 .. counts, the last one of which means "or more" where there is no most. */
static uint32_t *rest_at(tern_object *o, size_t i, size_t c) {
    const size_t count = c < o->counts ? c : o->counts;
    return &o->rests[i * o->counts + count - 1];
}

static uint32_t use_rest(tern_object *o, size_t i, size_t c) {
    return tern_expr_rule_use(o->r->x, *rest_at(o, i, c));
}

static bool is_full(const tern_object *o, size_t c) {
    return o->most >= 0 && c >= (size_t)o->most;
}

/* After all named members: further ones, as many as are lacking and may come. */
static uint32_t last_rest(tern_object *o, size_t c, uint32_t comma, uint32_t further) {
    const int64_t n = (int64_t)c;
    const int64_t least = o->least > n ? o->least - n : 0;
    const int64_t most = o->most < 0 ? TERN_EXPR_UNLIMITED : o->most > n ? o->most - n : 0;
    return tern_expr_repeat(o->r->x, tern_expr_pair(o->r->x, comma, further), (int32_t)least,
                            (int32_t)most);
}

static uint32_t rest_of(tern_object *o, size_t i, size_t c, uint32_t comma) {
    tern_exprs *x = o->r->x;
    const uint32_t next = tern_expr_pair(x, comma, o->members[i]);
    if (o->counts == 1 && o->most < 0) /* the usual case: what follows is the same */
        return tern_expr_pair(x, o->required[i] ? next : tern_expr_optional(x, next),
                              use_rest(o, i + 1, 1));
    const uint32_t with =
        is_full(o, c) ? TERN_EXPR_NEVER : tern_expr_pair(x, next, use_rest(o, i + 1, c + 1));
    return o->required[i] ? with : tern_expr_either(x, with, use_rest(o, i + 1, c));
}

static void define_rests(tern_object *o, uint32_t further) {
    tern_exprs *x = o->r->x;
    const uint32_t comma = tern_members_spaced(o->r, ",");
    for (size_t i = 0; i < (o->n + 1) * o->counts && x->status == TERN_OK; i++)
        o->rests[i] = tern_expr_rule_new(x, "properties", strlen("properties"));
    for (size_t i = 0; i <= o->n; i++)
        for (size_t c = 1; c <= o->counts && x->status == TERN_OK; c++)
            tern_expr_rule_define(x, *rest_at(o, i, c),
                                  i < o->n ? rest_of(o, i, c, comma)
                                           : last_rest(o, c, comma, further));
}

/* A choice of the member that comes first: any up to the first one that is required. */
static uint32_t list_members(tern_object *o, uint32_t further) {
    tern_exprs *x = o->r->x;
    tern_expr_list firsts = {.x = x};
    bool required = false;
    define_rests(o, further);
    for (size_t i = 0; i < o->n && !required && x->status == TERN_OK; i++) {
        tern_expr_add(&firsts, tern_expr_pair(x, o->members[i], use_rest(o, i + 1, 1)));
        required = o->required[i];
    }
    if (!required && x->status == TERN_OK)
        tern_expr_add(&firsts, tern_expr_pair(x, further, use_rest(o, o->n, 1)));
    const uint32_t inner = tern_expr_end_choice(&firsts);
    if (o->most == 0)
        return required ? TERN_EXPR_NEVER : tern_members_empty(o->r, "{", "}");
    return tern_members_enclosed(o->r, "{", inner, "}", !required && o->least == 0);
}

static uint32_t make_object(tern_object *o, const tern_schema_facts *f) {
    tern_exprs *x = o->r->x;
    for (size_t i = 0; i < o->s->n && x->status == TERN_OK; i++)
        add_properties(o, o->s->items[i].v);
    for (size_t i = 0; i < o->s->n && x->status == TERN_OK; i++)
        add_required(o, o->s->items[i].v);
    add_denied(o);
    tern_object_read_names(o);
    for (size_t i = 0; i < o->n && x->status == TERN_OK; i++)
        o->members[i] = named_member(o, i);
    const uint32_t further = x->status == TERN_OK ? further_member(o) : TERN_EXPR_NEVER;
    read_counts(o, f, further != TERN_EXPR_NEVER);
    o->rests = calloc((o->n + 1) * o->counts, sizeof *o->rests);
    if (o->rests == NULL)
        tern_exprs_fail(x, TERN_ERR_NOMEM, "%s: no memory", o->r->name);
    return x->status == TERN_OK ? list_members(o, further) : TERN_EXPR_NEVER;
}

uint32_t tern_schema_object(tern_schema_reader *r, const tern_schema_set *s,
                            const tern_schema_facts *f) {
    const size_t most = TERN_SCHEMA_MOST_PROPERTIES + 1;
    tern_object o = {.r = r,
                     .s = s,
                     .names = calloc(most, sizeof *o.names),
                     .required = calloc(most, sizeof *o.required),
                     .members = calloc(most, sizeof *o.members)};
    uint32_t all = TERN_EXPR_NEVER;
    if (o.names == NULL || o.required == NULL || o.members == NULL)
        tern_exprs_fail(r->x, TERN_ERR_NOMEM, "%s: no memory", r->name);
    else
        all = make_object(&o, f);
    free(o.names);
    free(o.required);
    free(o.members);
    free(o.rests);
    return all;
}
