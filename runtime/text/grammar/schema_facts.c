/* SPDX-License-Identifier: Apache-2.0 */

/* Reads what the keywords of a schema say. Each keyword that tern knows is one line of a table;
 * every other one is refused. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/text/grammar/schema.h"

enum { NUMBER_BYTES = 64 };

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

static unsigned type_of_name(const tern_json_value *v) {
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
        const unsigned bits = type_of_name(v);
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
    int64_t *most = strcmp(word->name, "maxLength") == 0 ? &f->most_length : &f->most_items;
    int64_t n;
    const bool large = tern_json_integer(value, &n) && n > TERN_EXPR_MOST_REPEATS;
    n = large ? TERN_EXPR_MOST_REPEATS : read_count(r, schema, word, value);
    *most = *most < 0 || n < *most ? n : *most;
}

/* Reads a bound: *floor_of is the number, or the next integer below it. False for other values, and
 * beyond 64 bits. */
static bool read_bound(const tern_json_value *v, int64_t *floor_of, bool *whole) {
    char text[NUMBER_BYTES];
    *whole = true;
    if (v->type != TERN_JSON_NUMBER)
        return false;
    if (tern_json_integer(v, floor_of))
        return *floor_of > -(INT64_MAX / 4) && *floor_of < INT64_MAX / 4;
    if (v->text.size >= sizeof text)
        return false;
    memcpy(text, v->text.data, v->text.size);
    text[v->text.size] = '\0';
    const double x = strtod(text, NULL);
    *whole = floor(x) == x;
    *floor_of = fabs(x) < 9e15 ? (int64_t)floor(x) : 0;
    return fabs(x) < 9e15;
}

static void read_limit(tern_schema_reader *r, const tern_json_value *schema, const keyword *word,
                       const tern_json_value *value, tern_schema_facts *f) {
    const bool low = strstr(word->name, "inimum") != NULL;
    const bool open = strncmp(word->name, "exclusive", strlen("exclusive")) == 0;
    int64_t bound;
    bool whole;
    if (!read_bound(value, &bound, &whole)) {
        tern_schema_refuse(r, schema, word->name, "not a number, or one that is too large");
        return;
    }
    if (!whole && (f->types & TERN_TYPE_FRACTION)) {
        tern_schema_refuse(r, schema, word->name,
                           "of numbers that may have a fraction only whole bounds are supported");
        return;
    }
    const bool steps = open && whole && !(f->types & TERN_TYPE_FRACTION);
    if (low) {
        bound += !whole || steps;
        if (!f->has_low || bound > f->low)
            f->low_open = false;
        f->low_open |= open && (!f->has_low || bound >= f->low);
        f->low = f->has_low && f->low > bound ? f->low : bound;
        f->has_low = true;
    } else {
        bound -= steps;
        if (!f->has_high || bound < f->high)
            f->high_open = false;
        f->high_open |= open && (!f->has_high || bound <= f->high);
        f->high = f->has_high && f->high < bound ? f->high : bound;
        f->has_high = true;
    }
}

/* ---- strings, and what must be without effect -------------------------------------------------
 */

static void read_pattern(tern_schema_reader *r, const tern_json_value *schema, const keyword *word,
                         const tern_json_value *value, tern_schema_facts *f) {
    if (value->type != TERN_JSON_STRING)
        tern_schema_refuse(r, schema, word->name, "not a string");
    else if (f->pattern != NULL && !tern_json_same(f->pattern, value))
        tern_schema_refuse(r, schema, word->name, "together with another pattern");
    f->pattern = value;
    f->pattern_of = schema;
}

static void read_format(tern_schema_reader *r, const tern_json_value *schema, const keyword *word,
                        const tern_json_value *value, tern_schema_facts *f) {
    if (value->type != TERN_JSON_STRING)
        tern_schema_refuse(r, schema, word->name, "not a string");
    else if (f->format != NULL && !tern_json_same(f->format, value))
        tern_schema_refuse(r, schema, word->name, "together with another format");
    f->format = value;
    f->pattern_of = schema;
}

