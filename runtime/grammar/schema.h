/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_GRAMMAR_SCHEMA_H
#define TERN_RUNTIME_GRAMMAR_SCHEMA_H

/*
 * JSON Schemas as expressions. What is turned into an expression is a conjunction: a set of schema
 * objects, or parts of them, that all must hold. References, allOf and the members of several
 * objects only add to such a set; anyOf and oneOf become choices among sets. Each set is a rule, so
 * schemas may refer to themselves, and work waits in a queue in place of recursion.
 */

#include "base/json.h"
#include "runtime/grammar/grammar.h"

typedef enum tern_schema_part {
    TERN_SCHEMA_ALL,    /* everything that the value says */
    TERN_SCHEMA_OWN,    /* all but $ref, allOf, anyOf, oneOf */
    TERN_SCHEMA_ANY_OF, /* its anyOf alone */
    TERN_SCHEMA_ONE_OF
} tern_schema_part;

typedef struct tern_schema_item {
    const tern_json_value *v;
    tern_schema_part part;
} tern_schema_item;

enum {
    TERN_SCHEMA_MOST_ITEMS = 128,       /* of a set */
    TERN_SCHEMA_MOST_PROPERTIES = 2048, /* of an object */
    TERN_SCHEMA_MOST_NAME = 1024,       /* bytes of a property's name */
    TERN_SCHEMA_MOST_PREFIX = 512,      /* items of an array with schemas of their own */
    TERN_SCHEMA_MOST_VALUES = 1 << 14,  /* of an enum */
    TERN_SCHEMA_MOST_STEPS = 1 << 26
};

typedef struct tern_schema_set {
    tern_schema_item items[TERN_SCHEMA_MOST_ITEMS];
    size_t n;
} tern_schema_set;

typedef struct tern_schema_job {
    size_t first, n; /* items of `kept` */
    uint32_t rule;
} tern_schema_job;

typedef struct tern_schema_reader {
    tern_exprs *x;
    tern_json json;
    const char *name;
    tern_schema_params params;
    tern_schema_item *kept; /* of all jobs */
    size_t n_kept, kept_capacity;
    tern_schema_job *jobs;
    size_t n_jobs, jobs_capacity, done;
    uint32_t space;     /* white space: an expression */
    uint32_t character; /* one of a string, or an escape */
    uint32_t steps;
} tern_schema_reader;

/* Bits of the types that a value may have. */
enum {
    TERN_TYPE_NULL = 1,
    TERN_TYPE_BOOLEAN = 2,
    TERN_TYPE_OBJECT = 4,
    TERN_TYPE_ARRAY = 8,
    TERN_TYPE_STRING = 16,
    TERN_TYPE_INTEGER = 32,
    TERN_TYPE_FRACTION = 64, /* numbers that are no integers */
    TERN_TYPE_ALL = 127
};

/* What a set says, but for objects and arrays, whose members are looked up in it. */
typedef struct tern_schema_facts {
    unsigned types;
    const tern_json_value *values; /* an array, or one value of `const`; NULL: any */
    bool one_value;
    const tern_json_value *pattern, *format; /* strings, or NULL */
    const tern_json_value *pattern_of;       /* the schema that has it */
    int64_t least_length, most_length;       /* most: -1 none */
    int64_t least_items, most_items;
    int64_t least_properties;
    bool has_low, has_high;
    int64_t low, high;        /* of numbers */
    bool low_open, high_open; /* of numbers that are no integers: not the bound itself */
} tern_schema_facts;

/* "NAME: at POINTER: KEYWORD: what"; v is the schema that has the keyword. */
void tern_schema_refuse(tern_schema_reader *r, const tern_json_value *v, const char *keyword,
                        const char *what);

/* Counts work; false when it is used up, or after another failure. */
bool tern_schema_work(tern_schema_reader *r, size_t n);

/* Adds to a set, unless it is there; true and false stand for themselves. */
void tern_schema_add(tern_schema_reader *r, tern_schema_set *s, const tern_json_value *v,
                     tern_schema_part part);

/* What satisfies a set; NEVER where that is seen at once. */
uint32_t tern_schema_use(tern_schema_reader *r, tern_schema_set *s);

/* The value that a reference means; NULL after a refusal. */
const tern_json_value *tern_schema_target(tern_schema_reader *r, const tern_json_value *v,
                                          const tern_json_value *ref);

/* Reads the keywords of a set whose items are OWN. */
void tern_schema_facts_of(tern_schema_reader *r, const tern_schema_set *s, tern_schema_facts *f);

/* Whether all alternatives of a oneOf exclude each other, for reasons that are seen easily; else a
 * refusal. */
bool tern_schema_excludes(tern_schema_reader *r, const tern_json_value *v,
                          const tern_json_value *alternatives);

/* Member of an object, null too; NULL: none. */
const tern_json_value *tern_schema_member(const tern_json_value *v, const char *key, size_t size);

bool tern_json_same(const tern_json_value *a, const tern_json_value *b);
unsigned tern_json_type_bits(const tern_json_value *v);

/* Expressions of values. */
uint32_t tern_schema_value(tern_schema_reader *r, const tern_json_value *v);
uint32_t tern_schema_object(tern_schema_reader *r, const tern_schema_set *s,
                            const tern_schema_facts *f);
uint32_t tern_schema_array(tern_schema_reader *r, const tern_schema_set *s,
                           const tern_schema_facts *f);
uint32_t tern_schema_string(tern_schema_reader *r, const tern_schema_facts *f);
uint32_t tern_schema_number(tern_schema_reader *r, const tern_schema_facts *f);

/* bytes[size] of UTF-8 as they stand in a JSON string, without its quotes. */
uint32_t tern_schema_quoted(tern_exprs *x, const char *bytes, size_t size);

/* Characters of ranges[n], tidy, as they stand in a JSON string: escaped where they must be. */
uint32_t tern_schema_characters(tern_exprs *x, const tern_range *ranges, size_t n);

/* One character of any string, in all ways that JSON has but \u0000 and lone surrogates. */
uint32_t tern_schema_any_character(tern_exprs *x);

/* A character that is none of names[n]'s: keys that are none of them. */
uint32_t tern_schema_other_key(tern_schema_reader *r, const tern_span *names, size_t n);

/*
 * A regular expression over the characters of a JSON string (pattern.c says which there are), which
 * may stand anywhere in it unless it has ^ and $. *single: it is one character, *least to *most
 * times, and nothing else. On failure `why` is a message.
 */
typedef struct tern_pattern {
    uint32_t expr;
    bool is_run; /* `character`, least to most times, is all */
    uint32_t character;
    int32_t least, most;
} tern_pattern;

bool tern_pattern_read(tern_exprs *x, const char *bytes, size_t size, tern_pattern *out,
                       const char **why);

#endif
