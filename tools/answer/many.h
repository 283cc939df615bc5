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

/* Whether the options ask for it. */
bool many_wanted(const options *o);

/*
 * Answers all prompts, which get their tokens here, with an engine that is opened into *l, and
 * prints in their order: texts as they arrive, or with --json a line for each answer, then one for
 * the run. A prompt that cannot be answered is reported in its place and the others go on. t: NULL,
 * or what is read besides every token. The exit status.
 */
int many_answer(const options *o, loaded *l, const answer_options *how, touch *t, const prompts *p);

#endif
