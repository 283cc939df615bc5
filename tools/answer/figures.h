/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_ANSWER_FIGURES_H
#define TERN_TOOLS_ANSWER_FIGURES_H

/* The figures of an answer: a line for people, keys for programs. */

#include "base/json_tree/value.h"
#include "tools/answer/answerer.h"
#include "tools/load/loader.h"

/* Seconds for the prompt, and for all generated tokens. If other answers run at the same time,
 * their share of the passes is included. */
double figures_prompt_seconds(const one_answer *a);
double figures_decode_seconds(const one_answer *a);
double figures_first_token_ms(const one_answer *a); /* 0: there was none */

/* Prints one line on standard error, after `name`. */
void figures_print(const char *name, const one_answer *a, const loaded *l);

/* Sets text, tokens, "stop", and the figures of time and number. */
void figures_set_answer(json_t *root, const one_answer *a, const loaded *l);

/* Sets what the options chose: "seed", "deterministic". */
void figures_set_choices(json_t *root, const options *o);

/* Sets the facts about the whole process: memory, model, threads, kernels. */
void figures_set_process(json_t *root, const loaded *l);

#endif
