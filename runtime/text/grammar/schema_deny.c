/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Schemas that must not hold. A schema holds when all of its keywords do, so it does not hold where
 * one of them fails; each keyword is a choice of its own. A failure is expressed by parts of sets
 * that can be met exactly: types and values that must not be, and names that objects have or lack.
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

static bool can_deny(tern_schema_reader *r, const tern_json_value *v, int depth);

static bool can_deny_each(tern_schema_reader *r, const tern_json_value *list, int depth) {
    const tern_json_value *child = list + 1;
    bool can = true;
    for (uint32_t i = 0; i < list->count && can; i++, child += child->size) {
        child += list->type == TERN_JSON_OBJECT; /* the schema stands after its key */
        can = can_deny(r, child, depth);
    }
    return can;
}

static bool can_deny_word(tern_schema_reader *r, const tern_json_value *schema,
                          const tern_json_value *key, int depth) {
    const tern_json_value *value = key + 1;
    if (is_name(key, "$ref")) {
        const tern_json_value *target = tern_schema_target(r, schema, value);
        return target != NULL && can_deny(r, target, depth);
    }
    if (is_name(key, "allOf") || is_name(key, "anyOf"))
        return value->type == TERN_JSON_ARRAY && can_deny_each(r, value, depth);
    if (is_name(key, "properties"))
        return value->type == TERN_JSON_OBJECT && can_deny_each(r, value, depth);
    if (is_name(key, "type"))
        return !says_integer_alone(value);
    return is_name(key, "enum") || is_name(key, "const") || is_name(key, "not") ||
           is_name(key, "required") || tern_schema_is_note(key->text);
}

static bool can_deny(tern_schema_reader *r, const tern_json_value *v, int depth) {
    if (v->type != TERN_JSON_OBJECT || depth > MOST_NESTING)
        return v->type == TERN_JSON_TRUE || v->type == TERN_JSON_FALSE;
    const tern_json_value *key = v + 1;
    bool can = true;
    for (uint32_t i = 0; i < v->count && can && tern_schema_work(r, 0); i++) {
        can = can_deny_word(r, v, key, depth + 1);
        key += 1 + key[1].size;
    }
    return can && r->x->status == TERN_OK;
}

bool tern_schema_can_deny(tern_schema_reader *r, const tern_json_value *v) {
    return can_deny(r, v, 0);
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

static void deny_one(denial *d, const tern_json_value *list) {
    const tern_json_value *child = list + 1;
    for (uint32_t i = 0; i < list->count; i++, child += child->size)
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
        if (counts(&key[1], name))
            deny_by(d, name, TERN_SCHEMA_MEMBER_NOT, key);
}

/* Adds the ways in which one keyword fails. */
static void deny_word(denial *d, const tern_json_value *schema, const tern_json_value *key) {
    const tern_json_value *value = key + 1;
    const bool list = value->type == TERN_JSON_ARRAY;
    if (is_name(key, "$ref")) {
        const tern_json_value *target = tern_schema_target(d->r, schema, value);
        if (target != NULL)
            deny_by(d, target, TERN_SCHEMA_NOT, NULL);
    } else if (is_name(key, "not")) {
        deny_by(d, value, TERN_SCHEMA_ALL, NULL);
    } else if (is_name(key, "type")) {
        deny_by(d, key, TERN_SCHEMA_NOT_TYPE, NULL);
    } else if (is_name(key, "const") || (is_name(key, "enum") && list)) {
        deny_by(d, key, TERN_SCHEMA_NOT_VALUE, NULL);
    } else if (is_name(key, "allOf") && list) {
        deny_one(d, value);
    } else if (is_name(key, "anyOf") && list) {
        deny_all(d, value);
    } else if (is_name(key, "required") && list) {
        deny_names(d, schema, key);
    } else if (is_name(key, "properties") && value->type == TERN_JSON_OBJECT) {
        deny_properties(d, key);
    } else if (!tern_schema_is_note(key->text)) {
        char word[64];
        const size_t size = key->text.size < sizeof word ? key->text.size : sizeof word - 1;
        memcpy(word, key->text.data, size);
        word[size] = '\0';
        tern_schema_refuse(d->r, schema, word, "not supported where a schema must not hold");
    }
}

uint32_t tern_schema_denied(tern_schema_reader *r, const tern_schema_set *rest,
                            const tern_json_value *v) {
    denial d = {.r = r, .rest = rest, .choice = {.x = r->x}};
    const tern_json_value *key = v + 1;
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
    uint32_t both[2];
    for (int i = 0; i < 2; i++) {
        tern_schema_set with = *rest;
        const tern_json_value *more = tern_json_get(v, words[i]);
        tern_schema_add(r, &with, tern_json_get(v, "if"),
                        i == 0 ? TERN_SCHEMA_ALL : TERN_SCHEMA_NOT);
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

/* ---- values that are equal ------------------------------------------------------------------- */

tern_schema_equality tern_schema_equal(const tern_json_value *a, const tern_json_value *b) {
    enum { NUMBER_BYTES = 64 };
    int64_t x;
    int64_t y;
    if (a->type != b->type)
        return TERN_SCHEMA_DIFFERENT;
    if (tern_json_same(a, b))
        return TERN_SCHEMA_SAME;
    if (a->type == TERN_JSON_STRING)
        return TERN_SCHEMA_DIFFERENT;
    if (a->type != TERN_JSON_NUMBER)
        return a->type == TERN_JSON_ARRAY && a->count != b->count ? TERN_SCHEMA_DIFFERENT
                                                                  : TERN_SCHEMA_UNSURE;
    if (tern_json_integer(a, &x) && tern_json_integer(b, &y))
        return x == y ? TERN_SCHEMA_SAME : TERN_SCHEMA_DIFFERENT; /* -0 is 0 */
    if (a->text.size >= NUMBER_BYTES || b->text.size >= NUMBER_BYTES)
        return TERN_SCHEMA_UNSURE;
    char p[NUMBER_BYTES] = {0};
    char q[NUMBER_BYTES] = {0};
    memcpy(p, a->text.data, a->text.size);
    memcpy(q, b->text.data, b->text.size);
    /* Equal numbers round alike, so those that round otherwise differ. */
    return strtod(p, NULL) != strtod(q, NULL) ? TERN_SCHEMA_DIFFERENT : TERN_SCHEMA_UNSURE;
}
