/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_GRAMMAR_SCHEMA_H
#define TERN_RUNTIME_TEXT_GRAMMAR_SCHEMA_H

/*
 * JSON Schemas as expressions. An expression is made of a conjunction: a set of schema objects, or
 * parts of them, that all must hold. References, allOf and the members of several objects only add
 * to such a set. anyOf, oneOf and schemas that must not hold (schema_deny.c) become choices among
 * sets. Each set is a rule, so schemas may refer to themselves, and work waits in a queue in place
 * of recursion.
 */

#include "base/json.h"
#include "runtime/text/grammar/grammar.h"
#include "runtime/text/grammar/schema_check.h"

typedef enum tern_schema_part {
    TERN_SCHEMA_ALL,    /* everything that the schema says */
    TERN_SCHEMA_OWN,    /* everything but the parts below */
    TERN_SCHEMA_ANY_OF, /* its anyOf alone */
    TERN_SCHEMA_ONE_OF,
    TERN_SCHEMA_IF,         /* its if, then and else */
    TERN_SCHEMA_NOT,        /* the schema does not hold */
    TERN_SCHEMA_DEPENDENCY, /* v is a key; the value after it holds for objects that have that
                               name */
    /* v is a key or a name, followed by its value: */
    TERN_SCHEMA_OBJECT,     /* the value is an object */
    TERN_SCHEMA_WITH,       /* an object has this name */
    TERN_SCHEMA_WITHOUT,    /* an object does not have it */
    TERN_SCHEMA_MEMBER_NOT, /* an object has it, with a value that does not satisfy the schema */
    TERN_SCHEMA_NOT_TYPE,   /* the value has none of the types */
    TERN_SCHEMA_NOT_VALUE   /* the value is not one of `enum`, or not `const` */
} tern_schema_part;

typedef struct tern_schema_item {
    const tern_json_value *v;
    tern_schema_part part;
} tern_schema_item;

enum {
    TERN_SCHEMA_MOST_ITEMS = 128,                           /* items of a set */
    TERN_SCHEMA_MOST_PROPERTIES = TERN_GRAMMAR_LIMIT(2048), /* properties of an object */
    TERN_SCHEMA_MOST_NAME = 1024,                           /* bytes of a property's name */
    TERN_SCHEMA_MOST_PREFIX =
        TERN_GRAMMAR_LIMIT(512), /* items of an array with schemas of their own */
    TERN_SCHEMA_MOST_VALUES = TERN_GRAMMAR_LIMIT(1 << 14),                   /* values of an enum */
    TERN_SCHEMA_MOST_STEPS = TERN_GRAMMAR_LIMIT(TERN_GRAMMAR_LIMIT(1 << 26)) /* parts of sets */
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
    tern_schema_notes *notes;
    bool narrow; /* what cannot be met exactly is met by some of its texts, if there are any */
    tern_schema_item *kept; /* items of all jobs */
    size_t n_kept, kept_capacity;
    tern_schema_job *jobs;
    size_t n_jobs, jobs_capacity, done;
    uint32_t space;     /* an expression for white space */
    uint32_t character; /* an expression for one character of a string, or an escape */
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
    TERN_TYPE_FRACTION = 64, /* numbers that are not integers */
    TERN_TYPE_ALL = 127
};

enum { TERN_SCHEMA_MOST_LISTS = 8 }; /* lists that one value must all be in */

/* The values of an `enum` or a `const`. */
typedef struct tern_schema_list {
    const tern_json_value *first;
    uint32_t n;
} tern_schema_list;

typedef struct tern_schema_bound {
    bool is, open; /* open: the bound itself is excluded */
    tern_decimal at;
} tern_schema_bound;

enum { TERN_SCHEMA_MORE_PATTERNS = 7 }; /* beside the first */

