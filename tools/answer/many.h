/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_ANSWER_MANY_H
#define TERN_TOOLS_ANSWER_MANY_H

/*
 * Several answers in one run: each prompt of a file, each as often as --rounds says. Every answer
 * begins with an empty context and the same seed, so rounds differ in their times alone.
 */

#include "tools/answer/request.h"
#include "tools/model/prompts.h"

/* Whether the options ask for it. */
bool many_wanted(const options *o);

/*
 * Answers all prompts, which get their tokens here, and prints: texts as they arrive, or with
 * --json one line for the whole run. A prompt that cannot be answered is reported in its place and
 * the others go on. The exit status.
 */
int many_answer(const options *o, const loaded *l, const answer_options *how, answerer *a,
                const prompts *p);

#endif
