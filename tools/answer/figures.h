/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_ANSWER_FIGURES_H
#define TERN_TOOLS_ANSWER_FIGURES_H

/* What an answer's figures say: a line for people, keys for programs. */

#include "tools/answer/answer.h"
#include "tools/model/json.h"
#include "tools/model/loader.h"

/* One line on standard error. */
void figures_print(const answerer *a, const loaded *l);

/* Sets text, tokens, the figures of time and number, and "stop". */
void figures_set_answer(json_t *root, const answerer *a, const loaded *l);

/* Numbers of tokens and their rates alone. */
void figures_set_rates(json_t *root, const tern_generation *g, const loaded *l);

/* Sets what was asked for: "seed", "deterministic". */
void figures_set_choices(json_t *root, const options *o);

/* Sets what belongs to the whole process: memory, model, threads, kernels. */
void figures_set_process(json_t *root, const loaded *l);

#endif
