/* SPDX-License-Identifier: Apache-2.0 */

/*
 * oneOf: exactly one alternative may hold. Most alternatives exclude each other: by their types, by
 * values that they list, by a property that both require and whose listed values differ, or by a
 * name that one requires and the other, a closed object, does not have. Others
 * are denied (schema_deny.c) beside the one that holds.
 */

#include <stdio.h>
#include <string.h>

#include "runtime/text/grammar/schema.h"

enum { MOST_REFERENCES = 16 };

bool tern_json_same(const tern_json_value *a, const tern_json_value *b) {
    if (a->type != b->type || a->size != b->size || a->count != b->count)
        return false;
    for (uint32_t i = 0; i < a->size; i++) {
        const tern_json_value *x = a + i;
        const tern_json_value *y = b + i;
        const bool text = x->type == TERN_JSON_STRING || x->type == TERN_JSON_NUMBER;
        if (x->type != y->type || x->count != y->count ||
            (text && (x->text.size != y->text.size ||
                      memcmp(x->text.data, y->text.data, x->text.size) != 0)))
            return false;
    }
    return true;
}

/* Returns the schema that v means: follows references. */
static const tern_json_value *follow(tern_schema_reader *r, const tern_json_value *v) {
    for (int i = 0; i < MOST_REFERENCES && v != NULL; i++) {
        const tern_json_value *ref = tern_json_get(v, "$ref");
        if (ref == NULL)
            return v;
        v = tern_schema_target(r, v, ref);
    }
    return v;
}

/* The listed values of a schema, *n of them; NULL: it lists none. */
static const tern_json_value *values_of(const tern_json_value *v, uint32_t *n) {
    const tern_json_value *one = tern_schema_member(v, "const", strlen("const"));
    const tern_json_value *list = tern_json_get(v, "enum");
    if (one != NULL) {
        *n = 1;
        return one;
    }
    *n = list != NULL ? list->count : 0;
    return list != NULL && list->type == TERN_JSON_ARRAY ? list + 1 : NULL;
}

/* True if all of their listed values differ for certain. */
static bool values_differ(tern_schema_reader *r, const tern_json_value *a,
                          const tern_json_value *b) {
    uint32_t n_a;
    uint32_t n_b;
    const tern_json_value *p = values_of(a, &n_a);
    const tern_json_value *q = values_of(b, &n_b);
    tern_schema_check c = {.root = r->json.values};
    if (p == NULL || q == NULL)
        return false;
    for (uint32_t i = 0; i < n_a; i++, p += p->size) {
        const tern_json_value *other = q;
        for (uint32_t k = 0; k < n_b && tern_schema_work(r, p->size); k++, other += other->size)
            if (tern_schema_same(&c, p, other))
                return false;
    }
    return r->x->status == TERN_OK && !c.unsure;
}

unsigned tern_schema_types_of(tern_schema_reader *r, const tern_json_value *v) {
    if (v->type != TERN_JSON_OBJECT)
        return v->type == TERN_JSON_FALSE ? 0 : TERN_TYPE_ALL;
    static const char *const names[] = {"null", "boolean", "object", "array", "string", "integer"};
    const tern_json_value *type = tern_json_get(v, "type");
    uint32_t n = 0;
    const tern_json_value *value = values_of(v, &n);
    unsigned bits = 0;
    for (uint32_t i = 0; i < n && value != NULL && tern_schema_work(r, 0); i++) {
        const unsigned of = tern_json_type_bits(value);
        const unsigned numbers = TERN_TYPE_INTEGER | TERN_TYPE_FRACTION;
        bits |= (of & numbers) ? numbers : of;
        value += value->size;
    }
    if (type == NULL || bits != 0)
        return bits != 0 ? bits : TERN_TYPE_ALL;
    const bool list = type->type == TERN_JSON_ARRAY;
    const tern_json_value *name = list ? type + 1 : type;
    for (uint32_t i = 0; i < (list ? type->count : 1); i++, name++) {
        if (tern_json_is_string(name, "number"))
            bits |= TERN_TYPE_INTEGER | TERN_TYPE_FRACTION;
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            if (tern_json_is_string(name, names[k]))
                bits |= 1U << k;
    }
    return bits;
}

