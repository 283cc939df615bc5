/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Schemas that must not hold. A schema holds when all of its keywords do, so it does not hold where
 * one of them fails; each keyword is a choice of its own. A failure is expressed by parts of sets
 * that can be met exactly: types and values that must not be, and names that objects have or lack.
 * Where only some keywords can fail in such a way, a narrow reader lets one of these fail.
 */

#include <stdlib.h>
#include <string.h>

#include "runtime/text/grammar/schema.h"

enum { MOST_NESTING = 16 };

/* A choice among sets, each of which is `rest` and something more. */
typedef struct denial {
    tern_schema_reader *r;
    const tern_schema_set *rest;
    tern_expr_list choice;
} denial;

/* Only the last one of equal keys counts. */
static bool counts(const tern_json_value *object, const tern_json_value *key) {
    return tern_schema_member(object, key->text.data, key->text.size) == key + 1;
}

static bool is_name(const tern_json_value *key, const char *name) {
    return tern_json_is_string(key, name);
}

/* ---- what can be denied ---------------------------------------------------------------------- */

/* True for "integer" without "number". 1.0 is an integer, too, but is among numbers with a
 * fraction. */
static bool says_integer_alone(const tern_json_value *type) {
    const bool list = type->type == TERN_JSON_ARRAY;
    const tern_json_value *name = list ? type + 1 : type;
    bool integer = false;
    bool number = false;
    for (uint32_t i = 0; i < (list ? type->count : 1); i++, name += name->size) {
        integer |= tern_json_is_string(name, "integer");
        number |= tern_json_is_string(name, "number");
    }
    return integer && !number;
}

/* The question whether a schema can be denied. */
typedef struct question {
    tern_schema_reader *r;
    const tern_json_value *beside; /* a schema that holds at the same time, or NULL */
    int depth;
} question;

static bool can_deny(const question *q, const tern_json_value *v);

/* Schemas of a list, or of an object by name: all of them can be denied, or one of them. */
static bool can_deny_each(const question *q, const tern_json_value *list, bool all) {
    const tern_json_value *child = list + 1;
    bool can = all;
    for (uint32_t i = 0; i < list->count && can == all; i++, child += child->size) {
        child += list->type == TERN_JSON_OBJECT; /* the schema stands after its key */
        can = can_deny(q, child);
    }
    return can;
}

/* True if the schema beside allows a value of another type. */
static bool can_deny_type(const question *q, const tern_json_value *type) {
    const bool list = type->type == TERN_JSON_ARRAY;
    const tern_json_value *name = list ? type + 1 : type;
    unsigned bits = 0;
    for (uint32_t i = 0; i < (list ? type->count : 1); i++, name += name->size)
        bits |= tern_json_type_of_name(name);
    return !says_integer_alone(type) &&
           (q->beside == NULL || (tern_schema_types_of(q->r, q->beside) & ~bits) != 0);
}

/* True if the schema beside does not ask for one of the names. */
static bool can_deny_required(const question *q, const tern_json_value *list) {
    const tern_json_value *name = list + 1;
    for (uint32_t i = 0; list->type == TERN_JSON_ARRAY && i < list->count; i++, name += name->size)
        if (q->beside == NULL || !tern_schema_requires(q->beside, name->text))
            return true;
    return list->type == TERN_JSON_ARRAY && list->count == 0;
}

static bool can_deny_word(const question *q, const tern_json_value *schema,
                          const tern_json_value *key) {
    const tern_json_value *value = key + 1;
    const question inner = {q->r, NULL, q->depth + 1};
    const question same = {q->r, q->beside, q->depth + 1};
    if (is_name(key, "$ref")) {
        const tern_json_value *target = tern_schema_target(q->r, schema, value);
        return target != NULL && can_deny(&same, target);
    }
    if (is_name(key, "allOf"))
        return value->type == TERN_JSON_ARRAY && can_deny_each(&same, value, !q->r->narrow);
    if (is_name(key, "anyOf"))
        return value->type == TERN_JSON_ARRAY && can_deny_each(&same, value, true);
    if (is_name(key, "properties"))
        return value->type == TERN_JSON_OBJECT && can_deny_each(&inner, value, !q->r->narrow);
    if (is_name(key, "type"))
        return can_deny_type(q, value);
    if (is_name(key, "required"))
        return can_deny_required(q, value);
    return is_name(key, "enum") || is_name(key, "const") || is_name(key, "not");
}

