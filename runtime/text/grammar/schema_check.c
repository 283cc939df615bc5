/* SPDX-License-Identifier: Apache-2.0 */

/* Each keyword is a function of a table; a value satisfies a schema when all of its keywords hold.
 */

#include "runtime/text/grammar/schema_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "runtime/text/grammar/schema.h"

enum { MOST_CHECKED_DEPTH = 256, MOST_CHECKED = 1 << 22 };

/* One keyword of a schema, beside a value. */
typedef struct asked {
    const tern_json_value *schema, *word; /* the keyword's value; its name stands before it */
    const tern_json_value *v;
} asked;

typedef bool check_keyword(tern_schema_check *c, const asked *a);

static bool work(tern_schema_check *c, size_t n) {
    c->steps += n + 1;
    c->unsure |= c->steps > MOST_CHECKED;
    return c->steps <= MOST_CHECKED;
}

/* The same without telling a failure: another alternative may hold. */
static bool holds_quietly(tern_schema_check *c, const tern_json_value *schema,
                          const tern_json_value *v) {
    c->quiet++;
    const bool holds = tern_schema_holds(c, schema, v);
    c->quiet--;
    return holds;
}

/* The same where a schema that holds makes another fail: *sure false if that cannot be told. */
static bool holds_surely(tern_schema_check *c, const tern_json_value *schema,
                         const tern_json_value *v, bool *sure) {
    const bool before = c->unsure;
    c->unsure = false;
    const bool holds = holds_quietly(c, schema, v);
    *sure &= !c->unsure;
    c->unsure |= before;
    return holds;
}

static bool is_list(const tern_json_value *v) {
    return v->type == TERN_JSON_ARRAY;
}

static bool is_object(const tern_json_value *v) {
    return v->type == TERN_JSON_OBJECT;
}

static tern_span text_of(const char *word) {
    return (tern_span){word, strlen(word)};
}

/* ---- values that are equal ------------------------------------------------------------------- */

static bool same_members(tern_schema_check *c, const tern_json_value *a, const tern_json_value *b) {
    const tern_json_value *key = a + 1;
    for (uint32_t i = 0; i < a->count && work(c, b->count); i++) {
        const tern_json_value *other = tern_schema_member(b, key->text.data, key->text.size);
        if (other == NULL || !tern_schema_same(c, key + 1, other))
            return false;
        key += 1 + key[1].size;
    }
    return true;
}

bool tern_schema_same(tern_schema_check *c, const tern_json_value *a, const tern_json_value *b) {
    if (a->type != b->type || !work(c, 0))
        return false;
    if (a->type == TERN_JSON_NUMBER) {
        const tern_decimal p = tern_decimal_of(a->text), q = tern_decimal_of(b->text);
        return p.exact == q.exact && tern_decimal_order(&p, &q) == 0;
    }
    if (a->type == TERN_JSON_STRING)
        return a->text.size == b->text.size &&
               (a->text.size == 0 || memcmp(a->text.data, b->text.data, a->text.size) == 0);
    if (a->count != b->count)
        return false;
    if (is_object(a))
        return same_members(c, a, b);
    const tern_json_value *p = a + 1, *q = b + 1;
    for (uint32_t i = 0; i < a->count; i++, p += p->size, q += q->size)
        if (!tern_schema_same(c, p, q))
            return false;
    return true;
}

static bool check_type(tern_schema_check *c, const asked *a) {
    const tern_json_value *name = is_list(a->word) ? a->word + 1 : a->word;
    const uint32_t n = is_list(a->word) ? a->word->count : 1;
    unsigned bits = tern_json_type_bits(a->v);
    if (a->v->type == TERN_JSON_NUMBER) {
        const tern_decimal d = tern_decimal_of(a->v->text);
        bits = d.n == 0 ? TERN_TYPE_INTEGER : TERN_TYPE_FRACTION;
    }
    for (uint32_t i = 0; i < n; i++, name += name->size) {
        if (name->type != TERN_JSON_STRING) { /* draft 3 has schemas among the types */
            if (tern_schema_holds(c, name, a->v))
                return true;
        } else if ((tern_json_type_of_name(name) & bits) != 0) {
            return true;
        }
    }
    return false;
}

