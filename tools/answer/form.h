/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_ANSWER_FORM_H
#define TERN_TOOLS_ANSWER_FORM_H

/* The form that answers are held to: --json-schema or --grammar. */

#include "tern/grammar.h"
#include "tools/answer/together.h"
#include "tools/model/loader.h"

typedef struct form {
    tern_grammar_tokens *tokens;
    tern_grammar *grammar; /* NULL: answers are free */
    const char *kind;      /* "schema" or "grammar" */
    char *text;            /* [size] that it was compiled from */
    size_t size;
    tern_grammar_state **states; /* [n] of the answers that are under way */
    size_t n;
} form;

/* Whether the options ask for one. */
bool form_wanted(const options *o);

/* Reads the form, if there is one, for n answers by l->model. EXIT_DONE, or the exit status after a
 * complaint. Free in any case. */
int form_open(const options *o, const loaded *l, size_t n, form *f);
void form_close(form *f);

/* Holds an answer to the form; false after a complaint: no memory. */
bool form_ask(form *f, size_t number, tern_request *request);

/* Which tokens may follow in an answer that form_ask holds: its mask, for hooks of its caller's. */
bool form_mask(const form *f, size_t number, const tern_progress *progress, uint64_t *allowed,
               size_t words);

/* Why a mask was refused, else the answer's own error. */
const tern_error *form_error(const form *f, const together_answer *a);

/* Whether the answer is a whole text of the form; errors count as none. */
bool form_is_whole(form *f, const together_answer *a);

/* Forgets the state of a complete answer. */
void form_end(form *f, size_t number);

#endif
