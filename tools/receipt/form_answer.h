/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_RECEIPT_FORM_ANSWER_H
#define TERN_TOOLS_RECEIPT_FORM_ANSWER_H

/* Receipts of answers in a form: tern run --receipt with --json-schema or --grammar. */

#include "tools/answer/many.h"
#include "tools/receipt/receipt.h"

/* A finished answer. Everything is borrowed. */
typedef struct form_answer {
    const options *o;
    const loaded *l; /* with the engine that answered */
    const prompt *prompt;
    const answer_options *how;
    const many_kept *kept; /* which is there */
} form_answer;

/* Before the run: whether an answer as the options want it can have a receipt; false after a
 * complaint. */
bool form_answer_check(const options *o);

/*
 * Repeats the answer by an engine of its own, under the form that the receipt has, and saves the
 * receipt under --receipt's name, signed if --sign-key is given. The exit status, after a complaint
 * where it is not EXIT_DONE: what would not pass, or came out otherwise, is not written.
 */
int form_answer_write(const form_answer *a);

#endif