bool tern_schema_requires(const tern_json_value *v, tern_span name) {
    const tern_json_value *list = tern_json_get(v, "required");
    for (uint32_t i = 0; list != NULL && list->type == TERN_JSON_ARRAY && i < list->count; i++) {
        const tern_json_value *key = list + 1 + i;
        if (key->size != 1)
            return false;
        if (key->type == TERN_JSON_STRING && key->text.size == name.size &&
            memcmp(key->text.data, name.data, name.size) == 0)
            return true;
    }
    return false;
}

/* True if both require a property whose listed values differ. */
static bool properties_differ(tern_schema_reader *r, const tern_json_value *a,
                              const tern_json_value *b) {
    const tern_json_value *of_a = tern_json_get(a, "properties");
    const tern_json_value *of_b = tern_json_get(b, "properties");
    if (of_a == NULL || of_b == NULL || of_a->type != TERN_JSON_OBJECT)
        return false;
    const tern_json_value *key = of_a + 1;
    for (uint32_t i = 0; i < of_a->count && tern_schema_work(r, of_b->count); i++) {
        const tern_json_value *p = follow(r, key + 1);
        const tern_json_value *q = tern_schema_member(of_b, key->text.data, key->text.size);
        q = q != NULL ? follow(r, q) : NULL;
        if (p != NULL && q != NULL && p->type == TERN_JSON_OBJECT && q->type == TERN_JSON_OBJECT &&
            tern_schema_requires(a, key->text) && tern_schema_requires(b, key->text) &&
            values_differ(r, p, q))
            return true;
        key += 1 + key[1].size;
    }
    return false;
}

/* True if a requires a name that objects of b do not have. */
static bool lacks_a_name(const tern_json_value *a, const tern_json_value *b) {
    const tern_json_value *list = tern_json_get(a, "required");
    const tern_json_value *further = tern_json_get(b, "additionalProperties");
    const tern_json_value *named = tern_json_get(b, "properties");
    if (list == NULL || list->type != TERN_JSON_ARRAY || further == NULL ||
        further->type != TERN_JSON_FALSE || tern_json_get(b, "patternProperties") != NULL)
        return false;
    const tern_json_value *name = list + 1;
    for (uint32_t i = 0; i < list->count; i++, name += name->size)
        if (name->type == TERN_JSON_STRING &&
            (named == NULL || tern_schema_member(named, name->text.data, name->text.size) == NULL))
            return true;
    return false;
}

bool tern_schema_excludes(tern_schema_reader *r, const tern_json_value *a,
                          const tern_json_value *b) {
    a = follow(r, a);
    b = follow(r, b);
    if (a == NULL || b == NULL)
        return false;
    const unsigned both = tern_schema_types_of(r, a) & tern_schema_types_of(r, b);
    return both == 0 || values_differ(r, a, b) ||
           (both == TERN_TYPE_OBJECT &&
            (properties_differ(r, a, b) || lacks_a_name(a, b) || lacks_a_name(b, a)));
}

void tern_schema_add_others(tern_schema_reader *r, tern_schema_set *s, const tern_json_value *v,
                            uint32_t index, const tern_json_value *chosen) {
    const tern_json_value *list = tern_json_get(v, "oneOf");
    const tern_json_value *other = list + 1;
    for (uint32_t k = 0; k < list->count && tern_schema_work(r, 0); k++, other += other->size) {
        char why[120];
        if (k == index || tern_schema_excludes(r, chosen, other))
            continue;
        if (tern_schema_can_deny(r, other, follow(r, chosen))) {
            tern_schema_add(r, s, other, TERN_SCHEMA_NOT);
            continue;
        }
        (void)snprintf(why, sizeof why,
                       "its alternatives %u and %u may both hold (anyOf allows that)",
                       k < index ? k : index, k < index ? index : k);
        tern_schema_note(r, v, "oneOf", why);
    }
}