static bool check_enum(tern_schema_check *c, const asked *a) {
    const tern_json_value *value = a->word + 1;
    if (!is_list(a->word))
        return true;
    for (uint32_t i = 0; i < a->word->count; i++, value += value->size)
        if (tern_schema_same(c, value, a->v))
            return true;
    return false;
}

static bool check_const(tern_schema_check *c, const asked *a) {
    return tern_schema_same(c, a->word, a->v);
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* The order of a number and a bound; 0 where the keyword says nothing of the value. */
static int order_of(const asked *a, bool *counts) {
    *counts = a->v->type == TERN_JSON_NUMBER && a->word->type == TERN_JSON_NUMBER;
    if (!*counts)
        return 0;
    const tern_decimal v = tern_decimal_of(a->v->text), bound = tern_decimal_of(a->word->text);
    return tern_decimal_order(&v, &bound);
}

static bool check_minimum(tern_schema_check *c, const asked *a) {
    (void)c;
    bool counts;
    const int order = order_of(a, &counts);
    const bool open = tern_json_is_true(tern_json_get(a->schema, "exclusiveMinimum"));
    return !counts || order > 0 || (order == 0 && !open);
}

static bool check_maximum(tern_schema_check *c, const asked *a) {
    (void)c;
    bool counts;
    const int order = order_of(a, &counts);
    const bool open = tern_json_is_true(tern_json_get(a->schema, "exclusiveMaximum"));
    return !counts || order < 0 || (order == 0 && !open);
}

static bool check_above(tern_schema_check *c, const asked *a) {
    (void)c;
    bool counts;
    const int order = order_of(a, &counts);
    return !counts || order > 0;
}

static bool check_below(tern_schema_check *c, const asked *a) {
    (void)c;
    bool counts;
    const int order = order_of(a, &counts);
    return !counts || order < 0;
}

static bool check_multiple(tern_schema_check *c, const asked *a) {
    bool sure = true;
    if (a->v->type != TERN_JSON_NUMBER || a->word->type != TERN_JSON_NUMBER)
        return true;
    const bool holds = tern_decimal_divides(a->word->text, a->v->text, &sure);
    c->unsure |= !sure;
    return holds;
}

/* ---- counts ---------------------------------------------------------------------------------- */

static int64_t characters_of(tern_span s) {
    int64_t n = 0;
    for (size_t i = 0; i < s.size; i++)
        n += ((unsigned char)s.data[i] & 0xc0) != 0x80;
    return n;
}

/* Names of an object; equal ones count once. */
static int64_t names_of(tern_schema_check *c, const tern_json_value *v) {
    const tern_json_value *key = v + 1;
    int64_t n = 0;
    for (uint32_t i = 0; i < v->count && work(c, v->count); i++, key += 1 + key[1].size)
        n += tern_schema_member(v, key->text.data, key->text.size) == key + 1;
    return n;
}

static bool check_count(tern_schema_check *c, const asked *a) {
    const tern_span word = a->word[-1].text;
    const char kind = word.data[3]; /* of minLength, maxItems, minProperties */
    const tern_json_type type = kind == 'L'   ? TERN_JSON_STRING
                                : kind == 'I' ? TERN_JSON_ARRAY
                                              : TERN_JSON_OBJECT;
    int64_t bound;
    if (a->v->type != type || !tern_json_integer(a->word, &bound))
        return true;
    const int64_t n = kind == 'L'   ? characters_of(a->v->text)
                      : kind == 'I' ? (int64_t)a->v->count
                                    : names_of(c, a->v);
    return word.data[1] == 'i' ? n >= bound : n <= bound;
}

/* ---- strings --------------------------------------------------------------------------------- */

static bool matches(tern_schema_check *c, tern_span pattern, tern_span text) {
    const int found = tern_schema_matches(pattern, text);
    c->unsure |= found < 0;
    return found != 0;
}

static bool check_pattern(tern_schema_check *c, const asked *a) {
    return a->v->type != TERN_JSON_STRING || a->word->type != TERN_JSON_STRING ||
           matches(c, a->word->text, a->v->text);
}

static bool check_format(tern_schema_check *c, const asked *a) {
    const tern_schema_format *format =
        a->word->type == TERN_JSON_STRING ? tern_schema_format_named(a->word->text) : NULL;
    return a->v->type != TERN_JSON_STRING || format == NULL || !format->exact ||
           matches(c, text_of(format->pattern), a->v->text);
}

/* ---- arrays ---------------------------------------------------------------------------------- */

static bool check_prefix(tern_schema_check *c, const asked *a) {
    const tern_json_value *schema = a->word + 1, *item = a->v + 1;
    if (!is_list(a->v) || !is_list(a->word))
        return true;
    for (uint32_t i = 0; i < a->word->count && i < a->v->count; i++) {
        if (!tern_schema_holds(c, schema, item))
            return false;
        schema += schema->size;
        item += item->size;
    }
    return true;
}

/* Items from `first` on. */
static bool check_from(tern_schema_check *c, const asked *a, uint32_t first) {
    const tern_json_value *item = a->v + 1;
    for (uint32_t i = 0; is_list(a->v) && i < a->v->count; i++, item += item->size)
        if (i >= first && !tern_schema_holds(c, a->word, item))
            return false;
    return true;
}

static bool check_items(tern_schema_check *c, const asked *a) {
    const tern_json_value *prefix = tern_json_get(a->schema, "prefixItems");
    if (is_list(a->word))
        return check_prefix(c, a);
    return check_from(c, a, prefix != NULL && is_list(prefix) ? prefix->count : 0);
}

static bool check_more_items(tern_schema_check *c, const asked *a) {
    const tern_json_value *items = tern_json_get(a->schema, "items");
    return items == NULL || !is_list(items) || check_from(c, a, items->count);
}

static bool check_contains(tern_schema_check *c, const asked *a) {
    const tern_json_value *item = a->v + 1;
    int64_t least = 1, most = INT64_MAX, n = 0;
    bool sure = true;
    (void)tern_json_integer(tern_json_get(a->schema, "minContains"), &least);
    (void)tern_json_integer(tern_json_get(a->schema, "maxContains"), &most);
    for (uint32_t i = 0; is_list(a->v) && i < a->v->count; i++, item += item->size)
        n += holds_surely(c, a->word, item, &sure);
    return !sure || !is_list(a->v) || (n >= least && n <= most);
}

static bool check_unique(tern_schema_check *c, const asked *a) {
    const tern_json_value *p = a->v + 1;
    if (!is_list(a->v) || !tern_json_is_true(a->word))
        return true;
    for (uint32_t i = 0; i < a->v->count; i++, p += p->size) {
        const tern_json_value *q = p + p->size;
        for (uint32_t k = i + 1; k < a->v->count && work(c, 0); k++, q += q->size)
            if (tern_schema_same(c, p, q))
                return false;
    }
    return true;
}

/* ---- objects --------------------------------------------------------------------------------- */

typedef bool check_member(tern_schema_check *c, const asked *a, const tern_json_value *key);

/* True if `check` holds for all members of the value. */
static bool each_member(tern_schema_check *c, const asked *a, check_member *check) {
    const tern_json_value *key = a->v + 1;
    for (uint32_t i = 0; is_object(a->v) && i < a->v->count && work(c, a->v->count); i++) {
        if (tern_schema_member(a->v, key->text.data, key->text.size) == key + 1 &&
            !check(c, a, key))
            return false;
        key += 1 + key[1].size;
    }
    return true;
}

static bool named_member(tern_schema_check *c, const asked *a, const tern_json_value *key) {
    const tern_json_value *schema = tern_schema_member(a->word, key->text.data, key->text.size);
    return schema == NULL || tern_schema_holds(c, schema, key + 1);
}

static bool check_properties(tern_schema_check *c, const asked *a) {
    return each_member(c, a, named_member);
}

static bool patterned_member(tern_schema_check *c, const asked *a, const tern_json_value *key) {
    const tern_json_value *pattern = a->word + 1;
    for (uint32_t i = 0; is_object(a->word) && i < a->word->count; i++) {
        if (matches(c, pattern->text, key->text) && !tern_schema_holds(c, pattern + 1, key + 1))
            return false;
        pattern += 1 + pattern[1].size;
    }
    return true;
}

static bool check_patterns(tern_schema_check *c, const asked *a) {
    return each_member(c, a, patterned_member);
}

static bool is_patterned(tern_schema_check *c, const tern_json_value *schema, tern_span name) {
    const tern_json_value *list = tern_json_get(schema, "patternProperties");
    const tern_json_value *pattern = list != NULL ? list + 1 : NULL;
    for (uint32_t i = 0; list != NULL && is_object(list) && i < list->count; i++) {
        if (matches(c, pattern->text, name))
            return true;
        pattern += 1 + pattern[1].size;
    }
    return false;
}

static bool further_member(tern_schema_check *c, const asked *a, const tern_json_value *key) {
    const tern_json_value *named = tern_json_get(a->schema, "properties");
    const bool is_named =
        named != NULL && tern_schema_member(named, key->text.data, key->text.size) != NULL;
    return is_named || is_patterned(c, a->schema, key->text) ||
           tern_schema_holds(c, a->word, key + 1);
}

static bool check_further(tern_schema_check *c, const asked *a) {
    return each_member(c, a, further_member);
}

static bool member_name(tern_schema_check *c, const asked *a, const tern_json_value *key) {
    return tern_schema_holds(c, a->word, key);
}

static bool check_names(tern_schema_check *c, const asked *a) {
    return each_member(c, a, member_name);
}

/* True if an object has all names of a list. */
static bool has_names(const tern_json_value *list, const tern_json_value *v) {
    const tern_json_value *name = list + 1;
    for (uint32_t i = 0; is_list(list) && i < list->count; i++, name += name->size)
        if (name->type == TERN_JSON_STRING &&
            tern_schema_member(v, name->text.data, name->text.size) == NULL)
            return false;
    return true;
}

static bool check_required(tern_schema_check *c, const asked *a) {
    return !is_object(a->v) || (work(c, a->v->count) && has_names(a->word, a->v));
}

static bool check_dependent(tern_schema_check *c, const asked *a) {
    const tern_json_value *key = a->word + 1;
    for (uint32_t i = 0; is_object(a->v) && is_object(a->word) && i < a->word->count; i++) {
        if (tern_schema_member(a->v, key->text.data, key->text.size) != NULL) {
            const bool names = is_list(key + 1);
            if (names ? !has_names(key + 1, a->v) : !tern_schema_holds(c, key + 1, a->v))
                return false;
        }
        key += 1 + key[1].size;
    }
    return true;
}

/* ---- several schemas ------------------------------------------------------------------------- */

static bool check_all(tern_schema_check *c, const asked *a) {
    const tern_json_value *schema = a->word + 1;
    for (uint32_t i = 0; is_list(a->word) && i < a->word->count; i++, schema += schema->size)
        if (!tern_schema_holds(c, schema, a->v))
            return false;
    return true;
}

static uint32_t count_holding(tern_schema_check *c, const asked *a, bool *sure) {
    const tern_json_value *schema = a->word + 1;
    uint32_t n = 0;
    for (uint32_t i = 0; i < a->word->count; i++, schema += schema->size)
        n += holds_surely(c, schema, a->v, sure);
    return n;
}

static bool check_any(tern_schema_check *c, const asked *a) {
    bool sure = true;
    return !is_list(a->word) || count_holding(c, a, &sure) > 0;
}

static bool check_one(tern_schema_check *c, const asked *a) {
    bool sure = true;
    return !is_list(a->word) || count_holding(c, a, &sure) == 1 || !sure;
}

static bool check_not(tern_schema_check *c, const asked *a) {
    bool sure = true;
    return !holds_surely(c, a->word, a->v, &sure) || !sure;
}

static bool check_if(tern_schema_check *c, const asked *a) {
    bool sure = true;
    const bool holds = holds_surely(c, a->word, a->v, &sure);
    const tern_json_value *more = tern_json_get(a->schema, holds ? "then" : "else");
    return !sure || more == NULL || tern_schema_holds(c, more, a->v);
}

static bool check_reference(tern_schema_check *c, const asked *a) {
    bool here = false;
    const tern_json_value *target =
        a->word->type == TERN_JSON_STRING ? tern_schema_find(c->root, a->word->text, &here) : NULL;
    c->unsure |= target == NULL;
    return target == NULL || tern_schema_holds(c, target, a->v);
}

/* Members or items that no other keyword looks at: not followed here. */
static bool check_unevaluated(tern_schema_check *c, const asked *a) {
    c->unsure |= a->word->type != TERN_JSON_TRUE;
    return true;
}

/* ---- the table ------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    check_keyword *check;
} keywords[] = {
    {"type", check_type},
    {"enum", check_enum},
    {"const", check_const},
    {"minimum", check_minimum},
    {"maximum", check_maximum},
    {"exclusiveMinimum", check_above},
    {"exclusiveMaximum", check_below},
    {"multipleOf", check_multiple},
    {"divisibleBy", check_multiple},
    {"minLength", check_count},
    {"maxLength", check_count},
    {"minItems", check_count},
    {"maxItems", check_count},
    {"minProperties", check_count},
    {"maxProperties", check_count},
    {"pattern", check_pattern},
    {"format", check_format},
    {"prefixItems", check_prefix},
    {"items", check_items},
    {"additionalItems", check_more_items},
    {"contains", check_contains},
    {"uniqueItems", check_unique},
    {"properties", check_properties},
    {"patternProperties", check_patterns},
    {"additionalProperties", check_further},
    {"propertyNames", check_names},
    {"required", check_required},
    {"dependentRequired", check_dependent},
    {"dependentSchemas", check_dependent},
    {"dependencies", check_dependent},
    {"allOf", check_all},
    {"anyOf", check_any},
    {"oneOf", check_one},
    {"not", check_not},
    {"if", check_if},
    {"$ref", check_reference},
    {"$dynamicRef", check_reference},
    {"$recursiveRef", check_reference},
    {"unevaluatedProperties", check_unevaluated},
    {"unevaluatedItems", check_unevaluated},
};

static bool check_word(tern_schema_check *c, const tern_json_value *schema,
                       const tern_json_value *key, const tern_json_value *v) {
    const asked a = {schema, key + 1, v};
    if (c->listed != NULL && (key + 1 == c->listed || key + 2 == c->listed))
        return true;
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (tern_json_is_string(key, keywords[i].name) &&
            tern_schema_member(schema, key->text.data, key->text.size) == key + 1)
            return keywords[i].check(c, &a);
    return true;
}

/* Remembers the first failure; the innermost one comes first. */
static void tell(tern_schema_check *c, const tern_json_value *schema, const tern_json_value *v,
                 tern_span keyword) {
    if (c->quiet > 0 || c->schema != NULL)
        return;
    c->schema = schema;
    c->value = v;
    (void)snprintf(c->keyword, sizeof c->keyword, "%.*s",
                   (int)(keyword.size < sizeof c->keyword ? keyword.size : sizeof c->keyword - 1),
                   keyword.data);
}

static bool all_hold(tern_schema_check *c, const tern_json_value *schema,
                     const tern_json_value *v) {
    const tern_json_value *key = schema + 1;
    for (uint32_t i = 0; i < schema->count && work(c, schema->count); i++) {
        if (!check_word(c, schema, key, v)) {
            tell(c, schema, v, key->text);
            return false;
        }
        key += 1 + key[1].size;
    }
    return true;
}

bool tern_schema_holds(tern_schema_check *c, const tern_json_value *schema,
                       const tern_json_value *v) {
    if (schema->type == TERN_JSON_FALSE)
        tell(c, schema, v, text_of("false"));
    if (schema->type != TERN_JSON_OBJECT)
        return schema->type != TERN_JSON_FALSE;
    if (c->depth == MOST_CHECKED_DEPTH) {
        c->unsure = true;
        return true;
    }
    c->depth++;
    const bool holds = all_hold(c, schema, v);
    c->depth--;
    return holds;
}

bool tern_schema_accepts(tern_schema_check *c, const tern_json_value *v) {
    return tern_schema_holds(c, c->root, v) || c->steps > MOST_CHECKED;
}