/* Some keyword can be denied where the reader is narrow, otherwise all; also a schema that says
 * nothing, since nothing fails to satisfy it. */
static bool can_deny(const question *q, const tern_json_value *v) {
    if (v->type != TERN_JSON_OBJECT || q->depth > MOST_NESTING)
        return v->type == TERN_JSON_TRUE || v->type == TERN_JSON_FALSE;
    const tern_json_value *key = v + 1;
    bool some = false, all = true;
    for (uint32_t i = 0; i < v->count && tern_schema_work(q->r, 0); i++) {
        if (tern_schema_knows(key->text) && counts(v, key)) {
            const bool can = can_deny_word(q, v, key);
            some |= can;
            all &= can;
        }
        key += 1 + key[1].size;
    }
    return (all || (some && q->r->narrow)) && q->r->x->status == TERN_OK;
}

bool tern_schema_can_deny(tern_schema_reader *r, const tern_json_value *v,
                          const tern_json_value *beside) {
    const bool narrow = r->narrow;
    const question exactly = {r, NULL, 0}, partly = {r, beside, 0};
    r->narrow = false;
    const bool exact = can_deny(&exactly, v);
    r->narrow = narrow;
    return exact || (narrow && can_deny(&partly, v));
}

/* ---- how it is denied ------------------------------------------------------------------------ */

/* Adds one way: `rest` and v, and the value is an object if `object` is not NULL. */
static void deny_by(denial *d, const tern_json_value *v, tern_schema_part part,
                    const tern_json_value *object) {
    tern_schema_set with = *d->rest;
    if (!tern_schema_work(d->r, with.n))
        return;
    tern_schema_add(d->r, &with, v, part);
    if (object != NULL)
        tern_schema_add(d->r, &with, object, TERN_SCHEMA_OBJECT);
    tern_expr_add(&d->choice, tern_schema_use(d->r, &with));
}

/* Adds one way: no schema of a list holds. */
static void deny_all(denial *d, const tern_json_value *list) {
    tern_schema_set with = *d->rest;
    const tern_json_value *child = list + 1;
    for (uint32_t i = 0; i < list->count && tern_schema_work(d->r, with.n); i++) {
        tern_schema_add(d->r, &with, child, TERN_SCHEMA_NOT);
        child += child->size;
    }
    tern_expr_add(&d->choice, tern_schema_use(d->r, &with));
}

/* True if it can be denied; otherwise texts are lost. */
static bool try_to_deny(denial *d, const tern_json_value *v) {
    const bool can = tern_schema_can_deny(d->r, v, NULL);
    d->r->notes->narrowed |= !can;
    return can;
}

static void deny_one(denial *d, const tern_json_value *list) {
    const tern_json_value *child = list + 1;
    for (uint32_t i = 0; i < list->count; i++, child += child->size)
        if (try_to_deny(d, child))
            deny_by(d, child, TERN_SCHEMA_NOT, NULL);
}

static void deny_names(denial *d, const tern_json_value *schema, const tern_json_value *key) {
    const tern_json_value *list = key + 1;
    const tern_json_value *name = list + 1;
    for (uint32_t i = 0; i < list->count; i++, name += name->size) {
        if (name->type == TERN_JSON_STRING)
            deny_by(d, name, TERN_SCHEMA_WITHOUT, key);
        else
            tern_schema_refuse(d->r, schema, "required", "not a list of names");
    }
}

static void deny_properties(denial *d, const tern_json_value *key) {
    const tern_json_value *name = key + 2;
    for (uint32_t i = 0; i < key[1].count; i++, name += 1 + name[1].size)
        if (counts(&key[1], name) && try_to_deny(d, name + 1))
            deny_by(d, name, TERN_SCHEMA_MEMBER_NOT, key);
}