static void read_unique(tern_schema_reader *r, const tern_json_value *schema, const keyword *word,
                        const tern_json_value *value, tern_schema_facts *f) {
    if (value->type != TERN_JSON_FALSE && value->type != TERN_JSON_TRUE)
        tern_schema_refuse(r, schema, word->name, "neither true nor false");
    f->unique |= value->type == TERN_JSON_TRUE;
}

static void read_id(tern_schema_reader *r, const tern_json_value *schema, const keyword *word,
                    const tern_json_value *value, tern_schema_facts *f) {
    (void)value;
    (void)f;
    if (schema != r->json.values)
        tern_schema_refuse(r, schema, word->name, "only of the whole schema");
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
    {"minimum", read_limit},
    {"maximum", read_limit},
    {"exclusiveMinimum", read_limit},
    {"exclusiveMaximum", read_limit},
    {"pattern", read_pattern},
    {"format", read_format},
    {"uniqueItems", read_unique},
    {"$id", read_id},
    {"id", read_id},
    /* read where sets, objects and arrays are */
    {"$ref", NULL},
    {"allOf", NULL},
    {"anyOf", NULL},
    {"oneOf", NULL},
    {"properties", NULL},
    {"required", NULL},
    {"additionalProperties", NULL},
    {"patternProperties", NULL},
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

/* Keywords for human readers. */
static const keyword notes[] = {
    {"$schema", NULL},         {"$comment", NULL},
    {"$defs", NULL},           {"definitions", NULL},
    {"title", NULL},           {"description", NULL},
    {"default", NULL},         {"example", NULL},
    {"examples", NULL},        {"deprecated", NULL},
    {"readOnly", NULL},        {"readonly", NULL}, /* draft 3 spells it like this */
    {"writeOnly", NULL},       {"contentMediaType", NULL},
    {"contentEncoding", NULL}, {"contentSchema", NULL},
};

static const keyword *find_in(const keyword *list, size_t n, tern_span name) {
    for (size_t i = 0; i < n; i++)
        if (strlen(list[i].name) == name.size && memcmp(list[i].name, name.data, name.size) == 0)
            return &list[i];
    return NULL;
}

bool tern_schema_is_note(tern_span name) {
    const bool own = name.size > 2 && memcmp(name.data, "x-", 2) == 0;
    return own || find_in(notes, sizeof notes / sizeof *notes, name) != NULL;
}

static void refuse_unknown(tern_schema_reader *r, const tern_json_value *schema, tern_span name) {
    char text[64];
    (void)snprintf(text, sizeof text, "%.*s", (int)(name.size < 60 ? name.size : 60), name.data);
    tern_schema_refuse(r, schema, text, "this keyword is not supported");
}

/* Reads the types, or all other keywords. Types come first: what bounds mean depends on them. */
static void read_all(tern_schema_reader *r, const tern_json_value *schema, tern_schema_facts *f,
                     bool types) {
    const tern_json_value *key = schema + 1;
    for (uint32_t i = 0; i < schema->count && tern_schema_work(r, 0); i++) {
        const tern_json_value *value = key + 1;
        const keyword *word = find_in(keywords, sizeof keywords / sizeof *keywords, key->text);
        if (word == NULL && !tern_schema_is_note(key->text))
            refuse_unknown(r, schema, key->text);
        else if (word != NULL && word->read != NULL && (word->read == read_type) == types)
            word->read(r, schema, word, value, f);
        key = value + value->size;
    }
}

/* Refuses keywords that say more about listed values: these are not compared with them. */
static void check_values(tern_schema_reader *r, const tern_schema_set *s,
                         const tern_schema_facts *f) {
    static const char *const others[] = {
        "minLength",     "maxLength",         "pattern",
        "format",        "minimum",           "maximum",
        "minItems",      "maxItems",          "required",
        "properties",    "exclusiveMinimum",  "exclusiveMaximum",
        "items",         "prefixItems",       "additionalItems",
        "minProperties", "patternProperties", "additionalProperties"};
    for (size_t i = 0; i < s->n && f->n_lists > 0; i++)
        for (size_t k = 0; k < sizeof others / sizeof *others; k++)
            if (tern_json_get(s->items[i].v, others[k]) != NULL)
                tern_schema_refuse(r, s->items[i].v, others[k],
                                   "together with enum or const this is not supported");
}

/* ---- what must not be ------------------------------------------------------------------------ */

static const char where_not[] = "not supported where a schema must not hold";

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
            tern_schema_refuse(r, key + 1, key[1].type == TERN_JSON_ARRAY ? "enum" : "const",
                               "numbers, lists and objects that a value must not be are not "
                               "supported");
    }
}

