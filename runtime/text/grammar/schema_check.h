/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RUNTIME_TEXT_GRAMMAR_SCHEMA_CHECK_H
#define TERN_RUNTIME_TEXT_GRAMMAR_SCHEMA_CHECK_H

/*
 * Does a value satisfy a schema? Listed values are chosen with it while a schema is compiled, and
 * answers are checked with it where a mask cannot enforce everything that the schema says.
 */

#include "base/json.h"

enum { TERN_CHECK_KEYWORD_BYTES = 40 };

/* Zero-initialise all but root. */
typedef struct tern_schema_check {
    const tern_json_value *root; /* the whole schema: references are looked up in it */
    bool unsure;                 /* something could not be told and was taken as satisfied: a
                                    pattern that PCRE2 does not read, a schema that is not here, a
                                    check that takes too much work */
    /* The first failure. */
    const tern_json_value *schema;          /* the schema that is not satisfied */
    const tern_json_value *value;           /* the value that does not satisfy it */
    char keyword[TERN_CHECK_KEYWORD_BYTES]; /* the keyword that fails */
    const tern_json_value *listed; /* the first value of an `enum` or `const` that is known to hold,
                                      or NULL */
    /* The rest belongs to the check. */
    unsigned depth, quiet;
    size_t steps;
} tern_schema_check;

/* True if v satisfies the schema, which is a part of root. */
bool tern_schema_holds(tern_schema_check *c, const tern_json_value *schema,
                       const tern_json_value *v);

/* The same for the whole schema; true where a failure is not certain. */
bool tern_schema_accepts(tern_schema_check *c, const tern_json_value *v);

enum { TERN_POINTER_BYTES = 200 };

/* Writes the JSON pointer of v, a part of `whole`. A key has the pointer of its value. What does
 * not fit is left out. */
void tern_json_pointer(const tern_json_value *whole, const tern_json_value *v, char *pointer);

/* True if the values are equal as JSON Schema means it: 1 is 1.0. */
bool tern_schema_same(tern_schema_check *c, const tern_json_value *a, const tern_json_value *b);

/* The schema that `ref` means, a JSON pointer, an anchor or the $id of a part; NULL: it is not in
 * the document. *here: it names a place of this document. */
const tern_json_value *tern_schema_find(const tern_json_value *root, tern_span ref, bool *here);

/* A pattern somewhere in a text: 1 it is there, 0 it is not, -1 that cannot be told. */
int tern_schema_matches(tern_span pattern, tern_span text);

/* A JSON number as sign, whole part and digits of the fraction, without zeros at their end. */
typedef struct tern_decimal {
    bool negative;
    uint64_t whole;
    unsigned n; /* digits in `fraction` */
    char fraction[40];
    bool exact; /* false: there were more digits, or the whole part is 10^18 or more and taken as
                   10^18 */
} tern_decimal;

tern_decimal tern_decimal_of(tern_span number);
int tern_decimal_order(const tern_decimal *a, const tern_decimal *b); /* < 0: a < b */

/* True if v = k * step for a whole k; *sure false: that cannot be told. step > 0. */
bool tern_decimal_divides(tern_span step, tern_span v, bool *sure);

#endif