/* Adds the ways in which one keyword fails. */
static void deny_word(denial *d, const tern_json_value *schema, const tern_json_value *key) {
    const tern_json_value *value = key + 1;
    const bool list = value->type == TERN_JSON_ARRAY;
    const question q = {d->r, NULL, 0};
    if (is_name(key, "$ref")) {
        const tern_json_value *target = tern_schema_target(d->r, schema, value);
        if (target != NULL && try_to_deny(d, target))
            deny_by(d, target, TERN_SCHEMA_NOT, NULL);
    } else if (is_name(key, "not")) {
        deny_by(d, value, TERN_SCHEMA_ALL, NULL);
    } else if (is_name(key, "type") && !says_integer_alone(value)) {
        deny_by(d, key, TERN_SCHEMA_NOT_TYPE, NULL);
    } else if (is_name(key, "const") || (is_name(key, "enum") && list)) {
        deny_by(d, key, TERN_SCHEMA_NOT_VALUE, NULL);
    } else if (is_name(key, "allOf") && list) {
        deny_one(d, value);
    } else if (is_name(key, "anyOf") && list && can_deny_each(&q, value, true)) {
        deny_all(d, value);
    } else if (is_name(key, "required") && list) {
        deny_names(d, schema, key);
    } else if (is_name(key, "properties") && value->type == TERN_JSON_OBJECT) {
        deny_properties(d, key);
    } else {
        d->r->notes->narrowed |= tern_schema_knows(key->text);
    }
}

uint32_t tern_schema_denied(tern_schema_reader *r, const tern_schema_set *rest,
                            const tern_json_value *v) {
    denial d = {.r = r, .rest = rest, .choice = {.x = r->x}};
    const tern_json_value *key = v + 1;
    if (!tern_schema_can_deny(r, v, NULL)) {
        tern_schema_set all = *rest;
        tern_schema_note(r, v, "not", "a schema that must not hold is not enforced");
        return tern_schema_use(r, &all);
    }
    for (uint32_t i = 0; i < v->count && tern_schema_work(r, rest->n); i++) {
        if (counts(v, key))
            deny_word(&d, v, key);
        key += 1 + key[1].size;
    }
    return tern_expr_end_choice(&d.choice);
}

/* ---- conditions ------------------------------------------------------------------------------ */

uint32_t tern_schema_condition(tern_schema_reader *r, const tern_schema_set *rest,
                               const tern_json_value *v) {
    static const char *const words[] = {"then", "else"};
    const tern_json_value *test = tern_json_get(v, "if");
    const bool told_apart = tern_schema_can_deny(r, test, NULL);
    uint32_t both[2];
    r->notes->narrowed |= !told_apart;
    if (!told_apart && !r->narrow)
        tern_schema_note(r, v, "if", "which of then and else holds is not enforced");
    for (int i = 0; i < 2; i++) {
        tern_schema_set with = *rest;
        const tern_json_value *more = tern_json_get(v, words[i]);
        const tern_json_value *other = tern_json_get(v, words[1 - i]);
        if (i == 0 || told_apart)
            tern_schema_add(r, &with, test, i == 0 ? TERN_SCHEMA_ALL : TERN_SCHEMA_NOT);
        else if (r->narrow && other != NULL) /* right in both cases */
            tern_schema_add(r, &with, other, TERN_SCHEMA_ALL);
        if (more != NULL)
            tern_schema_add(r, &with, more, TERN_SCHEMA_ALL);
        both[i] = r->x->status == TERN_OK ? tern_schema_use(r, &with) : TERN_EXPR_NEVER;
    }
    return tern_expr_either(r->x, both[0], both[1]);
}

uint32_t tern_schema_dependency(tern_schema_reader *r, const tern_schema_set *rest,
                                const tern_json_value *key) {
    tern_schema_set without = *rest;
    tern_schema_set with = *rest;
    const tern_json_value *value = key + 1;
    const bool names = value->type == TERN_JSON_ARRAY;
    tern_schema_add(r, &without, key, TERN_SCHEMA_WITHOUT);
    tern_schema_add(r, &with, key, TERN_SCHEMA_WITH);
    if (!names)
        tern_schema_add(r, &with, value, TERN_SCHEMA_ALL);
    const tern_json_value *name = value + 1;
    for (uint32_t i = 0; names && i < value->count; i++, name += name->size) {
        if (name->type == TERN_JSON_STRING)
            tern_schema_add(r, &with, name, TERN_SCHEMA_WITH);
        else
            tern_schema_refuse(r, value, "required", "not a list of names");
    }
    if (r->x->status != TERN_OK)
        return TERN_EXPR_NEVER;
    const uint32_t lacking = tern_schema_use(r, &without);
    return tern_expr_either(r->x, lacking, tern_schema_use(r, &with));
}
