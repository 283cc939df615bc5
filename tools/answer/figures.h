/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TERN_TOOLS_ANSWER_FIGURES_H
#define TERN_TOOLS_ANSWER_FIGURES_H

/* What an answer's figures say: a line for people, keys for programs. */

#include "tools/answer/answerer.h"
#include "tools/answer/together.h"
#include "tools/model/json.h"
#include "tools/model/loader.h"

/* One line on standard error. */
void figures_print(const answerer *a, const loaded *l);

/* Sets text, tokens, the figures of time and number, and "stop". */
void figures_set_answer(json_t *root, const answerer *a, const loaded *l);

/* Numbers of tokens and their rates alone. */
void figures_set_rates(json_t *root, const tern_generation *g, const loaded *l);

/* The same of one of many answers at once: a line, and keys. Its times are those that it took
 * beside the others. */
void figures_print_of_many(const together_answer *a, const char *end);
void figures_set_of_many(json_t *root, const together_answer *a, const char *end);

/* Sets what was asked for: "seed", "deterministic". */
void figures_set_choices(json_t *root, const options *o);

/* Sets what belongs to the whole process: memory, model, threads, kernels. */
void figures_set_process(json_t *root, const loaded *l);

#endif
