/* SPDX-License-Identifier: Apache-2.0 */

/* Reads what the keywords of a schema say. Each keyword that tern knows is one line of a table; all
 * others are notes for readers, as JSON Schema 2020-12 says. */

#include <string.h>

#include "runtime/text/grammar/schema.h"

typedef struct keyword keyword;
typedef void read_keyword(tern_schema_reader *r, const tern_json_value *schema, const keyword *word,
                          const tern_json_value *value, tern_schema_facts *f);

struct keyword {
    const char *name;
    read_keyword *read; /* NULL: it says nothing about values, or is read elsewhere */
};

const tern_json_value *tern_schema_member(const tern_json_value *v, const char *key, size_t size) {
    const tern_json_value *child = v + 1;
    const tern_json_value *found = NULL;
    for (uint32_t i = 0; i < v->count && v->type == TERN_JSON_OBJECT; i++) {
        const tern_json_value *value = child + 1;
        if (child->text.size == size && memcmp(child->text.data, key, size) == 0)
            found = value;
        child = value + value->size;
    }
    return found;
}

/* ---- types, values --------------------------------------------------------------------------- */

unsigned tern_json_type_bits(const tern_json_value *v) {
    switch (v->type) {
    case TERN_JSON_NULL:
        return TERN_TYPE_NULL;
    case TERN_JSON_FALSE:
    case TERN_JSON_TRUE:
        return TERN_TYPE_BOOLEAN;
    case TERN_JSON_STRING:
        return TERN_TYPE_STRING;
    case TERN_JSON_ARRAY:
        return TERN_TYPE_ARRAY;
    case TERN_JSON_OBJECT:
        return TERN_TYPE_OBJECT;
    case TERN_JSON_NUMBER:
        break;
    }
    int64_t x;
    return tern_json_integer(v, &x) ? TERN_TYPE_INTEGER : TERN_TYPE_FRACTION;
}

