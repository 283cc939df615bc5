/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RECEIPTS_FIELDS_H
#define TERN_RECEIPTS_FIELDS_H

/*
 * The kinds of receipts, and the table of their fields (fields_table.c). A run has all that an
 * answer has, and tells what ran, tests and figures. fields.c checks receipts against the tables,
 * schema.c writes them as JSON Schemas.
 */

#include <stdbool.h>
#include <stddef.h>

enum { FIELD_NAME_BYTES = 128 };

typedef enum field_type {
    FIELD_OBJECT,   /* its members are fields as well */
    FIELD_LIST,     /* its elements are the field path[] */
    FIELD_TEXT,     /* 1 to FIELD_NAME_BYTES bytes, or one of `words` */
    FIELD_ANY_TEXT, /* may be empty */
    FIELD_HASH,     /* 64 lower-case hexadecimal digits */
    FIELD_KEY,      /* 128 lower-case hexadecimal digits */
    FIELD_LAYOUT,   /* a ternary layout of the table, or "mixed" */
    FIELD_COUNT,    /* an integer >= 0 */
    FIELD_NUMBER,   /* finite, >= 0 */
    FIELD_SIGNED,   /* finite */
    FIELD_BOOL
} field_type;

typedef struct receipt_field {
    const char *path; /* "a.b", "a.*" for members of any name, "a[]" for elements */
    field_type type;
    bool optional;
    const char *words; /* TEXT: the allowed values, separated by spaces */
    unsigned kinds;    /* bits 1 << document_kind of the kinds that have it; 0: all */
} receipt_field;

typedef enum document_kind {
    DOCUMENT_RUN,    /* a run: tern run, tern bench --receipt */
    DOCUMENT_ANSWER, /* an answer of tern serve, or in a form */
    DOCUMENT_KINDS
} document_kind;

typedef struct document_type {
    const char *name;   /* "receipt", "answer" */
    const char *schema; /* the value of "$schema" */
    const char *title;  /* a few words */
    document_kind kind;
    const receipt_field *fields; /* [n] of all kinds */
    size_t n;
} document_type;

extern const document_type document_run, document_answer;
extern const document_type document_record; /* a line of a recording, which is no receipt */

/* True if documents of the type have the field. The fields below it are as theirs. */
static inline bool document_has(const document_type *type, const receipt_field *f) {
    return f->kinds == 0 || (f->kinds >> type->kind & 1) != 0;
}

/* The description of a kind. Static storage. */
const document_type *document_describe(document_kind kind);

#endif
