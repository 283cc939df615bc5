/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RECEIPTS_FIELDS_H
#define TERN_RECEIPTS_FIELDS_H

/*
 * The kinds of receipts, each with the table of its fields (fields_run.c, fields_answer.c).
 * fields.c holds receipts against the tables, schema.c writes them down as JSON Schemas.
 */

#include <stdbool.h>
#include <stddef.h>

enum { FIELD_NAME_BYTES = 128 };

typedef enum field_type {
    FIELD_OBJECT,   /* its members are fields of their own */
    FIELD_LIST,     /* its elements are the field path[] */
    FIELD_TEXT,     /* 1 to FIELD_NAME_BYTES bytes, or one of `words` */
    FIELD_ANY_TEXT, /* may be empty */
    FIELD_HASH,     /* 64 lower-case hexadecimal digits */
    FIELD_KEY,      /* twice as many */
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

typedef enum document_kind {
    DOCUMENT_RUN,    /* what a run was: tern run, tern bench --receipt */
    DOCUMENT_ANSWER, /* what an answer of tern serve, or in a form, was */
    DOCUMENT_KINDS
} document_kind;

typedef struct document_type {
    const char *name;   /* "receipt", "answer" */
    const char *schema; /* the value of "$schema" */
    const char *title;  /* a few words */
    const receipt_field *fields;
    size_t n;
} document_type;

extern const document_type document_run, document_answer;

/* Static storage. */
const document_type *document_describe(document_kind kind);

#endif
