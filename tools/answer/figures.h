/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_ANSWER_FIGURES_H
#define TERN_TOOLS_ANSWER_FIGURES_H

/* What an answer's figures say: a line for people, keys for programs. */

#include "tools/answer/answerer.h"
#include "tools/model/json.h"
#include "tools/model/loader.h"

/* Seconds that the prompt took, and all tokens; beside other answers, with what these took. */
double figures_prompt_seconds(const together_answer *a);
double figures_decode_seconds(const together_answer *a);
double figures_first_token_ms(const together_answer *a); /* 0: there was none */

/* One line on standard error; `name` stands before it. */
void figures_print(const char *name, const together_answer *a, const loaded *l);

/* Sets text, tokens, the figures of time and number, and "stop". */
void figures_set_answer(json_t *root, const together_answer *a, const loaded *l);

/* Sets what was asked for: "seed", "deterministic". */
void figures_set_choices(json_t *root, const options *o);

/* Sets what belongs to the whole process: memory, model, threads, kernels. */
void figures_set_process(json_t *root, const loaded *l);

#endif