/* The facts that a set states. For objects and arrays, members are looked up in the set itself. */
typedef struct tern_schema_facts {
    unsigned types;
    tern_schema_list lists[TERN_SCHEMA_MOST_LISTS]; /* [n_lists] the value is in all of them */
    size_t n_lists;
    bool fraction_unsure; /* integers must not be; some numbers with a fraction are integers, too
                             (1.0) */
    bool no_true, no_false;
    size_t n_other_than;                                             /* strings that must not be */
    bool unique;                                                     /* items of an array */
    const tern_json_value *pattern, *format;                         /* strings, or NULL */
    const tern_json_value *pattern_of;                               /* the schema that has it */
    const tern_json_value *more_patterns[TERN_SCHEMA_MORE_PATTERNS]; /* [n_more_patterns] */
    size_t n_more_patterns;
    int64_t least_length, most_length; /* most: -1 none */
    int64_t least_items, most_items;
    int64_t least_properties, most_properties; /* most: -1 none */
    tern_schema_bound low, high;               /* of numbers */
    const tern_json_value *multiple;           /* the step of numbers, or NULL */
    const tern_json_value *multiple_of;        /* the schema that has it */
} tern_schema_facts;

/* "NAME: at POINTER: KEYWORD: what"; v is the schema that has the keyword. */
void tern_schema_refuse(tern_schema_reader *r, const tern_json_value *v, const char *keyword,
                        const char *what);

/* The same for what the texts are not held to: they are held to all else, and the note is told. A
 * note is told once. */
void tern_schema_note(tern_schema_reader *r, const tern_json_value *v, const char *keyword,
                      const char *what);

/* Counts work; false when it is used up, or after another failure. */
bool tern_schema_work(tern_schema_reader *r, size_t n);

/* Adds v to a set, unless it is there already. v may also be the schema true or false. */
void tern_schema_add(tern_schema_reader *r, tern_schema_set *s, const tern_json_value *v,
                     tern_schema_part part);

/* The expression of what satisfies a set; NEVER if it is seen at once that nothing does. */
uint32_t tern_schema_use(tern_schema_reader *r, tern_schema_set *s);

/* The value that a reference means; NULL: after a refusal, or after a note that it is not here. */
const tern_json_value *tern_schema_target(tern_schema_reader *r, const tern_json_value *v,
                                          const tern_json_value *ref);

/* The values after a key `enum` or `const`. */
tern_schema_list tern_schema_listed(const tern_json_value *key);

/* Reads the keywords of a set that has no choice. */
void tern_schema_facts_of(tern_schema_reader *r, const tern_schema_set *s, tern_schema_facts *f);

/* True if two schemas exclude each other, for reasons that are easy to see. */
bool tern_schema_excludes(tern_schema_reader *r, const tern_json_value *a,
                          const tern_json_value *b);

/* Adds to a set that none of a oneOf's alternatives holds but `chosen`, number `index`. Those that
 * exclude it anyway are left out; those that cannot be denied are noted. */
void tern_schema_add_others(tern_schema_reader *r, tern_schema_set *s, const tern_json_value *v,
                            uint32_t index, const tern_json_value *chosen);

/* True if one can say what does not satisfy v, as far as v alone tells: exactly, or some of it
 * where the reader is narrow. beside: a schema that must hold at the same time, or NULL. */
bool tern_schema_can_deny(tern_schema_reader *r, const tern_json_value *v,
                          const tern_json_value *beside);

/* The types that a schema allows, as far as it says so itself. */
unsigned tern_schema_types_of(tern_schema_reader *r, const tern_json_value *v);

/* True if a schema requires a name itself. */
bool tern_schema_requires(const tern_json_value *v, tern_span name);

/* Expressions of what satisfies: `rest` and not v, an object; `rest` and v's if, then and else;
 * `rest` and, for objects that have that name, what stands after `key`. */
uint32_t tern_schema_denied(tern_schema_reader *r, const tern_schema_set *rest,
                            const tern_json_value *v);
uint32_t tern_schema_condition(tern_schema_reader *r, const tern_schema_set *rest,
                               const tern_json_value *v);
uint32_t tern_schema_dependency(tern_schema_reader *r, const tern_schema_set *rest,
                                const tern_json_value *key);

