/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_ANSWER_MANY_H
#define TERN_TOOLS_ANSWER_MANY_H

/*
 * Several answers in one run: each prompt of a file, each as often as --rounds says, as many of
 * them at once as --parallel or memory allows. Every answer has the same seed and is what it is
 * alone. Prompts of a round that begin alike share what is computed of it; rounds share nothing.
 */

#include "tools/answer/request.h"
#include "tools/model/prompts.h"
#include "tools/touch/touch.h"

/* Whether the options ask for it: for more than one answer, or for one in a form. */
bool many_wanted(const options *o);
bool many_several(const options *o); /* for more than one */

/* What a receipt needs of the only answer. Zero-initialise; owns tokens and form. */
typedef struct many_kept {
    bool there; /* it was answered, and what follows is so */
    int32_t *tokens;
    size_t n_tokens, max_tokens; /* max_tokens: with the room in the context */
    tern_end end;
    char digest[65];
    const char *form_kind; /* "schema" or "grammar" */
    char *form;            /* [form_size] that it was compiled from */
    size_t form_size;
} many_kept;

void many_kept_free(many_kept *k);

/*
 * Answers all prompts, which get their tokens here, with an engine that is opened into *l, and
 * prints in their order: texts as they arrive, or with --json a line for each answer, then one for
 * the run. A prompt that cannot be answered is reported in its place and the others go on. t: NULL,
 * or what is read besides every token. kept: NULL, or where the only answer goes, one in a form.
 * The exit status.
 */
int many_answer(const options *o, loaded *l, const answer_options *how, touch *t, const prompts *p,
                many_kept *kept);

#endif