static void deny_type(const tern_json_value *key, tern_schema_facts *f) {
    const bool list = key[1].type == TERN_JSON_ARRAY;
    const tern_json_value *name = list ? key + 2 : key + 1;
    unsigned types = 0;
    for (uint32_t i = 0; i < (list ? key[1].count : 1); i++, name += name->size)
        types |= type_of_name(name);
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
        tern_schema_refuse(r, at, "integer", where_not);
    if (f->n_other_than > 0 && (f->types & TERN_TYPE_STRING) != 0 && !plain)
        tern_schema_refuse(r, at,
                           f->pattern != NULL  ? "pattern"
                           : f->format != NULL ? "format"
                                               : "minLength or maxLength",
                           "together with strings that a value must not be");
}

/* True if a listed value is in `list`. What cannot be told is refused. */
static bool is_in(tern_schema_reader *r, const tern_schema_list *list,
                  const tern_json_value *value) {
    const tern_json_value *v = list->first;
    bool unsure = false;
    for (uint32_t i = 0; i < list->n && tern_schema_work(r, value->size); i++, v += v->size) {
        const tern_schema_equality e = tern_schema_equal(v, value);
        if (e == TERN_SCHEMA_SAME)
            return true;
        unsure |= e == TERN_SCHEMA_UNSURE;
    }
    if (unsure)
        tern_schema_refuse(r, value, "enum or const",
                           "whether two listed values are equal cannot be told");
    return false;
}

bool tern_schema_may_be(tern_schema_reader *r, const tern_schema_set *s, const tern_schema_facts *f,
                        const tern_json_value *value) {
    bool may = (tern_json_type_bits(value) & f->types) != 0;
    for (size_t i = 1; i < f->n_lists && may; i++)
        may = is_in(r, &f->lists[i], value);
    for (size_t i = 0; i < s->n && may; i++) {
        const tern_schema_item *item = &s->items[i];
        const tern_schema_list list = item->part == TERN_SCHEMA_NOT_VALUE
                                          ? tern_schema_listed(item->v)
                                          : (tern_schema_list){NULL, 0};
        may = !is_in(r, &list, value);
        if (item->part >= TERN_SCHEMA_WITH && item->part <= TERN_SCHEMA_MEMBER_NOT && may &&
            value->type == TERN_JSON_OBJECT)
            tern_schema_refuse(r, value, "required",
                               "together with enum or const this is not supported");
    }
    return may && r->x->status == TERN_OK;
}

void tern_schema_facts_of(tern_schema_reader *r, const tern_schema_set *s, tern_schema_facts *f) {
    *f = (tern_schema_facts){.types = TERN_TYPE_ALL, .most_length = -1, .most_items = -1};
    for (int types = 1; types >= 0; types--) {
        for (size_t i = 0; i < s->n; i++)
            if (s->items[i].part == TERN_SCHEMA_OWN)
                read_all(r, s->items[i].v, f, types != 0);
        if (types != 0)
            deny_types(s, f);
    }
    if (r->x->status == TERN_OK)
        deny_others(r, s, f);
    check_values(r, s, f);
}
