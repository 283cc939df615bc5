/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_GRAMMAR_SCHEMA_MEMBERS_H
#define TERN_RUNTIME_TEXT_GRAMMAR_SCHEMA_MEMBERS_H

/* The members of objects: their names (schema_names.c) and their order (schema_object.c); and what
 * encloses members. */

#include "runtime/text/grammar/schema.h"

enum { TERN_OBJECT_MOST_PATTERNS = 64 };

/* A pattern for names: `key` is followed by the schema of the values. */
typedef struct tern_name_pattern {
    const tern_json_value *key;
    const tern_json_value *of; /* the schema that has it */
    bool readable;             /* its names can come */
} tern_name_pattern;

typedef struct tern_object {
    tern_schema_reader *r;
    const tern_schema_set *s;
    tern_span *names; /* [n] */
    bool *required;   /* [n] */
    size_t n;
    uint32_t *members;   /* [n] "name": value */
    uint32_t *rests;     /* [n + 1][counts] rules: what may follow, without the closing bracket */
    size_t counts;       /* how many members are told apart */
    int64_t least, most; /* members; most: -1 any number */
    tern_name_pattern patterns[TERN_OBJECT_MOST_PATTERNS];
    size_t n_patterns;
    bool open;              /* names may come that are neither named nor of a pattern */
    tern_schema_set namely; /* what all names must satisfy */
    uint32_t key;           /* names of `namely`, without quotes; NEVER: it does not limit them */
} tern_object;

/* The number of a name; n: it is not there. */
size_t tern_object_find(const tern_object *o, tern_span name);

/* Adds a name, unless it is there already. v is the schema that has it, for messages. */
void tern_object_add(tern_object *o, const tern_json_value *v, tern_span name, bool required);

/* Reads which further names may come. The named ones must be there. */
void tern_object_read_names(tern_object *o);

/* The value of a named property; NEVER: it must not be there. */
uint32_t tern_object_value(tern_object *o, const tern_span *name);

/* The value, and the name without quotes, of further properties: those of pattern i, or all others
 * where i is n_patterns. */
uint32_t tern_object_further_value(tern_object *o, size_t i);
uint32_t tern_object_further_key(tern_object *o, size_t i);

/* A mark with white space before and after it. */
uint32_t tern_members_spaced(tern_schema_reader *r, const char *mark);

/* Something between brackets, or nothing, if that may be; and nothing between brackets. */
uint32_t tern_members_enclosed(tern_schema_reader *r, const char *open, uint32_t inner,
                               const char *close, bool may_be_empty);
uint32_t tern_members_empty(tern_schema_reader *r, const char *open, const char *close);

#endif
