/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_ANSWER_MANY_H
#define TERN_TOOLS_ANSWER_MANY_H

/*
 * Several answers in one run: each prompt of a file, repeated as often as --rounds says, as many at
 * once as --parallel or memory allows. Every answer has the same seed and is the same as without
 * the others. Prompts of a round that begin alike share the computation of the beginning; rounds
 * share nothing.
 */

#include "tools/answer/request.h"
#include "tools/prompt/prompt_file.h"
#include "tools/touch/touch.h"

/* True if the options ask for several answers. */
bool many_wanted(const options *o);

/*
 * Tokenizes and answers all prompts with an engine that is opened into *l. Prints in their order:
 * texts as they arrive, or with --json a line for each answer, then one for the run. A prompt that
 * cannot be answered is reported in its place and the others go on. t: the memory to read after
 * every token, or NULL. Returns the exit status.
 */
int many_answer(const options *o, loaded *l, const answer_options *how, touch *t, const prompts *p);

#endif