/* Takes everything in a set apart except its choices; false when nothing can satisfy it. */
bool tern_schema_settle(tern_schema_reader *r, tern_schema_set *s);

/* True if a set still has a choice to make. */
bool tern_schema_has_choice(const tern_schema_set *s);

/* True if the keyword says something about values. */
bool tern_schema_knows(tern_span name);

/* True if a value of the first list is in all lists and satisfies everything else in the set. */
bool tern_schema_may_be(tern_schema_reader *r, const tern_schema_set *s, const tern_schema_facts *f,
                        const tern_json_value *value);

/* The member of an object, which may be null; NULL: there is none. */
const tern_json_value *tern_schema_member(const tern_json_value *v, const char *key, size_t size);

bool tern_json_same(const tern_json_value *a, const tern_json_value *b);
unsigned tern_json_type_bits(const tern_json_value *v);
unsigned tern_json_type_of_name(const tern_json_value *v); /* 0: no such type */

/* Expressions of values. */
uint32_t tern_schema_value(tern_schema_reader *r, const tern_json_value *v);
uint32_t tern_schema_object(tern_schema_reader *r, const tern_schema_set *s,
                            const tern_schema_facts *f);
uint32_t tern_schema_array(tern_schema_reader *r, const tern_schema_set *s,
                           const tern_schema_facts *f);
uint32_t tern_schema_string(tern_schema_reader *r, const tern_schema_set *s,
                            const tern_schema_facts *f);
uint32_t tern_schema_number(tern_schema_reader *r, const tern_schema_facts *f);

/* A format of strings: a pattern, and how many characters its texts have. */
typedef struct tern_schema_format {
    const char *name, *pattern;
    int64_t least, most; /* most: -1 any number */
    bool exact;          /* the pattern is the whole format, not a part of it */
} tern_schema_format;

/* NULL: it is not known. */
const tern_schema_format *tern_schema_format_named(tern_span name);

/* bytes[size] of UTF-8 as they stand in a JSON string, without its quotes. */
uint32_t tern_schema_quoted(tern_exprs *x, const char *bytes, size_t size);

/* Characters of ranges[n], tidy, as they stand in a JSON string: escaped where they must be. */
uint32_t tern_schema_characters(tern_exprs *x, const tern_range *ranges, size_t n);

/* One character of any string, in all ways that JSON has except \u0000 and lone surrogates. */
uint32_t tern_schema_any_character(tern_exprs *x);

/* The text of a key that is none of names[n]. */
uint32_t tern_schema_other_key(tern_schema_reader *r, const tern_span *names, size_t n);

/* The names that a schema of propertyNames allows, without their quotes; EMPTY where only the names
 * that it lists may stand. */
uint32_t tern_schema_text(tern_schema_reader *r, const tern_schema_facts *f);

/*
 * A regular expression over the characters of a JSON string (pattern.c says what is supported). It
 * may match anywhere in the string unless it has ^ and $. On failure `why` is a message.
 */
typedef struct tern_pattern {
    uint32_t expr;
    bool is_run; /* it is `character`, least to most times, and nothing else */
    uint32_t character;
    int32_t least, most;
} tern_pattern;

bool tern_pattern_read(tern_exprs *x, const char *bytes, size_t size, tern_pattern *out,
                       const char **why);

/* The texts that match a regular expression as a whole. Refusals fail x. */
uint32_t tern_pattern_whole(tern_exprs *x, const char *bytes, size_t size);

/* Texts of a pattern's expression with at least `least` and at most `most` characters (-1: any
 * number); not all of them where several parts may grow. NEVER: there are none. */
uint32_t tern_pattern_with_length(tern_exprs *x, uint32_t expr, int64_t least, int64_t most);

/* Texts that all of n expressions of patterns match, and that have at least `least` and at most
 * `most` characters (-1: any number). NEVER: there are none. False: that would be too large. */
bool tern_pattern_both(tern_exprs *x, const uint32_t *exprs, size_t n, int64_t least, int64_t most,
                       uint32_t *out);

#endif
