/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_RECEIPTS_FIELDS_H
#define TERN_RECEIPTS_FIELDS_H

/*
 * The kinds of documents, each with the table of its fields (fields_run.c and its kin). fields.c
 * holds documents against the tables, schema.c writes them down as JSON Schemas.
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
    DOCUMENT_RUN,        /* what a run was: tern run, tern bench --receipt */
    DOCUMENT_BENCHMARK,  /* what tern bench measured, every sample of it */
    DOCUMENT_COMPARISON, /* two programs or builds: bench/compare-engines, bench/compare */
    DOCUMENT_ANSWER,     /* what an answer of tern serve, or in a form, was */
    DOCUMENT_PERPLEXITY, /* how well a model predicts a text: tern perplexity --record */
    DOCUMENT_KINDS
} document_kind;

typedef struct document_type {
    const char *name;   /* "receipt", "benchmark", "comparison", "answer", "perplexity" */
    const char *schema; /* the value of "$schema" */
    const char *title;  /* a few words */
    const receipt_field *fields;
    size_t n;
    bool may_lack; /* fields may be null where origin.not_recorded lists them */
} document_type;

extern const document_type document_run, document_benchmark, document_comparison, document_answer,
    document_perplexity;

/* Static storage. */
const document_type *document_describe(document_kind kind);

/* Whether a field may be null in documents of the type, where origin.not_recorded lists it: never
 * those that say what a document is and where it came from. */
bool field_may_lack(const document_type *type, const receipt_field *field);

#endif
