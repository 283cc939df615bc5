/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_ANSWER_FORM_H
#define TERN_TOOLS_ANSWER_FORM_H

/* The form that answers must have: --json-schema or --grammar. */

#include "tern/grammar.h"
#include "tools/answer/answerer.h"
#include "tools/load/loader.h"

typedef struct form {
    tern_grammar_tokens *tokens;
    tern_grammar *grammar; /* NULL: any answer */
    const char *kind;      /* "schema" or "grammar" */
    char *text;            /* [size] its source */
    size_t size;
    tern_schema_params params;   /* of a schema */
    tern_grammar_state **states; /* [n] states of the unfinished answers */
    size_t n;
} form;

/* True if the options ask for a form. */
bool form_wanted(const options *o);

/* Reads the form, if there is one, for n answers by l->model. EXIT_DONE, or the exit status after a
 * complaint. Free it in any case. */
int form_open(const options *o, const loaded *l, size_t n, form *f);
void form_close(form *f);

/* Adds the form to the request of an answer; false after a complaint: no memory. */
bool form_ask(form *f, size_t number, tern_request *request);

/* The tokens that may follow in an answer that form_ask has prepared: its mask, for callers with
 * hooks of their own. */
bool form_mask(const form *f, size_t number, const tern_progress *progress, uint64_t *allowed,
               size_t words);

/* The reason why a mask was refused, otherwise the answer's own error. */
const tern_error *form_error(const form *f, const one_answer *a);

/* True if the answer is a complete text of the form; false for an answer that failed. */
bool form_is_whole(form *f, const one_answer *a);

/* True unless the schema says something that masks do not enforce (tern_grammar_note) and a
 * complete answer does not satisfy; *why says where. */
bool form_is_satisfied(const form *f, const one_answer *a, tern_error *why);

/* Forgets the state of a complete answer. */
void form_end(form *f, size_t number);

#endif
