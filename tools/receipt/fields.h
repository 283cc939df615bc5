/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_RECEIPT_FIELDS_H
#define TERN_TOOLS_RECEIPT_FIELDS_H

/* The table of a receipt's fields (fields_table.c), which fields.c holds documents against. */

#include <stdbool.h>
#include <stddef.h>

enum { FIELD_NAME_BYTES = 128 };

typedef enum field_type {
    FIELD_OBJECT,   /* its members are fields of their own */
    FIELD_LIST,     /* its elements are the field path[] */
    FIELD_TEXT,     /* 1 to FIELD_NAME_BYTES bytes, or one of `words` */
    FIELD_ANY_TEXT, /* may be empty */
    FIELD_HASH,     /* 64 lower-case hexadecimal digits */
    FIELD_KEY,      /* an even number of them */
    FIELD_COUNT,    /* an integer >= 0 */
    FIELD_NUMBER,   /* finite, >= 0 */
    FIELD_SIGNED,   /* finite */
    FIELD_BOOL
} field_type;

typedef struct receipt_field {
    const char *path; /* "a.b", "a.*" for members of any name, "a[]" for elements */
    field_type type;
    bool optional;
    const char *words; /* TEXT: the values that are allowed, separated by spaces */
} receipt_field;

/* All rows. Static storage. */
const receipt_field *receipt_fields(size_t *n);

#endif