unsigned tern_json_type_of_name(const tern_json_value *v) {
    static const struct {
        const char *name;
        unsigned bits;
    } types[] = {{"null", TERN_TYPE_NULL},
                 {"boolean", TERN_TYPE_BOOLEAN},
                 {"object", TERN_TYPE_OBJECT},
                 {"array", TERN_TYPE_ARRAY},
                 {"string", TERN_TYPE_STRING},
                 {"integer", TERN_TYPE_INTEGER},
                 {"number", TERN_TYPE_INTEGER | TERN_TYPE_FRACTION}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (tern_json_is_string(v, types[i].name))
            return types[i].bits;
    return 0;
}

static void read_type(tern_schema_reader *r, const tern_json_value *schema, const keyword *word,
                      const tern_json_value *value, tern_schema_facts *f) {
    const bool list = value->type == TERN_JSON_ARRAY;
    const tern_json_value *v = list ? value + 1 : value;
    const uint32_t n = list ? value->count : 1;
    unsigned types = 0;
    for (uint32_t i = 0; i < n; i++, v += v->size) {
        const unsigned bits =
            tern_json_is_string(v, "any") ? TERN_TYPE_ALL : tern_json_type_of_name(v);
        if (bits == 0)
            tern_schema_refuse(r, schema, word->name, "a type that does not exist");
        types |= bits;
    }
    f->types &= types;
}

tern_schema_list tern_schema_listed(const tern_json_value *key) {
    const bool list = tern_json_is_string(key, "enum");
    return (tern_schema_list){list ? key + 2 : key + 1, list ? key[1].count : 1};
}

/* A value must be in all lists. */
static void read_values(tern_schema_reader *r, const tern_json_value *schema, const keyword *word,
                        const tern_json_value *value, tern_schema_facts *f) {
    const tern_schema_list list = tern_schema_listed(value - 1);
    if (strcmp(word->name, "enum") == 0 &&
        (value->type != TERN_JSON_ARRAY || value->count > TERN_SCHEMA_MOST_VALUES)) {
        tern_schema_refuse(r, schema, word->name, "not a list, or one of too many values");
        return;
    }
    if (f->n_lists == TERN_SCHEMA_MOST_LISTS)
        tern_schema_refuse(r, schema, word->name, "together with too many others");
    else
        f->lists[f->n_lists++] = list;
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* Reads a count that is not negative. */
static int64_t read_count(tern_schema_reader *r, const tern_json_value *schema, const keyword *word,
                          const tern_json_value *value) {
    int64_t n;
    if (!tern_json_integer(value, &n) || n < 0)
        tern_schema_refuse(r, schema, word->name, "not a whole number from 0 on");
    else if (n > TERN_EXPR_MOST_REPEATS)
        tern_schema_refuse(r, schema, word->name, "a number that is too large");
    else
        return n;
    return 0;
}

static void read_least(tern_schema_reader *r, const tern_json_value *schema, const keyword *word,
                       const tern_json_value *value, tern_schema_facts *f) {
    int64_t *least = strcmp(word->name, "minLength") == 0  ? &f->least_length
                     : strcmp(word->name, "minItems") == 0 ? &f->least_items
                                                           : &f->least_properties;
    const int64_t n = read_count(r, schema, word, value);
    *least = n > *least ? n : *least;
}

static void read_most(tern_schema_reader *r, const tern_json_value *schema, const keyword *word,
                      const tern_json_value *value, tern_schema_facts *f) {
    int64_t *most = strcmp(word->name, "maxLength") == 0  ? &f->most_length
                    : strcmp(word->name, "maxItems") == 0 ? &f->most_items
                                                          : &f->most_properties;
    int64_t n;
    const bool large = tern_json_integer(value, &n) && n > TERN_EXPR_MOST_REPEATS;
    n = large ? TERN_EXPR_MOST_REPEATS : read_count(r, schema, word, value);
    *most = *most < 0 || n < *most ? n : *most;
}

/* Old drafts write `exclusiveMinimum: true` beside the minimum. */
static bool is_open(const tern_json_value *schema, const keyword *word) {
    const bool low = strstr(word->name, "inimum") != NULL;
    return word->name[0] == 'e' ||
           tern_json_is_true(tern_json_get(schema, low ? "exclusiveMinimum" : "exclusiveMaximum"));
}

static void read_limit(tern_schema_reader *r, const tern_json_value *schema, const keyword *word,
                       const tern_json_value *value, tern_schema_facts *f) {
    const bool low = strstr(word->name, "inimum") != NULL;
    tern_schema_bound *b = low ? &f->low : &f->high;
    if (word->name[0] == 'e' &&
        (value->type == TERN_JSON_TRUE || value->type == TERN_JSON_FALSE)) /* see is_open */
        return;
    if (value->type != TERN_JSON_NUMBER) {
        tern_schema_refuse(r, schema, word->name, "not a number");
        return;
    }
    const tern_schema_bound given = {true, is_open(schema, word), tern_decimal_of(value->text)};
    if (!given.at.exact && low != given.at.negative)
        tern_schema_note(r, schema, word->name,
                         "a bound of too many digits is met as far as 18 "
                         "digits before the point and 40 after it go");
    const int order = b->is ? tern_decimal_order(&given.at, &b->at) : low ? 1 : -1;
    if (order == 0)
        b->open |= given.open;
    else if ((order > 0) == low)
        *b = given;
}

static void read_step(tern_schema_reader *r, const tern_json_value *schema, const keyword *word,
                      const tern_json_value *value, tern_schema_facts *f) {
    bool sure = true;
    if (value->type != TERN_JSON_NUMBER)
        tern_schema_refuse(r, schema, word->name, "not a number");
    else if (f->multiple != NULL && !tern_decimal_divides(value->text, f->multiple->text, &sure)) {
        if (!tern_decimal_divides(f->multiple->text, value->text, &sure))
            tern_schema_note(r, schema, word->name, "together with another step");
        f->multiple = value;
        f->multiple_of = schema;
    } else if (f->multiple == NULL) {
        f->multiple = value;
        f->multiple_of = schema;
    }
}

/* ---- strings, and what must be without effect -------------------------------------------------
 */

static void read_pattern(tern_schema_reader *r, const tern_json_value *schema, const keyword *word,
                         const tern_json_value *value, tern_schema_facts *f) {
    if (value->type != TERN_JSON_STRING)
        tern_schema_refuse(r, schema, word->name, "not a string");
    else if (f->pattern != NULL && f->n_more_patterns == TERN_SCHEMA_MORE_PATTERNS)
        tern_schema_note(r, schema, word->name, "together with so many others");
    else if (f->pattern != NULL && !tern_json_same(f->pattern, value))
        f->more_patterns[f->n_more_patterns++] = value;
    else {
        f->pattern = value;
        f->pattern_of = schema;
    }
}

static void read_format(tern_schema_reader *r, const tern_json_value *schema, const keyword *word,
                        const tern_json_value *value, tern_schema_facts *f) {
    if (value->type != TERN_JSON_STRING)
        tern_schema_refuse(r, schema, word->name, "not a string");
    else if (f->format != NULL && !tern_json_same(f->format, value))
        tern_schema_note(r, schema, word->name, "together with another format");
    else {
        f->format = value;
        f->pattern_of = f->pattern == NULL ? schema : f->pattern_of;
    }
}

static void read_unique(tern_schema_reader *r, const tern_json_value *schema, const keyword *word,
                        const tern_json_value *value, tern_schema_facts *f) {
    if (value->type != TERN_JSON_FALSE && value->type != TERN_JSON_TRUE)
        tern_schema_refuse(r, schema, word->name, "neither true nor false");
    f->unique |= value->type == TERN_JSON_TRUE;
}

/* Keywords of old drafts and of parts that are not enforced. */
static void read_noted(tern_schema_reader *r, const tern_json_value *schema, const keyword *word,
                       const tern_json_value *value, tern_schema_facts *f) {
    (void)value;
    (void)f;
    tern_schema_note(r, schema, word->name, "this is not enforced");
}

static void read_max_contains(tern_schema_reader *r, const tern_json_value *schema,
                              const keyword *word, const tern_json_value *value,
                              tern_schema_facts *f) {
    if (tern_json_get(schema, "contains") != NULL)
        read_noted(r, schema, word, value, f);
}

/* ---- the table ------------------------------------------------------------------------------- */

static const keyword keywords[] = {
    {"type", read_type},
    {"enum", read_values},
    {"const", read_values},
    {"minLength", read_least},
    {"minItems", read_least},
    {"minProperties", read_least},
    {"maxLength", read_most},
    {"maxItems", read_most},
    {"maxProperties", read_most},
    {"minimum", read_limit},
    {"maximum", read_limit},
    {"exclusiveMinimum", read_limit},
    {"exclusiveMaximum", read_limit},
    {"multipleOf", read_step},
    {"divisibleBy", read_step}, /* draft 3 */
    {"pattern", read_pattern},
    {"format", read_format},
    {"uniqueItems", read_unique},
    {"maxContains", read_max_contains},
    {"extends", read_noted}, /* draft 3 */
    {"disallow", read_noted},
    /* read where sets, objects and arrays are */
    {"$ref", NULL},
    {"$dynamicRef", NULL},
    {"$recursiveRef", NULL},
    {"allOf", NULL},
    {"anyOf", NULL},
    {"oneOf", NULL},
    {"properties", NULL},
    {"required", NULL},
    {"additionalProperties", NULL},
    {"patternProperties", NULL},
    {"propertyNames", NULL},
    {"unevaluatedProperties", NULL},
    {"unevaluatedItems", NULL},
    {"contains", NULL},
    {"minContains", NULL},
    {"items", NULL},
    {"prefixItems", NULL},
    {"additionalItems", NULL},
    {"not", NULL},
    {"if", NULL},
    {"then", NULL},
    {"else", NULL},
    {"dependentRequired", NULL},
    {"dependentSchemas", NULL},
    {"dependencies", NULL},
};

static const keyword *find_keyword(tern_span name) {
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (strlen(keywords[i].name) == name.size &&
            memcmp(keywords[i].name, name.data, name.size) == 0)
            return &keywords[i];
    return NULL;
}

bool tern_schema_knows(tern_span name) {
    return find_keyword(name) != NULL;
}

/* Reads the types, or all other keywords. Types come first: what bounds mean depends on them. */
static void read_all(tern_schema_reader *r, const tern_json_value *schema, tern_schema_facts *f,
                     bool types) {
    const tern_json_value *key = schema + 1;
    for (uint32_t i = 0; i < schema->count && tern_schema_work(r, 0); i++) {
        const tern_json_value *value = key + 1;
        const keyword *word = find_keyword(key->text);
        if (word != NULL && word->read != NULL && (word->read == read_type) == types)
            word->read(r, schema, word, value, f);
        key = value + value->size;
    }
}

/* ---- what must not be ------------------------------------------------------------------------ */

/* Excludes the listed values of a schema that must not hold. No other list may be there. */
static void deny_values(tern_schema_reader *r, const tern_json_value *key, tern_schema_facts *f) {
    const tern_schema_list list = tern_schema_listed(key);
    const tern_json_value *v = list.first;
    for (uint32_t i = 0; i < list.n && tern_schema_work(r, 0); i++, v += v->size) {
        const unsigned bits = tern_json_type_bits(v);
        const unsigned numbers = TERN_TYPE_INTEGER | TERN_TYPE_FRACTION;
        const unsigned wide = (bits & numbers) != 0 ? numbers : bits;
        f->no_true |= v->type == TERN_JSON_TRUE;
        f->no_false |= v->type == TERN_JSON_FALSE;
        f->n_other_than += v->type == TERN_JSON_STRING;
        if (bits == TERN_TYPE_NULL)
            f->types &= ~bits;
        if ((wide & f->types & (numbers | TERN_TYPE_ARRAY | TERN_TYPE_OBJECT)) != 0)
            tern_schema_note(r, key + 1, key[1].type == TERN_JSON_ARRAY ? "enum" : "const",
                             "numbers, lists and objects that a value must not be");
    }
}

static void deny_type(const tern_json_value *key, tern_schema_facts *f) {
    const bool list = key[1].type == TERN_JSON_ARRAY;
    const tern_json_value *name = list ? key + 2 : key + 1;
    unsigned types = 0;
    for (uint32_t i = 0; i < (list ? key[1].count : 1); i++, name += name->size)
        types |= tern_json_type_of_name(name);
    f->fraction_unsure |= (types & TERN_TYPE_INTEGER) != 0 && (types & TERN_TYPE_FRACTION) == 0;
    f->types &= ~types;
}

static void deny_types(const tern_schema_set *s, tern_schema_facts *f) {
    for (size_t i = 0; i < s->n; i++) {
        if (s->items[i].part == TERN_SCHEMA_OBJECT)
            f->types &= TERN_TYPE_OBJECT;
        if (s->items[i].part == TERN_SCHEMA_NOT_TYPE)
            deny_type(s->items[i].v, f);
    }
}

/* Excludes values; the types must be known. */
static void deny_others(tern_schema_reader *r, const tern_schema_set *s, tern_schema_facts *f) {
    const bool plain =
        f->pattern == NULL && f->format == NULL && f->least_length == 0 && f->most_length < 0;
    const tern_json_value *at = r->json.values;
    for (size_t i = 0; i < s->n && f->n_lists == 0; i++)
        if (s->items[i].part == TERN_SCHEMA_NOT_VALUE)
            deny_values(r, s->items[i].v, f);
    for (size_t i = 0; i < s->n; i++)
        at = s->items[i].part == TERN_SCHEMA_OWN ? s->items[i].v : at;
    if (f->fraction_unsure && (f->types & TERN_TYPE_FRACTION) != 0)
        tern_schema_note(r, at, "integer", "where a schema must not hold");
    if (f->n_other_than > 0 && (f->types & TERN_TYPE_STRING) != 0 && !plain) {
        tern_schema_note(r, at,
                         f->pattern != NULL  ? "pattern"
                         : f->format != NULL ? "format"
                                             : "minLength or maxLength",
                         "together with strings that a value must not be, these are not left out");
        f->n_other_than = 0;
    }
}

/* True if one part of a set allows a value. */
static bool allows(tern_schema_check *c, const tern_schema_item *item,
                   const tern_json_value *value) {
    const tern_json_value *v = item->v;
    const bool object = value->type == TERN_JSON_OBJECT;
    const tern_json_value *member = object && v->type == TERN_JSON_STRING
                                        ? tern_schema_member(value, v->text.data, v->text.size)
                                        : NULL;
    switch (item->part) {
    case TERN_SCHEMA_OBJECT:
        return object;
    case TERN_SCHEMA_WITH:
        return !object || member != NULL;
    case TERN_SCHEMA_WITHOUT:
        return member == NULL;
    case TERN_SCHEMA_MEMBER_NOT:
        return member != NULL && !tern_schema_holds(c, v + 1, member);
    case TERN_SCHEMA_NOT_TYPE: /* said by the types */
        return true;
    case TERN_SCHEMA_NOT_VALUE: {
        const tern_schema_list list = tern_schema_listed(v);
        const tern_json_value *other = list.first;
        for (uint32_t i = 0; i < list.n; i++, other += other->size)
            if (tern_schema_same(c, other, value))
                return false;
        return true;
    }
    default:
        return tern_schema_holds(c, v, value);
    }
}

bool tern_schema_may_be(tern_schema_reader *r, const tern_schema_set *s, const tern_schema_facts *f,
                        const tern_json_value *value) {
    tern_schema_check c = {
        .root = r->json.values, .quiet = 1, .listed = f->lists[0].first}; /* value is in it */
    unsigned bits = tern_json_type_bits(value);
    if (value->type == TERN_JSON_NUMBER) /* 1.0 is an integer */
        bits = tern_decimal_of(value->text).n == 0 ? TERN_TYPE_INTEGER : TERN_TYPE_FRACTION;
    bool may = (bits & f->types) != 0;
    for (size_t i = 0; i < s->n && may; i++)
        may = allows(&c, &s->items[i], value);
    if (may && c.unsure)
        tern_schema_note(r, value, "enum or const",
                         "whether a listed value may stand is not known");
    return may && tern_schema_work(r, c.steps);
}

void tern_schema_facts_of(tern_schema_reader *r, const tern_schema_set *s, tern_schema_facts *f) {
    *f = (tern_schema_facts){
        .types = TERN_TYPE_ALL, .most_length = -1, .most_items = -1, .most_properties = -1};
    for (int types = 1; types >= 0; types--) {
        for (size_t i = 0; i < s->n; i++)
            if (s->items[i].part == TERN_SCHEMA_OWN)
                read_all(r, s->items[i].v, f, types != 0);
        if (types != 0)
            deny_types(s, f);
    }
    if (r->x->status == TERN_OK)
        deny_others(r, s, f);
}
