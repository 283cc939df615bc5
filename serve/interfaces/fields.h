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

/* ---- fields_talk.c: fields that the chat template gets as variables -------------------------- */

/* The functions read, in this order: chat_template_kwargs; a field that is a variable under its own
 * name; enable_thinking; reasoning_effort; `reasoning` of responses, {"effort": ...}; `thinking`
 * and `output_config` of messages. */
bool field_read_variables(const field_reading *in, const json_t *value);
bool field_read_variable(const field_reading *in, const json_t *value);
bool field_read_enable_thinking(const field_reading *in, const json_t *value);
bool field_read_effort(const field_reading *in, const json_t *value);
bool field_read_reasoning(const field_reading *in, const json_t *value);
bool field_read_thinking(const field_reading *in, const json_t *value);
bool field_read_output_config(const field_reading *in, const json_t *value);

/* Switches the model's thinking on or off, unless chat_template_kwargs have done so. A template
 * that has no switch is noted under `place`, where the wish stands (NULL: it is not noted). */
bool field_switch_thinking(const field_reading *in, const char *place, bool on);

/* ---- fields_form.c: fields that say which form an answer must have --------------------------- */

/* The functions read, in this order: response_format; `text` of responses, {"format": ...};
 * output_format of messages; json_schema; grammar; a regular expression; guided_choice;
 * structured_outputs, which is an object of such fields. */
bool field_read_format(const field_reading *in, const json_t *value);
bool field_read_text(const field_reading *in, const json_t *value);
bool field_read_output_format(const field_reading *in, const json_t *value);
bool field_read_schema(const field_reading *in, const json_t *value);
bool field_read_grammar(const field_reading *in, const json_t *value);
bool field_read_pattern(const field_reading *in, const json_t *value);
bool field_read_words(const field_reading *in, const json_t *value);
bool field_read_structured(const field_reading *in, const json_t *value);

/* ---- fields_aside.c: fields that cannot change an answer, or are not done -------------------- */

/* Refuses a field with a reason; always false. */
bool field_refuse(const field_reading *in, const char *why);

/* Returns why a field is not done: it cannot change an answer, or it is refused. NULL: it is done.
 */
const char *field_why(const field *f);

/* Row i of the fields that are not done; NULL after the last one. */
const field *field_aside(size_t i);

/* ---- the table ------------------------------------------------------------------------------- */

/* Returns the field of that name in requests of a kind; NULL: none. */
const field *field_find(const char *name, ask_kind kind);

/* Returns row i of the table; NULL after the last one. */
const field *field_at(size_t i);

#endif
