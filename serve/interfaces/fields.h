/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_INTERFACES_FIELDS_H
#define TERN_SERVE_INTERFACES_FIELDS_H

/* The fields of requests for text: one table, which requests are read by and the description of
 * the interface (serve/describe.c) is made from. */

#include "serve/interfaces/ask.h"

typedef struct field field;

/* What a field is read with. */
typedef struct field_reading {
    ask *a;
    const ask_rules *rules;
    const field *at;
    refusal *r;
} field_reading;

struct field {
    const char *name;
    unsigned kinds;    /* bits of ask_kind that have it */
    const char *shape; /* of its value, as serve/interfaces/shape.h writes it */
    bool (*read)(const field_reading *in, const json_t *value); /* false after a refusal */
    double low, high;                                           /* of numbers */
    size_t offset; /* of what a number or truth value goes into, in an ask */
};

/* ---- fields_form.c: fields that say which form an answer must have --------------------------- */

/* response_format; what a response's text is, {"format": ...}; output_format of messages; a schema;
 * a grammar. */
bool field_read_format(const field_reading *in, const json_t *value);
bool field_read_text(const field_reading *in, const json_t *value);
bool field_read_output_format(const field_reading *in, const json_t *value);
bool field_read_schema(const field_reading *in, const json_t *value);
bool field_read_grammar(const field_reading *in, const json_t *value);

/* ---- the table ------------------------------------------------------------------------------- */

/* The field of that name in requests of a kind; NULL: none. */
const field *field_find(const char *name, ask_kind kind);

/* Row number i of the table; NULL after the last one. */
const field *field_at(size_t i);

#endif
