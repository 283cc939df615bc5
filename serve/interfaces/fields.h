/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_SERVE_INTERFACES_FIELDS_H
#define TERN_SERVE_INTERFACES_FIELDS_H

/* The fields of requests for text. Requests are read by one table, and the description of the
 * interface (serve/openapi.c) is made from it. */

#include "serve/interfaces/ask.h"

typedef struct field field;

/* Arguments of the functions that read a field. */
typedef struct field_reading {
    ask *a;
    const ask_rules *rules;
    const field *at;
    refusal *r;
} field_reading;

struct field {
    const char *name;
    unsigned kinds;    /* bits of ask_kind: the requests that have it */
    const char *shape; /* shape of its value, as in serve/interfaces/json_shape.h */
    bool (*read)(const field_reading *in, const json_t *value); /* false after a refusal */
    double low, high;                                           /* smallest and largest number */
    size_t offset; /* offset in an ask of the member that gets a number or truth value */
};

/* ---- fields_form.c: fields that say which form an answer must have --------------------------- */

/* The functions read, in this order: response_format; `text` of responses, {"format": ...};
 * output_format of messages; json_schema; grammar. */
bool field_read_format(const field_reading *in, const json_t *value);
bool field_read_text(const field_reading *in, const json_t *value);
bool field_read_output_format(const field_reading *in, const json_t *value);
bool field_read_schema(const field_reading *in, const json_t *value);
bool field_read_grammar(const field_reading *in, const json_t *value);

/* ---- the table ------------------------------------------------------------------------------- */

/* Returns the field of that name in requests of a kind; NULL: none. */
const field *field_find(const char *name, ask_kind kind);

/* Returns row i of the table; NULL after the last one. */
const field *field_at(size_t i);

#endif
